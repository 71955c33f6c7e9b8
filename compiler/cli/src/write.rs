//! Text → file, all of it or none: a reader never sees half a plan.

use crate::exit::Stop;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a file by way of a temporary one beside it. Devices and pipes are written directly.
///
/// # Errors
/// When the folder does not exist or may not be written; the old file is then untouched.
pub(crate) fn atomically(path: &Path, text: &str) -> Result<(), Stop> {
    if path.is_dir() {
        return Err(refuse(path, &std::io::ErrorKind::IsADirectory.into()));
    }
    if is_special(path) {
        return std::fs::write(path, text).map_err(|error| refuse(path, &error));
    }
    let (mut file, target) = beside(path)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.as_file().sync_all())
        .map_err(|error| refuse(path, &error))?;
    file.persist(&target).map_err(|error| refuse(path, &error.error))?;
    Ok(())
}

/// Refuses a file that [`atomically`] could not write, before the work that is to be kept in it is done.
///
/// # Errors
/// As [`atomically`].
pub(crate) fn possible(path: &Path) -> Result<(), Stop> {
    if path.is_dir() {
        return Err(refuse(path, &std::io::ErrorKind::IsADirectory.into()));
    }
    if is_special(path) {
        return Ok(());
    }
    beside(path).map(drop)
}

/// Refuses to write over what is read, or one result over another.
///
/// # Errors
/// With the path that is there twice.
pub(crate) fn apart<'a>(read: &str, written: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Stop> {
    let place = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    let mut taken = vec![place(Path::new(read))];
    for path in written.into_iter().filter(|path| !is_special(path)) {
        let own = place(path);
        if own.is_some() && taken.contains(&own) {
            return Err(Stop::Refused {
                code: "cannot-write",
                message: format!("`{}` would be written over another file of this command", path.display()),
                help: Some("give every result a name of its own".to_owned()),
            });
        }
        taken.push(own);
    }
    Ok(())
}

fn refuse(path: &Path, error: &std::io::Error) -> Stop {
    Stop::Refused {
        code: "cannot-write",
        message: format!("cannot write `{}`: {}", path.display(), reason(error)),
        help: Some("name a file in a folder that exists and that you may write".to_owned()),
    }
}

/// A device or a pipe, which is written directly.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| !meta.is_file())
}

/// A temporary file beside the one that it is to become, and that one.
fn beside(path: &Path) -> Result<(tempfile::NamedTempFile, PathBuf), Stop> {
    // A link stays a link: what it points to is replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".entc-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any new file: everything the user's umask allows, or what the old file had.
        let mode = target.metadata().map_or(0o666, |meta| meta.permissions().mode() & 0o777);
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    let file = builder.tempfile_in(folder).map_err(|error| refuse(path, &error))?;
    Ok((file, target))
}

/// The system's reason, without its error number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
