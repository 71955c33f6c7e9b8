//! Board and driver version → whether the driver is new enough.

/// The first driver that lets 4g and 3g be on one board (NVIDIA MIG User Guide, Concepts: R510).
pub(super) const LEAST_FOR_4G_AND_3G: &str = "510";

/// The first drivers with MIG, by how the ids of boards begin.
/// Source: NVIDIA MIG User Guide 620, Deployment Considerations. The edition for R580 has the rows of A100
/// and H100 the wrong way round.
const LEAST: &[(&str, &str)] = &[
    ("a100-", "450.80.02"),
    ("a30-", "460.73"),
    ("h100-", "525.85.12"),
    ("h200-", "550.90.07"),
    ("b200-", "570.133.20"),
    ("gb200-", "570.133.20"),
    ("b300", "580.82.07"),
    ("rtx-pro-6000-", "575.51.03"),
];

/// The first driver with MIG on a board of the catalogue; `None` where nobody says.
#[must_use]
pub fn least_for_mig(board: &str) -> Option<&'static str> {
    LEAST.iter().find(|(prefix, _)| board.starts_with(prefix)).map(|(_, least)| *least)
}

/// Whether a driver version comes before another. One that is no version is not judged.
#[must_use]
pub fn is_older(version: &str, least: &str) -> bool {
    let parts = |text: &str| text.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>();
    parts(version).zip(parts(least)).is_some_and(|(version, least)| version < least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for (version, least, expected) in [
            ("575.57.08", "575.51.03", false),
            ("575.51.03", "575.51.03", false),
            ("450.80.01", "450.80.02", true),
            ("450.80", "450.80.02", true),
            ("1000.1", "575.51.03", false),
            ("509.99", "510", true),
            ("510.39.01", "510", false),
            ("simulated", "510", false),
            ("", "510", false),
        ] {
            assert_eq!(is_older(version, least), expected, "{version} before {least}");
        }
    }

    #[test]
    fn every_prefix_is_a_board_of_the_catalogue() {
        for (prefix, least) in LEAST {
            assert!(ent_plan::device::board_ids().any(|id| id.starts_with(prefix)), "{prefix}");
            assert!(is_older("1", least), "{least} is a version");
        }
        assert_eq!(least_for_mig("gb200-186gb"), Some("570.133.20"));
        assert_eq!(least_for_mig("gb300"), None);
        assert_eq!(least_for_mig("gh200-96gb"), None);
    }
}
