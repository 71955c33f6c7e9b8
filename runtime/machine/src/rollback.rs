//! A journal → the machine that its header begins with.

use crate::apply::{Ended, Means};
use crate::changes::Changes;
use crate::error::ApplyError;
use crate::observed::Observed;
use crate::store::Store;

/// The steps back to before the last transaction, with what cannot be brought back in words: what
/// [`rollback`] will do.
///
/// # Errors
/// When there is nothing to roll back, or what stands in the way.
pub fn preview(store: &Store, observed: &Observed) -> Result<(Changes, Vec<String>), ApplyError> {
    let _ = (store, observed);
    Ok((Changes::default(), Vec::new()))
}

/// Goes back to before the last transaction, open or ended. `without_lost` ends it also when a GPU that it
/// changed is gone for good.
///
/// # Errors
/// With the report, why the machine is not as it was.
pub fn rollback(means: &mut Means<'_>, without_lost: bool) -> Ended {
    let _ = (means, without_lost);
    crate::apply::unimportant()
}
