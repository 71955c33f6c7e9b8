-- Neovim 0.11 and later: `vim.lsp.enable('entc')` in init.lua starts `entc lsp` for specs.

-- Shows the report of the plan in the browser; the server makes it, or else the command.
local function show_plan(uri, client)
  local function open(html)
    local file = vim.fn.tempname() .. '.html'
    vim.fn.writefile(vim.split(html, '\n'), file)
    vim.ui.open(file)
  end
  local params = { command = 'entc.showPlan', arguments = { uri } }
  client:request('workspace/executeCommand', params, function(problem, answer)
    if type(answer) == 'table' and type(answer.html) == 'string' then
      return open(answer.html)
    end
    local file = vim.fn.tempname() .. '.html'
    local command = { client.config.cmd[1], 'plan', vim.uri_to_fname(uri), '--html', file, '--color', 'never' }
    vim.system(command, { text = true }, function(ran)
      vim.schedule(function()
        if ran.code == 0 then
          vim.ui.open(file)
        else
          local text = ran.stderr ~= '' and ran.stderr or (problem and problem.message) or 'no plan was made'
          vim.notify('entc: ' .. text, vim.log.levels.ERROR)
        end
      end)
    end)
  end)
end

local function show_plan_of(command, context)
  local client = assert(vim.lsp.get_client_by_id(context.client_id))
  local uri = command.arguments and command.arguments[1] or vim.uri_from_bufnr(context.bufnr)
  show_plan(uri, client)
end

return {
  cmd = { 'entc', 'lsp' },
  filetypes = { 'ent' },
  root_markers = { '.git' },
  init_options = { planning = true },
  settings = { entc = { planning = true } },
  -- What the lens above a spec calls.
  commands = { ['entc.showPlan'] = show_plan_of, ['entc.plan'] = show_plan_of },
  on_attach = function(client, buffer)
    vim.api.nvim_buf_create_user_command(buffer, 'EntcShowPlan', function()
      show_plan(vim.uri_from_bufnr(buffer), client)
    end, { desc = 'Show the plan of this spec in the browser' })
  end,
}
