//! `docs/encodings.md`, printed from the tables of readers; the test fails when the page is out of date.

use std::fmt::Write;
use std::path::Path;

use super::encodings::READERS;
use super::layout::array20;

/// What is said of an encoding of 2.0.
fn note(name: &str) -> &'static str {
    match name {
        "Flat" => "plain, or the whole buffer in zstd or lz4",
        "Nullable" => "no nulls, some nulls, all nulls",
        "FixedSizeList" => "items of fixed width, nested too",
        "List" => "a column of offsets; the items are the next column",
        "Struct" => "a header without values; its children are read",
        "Binary" => "strings and binaries",
        "Dictionary" => "of strings (0 is null), and of Arrow dictionary columns",
        "Fsst" => "with field metadata only",
        "PackedStruct" => "one member at a time",
        "Bitpacked" | "FixedSizeBinary" | "BitpackedForNonNeg" => "written by old releases",
        other => panic!("no note on {other}"),
    }
}

/// Where Lance 14 writes a compression first, and whether 2.3 has it in sequences.
fn versions(name: &str) -> (&'static str, bool) {
    match name {
        "Flat" | "OutOfLineBitpacking" | "InlineBitpacking" | "Rle" | "General" => ("2.1", true),
        "Variable" | "Fsst" | "ByteStreamSplit" | "FixedSizeList" | "PackedStruct" => ("2.1", false),
        "VariablePackedStruct" => ("2.2", false),
        "Constant" | "Dictionary" | "Range" | "Delta" => ("2.3", true),
        other => panic!("no version of {other}"),
    }
}

/// Page layouts: name, then 2.1, 2.2, 2.3, then a note. `tests::what_is_not_read_is_refused_by_name` has the refusals.
const LAYOUTS: &[(&str, [&str; 3], &str)] = &[
    ("mini-block", ["read", "read", "read"], "chunks of some thousand values; dictionaries; lists by their repetition index"),
    ("full-zip", ["read", "read", "read"], "row after row; lists by their row offsets"),
    ("constant", ["read", "read", "read"], "all null, or one value (2.2 on), with nulls and lists"),
    ("sparse", ["-", "-", "read"], "nulls and lists by positions, around one value, none, chunks or zipped values"),
    ("indexed values", ["-", "-", "refused"], "not written by Lance 14"),
    ("blob", ["refused", "refused", "refused"], "no index takes such a column"),
];

fn page() -> String {
    let mut out = String::from(
        "# What is read of a column file\n\n\
         Printed from the tables of readers in `src/file` by its tests; do not edit. To print it again:\n\
         `WHETSTONE_WRITE_DOCS=1 cargo test --lib encodings_page`.\n\n\
         *read*: decoded, and compared with Lance value for value in every test run; what Lance 14 does not write any more or not\n\
         yet (Bitpacked, BitpackedForNonNeg and FixedSizeBinary of 2.0, InlineBitpacking of sequences) with pages made by hand.\n\
         *refused*: `UNSUPPORTED_ENCODING` with its name and the version of the file. *-*: does not exist there. Files of the\n\
         legacy format 0.1 are refused as a whole.\n\n\
         ## Pages of 2.0\n\n| Encoding | 2.0 | |\n|---|---|---|\n",
    );
    for reader in array20::READERS {
        let status = if reader.reads() { "read" } else { "refused" };
        writeln!(out, "| {} | {status} | {} |", reader.name, note(reader.name)).unwrap();
    }
    out.push_str("\n## Page layouts of 2.1 to 2.3\n\n| Layout | 2.1 | 2.2 | 2.3 | |\n|---|---|---|---|---|\n");
    for (name, [first, second, third], note) in LAYOUTS {
        writeln!(out, "| {name} | {first} | {second} | {third} | {note} |").unwrap();
    }
    out.push_str(
        "\n## Compressions of 2.1 to 2.3\n\n\
         In which form each is read: values of mini-block chunks, blocks (levels and dictionaries), single values of full-zip\n\
         pages, sequences of positions (2.3).\n\n\
         | Compression | since | chunks | blocks | single values | sequences |\n|---|---|---|---|---|---|\n",
    );
    for reader in READERS {
        let (since, sequence) = versions(reader.name);
        let status = |read: bool| if read { "read" } else { "-" };
        let forms = [reader.chunk.is_some(), reader.block.is_some(), reader.item.is_some(), sequence].map(status).join(" | ");
        writeln!(out, "| {} | {since} | {forms} |", reader.name).unwrap();
    }
    out.push_str(
        "\n## Types\n\n\
         bool, all integers, f16, f32, f64, dates, times, timestamps with and without zone, durations, decimals of 128 and 256\n\
         bits, strings and binaries of both offset widths, binaries of a fixed size; lists and large lists of these, nested\n\
         too; fixed-size lists of those of fixed width; Arrow dictionary columns, read as their values; extension types and\n\
         JSON, read as what they are stored as. Structs are read leaf by leaf: a leaf is null where a struct around it is.\n\
         Members of packed structs are read when their width is whole bytes (Lance 14 loses the bools it packs). Lists of\n\
         structs, maps and unions are refused: `UNSUPPORTED_TYPE`.\n",
    );
    out
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/encodings.md");
    let page = page();
    if std::env::var_os("WHETSTONE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/encodings.md is out of date: WHETSTONE_WRITE_DOCS=1 cargo test --lib encodings_page");
}
