[
  (body)
  (list)
  (call)
  (tensor)
  (group)
  (binary)
] @indent

[ "}" "]" ")" ] @outdent
