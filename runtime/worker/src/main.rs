//! The worker: one process of a replica. It connects to the gateway, loads its network, runs every batch
//! size once, and answers batches until it is told to end.
//!
//! What it knows comes from its arguments and from the gateway; it keeps no queue and makes no choice.
//! Exit codes: 0 it was told to end, 1 it cannot run what it was given, 2 the gateway is gone.

mod arguments;
mod device;
mod error;
mod executor;
mod modelled;
mod serving;
#[cfg(feature = "torch")]
mod torch;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match arguments::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no mistakes; all else is, with code 1 and not clap's 2.
            let _ignored = error.print();
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    match serving::serve(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ignored = writeln!(std::io::stderr(), "ent-worker: {}: {error}", arguments.replica);
            ExitCode::from(error.exit_code())
        }
    }
}
