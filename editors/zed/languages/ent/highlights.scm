; Names of Zed's themes. The last pattern that matches a node wins.

(identifier) @variable
(string) @string

(attribute name: (identifier) @property)
(argument name: (identifier) @variable.parameter)
(path root: (identifier) @namespace)
(path member: (identifier) @property)

(param name: (identifier) @constant)
(let name: (identifier) @constant)
(import alias: (identifier) @namespace)

(block kind: (identifier) @keyword)
(block name: (identifier) @type)
(block name: (string) @type)

(call function: (identifier) @function)
(tensor type: (identifier) @type.builtin)

((identifier) @boolean
  (#any-of? @boolean "true" "false"))
((attribute value: (identifier) @constant.builtin)
  (#any-of? @constant.builtin
    "poisson" "uniform" "idle" "off" "mig" "mps" "whole" "fitted" "table" "queueing" "execution"))

(limit metric: (identifier) @constant.builtin)
(minimize metric: (identifier) @constant.builtin)

[ "import" "as" "param" "let" "limit" "minimize" ] @keyword
[ "step" "over" "x" ] @operator

(escape) @string.escape
(number) @number
(unit) @type.builtin
(profile) @constant.builtin
(percentile) @constant.builtin
(comment) @comment

[ "=" "<=" ".." "+" "-" "*" "/" ] @operator
[ "," "." ":" ] @punctuation.delimiter
[ "{" "}" "(" ")" "[" "]" ] @punctuation.bracket
