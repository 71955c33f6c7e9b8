; A file is one scope: order does not matter, and blocks hide nothing.

(source_file) @local.scope

(param name: (identifier) @local.definition.constant)
(let name: (identifier) @local.definition.constant)
(import alias: (identifier) @local.definition.import)
((block kind: (identifier) @_kind name: (identifier) @local.definition.type)
  (#any-of? @_kind "model" "board" "service" "node"))

(attribute value: (identifier) @local.reference)
(binary (identifier) @local.reference)
(negative (identifier) @local.reference)
(group (identifier) @local.reference)
(argument value: (identifier) @local.reference)
(element (identifier) @local.reference)
(times (identifier) @local.reference)
(range (identifier) @local.reference)
(over (identifier) @local.reference)
(promise (identifier) @local.reference)
(path root: (identifier) @local.reference)
(limit bound: (identifier) @local.reference)
