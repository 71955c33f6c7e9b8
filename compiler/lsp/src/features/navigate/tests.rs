//! Names over files: found, used, renamed, and refused.

#![expect(clippy::mutable_key_type, reason = "the protocol's own type; addresses are not changed")]

use super::{definition, highlights, prepare_rename, references, rename};
use crate::fixture::World;
use lsp_types::{Location, PrepareRenameResponse};

const MAIN: &str = "import \"shared/models.ent\"\nimport \"catalog:nvidia/a100-80gb-pcie\"\n\
                    import \"catalog:performance/a100-80gb-pcie\"\nlet peak = 10 req/s\n\
                    service s { model = bert, rate = peak * 2, latency = p99 <= 1 s, pin { node = \"box\" } }\n\
                    hardware { node \"box\" { gpu = a100_80gb_pcie x 1 } }\n";
const SHARED: &str = "model bert { performance = a100_80gb_pcie.bert }\nlet unused = 1\n";

/// The place in `MAIN` where this stands, marked.
fn main_at(marked: &str) -> World {
    let text = MAIN.replacen(&marked.replace("$0", ""), marked, 1);
    assert!(text.contains("$0"), "{marked}");
    World::new(&[("main.ent", &text), ("shared/models.ent", SHARED)])
}

fn shown(world: &World, found: &[Location]) -> Vec<String> {
    let one = |location: &Location| {
        let file = world.workspace.find(&location.uri).unwrap();
        let name = world.workspace.file(file).unwrap().name.clone();
        format!("{name}:{}:{}", location.range.start.line + 1, world.text(file, location.range))
    };
    found.iter().map(one).collect()
}

fn defined(marked: &str) -> Vec<String> {
    let world = main_at(marked);
    shown(&world, &definition(&world.snapshot(), world.file, world.offset))
}

#[test]
fn names_lead_to_their_declarations_over_files() {
    assert_eq!(defined("model = be$0rt"), ["/shared/models.ent:1:bert"]);
    assert_eq!(defined("pe$0ak * 2"), ["/main.ent:4:peak"]);
    assert_eq!(defined("node = \"bo$0x\""), ["/main.ent:6:\"box\""]);
    assert_eq!(defined("gpu = a100_80$0gb_pcie"), ["/main.ent:2:\"catalog:nvidia/a100-80gb-pcie\""]);
    assert_eq!(defined("import \"shared/mo$0dels.ent\""), ["/shared/models.ent:1:"]);
    assert_eq!(defined("p9$09 <="), Vec::<String>::new());
}

#[test]
fn a_name_is_found_in_every_program_that_reads_its_file() {
    let other = "import \"shared/models.ent\"\nservice t { model = bert }\n";
    let files = [
        ("main.ent", MAIN),
        ("other.ent", other),
        ("shared/models.ent", "model be$0rt { performance = a100_80gb_pcie.bert }\n"),
    ];
    let world = World::of_mains(&files, &["main.ent", "other.ent"]);
    let snapshots = world.snapshots();
    let found = references(&snapshots, world.file, world.offset, true);
    assert_eq!(shown(&world, &found), ["/shared/models.ent:1:bert", "/main.ent:5:bert", "/other.ent:2:bert"]);
    assert_eq!(references(&snapshots, world.file, world.offset, false).len(), 2);
    let edit = rename(&snapshots, world.file, world.offset, "bert large").unwrap();
    let changes = edit.changes.unwrap();
    let other = world.workspace.named("/other.ent").unwrap();
    let uri = &world.workspace.file(other).unwrap().uri;
    assert_eq!(changes.len(), 3);
    assert!(world.edited(other, &changes[uri]).contains("model = \"bert large\""));
}

#[test]
fn highlights_stay_in_the_file() {
    let world = main_at("let pe$0ak");
    assert_eq!(highlights(&world.snapshot(), world.file, world.offset).len(), 2);
    let world = main_at("model = be$0rt");
    assert_eq!(highlights(&world.snapshot(), world.file, world.offset).len(), 1);
}

fn renamed(marked: &str, new_name: &str) -> Result<String, String> {
    let world = main_at(marked);
    let edit = rename(&world.snapshots(), world.file, world.offset, new_name)?;
    let uri = &world.workspace.file(world.file).unwrap().uri;
    Ok(world.edited(world.file, &edit.changes.unwrap()[uri]))
}

#[test]
fn renaming_keeps_each_place_as_it_is_written() {
    let text = renamed("pe$0ak * 2", "most").unwrap();
    assert!(text.contains("let most = 10") && text.contains("rate = most * 2"), "{text}");
    let text = renamed("node = \"bo$0x\"", "front door").unwrap();
    assert!(text.contains("node = \"front door\"") && text.contains("node \"front door\" {"), "{text}");
    let text = renamed("gpu = a100_80$0gb_pcie", "a100").unwrap();
    assert!(text.contains("import \"catalog:nvidia/a100-80gb-pcie\" as a100\n"), "{text}");
    assert!(
        text.contains("gpu = a100 x 1") && text.contains("import \"catalog:performance/a100-80gb-pcie\"\n"),
        "{text}"
    );
    let text = renamed("model = be$0rt", "bert2").unwrap();
    assert!(text.contains("model = bert2"), "{text}");
}

#[test]
fn what_cannot_be_renamed_says_why() {
    let why = |marked: &str, new_name: &str| renamed(marked, new_name).unwrap_err();
    assert!(
        why("pe$0ak * 2", "unused").contains("there is a value `unused` already, in line 2 of models.ent")
    );
    assert!(why("pe$0ak * 2", "1st").contains("letters, digits"));
    assert!(why("pe$0ak * 2", "let").contains("word of the language"));
    assert!(why("pe$0ak * 2", "a100_80gb_pcie").contains("could mean either"));
    assert!(why("model = be$0rt", "").contains("at least one letter"));
    assert!(why("p9$09 <=", "x").contains("nothing here"));
    assert!(why("import \"catalog:nvi$0dia/", "x").contains("where its name is used"));
    let broken = format!("{MAIN}service t {{ rate = = peak }}\n").replacen("let peak", "let pe$0ak", 1);
    let world = World::new(&[("main.ent", &broken), ("shared/models.ent", SHARED)]);
    let why = rename(&world.snapshots(), world.file, world.offset, "most").unwrap_err();
    assert!(why.contains("line 7 of main.ent mentions `peak`"), "{why}");
}

#[test]
fn a_rename_is_prepared_with_the_name_inside_its_quotes() {
    let world = main_at("node = \"bo$0x\"");
    let Ok(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder }) =
        prepare_rename(&world.snapshot(), world.file, world.offset)
    else {
        panic!("not prepared")
    };
    assert_eq!((world.text(world.file, range), placeholder.as_str()), ("box", "box"));
    let world = main_at("p9$09 <=");
    assert!(prepare_rename(&world.snapshot(), world.file, world.offset).is_err());
}
