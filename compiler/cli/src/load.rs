//! Names of files → their bytes: the one way files reach the compiler.
//!
//! A plain name is a path relative to the working folder; `data:…` lies below `$ENT_DATA`; `catalog:…`
//! is embedded and never comes here. `-` is standard input.

use crate::exit::Stop;
use crate::write::reason;
use ent_plan::diagnostic::Code;
use ent_plan::text::{LoadError, MAX_DATA_BYTES, MAX_SPEC_BYTES, decode};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The prefix of files in the data folder.
const DATA: &str = "data:";

/// Reads a file by the name a spec or the user gives it.
///
/// # Errors
/// Missing, or unreadable with the reason in words.
pub(crate) fn bytes(name: &str) -> Result<Vec<u8>, LoadError> {
    if name == "-" {
        return read_all(std::io::stdin().lock());
    }
    let path = match name.strip_prefix(DATA) {
        Some(rest) => below_data(rest)?,
        None => PathBuf::from(name),
    };
    if name.starts_with("catalog:") {
        return Err(LoadError::Missing);
    }
    let metadata = std::fs::metadata(&path).map_err(|error| refusal(&error))?;
    if metadata.is_dir() {
        return Err(LoadError::Unreadable("it is a folder, not a file".to_owned()));
    }
    read_all(std::fs::File::open(&path).map_err(|error| refusal(&error))?)
}

/// Reads a data file that the user named on the command line.
///
/// # Errors
/// `missing-file` or `unreadable-file`, about that file.
pub(crate) fn text(name: &str) -> Result<String, Stop> {
    bytes(name).and_then(|bytes| decode(&bytes, MAX_DATA_BYTES)).map_err(|error| refuse(name, error))
}

/// Reads a spec that the user named on the command line.
///
/// # Errors
/// As [`text`].
pub(crate) fn spec(name: &str) -> Result<String, Stop> {
    bytes(name).and_then(|bytes| decode(&bytes, MAX_SPEC_BYTES)).map_err(|error| refuse(name, error))
}

/// Why a file that the user named cannot be had.
pub(crate) fn refuse(name: &str, error: LoadError) -> Stop {
    match error {
        LoadError::Missing => Stop::about_file(
            Code::MissingFile,
            name,
            "file not found",
            format!("there is no file `{name}`"),
            "check the name and the folder that the command runs in",
        ),
        LoadError::Unreadable(why) => {
            Stop::about_file(Code::UnreadableFile, name, "file cannot be read", why, "give a UTF-8 text file")
        }
    }
}

/// Reads to the end, but never much more than the largest file that is used: a device or a pipe
/// may have no end.
fn read_all(source: impl Read) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    let most = MAX_DATA_BYTES as u64 + 1;
    source.take(most).read_to_end(&mut bytes).map_err(|error| refusal(&error))?;
    Ok(bytes)
}

fn below_data(rest: &str) -> Result<PathBuf, LoadError> {
    match std::env::var_os("ENT_DATA") {
        Some(folder) if !folder.is_empty() => Ok(Path::new(&folder).join(rest)),
        _ => Err(LoadError::Unreadable(format!(
            "`{DATA}{rest}` lies in the data folder, and the environment variable ENT_DATA does not name one"
        ))),
    }
}

fn refusal(error: &std::io::Error) -> LoadError {
    if error.kind() == std::io::ErrorKind::NotFound {
        LoadError::Missing
    } else {
        LoadError::Unreadable(reason(error))
    }
}
