//! How a command ends: one table of exit codes for all of them, and what is said when it stops early.

use ent_plan::diagnostic::{Code, Diagnostic, FileId, Sources, Span};
use std::process::ExitCode;

/// What the process ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Something is wrong with what the user gave, or a command that only reads failed.
    Wrong,
    /// Only with `--detailed-exitcode`: there are changes, the machine drifted, or a promise is broken in
    /// simulation.
    Changes,
    /// A command that changes a machine was refused or failed, and the machine is as it was.
    Unchanged,
    /// A command that changes a machine stopped half way, or was refused on one that is: there is an open
    /// journal.
    Partly,
    /// Stopped by the user.
    Interrupted,
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Wrong => 1,
            Self::Changes => 2,
            Self::Unchanged => 3,
            Self::Partly => 4,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command could not do what was asked. Exit code 1, but for [`Stop::World`].
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something is wrong with the user's files.
    Diagnostics {
        /// What the diagnostics point into.
        sources: Sources,
        /// What is wrong.
        diagnostics: Vec<Diagnostic>,
    },
    /// The request itself cannot be met: an argument, an output file.
    Refused {
        /// A word for scripts.
        code: &'static str,
        /// What is wrong.
        message: String,
        /// What to do.
        help: Option<String>,
    },
    /// The machine, its driver or entc's own files stand in the way. The machine is as it was: exit code 3
    /// of a command that changes machines, 4 where it was half way, and 1 of the others.
    World(Vec<Trouble>),
    /// Standard output is closed or full.
    Output(std::io::Error),
}

/// One thing about the world that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// A word for scripts.
    pub(crate) code: &'static str,
    /// What happened, in one line.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: String,
}

impl Trouble {
    /// From its parts.
    pub(crate) fn new(code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into() }
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::World(vec![trouble])
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

impl Stop {
    /// One thing that is wrong with a whole file.
    pub(crate) fn about_file(
        code: Code,
        file: &str,
        message: &str,
        label: impl Into<String>,
        help: &str,
    ) -> Self {
        let mut sources = Sources::default();
        let file: FileId = sources.add(file, "");
        let span = Span { file, start: 0, end: 0 };
        let diagnostic = Diagnostic::error(code, span, message).label(label).help(help);
        Self::Diagnostics { sources, diagnostics: vec![diagnostic] }
    }

    /// A request that cannot be met.
    pub(crate) fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self::Refused { code, message: message.into(), help: None }
    }
}
