//! With feature `torch`: where libtorch was found at build time is where the worker looks at run time.

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    // Set by torch-sys; absent without the feature.
    if let Some(folder) = std::env::var_os("DEP_TCH_LIBTORCH_LIB") {
        let folder = folder.to_string_lossy();
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder},--disable-new-dtags");
    }
}
