//! The catalogue's rows against what a driver answers: every simulated board, and a real one if asked.

use crate::{bench, boot, cut, description};
use ent_machine::driver::{Finding, Verdict, conformance};
use ent_machine::{Driver, Library};
use ent_nvml_sim::description::Description;

fn differing(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|finding| finding.verdict == Verdict::Differs).collect()
}

#[test]
fn every_simulated_board_answers_what_the_catalogue_says() {
    for id in ent_plan::device::board_ids() {
        let findings = conformance(&bench(cut(id)).driver).unwrap();
        assert_eq!(differing(&findings), Vec::<&Finding>::new(), "{id}");
        let board = ent_plan::device::board(id).unwrap();
        // Ids, slices, counts and placements of every profile at least, and the list of their names.
        let agreed = findings.iter().filter(|finding| finding.verdict == Verdict::Agrees).count();
        assert!(agreed > 4 * board.profiles.len(), "{id}: only {agreed} of {}", findings.len());
    }
}

#[test]
fn without_rights_only_placements_stay_unknown() {
    let root = conformance(&bench(cut("a100-80gb-pcie")).driver).unwrap();
    let user = boot(&Description { privileged: false, ..description(vec![cut("a100-80gb-pcie")]) });
    let user = conformance(&user.driver).unwrap();
    assert_eq!(root.len(), user.len());
    for (root, user) in root.iter().zip(&user) {
        assert_eq!(root.fact, user.fact);
        let expected = if user.fact.starts_with("placements of ") { Verdict::Unknown } else { root.verdict };
        assert_eq!(user.verdict, expected, "{}", user.fact);
    }
}

/// With `ENT_HARDWARE=1` only, because it needs a GPU. Reads, and changes nothing.
#[test]
fn the_systems_boards_answer_what_the_catalogue_says() {
    if std::env::var_os("ENT_HARDWARE").is_none() {
        println!("skipped: ENT_HARDWARE=1 compares this machine's GPUs with the catalogue");
        return;
    }
    let driver = Driver::open(&Library::System).unwrap();
    let observed = driver.observe().unwrap();
    println!("{observed:#?}");
    println!("rights: {:?}", driver.rights());
    let findings = conformance(&driver).unwrap();
    for finding in &findings {
        println!("{finding:?}");
    }
    let wrong: Vec<&Finding> = differing(&findings).into_iter().filter(|f| !f.is_unverified).collect();
    assert_eq!(wrong, Vec::<&Finding>::new(), "captured facts that the driver denies");
    let again = driver.observe().unwrap();
    for (before, after) in observed.gpus.iter().zip(&again.gpus) {
        assert_eq!((&before.instances, before.mig), (&after.instances, after.mig), "nothing changed");
    }
}
