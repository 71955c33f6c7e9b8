; Names of Helix's themes. The last pattern that matches a node wins.

(identifier) @variable
(string) @string

(attribute name: (identifier) @variable.other.member)
(argument name: (identifier) @variable.parameter)
(path root: (identifier) @namespace)
(path member: (identifier) @variable.other.member)

(param name: (identifier) @constant)
(let name: (identifier) @constant)
(import alias: (identifier) @namespace)

(block kind: (identifier) @keyword.storage.type)
(block name: (identifier) @type)
(block name: (string) @type)

(call function: (identifier) @function)
((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin "min" "max" "round" "csv" "trace" "gamma"))
(tensor type: (identifier) @type.builtin)

((identifier) @constant.builtin.boolean
  (#any-of? @constant.builtin.boolean "true" "false"))
((attribute value: (identifier) @constant.builtin)
  (#any-of? @constant.builtin
    "poisson" "uniform" "idle" "off" "mig" "mps" "whole" "fitted" "table" "queueing" "execution"))

(limit metric: (identifier) @constant.builtin)
(minimize metric: (identifier) @constant.builtin)

"import" @keyword.control.import
"as" @keyword.control.import
[ "param" "let" ] @keyword.storage
[ "limit" "minimize" ] @keyword
[ "step" "over" "x" ] @keyword.operator

(escape) @constant.character.escape
(import path: (string) @string.special.path)
(number) @constant.numeric
(unit) @type.builtin
(profile) @constant.builtin
(percentile) @constant.builtin
(comment) @comment.line

[ "=" "<=" ".." "+" "-" "*" "/" ] @operator
[ "," "." ":" ] @punctuation.delimiter
[ "{" "}" "(" ")" "[" "]" ] @punctuation.bracket
