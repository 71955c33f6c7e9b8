//! The gateway as clients and workers see it: a real one, real sockets, and workers made for the test.

#[path = "suite/batching.rs"]
mod batching;
#[path = "suite/change.rs"]
mod change;
#[path = "suite/failures.rs"]
mod failures;
#[path = "suite/http.rs"]
mod http;
#[path = "suite/limits.rs"]
mod limits;
#[path = "suite/rig.rs"]
mod rig;
#[path = "suite/tensors.rs"]
mod tensors;
