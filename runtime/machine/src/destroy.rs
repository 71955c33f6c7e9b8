//! State + machine → the wish to have everything as it was before entc.

use crate::observed::Observed;
use crate::state::State;
use crate::target::Target;

/// What `entc destroy` wishes for, and what it cannot give back, in words. [`diff`](crate::diff::diff) it,
/// show the steps, and [`apply`](crate::apply::apply) them as
/// [`Transaction::Destroy`](crate::journal::Transaction::Destroy).
#[must_use]
pub fn target(state: &State, observed: &Observed) -> (Target, Vec<String>) {
    let _ = (state, observed);
    (Target::default(), Vec::new())
}
