// The beginning of a file → whether it is a spec, or one of the other things that are called `.ent`.
//
// Knows no editor. editors/vim/autoload/ent.vim follows the same rules.

/** What a file that ends in `.ent` can be. */
export type Content = "spec" | "xml" | "pdb";

/** As much of a file as the decision needs, in UTF-16 code units. */
export const BEGINNING = 4096;

// Markup, or a reference to a parameter entity, as the first thing in the file. No entry of a spec begins so.
const XML = /^(?:<[?!/A-Za-z]|%[A-Za-z_:][\w.:-]*;)/;

// Records that the PDB file format 3.3 lets a file begin with, or that excerpts begin with. Names are padded to
// six columns, so that a name of a spec's block in capitals is not one: it is followed by `{`, `=` or a name.
const PDB =
  /^(?:HEADER {4}|OBSLTE {5}|TITLE {4,5}|SPLIT {6}|CAVEAT {5}|COMPND {4}|SOURCE {4}|KEYWDS {4}|EXPDTA {4}|NUMMDL {4}|MDLTYP {4}|AUTHOR {4}|REVDAT {3}|SPRSDE {5}|JRNL {8}|REMARK +\d|SEQRES {2,3}|CRYST1 {1,3}\d|ORIGX\d {4}|SCALE\d {4}|MODEL {5,8}\d|ATOM {2,6}\d|HETATM {0,4}\d)/;

/** What a file is, by its first line that is not empty. */
export function contentOf(text: string): Content {
  const beginning = text.slice(0, BEGINNING).replace(/^\uFEFF/, "");
  if (XML.test(beginning.trimStart())) {
    return "xml";
  }
  const line = beginning.split(/\r\n|\r|\n/).find((l) => l.trim() !== "") ?? "";
  return PDB.test(line) ? "pdb" : "spec";
}
