//! A text → what it is, when it is not a program.
//!
//! XML has external entities, and the Protein Data Bank structures, in files that end in `.ent` too.

/// Names of the records that structures of the Protein Data Bank begin with, in columns 1 to 6.
// wwPDB, "Atomic Coordinate Entry Format Description", version 3.30, sections 2 and 9.
const RECORDS: [&str; 12] = [
    "HEADER", "OBSLTE", "TITLE ", "SPLIT ", "COMPND", "REMARK", "SEQRES", "CRYST1", "MODEL ", "ATOM  ",
    "HETATM", "ORIGX1",
];

/// What a text is instead of a program, in words.
#[must_use]
pub(crate) fn foreign(text: &str) -> Option<&'static str> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('<') || text.starts_with("%") {
        return Some("XML");
    }
    let is_record = RECORDS.iter().any(|record| text.starts_with(record));
    (is_record && !text.starts_with("MODEL {")).then_some("a structure of the Protein Data Bank")
}

#[cfg(test)]
mod tests {
    use super::foreign;

    #[test]
    fn programs_are_told_from_what_has_their_ending() {
        assert_eq!(foreign("<!ENTITY nbsp \"&#160;\">"), Some("XML"));
        assert_eq!(foreign("\u{feff}\n<?xml version=\"1.0\"?>"), Some("XML"));
        assert_eq!(foreign("%HTMLlat1;"), Some("XML"));
        let protein = "HEADER    HYDROLASE   01-JAN-00   1ABC\nATOM      1  N   ALA A   1";
        assert_eq!(foreign(protein), Some("a structure of the Protein Data Bank"));
        assert_eq!(foreign("MODEL        1\nATOM"), Some("a structure of the Protein Data Bank"));
        for program in ["", "// <x>\n", "service a {\n}", "model ATOM { }", "garbage = <", "MODEL { }"] {
            assert_eq!(foreign(program), None, "{program}");
        }
    }
}
