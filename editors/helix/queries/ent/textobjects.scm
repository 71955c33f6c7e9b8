(block body: (body) @class.inside) @class.around
(argument) @parameter.inside
(element) @entry.inside
(attribute) @entry.around
(comment) @comment.inside
(comment)+ @comment.around
