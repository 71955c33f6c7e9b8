//! Entries → lines on disk, each before anything else happens.

use super::{Entry, Header, Journal, first_line};
use crate::error::StoreError;
use crate::store::{Locked, beside, io, sync_folder, write_new};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};

/// A journal that is being written.
#[derive(Debug)]
pub(crate) struct Writer {
    /// What is on disk.
    pub(crate) journal: Journal,
    file: File,
    /// The bytes of whole lines.
    length: u64,
}

impl Writer {
    /// Begins a journal; the one before it is kept beside.
    ///
    /// # Errors
    /// When it cannot be written; there is then no new one, and nothing may be begun.
    pub(crate) fn create(store: &Locked, header: Header) -> Result<Self, StoreError> {
        let path = store.journal_path();
        let new = beside(&path);
        let line = first_line(&header).map_err(|error| io("write", &new)(error.into()))?;
        write_new(&new, &line)?;
        match std::fs::rename(&path, store.previous_journal_path()) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io("replace", &path)(error)),
            Ok(()) | Err(_) => {}
        }
        std::fs::rename(&new, &path).map_err(io("replace", &path))?;
        let journal = Journal::unwritten(path, header);
        sync_folder(store.folder()).and_then(|()| Self::at_end(journal.clone())).inspect_err(|_| {
            let _ = discard(&journal, store);
        })
    }

    /// Takes a journal away in which nothing was begun; the one before it is the last again.
    ///
    /// # Errors
    /// When it cannot be taken away: it is then open, and says that nothing was done.
    pub(crate) fn discard(&self, store: &Locked) -> Result<(), StoreError> {
        discard(&self.journal, store)
    }

    /// Goes on with a journal. A line that a crash tore off goes: what it was to say is read from the machine.
    ///
    /// # Errors
    /// When it cannot be opened to be written.
    pub(crate) fn at_end(mut journal: Journal) -> Result<Self, StoreError> {
        let opened = OpenOptions::new().read(true).write(true).open(&journal.path);
        let mut file = opened.map_err(io("open", &journal.path))?;
        let length = whole_lines(&journal).map_err(io("read", &journal.path))?;
        if journal.is_torn {
            let cut = file.set_len(length).and_then(|()| file.sync_all());
            cut.map_err(io("write", &journal.path))?;
            journal.is_torn = false;
        }
        file.seek(SeekFrom::End(0)).map_err(io("open", &journal.path))?;
        Ok(Self { journal, file, length })
    }

    /// Writes lines and waits until they are on disk.
    ///
    /// # Errors
    /// When they are not on disk: what they say is then not to be begun. As far as possible no part of them
    /// stays.
    pub(crate) fn write(&mut self, entries: Vec<Entry>) -> Result<(), StoreError> {
        let path = &self.journal.path;
        let mut lines = Vec::new();
        for entry in &entries {
            serde_json::to_writer(&mut lines, entry).map_err(|error| io("write", path)(error.into()))?;
            lines.push(b'\n');
        }
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            return Err(io("write", path)(source));
        }
        self.length += lines.len() as u64;
        self.journal.entries.extend(entries);
        Ok(())
    }
}

/// How many bytes of a journal's file are whole lines.
fn whole_lines(journal: &Journal) -> std::io::Result<u64> {
    let bytes = std::fs::read(&journal.path)?;
    Ok(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end as u64 + 1))
}

fn discard(journal: &Journal, store: &Locked) -> Result<(), StoreError> {
    let path = &journal.path;
    std::fs::remove_file(path).map_err(io("remove", path))?;
    match std::fs::rename(store.previous_journal_path(), path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("replace", path)(error)),
        Ok(()) | Err(_) => sync_folder(store.folder()),
    }
}
