" Editing specs of entc.
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=//\ %s comments=://
setlocal formatoptions-=t formatoptions+=croql
setlocal expandtab shiftwidth=2 softtabstop=2
setlocal suffixesadd=.ent
setlocal include=^\\s*import
setlocal define=^\\s*\\%(param\\\|let\\\|model\\\|service\\\|board\\\|node\\)\\>

let b:undo_ftplugin = 'setlocal commentstring< comments< formatoptions< expandtab< shiftwidth< softtabstop<'
      \ . ' suffixesadd< include< define<'

" `:make` lists what is wrong, and `gq` over the whole file lays it out; both only if the command is there.
if executable('entc')
  compiler entc
  setlocal formatprg=entc\ fmt\ -
  let b:undo_ftplugin .= ' makeprg< errorformat< formatprg<'
endif
