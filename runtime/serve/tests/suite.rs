//! The gateway as clients and workers see it: a real one, real sockets, and workers made for the test.

#[cfg(test)]
#[path = "suite"]
mod suite {
    mod batching;
    mod change;
    mod failures;
    mod foreign;
    mod grpc;
    mod http;
    mod limits;
    pub(crate) mod rig;
    mod tensors;
    mod traces;
}
