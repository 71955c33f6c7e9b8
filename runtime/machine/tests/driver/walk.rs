//! A random walk of steps: after each, what is observed is what a bookkeeper expects, or nothing changed.

use crate::{Bench, bench, create, cut, destroy};
use ent_machine::error::DeviceErrorKind;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// What ought to be there: profile, start, size.
type Book = BTreeSet<(String, u32, u32)>;

fn observed(bench: &Bench) -> Book {
    let gpu = bench.gpu();
    assert!(gpu.instances.iter().all(|instance| instance.mig_device().is_some()), "an orphan was left");
    gpu.instances.iter().map(|i| (i.profile.clone(), i.start, i.size)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn a_step_comes_about_or_changes_nothing(
        board in prop::sample::select(vec!["a100-80gb-pcie", "h200-141gb", "a30-24gb", "rtx-pro-6000-blackwell"]),
        choices in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..24),
    ) {
        let known = ent_plan::device::board(board).unwrap();
        let bench = bench(cut(board));
        let mut book = Book::new();
        for (is_creation, profile, start) in choices {
            let profile = profile.get(&known.profiles);
            let start = *start.get(&profile.starts);
            let size = profile.n_memory_slices;
            let entry = (profile.name.clone(), start, size);
            let overlaps = book.iter().any(|(_, s, n)| start < s + n && *s < start + size);
            if is_creation {
                match bench.perform(create(&profile.name, start, size)) {
                    Ok(()) => {
                        prop_assert!(!overlaps, "made over another");
                        book.insert(entry);
                    }
                    Err(error) if book.contains(&entry) => {
                        prop_assert_eq!(error.kind, DeviceErrorKind::AlreadyThere);
                    }
                    // Places are free and yet there is no room: two media profiles exclude each other.
                    Err(error) => prop_assert_eq!(error.kind, DeviceErrorKind::InsufficientResources),
                }
            } else {
                bench.perform(destroy(&profile.name, start, size)).unwrap();
                book.remove(&entry);
            }
            prop_assert_eq!(observed(&bench), book.clone());
        }
    }
}
