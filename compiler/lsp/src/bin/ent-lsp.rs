//! The language server over standard input and output, without a planner.

use lsp_server::Connection;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (connection, threads) = Connection::stdio();
    let end = ent_lsp::serve(connection, None);
    match (end, threads.join()) {
        (ent_lsp::End::InOrder, Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
