[ (body) (list) (call) (tensor) (group) ] @rainbow.scope
[ "{" "}" "(" ")" "[" "]" ] @rainbow.bracket
