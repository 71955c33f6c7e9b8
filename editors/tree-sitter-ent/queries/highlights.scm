; Names of nvim-treesitter; `tree-sitter highlight` knows them too. The last pattern that matches a node wins.

(identifier) @variable
(string) @string

(attribute name: (identifier) @property)
(argument name: (identifier) @variable.parameter)
(path root: (identifier) @module)
(path member: (identifier) @variable.member)

(param name: (identifier) @constant)
(let name: (identifier) @constant)
(import alias: (identifier) @module)

(block kind: (identifier) @keyword.type)
(block name: (identifier) @type)
(block name: (string) @type)

(call function: (identifier) @function.call)
((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin "min" "max" "round" "csv" "trace" "gamma"))
(tensor type: (identifier) @type.builtin)

((identifier) @boolean
  (#any-of? @boolean "true" "false"))

; Words with a meaning of their own, where a value stands.
(attribute value: (identifier) @constant.builtin
  (#any-of? @constant.builtin
    "poisson" "uniform" "idle" "off" "mig" "mps" "whole" "fitted" "table" "queueing" "execution"))
((attribute name: (identifier) @_spread value: (identifier) @constant.builtin)
  (#eq? @_spread "spread")
  (#any-of? @constant.builtin "gpu" "node"))

(limit metric: (identifier) @constant.builtin)
(minimize metric: (identifier) @constant.builtin)

"import" @keyword.import
"as" @keyword.import
[ "param" "let" ] @keyword
[ "limit" "minimize" ] @keyword
[ "step" "over" "x" ] @keyword.operator

(escape) @string.escape
(import path: (string) @string.special.path)
(number) @number
(unit) @type.builtin
(profile) @constant.builtin
(percentile) @constant.builtin
(comment) @comment

[ "=" "<=" ".." "+" "-" "*" "/" ] @operator
[ "," "." ":" ] @punctuation.delimiter
[ "{" "}" "(" ")" "[" "]" ] @punctuation.bracket
