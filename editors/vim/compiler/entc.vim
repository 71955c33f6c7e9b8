" `:make` in a spec: what is wrong, without planning.
if exists('current_compiler')
  finish
endif
let current_compiler = 'entc'

CompilerSet makeprg=entc\ check\ --concise\ --color\ never\ %:S
CompilerSet errorformat=%f:%l:%c:\ %m
