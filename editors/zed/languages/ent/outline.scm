(block
  kind: (identifier) @context
  name: [(identifier) (string) (profile)] @name) @item
((block kind: (identifier) @name !name) @item)
(param "param" @context name: (identifier) @name) @item
(let "let" @context name: (identifier) @name) @item
