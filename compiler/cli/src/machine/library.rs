//! The word after `--nvml` → a library that is there.

use crate::arguments::{self, Nvml};
use crate::exit::{Stop, Trouble};
use ent_machine::Library;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file of the simulated library.
const SIMULATED: &str = "libent_nvml_sim.so";

/// The worker's file.
const WORKER: &str = "ent-worker";

/// The name of the call that no other library has, as a library lists it: between zeros.
const MARK: &[u8] = b"\0entcSimIsSimulated\0";

/// Names the folder of entc's own libraries.
const FOLDER: &str = "ENTC_LIBDIR";

/// The library that a command line names.
///
/// # Errors
/// When the simulated library or a folder for its machine cannot be found.
pub(super) fn choose(arguments: &arguments::Library) -> Result<Library, Stop> {
    Ok(match &arguments.nvml {
        None | Some(Nvml::System) => Library::System,
        Some(Nvml::Simulated) => simulated(find()?, arguments)?,
        // The same library by path is the same machine.
        Some(Nvml::Path(path)) if path.file_name().is_some_and(|name| name == SIMULATED) => {
            simulated(path.clone(), arguments)?
        }
        Some(Nvml::Path(path)) => Library::Path(path.clone()),
    })
}

fn simulated(library: PathBuf, arguments: &arguments::Library) -> Result<Library, Stop> {
    let state =
        match &arguments.sim_state {
            Some(folder) if !folder.as_os_str().is_empty() => folder.clone(),
            _ => default_folder(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME")).ok_or_else(
                || Stop::Refused {
                    code: "usage",
                    message: "there is no folder for the simulated machine: HOME is not set".to_owned(),
                    help: Some("name one with `--sim-state DIR`".to_owned()),
                },
            )?,
        };
    // Said, kept and given to other processes in full: the working folder may be another one later.
    let state = std::path::absolute(&state).unwrap_or(state);
    Ok(Library::Simulated { library, state })
}

/// `$XDG_STATE_HOME/entc/simulated`, else `~/.local/state/entc/simulated` (XDG Base Directory
/// Specification: a path there that is not absolute is to be ignored).
fn default_folder(state_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let is_usable = |path: &PathBuf| path.is_absolute();
    state_home
        .map(PathBuf::from)
        .filter(is_usable)
        .or_else(|| home.map(PathBuf::from).filter(is_usable).map(|home| home.join(".local/state")))
        .map(|folder| folder.join("entc/simulated"))
}

/// Finds the simulated library.
fn find() -> Result<PathBuf, Stop> {
    first_of(&folders(std::env::var_os(FOLDER), std::env::current_exe().ok().as_deref()))
}

/// The first file of that name that is the simulated library; one that only has its name is passed over.
fn first_of(folders: &[PathBuf]) -> Result<PathBuf, Stop> {
    let mut tried = Vec::new();
    for file in folders.iter().map(|folder| folder.join(SIMULATED)) {
        match std::fs::read(&file) {
            Ok(bytes) if memchr::memmem::find(&bytes, MARK).is_some() => return Ok(file),
            Ok(_) => tried.push(format!("{}: is another library, or of an older entc", file.display())),
            Err(error) => tried.push(format!("{}: {}", file.display(), crate::write::reason(&error))),
        }
    }
    Err(Trouble::new(
        "no-library",
        format!("the simulated library is in none of these places: {}", tried.join("; ")),
        format!("build it with `cargo build --release -p ent-nvml-sim`, or name its folder in {FOLDER}"),
    )
    .into())
}

/// Finds the worker's executable, in the folders of libraries too: a package that has its own folder of
/// executables that nobody calls by hand puts it there.
pub(super) fn worker() -> Result<PathBuf, Stop> {
    let folders = folders(std::env::var_os(FOLDER), std::env::current_exe().ok().as_deref());
    // Of cargo's folders only the one with the executables has a worker by this name.
    let mut all = folders.iter().map(|folder| folder.join(WORKER));
    all.find(|file| file.is_file()).ok_or_else(|| {
        let looked: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        Trouble::new(
            "no-worker",
            format!("the worker {WORKER} is not in {}", looked.join(", ")),
            format!("build it with `cargo build --release -p {WORKER}`, name its folder in {FOLDER}, or apply with `--no-serve`"),
        )
        .into()
    })
}

/// Where it may lie, the first first: where the user says, where cargo puts it, where a package does.
///
/// Cargo's `deps` comes before the executable's own folder, because the copy there is made only when the
/// library itself is asked for, and may be one of an earlier build.
fn folders(named: Option<OsString>, executable: Option<&Path>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        named.filter(|name| !name.is_empty()).map(PathBuf::from).into_iter().collect();
    let executable = executable.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()));
    if let Some(folder) = executable.as_deref().and_then(Path::parent) {
        folders.push(folder.join("deps"));
        folders.push(folder.to_path_buf());
        folders.push(folder.parent().unwrap_or(folder).join("lib/entc"));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_simulated_machines_follows_the_xdg_specification() {
        let of = |state: &str, home: &str| {
            default_folder(Some(state.into()), Some(home.into())).map(|path| path.display().to_string())
        };
        assert_eq!(of("/x/state", "/home/a").as_deref(), Some("/x/state/entc/simulated"));
        assert_eq!(of("relative", "/home/a").as_deref(), Some("/home/a/.local/state/entc/simulated"));
        assert_eq!(of("", "").as_deref(), None);
        assert_eq!(default_folder(None, None), None);
    }

    #[test]
    fn a_file_that_only_has_the_name_is_passed_over_and_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, bytes: &[u8]| {
            let folder = folder.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(SIMULATED), bytes).unwrap();
            folder
        };
        let (other, own) = (of("other", b"nvmlInit_v2"), of("own", &[b"nvmlInit_v2", MARK].concat()));
        let none = folder.path().join("none");
        let found = first_of(&[none.clone(), other.clone(), own.clone()]).unwrap();
        assert_eq!(found, own.join(SIMULATED));
        let Err(Stop::World(troubles)) = first_of(&[none, other]) else { panic!() };
        let message = &troubles[0].message;
        assert!(message.contains("none/lib") && message.contains("no such file"), "{message}");
        assert!(message.contains("other/lib") && message.contains("another library"), "{message}");
    }

    #[test]
    fn the_library_is_looked_for_where_the_user_says_first_and_in_a_package_last() {
        let found = folders(Some("/opt/own".into()), Some(Path::new("/nowhere/bin/entc")));
        let found: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(found, ["/opt/own", "/nowhere/bin/deps", "/nowhere/bin", "/nowhere/lib/entc"]);
        assert!(folders(Some("".into()), None).is_empty());
    }
}
