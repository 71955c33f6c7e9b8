//! A store → how the machine was left, where that is between two states.

use ent_machine::error::StoreError;
use ent_machine::journal::Transaction;
use ent_machine::store::Store;
use std::path::PathBuf;

/// A machine that is, or may be, half way.
pub(crate) struct HalfWay {
    /// How it is left.
    pub(crate) words: String,
    /// The journal that tells.
    pub(crate) journal: PathBuf,
}

/// Looks whether the journal on disk is open. One that cannot be understood may be.
pub(crate) fn half_way(store: &Store) -> Option<HalfWay> {
    match store.journal() {
        Ok(Some(journal)) if journal.is_open() => Some(HalfWay {
            words: format!(
                "half way through {}; the journal is {}",
                named(journal.header.transaction),
                journal.path.display()
            ),
            journal: journal.path,
        }),
        Err(StoreError::Damaged { path, .. } | StoreError::Newer { path, .. }) => Some(HalfWay {
            words: format!("perhaps half way: the journal {} cannot be understood", path.display()),
            journal: path,
        }),
        Ok(_) | Err(StoreError::Io { .. } | StoreError::Locked { .. } | StoreError::Missing { .. }) => None,
    }
}

fn named(transaction: Transaction) -> &'static str {
    match transaction {
        Transaction::Apply => "an apply",
        Transaction::Rollback => "a rollback",
        Transaction::Destroy => "a destroy",
        Transaction::Import => "an import",
    }
}
