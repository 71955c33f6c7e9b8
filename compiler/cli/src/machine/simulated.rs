//! A node's boards → a simulated machine that has them, where there is none yet.

use crate::exit::{Stop, Trouble};
use ent_machine::Library;
use ent_nvml_sim::description::{Description, FILE};

/// Makes a simulated machine with a node's boards when the library is the simulated one and has none.
///
/// # Errors
/// When there can be no such machine, or it cannot be written.
pub(crate) fn make_if_missing(library: &Library, board: &str, count: u32) -> Result<(), Stop> {
    let Library::Simulated { state, .. } = library else { return Ok(()) };
    if state.join(FILE).exists() {
        return Ok(());
    }
    let description = Description::of(driver(board), &[(board, count)]);
    description.write(state).map_err(|error| {
        let mut message = format!("no simulated machine can be made of {count} x {board}: {error}");
        if let Some(source) = std::error::Error::source(&error) {
            message.push_str(&format!(": {source}"));
        }
        Trouble::new(
            "no-simulated-machine",
            message,
            format!("write the machine into `{}` yourself, or name another folder", state.join(FILE).display()),
        )
    })?;
    crate::terminal::error_line(&format!(
        "nvml: made a simulated machine with {count} x {board}, driver {}: {}",
        description.driver_version,
        state.join(FILE).display()
    ));
    Ok(())
}

/// A driver that cuts the board: the oldest that does, or a recent one.
fn driver(board: &str) -> &'static str {
    ent_machine::doctor::least_driver(board).unwrap_or("575.57.08")
}
