(body "}" @end) @indent
(list "]" @end) @indent
(tensor "]" @end) @indent
(call ")" @end) @indent
(group ")" @end) @indent
