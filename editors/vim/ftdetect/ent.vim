" Vim itself takes every `.ent` file for `dtd` or `cl`; specs and protein files are told apart here.
autocmd BufNewFile,BufRead *.ent call s:Detect()

function! s:Detect() abort
  let l:content = ent#Content(getline(1, 50))
  if l:content ==# 'ent' || l:content ==# 'pdb'
    let &filetype = l:content
  elseif l:content ==# 'xml' && &filetype ==# ''
    setfiletype dtd
  endif
endfunction
