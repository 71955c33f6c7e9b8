//! Whether torch can use CUDA, asked so that it can.
#![expect(unsafe_code, reason = "loads libtorch_cuda, which the linker drops because nothing names it")]

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::sync::OnceLock;

/// Loads torch's CUDA half, if there is one, and asks. The order matters: torch remembers the answer of its
/// first call, and without that half it is no.
pub(crate) fn is_available() -> bool {
    static CUDA: OnceLock<Option<Library>> = OnceLock::new();
    // SAFETY: libtorch's initialisers register kernels, and may run at any time before its first call.
    CUDA.get_or_init(|| unsafe { Library::open(Some("libtorch_cuda.so"), RTLD_NOW | RTLD_GLOBAL) }.ok());
    tch::Cuda::is_available()
}
