" Colours of specs of entc. Follows grammar/ent.pest.
if exists('b:current_syntax')
  finish
endif
syntax case match
syntax sync fromstart

syntax match entName '\<[A-Za-z_][A-Za-z0-9_]*'

" Entries.
syntax match entAttribute '\<[A-Za-z_][A-Za-z0-9_]*\ze\s*=\%(=\)\@!'
syntax match entBlock '\<[A-Za-z_][A-Za-z0-9_]*\ze\%(\s\+\%([A-Za-z_][A-Za-z0-9_]*\|[0-9]\+g\.[0-9]\+gb[A-Za-z.+-]*\)\|\s*"[^"]*"\)\?\s*{' nextgroup=entBlockName skipwhite
syntax match entBlockName '\%([A-Za-z_][A-Za-z0-9_]*\|[0-9]\+g\.[0-9]\+gb[A-Za-z.+-]*\|"\%(\\.\|[^"\\]\)*"\)\ze\s*{' contained
syntax match entDeclaration '\<\%(param\|let\)\ze\s\+[A-Za-z_]' nextgroup=entDeclared skipwhite
syntax match entDeclared '\<[A-Za-z_][A-Za-z0-9_]*' contained
syntax match entImport '\<import\ze\s*"' nextgroup=entPath skipwhite
syntax region entPath start=+"+ skip=+\\.+ end=+"+ oneline contained nextgroup=entAs skipwhite
syntax match entAs '\<as\>' contained nextgroup=entDeclared skipwhite
syntax match entGoal '\<\%(limit\|minimize\)\ze\s\+[A-Za-z_]' nextgroup=entMetric skipwhite
syntax match entMetric '\<[A-Za-z_][A-Za-z0-9_]*' contained

" Values.
syntax match entArgument '\<[A-Za-z_][A-Za-z0-9_]*\ze\s*=\%(=\)\@!' contained
syntax region entArguments matchgroup=entBracket start='(' end=')' end='^\ze\%(service\|model\|board\|hardware\|carbon\|objective\|import\|param\|let\)\>' contains=entArgument,@entValue
syntax cluster entValue contains=entName,entFunction,entNumber,entProfile,entPercentile,entString,entComment,entArguments,entOperator,entWordOperator,entConstant,entMember,entTensor
syntax match entFunction '\<\%(min\|max\|round\|csv\|trace\|gamma\)\ze\s*('
syntax match entTensor '\<[A-Za-z_][A-Za-z0-9_]*\ze\['
syntax match entMember '\%(\w\s*\.\s*\)\@<=[A-Za-z_][A-Za-z0-9_]*'
syntax keyword entConstant true false poisson uniform idle off mig mps whole fitted table queueing execution
syntax match entOperator '<=\|\.\.\|[-+*=]\|/\%(/\)\@!'
syntax match entWordOperator '\%([A-Za-z0-9_%)\]"]\s\+\)\@<=\%(x\ze\%(\s\|[0-9(]\)\|\%(step\|over\)\ze\s\)'

" A number and its unit; the unit ends before the words that stand between values.
syntax match entNumber '\<[0-9][0-9_]*\%(\.[0-9][0-9_]*\)\?\%([eE][+-]\?[0-9]\+\)\?' nextgroup=entUnit skipwhite
syntax match entUnit '%\|/\%(ns\|us\|µs\|μs\|ms\|s\|min\|hour\|h\|day\|year\)\>\|\%(\%(x\|per\|over\|step\|as\)\>\|x[0-9]\)\@![A-Za-zµμ][A-Za-z0-9_]*\%(/\%(x[0-9]\)\@![A-Za-zµμ][A-Za-z0-9_]*\)*\%(\s\+per\s\+[A-Za-zµμ][A-Za-z0-9_]*\)\?' contained
syntax match entProfile '\<[0-9]\+g\.[0-9]\+gb\%([+-][A-Za-z]\+\%(\.[A-Za-z]\+\)*\)\?\>'
syntax match entPercentile '\<p[0-9]\+\%(\.[0-9]\+\)\?\ze\s*<='

syntax region entString start=+"+ skip=+\\.+ end=+"+ end='$' contains=entEscape
syntax match entEscape '\\["\\nt]' contained
syntax match entComment '//.*$' contains=entTodo,@Spell
syntax keyword entTodo contained TODO FIXME XXX

syntax region entBody matchgroup=entBracket start='{' end='}' end='^\ze\%(service\|model\|board\|hardware\|carbon\|objective\|import\|param\|let\)\%(\s\+\%(\w\+\|"[^"]*"\)\s*[{=]\|\s*[{"]\)' transparent fold

highlight default link entAttribute Identifier
highlight default link entBlock Structure
highlight default link entBlockName Type
highlight default link entDeclaration Keyword
highlight default link entDeclared Identifier
highlight default link entImport Include
highlight default link entAs Include
highlight default link entPath String
highlight default link entGoal Statement
highlight default link entMetric Constant
highlight default link entArgument Identifier
highlight default link entFunction Function
highlight default link entTensor Type
highlight default link entMember Identifier
highlight default link entConstant Constant
highlight default link entOperator Operator
highlight default link entWordOperator Operator
highlight default link entNumber Number
highlight default link entUnit Type
highlight default link entProfile Constant
highlight default link entPercentile Constant
highlight default link entString String
highlight default link entEscape SpecialChar
highlight default link entComment Comment
highlight default link entTodo Todo
highlight default link entBracket Delimiter

let b:current_syntax = 'ent'
