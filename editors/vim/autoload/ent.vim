" What a file that ends in `.ent` is, and how its lines are indented.

" By the first line that is not empty: `ent` for a spec, `xml`, `pdb`, or `other` for what Vim itself takes for `cl`.
" editors/vscode/src/content.ts has the same rules.
function! ent#Content(lines) abort
  for l:line in a:lines
    let l:line = substitute(l:line, '^\%ufeff', '', '')
    if l:line =~# '^\s*$'
      continue
    endif
    if l:line =~# '^\s*\%(<[?!/A-Za-z]\|%[A-Za-z_:][A-Za-z0-9_.:-]*;\)'
      return 'xml'
    endif
    if l:line =~# '^\s*[#{]'
      return 'other'
    endif
    return l:line =~# s:pdb ? 'pdb' : 'ent'
  endfor
  return 'ent'
endfunction

" Records that a PDB file, or an excerpt of one, begins with.
let s:pdb = '^\%(HEADER \{4}\|OBSLTE \{5}\|TITLE \{4,5}\|SPLIT \{6}\|CAVEAT \{5}\|COMPND \{4}\|SOURCE \{4}'
      \ . '\|KEYWDS \{4}\|EXPDTA \{4}\|NUMMDL \{4}\|MDLTYP \{4}\|AUTHOR \{4}\|REVDAT \{3}\|SPRSDE \{5}\|JRNL \{8}'
      \ . '\|REMARK \+\d\|SEQRES \{2,3}\|CRYST1 \{1,3}\d\|ORIGX\d \{4}\|SCALE\d \{4}\|MODEL \{5,8}\d'
      \ . '\|ATOM \{2,6}\d\|HETATM \{0,4}\d\)'

" The indent of a line: one step deeper after a line that opens more than it closes, or ends in an operator.
function! ent#Indent(number) abort
  let l:before = prevnonblank(a:number - 1)
  if l:before == 0
    return 0
  endif
  let l:indent = indent(l:before)
  let l:text = s:Bare(getline(l:before))
  if s:Open(l:text) > 0
    let l:indent += shiftwidth()
  elseif l:text =~# '[-+*/]\s*$' && s:Bare(getline(prevnonblank(l:before - 1))) !~# '[-+*/]\s*$'
    let l:indent += shiftwidth()
  elseif l:text !~# '[-+*/]\s*$' && s:Bare(getline(prevnonblank(l:before - 1))) =~# '[-+*/]\s*$'
    let l:indent -= shiftwidth()
  endif
  if getline(a:number) =~# '^\s*[]})]'
    let l:indent -= shiftwidth()
  endif
  return max([l:indent, 0])
endfunction

" A line without texts and its comment.
function! s:Bare(line) abort
  let l:line = substitute(a:line, '"\%(\\.\|[^"\\]\)*"', '""', 'g')
  return substitute(l:line, '//.*$', '', '')
endfunction

" How many brackets a line leaves open; those that it closes first belong to the lines before.
function! s:Open(text) abort
  let l:open = 0
  for l:c in split(a:text, '\zs')
    if l:c =~# '[[{(]'
      let l:open += 1
    elseif l:c =~# '[]})]' && l:open > 0
      let l:open -= 1
    endif
  endfor
  return l:open
endfunction
