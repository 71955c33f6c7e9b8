//! An open journal → the machine that its header wishes for.

use crate::apply::{Ended, Means};
use crate::changes::Changes;
use crate::error::ApplyError;
use crate::observed::Observed;
use crate::store::Store;

/// The steps that are left to what an open journal wishes for: what [`resume`] will do.
///
/// # Errors
/// When there is no open journal, or what stands in the way.
pub fn preview(store: &Store, observed: &Observed) -> Result<Changes, ApplyError> {
    let _ = (store, observed);
    Ok(Changes::default())
}

/// Goes on from an open journal to what its header wishes for, after a failure, a crash or a boot.
///
/// # Errors
/// With the report, why the machine is not as wished.
pub fn resume(means: &mut Means<'_>) -> Ended {
    let _ = means;
    crate::apply::unimportant()
}
