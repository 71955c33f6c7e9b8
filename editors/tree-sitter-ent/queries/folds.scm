[
  (body)
  (list)
  (call)
  (tensor)
  (group)
  (comment)+
  (import)+
] @fold
