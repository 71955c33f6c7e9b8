//! What happens → lines of `serve.log`, and of standard error where somebody watches.

use parking_lot::Mutex;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A log of this many bytes becomes the previous one.
const LARGEST: u64 = 16 << 20;

/// The log.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    is_watched: bool,
    file: Mutex<(File, u64)>,
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

impl Log {
    /// Opens it; `is_watched` repeats every line on standard error.
    pub(super) fn open(path: &Path, is_watched: bool) -> io::Result<Self> {
        Ok(Self { path: path.to_path_buf(), is_watched, file: Mutex::new(open(path)?) })
    }

    /// Adds a line, with the time. A full disk takes the line away and nothing else.
    pub(super) fn line(&self, text: impl Display) {
        let text = text.to_string().replace('\n', "\n  ");
        let line = format!("{} {text}\n", humantime::format_rfc3339_millis(SystemTime::now()));
        if self.is_watched {
            let _ = io::stderr().lock().write_all(line.as_bytes());
        }
        let mut guard = self.file.lock();
        if guard.1 > LARGEST {
            let previous = self.path.with_extension("previous.log");
            if std::fs::rename(&self.path, previous).is_ok()
                && let Ok(new) = open(&self.path)
            {
                *guard = new;
            }
        }
        if guard.0.write_all(line.as_bytes()).is_ok() {
            guard.1 += line.len() as u64;
        }
    }
}
