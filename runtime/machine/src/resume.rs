//! An open journal → the machine that its header wishes for.

use crate::apply::{Ended, Means, Report, Run, remaining};
use crate::changes::Changes;
use crate::error::{ApplyError, Refusal};
use crate::journal::{Journal, Writer};
use crate::observed::Observed;
use crate::store::Store;

/// The steps that are left to what an open journal wishes for: what [`resume`] will do.
///
/// # Errors
/// When there is no open journal, or what stands in the way.
pub fn preview(store: &Store, observed: &Observed) -> Result<Changes, ApplyError> {
    remaining(&open_journal(store)?, observed)
}

/// Goes on from an open journal to what its header wishes for, after a failure, a crash or a boot. When that
/// fails it goes back to before, as an apply does.
///
/// # Errors
/// With the report, why the machine is not as wished.
pub fn resume(means: &mut Means<'_>) -> Ended {
    let mut report = Report::blank(means.store);
    let journal = match open_journal(means.store) {
        Ok(journal) => journal,
        Err(error) => return (report, Err(error)),
    };
    report.outcome = crate::apply::Outcome::Open;
    report.notes = journal.notes();
    report.journal.clone_from(&journal.path);
    let writer = match Writer::at_end(journal) {
        Ok(writer) => writer,
        Err(error) => return (report, Err(error.into())),
    };
    let mut run = Run { means, writer, report };
    match run.resume() {
        // Refused before a step: going back is for the user to ask for.
        Err(ApplyError::Refused(refusals)) => (run.report, Err(ApplyError::Refused(refusals))),
        result => run.settle(result),
    }
}

fn open_journal(store: &Store) -> Result<Journal, ApplyError> {
    match store.journal()? {
        Some(journal) if journal.is_open() => Ok(journal),
        Some(_) | None => Err(ApplyError::Refused(vec![Refusal {
            code: "nothing-to-resume",
            gpu: None,
            message: "no transaction stopped half-way".to_owned(),
            help: "apply a plan:\n  entc apply".to_owned(),
        }])),
    }
}
