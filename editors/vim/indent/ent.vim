" Indenting specs of entc.
if exists('b:did_indent')
  finish
endif
let b:did_indent = 1

setlocal indentexpr=ent#Indent(v:lnum)
setlocal indentkeys=0},0],0),o,O,!^F
setlocal nosmartindent
let b:undo_indent = 'setlocal indentexpr< indentkeys< smartindent<'
