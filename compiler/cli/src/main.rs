//! The command `entc`: arguments in, one exit code out.
//!
//! The only crate that reads files, prints, or looks at a clock. What a command does is in
//! `commands/`, what things look like is in `render/`.

mod arguments;
mod bug;
mod commands;
mod exit;
mod interrupt;
mod load;
mod machine;
mod progress;
mod render;
mod report;
mod terminal;
mod write;

fn main() -> std::process::ExitCode {
    bug::install();
    commands::run(std::env::args_os()).into()
}
