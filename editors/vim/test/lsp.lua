-- Neovim's own client against the real server, started as the README says: diagnostics, and not for XML.
--
--   nvim --headless -u NONE -i NONE -l test/lsp.lua      needs entc on PATH, and the fixtures' folder in $SPECS

local plugin = vim.fs.dirname(vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2))))
vim.opt.runtimepath:prepend(plugin)
vim.cmd('filetype plugin indent on')
vim.lsp.enable('entc')
vim.opt.hidden = true

local specs = assert(vim.env.SPECS)
local patience = 60000
local failed = 0

local function test(name, body)
  local fine, problem = pcall(body)
  failed = failed + (fine and 0 or 1)
  print((fine and '✔ ' or '✖ ') .. name .. (fine and '' or '\n' .. tostring(problem)))
end

local function open(name)
  vim.cmd.edit({ vim.fn.fnameescape(specs .. '/' .. name), bang = true })
  return vim.api.nvim_get_current_buf()
end

local function wait_for(what, so)
  assert(vim.wait(patience, so, 20), 'waited in vain for ' .. what)
end

test('diagnostics of the real server', function()
  local buffer = open('broken.ent')
  wait_for('diagnostics', function() return #vim.diagnostic.get(buffer) > 0 end)
  local unit = vim.tbl_filter(function(d) return d.code == 'unknown-unit' end, vim.diagnostic.get(buffer))
  assert(#unit == 1, vim.inspect(vim.diagnostic.get(buffer)))
  assert(unit[1].lnum == 3 and unit[1].col == 11 and unit[1].source == 'entc', vim.inspect(unit))
end)

test('a mistake that is mended is shown no longer', function()
  local buffer = open('quickstart.ent')
  local client = vim.lsp.get_clients({ bufnr = buffer, name = 'entc' })[1]
  assert(client, 'no client')
  local line = vim.fn.search('300 req/s')
  local text = vim.fn.getline(line)
  local function errors() return #vim.diagnostic.get(buffer, { severity = vim.diagnostic.severity.ERROR }) end
  vim.fn.setline(line, (text:gsub('300 req/s', '300 lightyears')))
  wait_for('the mistake', function() return errors() > 0 end)
  vim.fn.setline(line, text)
  wait_for('no mistake', function() return errors() == 0 end)
end)

test('neither XML nor PDB is sent to the server', function()
  for _, name in ipairs({ 'entities.ent', 'protein.ent' }) do
    local buffer = open(name)
    assert(#vim.lsp.get_clients({ bufnr = buffer }) == 0, name)
  end
end)

test('the plan can be asked for', function()
  local buffer = open('quickstart.ent')
  assert(vim.api.nvim_buf_get_commands(buffer, {}).EntcShowPlan, 'no command')
end)

if vim.env.PARSER then
  test('tree-sitter colours the quickstart', function()
    vim.opt.runtimepath:append(vim.env.PARSER)
    local buffer = open('quickstart.ent')
    vim.treesitter.start(buffer, 'ent')
    local function captures(line, word)
      local row = vim.fn.search(line, 'cw') - 1
      local column = vim.fn.getline(row + 1):find(word, 1, true) - 1
      local names = vim.tbl_map(function(c) return c.capture end, vim.treesitter.get_captures_at_pos(buffer, row, column))
      return names[#names], table.concat(names, ' ')
    end
    local parser = vim.treesitter.get_parser(buffer, 'ent')
    assert(not parser:parse(true)[1]:root():has_error(), 'errors in the tree')
    for _, want in ipairs({
      { 'service classify', 'service', 'keyword.type' },
      { 'service classify', 'classify', 'type' },
      { 'service classify', 'rate', 'property' },
      { 'service classify', '300', 'number' },
      { 'gpu = ', 'x 1', 'keyword.operator' },
      { 'objective', 'energy', 'constant.builtin' },
    }) do
      local last, all = captures(want[1], want[2])
      assert(last == want[3], want[2] .. ' is ' .. all)
    end
    assert(vim.treesitter.query.get('ent', 'folds') and vim.treesitter.query.get('ent', 'indents'))
  end)
end

vim.lsp.stop_client(vim.lsp.get_clients(), true)
io.stdout:write('\n')
vim.cmd(failed > 0 and 'cquit' or 'qall!')
