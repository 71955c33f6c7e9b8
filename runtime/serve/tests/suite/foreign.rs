//! A client that others wrote: Triton's, from PyPI.

use super::rig::*;
use std::path::Path;
use std::process::Command;

/// The release that is tested against.
const CLIENT: &str = "tritonclient[http,grpc]==2.73.0";

/// Where the client's packages are, got with `pip` the first time; `Err` says what is missing here.
fn packages() -> Result<std::path::PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(CLIENT.replace(['[', ']', ',', '='], "-"));
    if folder.exists() {
        return Ok(folder);
    }
    // Beside it first, so that what was left half-done is not taken for it.
    let partly = folder.with_extension(std::process::id().to_string());
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"];
    let pip = Command::new("python3").args(pip).arg(&partly).arg(CLIENT).output();
    let done = pip.map_err(|e| format!("python3 cannot be run: {e}"))?;
    if !done.status.success() {
        return Err(format!("pip could not get {CLIENT}: {}", String::from_utf8_lossy(&done.stderr)));
    }
    std::fs::rename(&partly, &folder).map_err(|e| e.to_string())?;
    Ok(folder)
}

#[test]
fn tritons_client_works_unchanged() {
    let packages = match packages() {
        Ok(packages) => packages,
        Err(missing) => {
            // Continuous integration has what it takes, and must not pass without it.
            assert!(std::env::var_os("CI").is_none(), "{missing}");
            println!("not tested: {missing}");
            return;
        }
    };
    let mut slow = replica("gpu0");
    slow.batch_times_ms = vec![1.0; 4];
    let mut rig = Rig::new(&deployment(vec![service("net", vec![slow])]));
    rig.worker("net", "gpu0", double);
    rig.ready();
    let addresses = rig.handle().addresses();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/client.py");
    let client = Command::new("python3")
        .arg(script)
        .args([addresses.http, addresses.grpc].map(|a| a.unwrap().to_string()))
        .env("PYTHONPATH", packages)
        .output()
        .unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&client.stdout), String::from_utf8_lossy(&client.stderr));
    assert!(client.status.success() && said.contains("all is well"), "{said}");
}
