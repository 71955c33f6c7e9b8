//! The beginning of a path → catalogue entries and files that it may become.

use super::{Asked, Offer};
use ent_plan::device::{self, board_ids};
use ent_plan::performance::catalogue;
use lsp_types::CompletionItemKind;

/// At most this many entries of a folder are looked at.
const MAX_ENTRIES: usize = 2000;

impl Asked<'_, '_> {
    /// What an import may name.
    pub(super) fn import_paths(&mut self) {
        let close = self.closing_quote();
        for id in board_ids() {
            let title = device::board(id).map(|board| board.title).unwrap_or_default();
            for (folder, what) in [("nvidia", "board"), ("performance", "performance models measured on it")]
            {
                if folder == "performance" && catalogue(id).is_none() {
                    continue;
                }
                let path = format!("catalog:{folder}/{id}");
                let offer =
                    Offer::new(&path, CompletionItemKind::MODULE, if folder == "nvidia" { 0 } else { 1 })
                        .detail(format!("{title}: {what}"))
                        .documentation(format!(
                            "Named `{}` unless `as` gives another name.",
                            id.replace('-', "_")
                        ));
                self.offer(offer.snippet(format!("{path}{close}")));
            }
        }
        self.files(&["ent", "json", "csv"]);
    }

    /// Files below the folder of this file, with one of these endings, and folders.
    pub(super) fn files(&mut self, endings: &[&str]) {
        let typed = self.text.get(self.place.replace.clone()).unwrap_or("");
        if typed.starts_with("catalog:") || typed.starts_with("data:") {
            return;
        }
        let own = self.snapshot.name(self.file);
        let Some((own_folder, own_name)) = own.rsplit_once('/') else { return };
        let folder = typed.rsplit_once('/').map_or("", |(folder, _)| folder);
        let (path, prefix) = match folder {
            "" if typed.starts_with('/') => ("/".to_owned(), "/".to_owned()),
            "" => (own_folder.to_owned(), String::new()),
            absolute if absolute.starts_with('/') => (absolute.to_owned(), format!("{absolute}/")),
            relative => (format!("{own_folder}/{relative}"), format!("{relative}/")),
        };
        let close = self.closing_quote();
        let mut found: Vec<(String, bool)> = Vec::new();
        for entry in std::fs::read_dir(path).into_iter().flatten().take(MAX_ENTRIES).flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_folder = entry.path().is_dir();
            let fits = endings.iter().any(|e| name.rsplit_once('.').is_some_and(|(_, own)| own == *e));
            let is_self = prefix.is_empty() && name == own_name;
            if !name.starts_with('.') && !is_self && (is_folder || fits) {
                found.push((name, is_folder));
            }
        }
        found.sort();
        for (name, is_folder) in found {
            let kind = if is_folder { CompletionItemKind::FOLDER } else { CompletionItemKind::FILE };
            let end = if is_folder { "/" } else { close };
            let label = format!("{prefix}{name}{}", if is_folder { "/" } else { "" });
            let offer = Offer::new(label, kind, if is_folder { 11 } else { 10 });
            // A dollar sign would begin a field of a snippet.
            let path = format!("{prefix}{name}{end}").replace('\\', "\\\\").replace('$', "\\$");
            self.offer(offer.snippet(path.replace('}', "\\}")));
        }
    }

    /// The quote that the text lacks.
    fn closing_quote(&self) -> &'static str {
        let rest = self.text.get(self.place.replace.end..).unwrap_or("");
        if rest.starts_with('"') { "" } else { "\"" }
    }
}
