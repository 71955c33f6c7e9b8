//! A worktree of Zed → the command that serves it: `entc lsp`, with `entc` from settings or from PATH.

use zed_extension_api::settings::LspSettings;
use zed_extension_api::{self as zed, Command, LanguageServerId, Result, Worktree, serde_json};

struct Entc;

impl zed::Extension for Entc {
    fn new() -> Self {
        Self
    }

    fn language_server_command(&mut self, id: &LanguageServerId, worktree: &Worktree) -> Result<Command> {
        let binary = LspSettings::for_worktree(id.as_ref(), worktree)?.binary;
        let (path, arguments) = binary.map_or((None, None), |b| (b.path, b.arguments));
        let command = path.or_else(|| worktree.which("entc")).ok_or(
            "`entc` is not on PATH; install it, or set `lsp.entc.binary.path` in Zed's settings to it",
        )?;
        Ok(Command {
            command,
            args: arguments.unwrap_or_else(|| vec!["lsp".to_owned()]),
            env: worktree.shell_env(),
        })
    }

    fn language_server_initialization_options(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<serde_json::Value>> {
        let settings = LspSettings::for_worktree(id.as_ref(), worktree)?;
        Ok(settings.initialization_options.or_else(|| Some(serde_json::json!({ "planning": true }))))
    }
}

zed::register_extension!(Entc);
