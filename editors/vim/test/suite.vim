" What Vim and Neovim make of files that end in `.ent`: kinds of files, colours, indents, `:make`.
"
"   vim -Nu NONE -i NONE --not-a-term -es -S test/suite.vim       exit code 1 when something fails
"
" The names of the fixtures' folder is in $SPECS: quickstart.ent, mixed.ent, entities.ent, protein.ent, other.ent.
set nocompatible hidden
let s:plugin = expand('<sfile>:p:h:h')
execute 'set runtimepath^=' . fnameescape(s:plugin)
filetype plugin indent on
syntax on

" The names of the syntax groups at a word, from the outside in, in the line that matches.
function s:Groups(line, word) abort
  let l:number = search('\V' . escape(a:line, '\'), 'cw')
  call assert_true(l:number > 0, 'no line ' . a:line)
  let l:at = match(getline(l:number), '\V' . escape(a:word, '\'))
  call assert_true(l:at >= 0, 'no word ' . a:word . ' in ' . getline(l:number))
  return map(synstack(l:number, l:at + 1), 'synIDattr(v:val, "name")')
endfunction

function s:Group(line, word) abort
  return get(s:Groups(a:line, a:word), -1, '')
endfunction

function s:Kinds() abort
  for [l:name, l:kind] in [['quickstart', 'ent'], ['mixed', 'ent'], ['entities', 'dtd'], ['protein', 'pdb'], ['other', 'cl']]
    execute 'edit ' . fnameescape($SPECS . '/' . l:name . '.ent')
    call assert_equal(l:kind, &filetype, l:name)
  endfor
  execute 'edit ' . fnameescape($SPECS . '/new.ent')
  call assert_equal('ent', &filetype, 'a new file')
  call assert_equal('ent', ent#Content(["\ufeff// mark", 'model a {}']))
  call assert_equal('ent', ent#Content(['HEADER = 3']))
  call assert_equal('xml', ent#Content(['', "\ufeff%isolat1;"]))
  call assert_equal('pdb', ent#Content(['REMARK   1 REFERENCE 1']))
endfunction

function s:Colours() abort
  execute 'edit ' . fnameescape($SPECS . '/quickstart.ent')
  call assert_equal('entImport', s:Group('import "catalog:nvidia', 'import'))
  call assert_equal('entPath', s:Group('import "catalog:nvidia', 'catalog'))
  call assert_equal('entBlock', s:Group('service classify', 'service'))
  call assert_equal('entBlockName', s:Group('service classify', 'classify'))
  call assert_equal('entAttribute', s:Group('service classify', 'rate'))
  call assert_equal('entNumber', s:Group('service classify', '300'))
  call assert_equal('entUnit', s:Group('service classify', 'req/s'))
  call assert_equal('entPercentile', s:Group('service classify', 'p99'))
  call assert_equal('entOperator', s:Group('service classify', '<='))
  call assert_equal('entMember', s:Group('model whisper', 'whisper }'))
  call assert_equal('entBlockName', s:Group('node "box"', '"box"'))
  call assert_equal('entWordOperator', s:Group('gpu = a100', 'x 1'))
  call assert_equal('entGoal', s:Group('objective', 'minimize'))
  call assert_equal('entMetric', s:Group('objective', 'energy'))
  execute 'edit ' . fnameescape($SPECS . '/mixed.ent')
  call assert_equal('entDeclaration', s:Group('param load', 'param'))
  call assert_equal('entDeclared', s:Group('param load', 'load'))
  call assert_equal('entUnit', s:Group('param load', '%'))
  call assert_equal('entComment', s:Group('param load', 'what comes'))
  call assert_equal('entFunction', s:Group('arrivals', 'gamma'))
  call assert_equal('entArgument', s:Group('arrivals', 'cv'))
  call assert_equal('entProfile', s:Group('pin {', '3g.40gb'))
  call assert_equal('entConstant', s:Group('unused', 'off'))
  call assert_equal('entUnit', s:Group('embodied', 'kgCO2 per gpu'))
  call assert_equal('entWordOperator', s:Group('embodied', 'over'))
  call assert_equal('entUnit', s:Group('embodied', 'years'))
  call assert_equal('entWordOperator', s:Group('clocks', 'step'))
  call assert_equal('entEscape', s:Group('artifact', '\n'))
  call assert_equal('entTensor', s:Group('input', 'float32'))
endfunction

" Every example, flattened and indented again, is what it was.
function s:Indents() abort
  for l:file in glob(s:plugin . '/../../examples/*/program.ent', 0, 1)
    execute 'edit ' . fnameescape(l:file)
    let l:before = getline(1, '$')
    silent %substitute/^\s\+//e
    silent normal! gg=G
    for l:n in range(1, line("$"))
      if getline(l:n) !=# l:before[l:n - 1]
        call assert_equal(l:before[l:n - 1], getline(l:n), l:file . ":" . l:n)
        break
      endif
    endfor
    bwipeout!
  endfor
endfunction

function s:Make() abort
  if !executable('entc')
    call add(v:errors, 'entc is not on PATH')
    return
  endif
  execute 'edit ' . fnameescape($SPECS . '/broken.ent')
  call assert_match('^entc check', &makeprg)
  silent make!
  let l:found = filter(getqflist(), 'v:val.valid')
  call assert_true(len(filter(copy(l:found), 'v:val.text =~# "unknown-unit" && v:val.lnum == 4 && v:val.col == 12')) == 1, string(l:found))
  setlocal filetype=
  call assert_equal(&g:makeprg, &l:makeprg, 'what is set for specs is undone')
endfunction

" `gq` over the whole file is `entc fmt`.
function s:Layout() abort
  execute 'edit ' . fnameescape($SPECS . '/quickstart.ent')
  let l:before = getline(1, '$')
  silent %substitute/ = /=/ge
  call assert_notequal(l:before, getline(1, '$'))
  silent normal! gggqG
  call assert_equal(l:before, getline(1, '$'))
  bwipeout!
endfunction

for s:test in ['Kinds', 'Colours', 'Indents', 'Make', 'Layout']
  try
    execute 'call s:' . s:test . '()'
  catch
    call add(v:errors, s:test . ': ' . v:exception . ' at ' . v:throwpoint)
  endtry
endfor
call writefile(v:errors + [(len(v:errors) ? 'failed: ' . len(v:errors) : 'ok')], $RESULT)
execute len(v:errors) ? 'cquit' : 'qall!'
