((block kind: (identifier) @_kind name: [(identifier) (string)] @name) @definition.class
  (#any-of? @_kind "service" "model" "board" "node"))
(param name: (identifier) @name) @definition.constant
(let name: (identifier) @name) @definition.constant
