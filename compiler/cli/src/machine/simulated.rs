//! A node's boards → a simulated machine that has them, where there is none yet.

use crate::exit::{Stop, Trouble};
use ent_machine::Library;
use ent_machine::doctor::{is_older, least_driver};
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
    let description = Description::of(driver(), &[(board, count)]);
    description.write(state).map_err(|error| {
        let mut message = format!("no simulated machine can be made of {count} x {board}: {error}");
        if let Some(source) = std::error::Error::source(&error) {
            message.push_str(&format!(": {source}"));
        }
        Trouble::new(
            "no-simulated-machine",
            message,
            format!(
                "write the machine into `{}` yourself, or name another folder",
                state.join(FILE).display()
            ),
        )
    })?;
    crate::terminal::error_line(&format!(
        "nvml: made a simulated machine with {count} x {board}, driver {}: {}",
        description.driver_version,
        state.join(FILE).display()
    ));
    Ok(())
}

/// The newest of the least drivers that boards of the catalogue need: one that cuts them all, and has every
/// profile that NVIDIA added later to the older ones.
fn driver() -> &'static str {
    let least = ent_plan::device::board_ids().filter_map(least_driver);
    least.reduce(|newest, other| if is_older(newest, other) { other } else { newest }).unwrap_or(A_DRIVER)
}

/// Any driver, should nobody know what boards need.
const A_DRIVER: &str = "575.57.08";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulated_driver_cuts_every_board_of_the_catalogue() {
        for board in ent_plan::device::board_ids() {
            assert!(!least_driver(board).is_some_and(|least| is_older(driver(), least)), "{board}");
        }
    }

    #[test]
    fn a_machine_is_made_once_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("deep/er");
        let library = Library::Simulated { library: "l.so".into(), state: state.clone() };
        make_if_missing(&library, "a100-80gb-pcie", 2).unwrap();
        make_if_missing(&library, "h100-80gb-pcie", 1).unwrap();
        let made = Description::read(&state).unwrap();
        assert_eq!((made.gpu[0].board.as_str(), made.gpu[0].count), ("a100-80gb-pcie", 2));
        assert!(make_if_missing(&Library::System, "a100-80gb-pcie", 2).is_ok());
        let other = Library::Simulated { library: "l.so".into(), state: folder.path().join("other") };
        let Err(Stop::World(troubles)) = make_if_missing(&other, "no-such-board", 1) else { panic!() };
        assert!(troubles[0].message.contains("no-such-board"), "{troubles:?}");
    }
}
