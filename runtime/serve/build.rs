//! The protocol's definition → its messages and service in Rust, without `protoc`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto/inference.proto");
    let files = protox::compile(["inference.proto"], ["proto"])?;
    // Tensors stay where they were received.
    tonic_prost_build::configure().bytes(".").build_transport(false).compile_fds(files)?;
    Ok(())
}
