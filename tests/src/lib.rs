//! Where the project's own files are, what their fences say, and the way from a program's text to its plan.

use std::path::{Path, PathBuf};

pub mod console;
pub mod fences;
pub mod planning;

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The project's own files below a folder of the repository, as paths from its root with `/`, in order.
/// Build output and hidden folders are left out, `.ci` and `.cargo` are not.
#[must_use]
pub fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    visit(&root(), folder.trim_end_matches('/'), &mut found);
    found.sort();
    found
}

/// The text of one of [`files`]; empty when it is not text.
#[must_use]
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}

fn visit(root: &Path, folder: &str, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_hidden = name.starts_with('.') && name != ".ci" && name != ".cargo";
        if is_hidden || name == "target" || name == "node_modules" {
            continue;
        }
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => visit(root, &path, found),
            Ok(_) => found.push(path),
            Err(_) => {}
        }
    }
}
