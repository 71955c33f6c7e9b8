[
  (body)
  (list)
  (call)
  (tensor)
  (group)
] @indent.begin

[ "}" "]" ")" ] @indent.branch @indent.end

; A value that goes on after an operator.
(binary) @indent.begin

(comment) @indent.ignore
(string) @indent.ignore
(ERROR) @indent.auto
