//! Feature gates (table-format §7, §12): what may be read, what may be written.

use super::index_metadata::{FRAG_REUSE_NAME, IndexMetadata, MEM_WAL_NAME};
use super::manifest::Manifest;
use super::naming::is_detached;
use super::{reuse_v0, wire};
use crate::error::{Error, ErrorCode, Result};

/// Bits that the Lance release we follow supports, in both words.
const KNOWN: u64 = 0xCDBF;
/// Reserved bits that nobody may write under: overlays, stable ids with a reuse history, fragment tree, independent covering
/// fields, zone seeds, clustering.
const NEVER_WRITE: u64 = 1 << 6 | 1 << 9 | 1 << 12 | 1 << 13 | 1 << 16 | 1 << 17;
/// Bits that must stand in both words or in neither.
const PAIRED: u64 = 1 << 8 | 1 << 10 | 1 << 14 | 1 << 16;
const STABLE_ROW_IDS: u64 = 1 << 1;
/// Stands in both words as soon as a tagged reuse history was there once, and never goes away.
pub const TAGGED_REUSE: u64 = 1 << 10;
const FIELD_IDS_NOT_REUSED: u64 = 1 << 15;

const BIT_NAMES: [&str; 18] = [
    "deletion files",
    "stable row ids",
    "old 2.x format",
    "table config",
    "base paths",
    "no transaction files",
    "data overlays",
    "covering index fields",
    "mixed data file versions",
    "stable row ids with a fragment reuse index",
    "tagged fragment reuse index",
    "spilled row lineage",
    "fragment tree",
    "independent covering fields",
    "managed blobs",
    "non-reusable field ids",
    "zone write seeds",
    "clustering or object metadata",
];

/// "bit 6 (data overlays), bit 20 (unknown)".
fn describe(bits: u64) -> String {
    let named = |bit: u32| format!("bit {bit} ({})", BIT_NAMES.get(bit as usize).unwrap_or(&"unknown"));
    bit_numbers(bits).into_iter().map(named).collect::<Vec<_>>().join(", ")
}

fn bit_numbers(bits: u64) -> Vec<u32> {
    (0..64).filter(|bit| bits >> bit & 1 == 1).collect()
}

fn unsupported(manifest: &Manifest, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::UnsupportedFeature, format!("version {} of the table {what}", manifest.version))
        .with("version", manifest.version)
}

fn contradiction(manifest: &Manifest, what: impl std::fmt::Display) -> Error {
    Error::corrupt("manifest", format!("version {} {what}", manifest.version))
}

/// Refuses a table this build cannot read rightly: `UNSUPPORTED_FEATURE` naming the bits, `CORRUPT_FILE` when the words
/// contradict each other or the content.
pub fn check_read(manifest: &Manifest, _indices: &[IndexMetadata]) -> Result<()> {
    let (reader, writer) = (manifest.reader_flags, manifest.writer_flags);
    let unknown = reader & !KNOWN;
    if unknown != 0 {
        return Err(unsupported(manifest, format_args!("needs a reader that knows {}", describe(unknown)))
            .with("bits", bit_numbers(unknown)));
    }
    let torn = (reader ^ writer) & PAIRED;
    if torn != 0 {
        return Err(contradiction(manifest, format_args!("has {} in one of its two feature words only", describe(torn))));
    }
    let mut has_high_water_mark = false;
    for field in wire::split("manifest", &manifest.raw)? {
        match field.number {
            22 => return Err(unsupported(manifest, "stores its fragments in a fragment tree, which this build does not read")),
            24 => has_high_water_mark = true,
            _ => {}
        }
    }
    if reader & FIELD_IDS_NOT_REUSED != 0 || (writer & FIELD_IDS_NOT_REUSED != 0) != has_high_water_mark {
        return Err(contradiction(
            manifest,
            "has a writer flag for non-reusable field ids that its max_allocated_field_id contradicts",
        ));
    }
    if let Some(fragment) = manifest.fragments.iter().find(|f| f.has_overlays) {
        return Err(unsupported(
            manifest,
            format_args!("has data overlays on fragment {}, which this build does not read", fragment.id),
        ));
    }
    let without_ids = manifest.fragments.iter().find(|f| f.row_ids.is_none()).filter(|_| reader & STABLE_ROW_IDS != 0);
    if let Some(fragment) = without_ids {
        return Err(contradiction(manifest, format_args!("has stable row ids, and fragment {} has none", fragment.id)));
    }
    Ok(())
}

/// Refuses a table this build must not write to; includes everything [`check_read`] refuses. What a manifest alone cannot
/// show (an external manifest store, both name schemes in one folder, the branch: [`check_branch`], the entries to be
/// replaced: [`IndexMetadata::check_touch`]) is the caller's to check.
pub fn check_write(manifest: &Manifest, indices: &[IndexMetadata]) -> Result<()> {
    check_write_tagged(manifest, indices)?;
    reuse_v0::check_derivable(indices)
}

/// As [`check_write`], for jobs that keep the rules of a tagged reuse history of version 1 (fragment-reuse §8).
pub fn check_write_tagged(manifest: &Manifest, indices: &[IndexMetadata]) -> Result<()> {
    check_read(manifest, indices)?;
    let (reader, writer) = (manifest.reader_flags, manifest.writer_flags);
    let refused = (reader | writer) & (!KNOWN | NEVER_WRITE);
    if refused != 0 {
        return Err(unsupported(manifest, format_args!("needs a writer that knows {}", describe(refused)))
            .with("bits", bit_numbers(refused)));
    }
    if is_detached(manifest.version) {
        return Err(unsupported(manifest, "is detached and belongs to no history: nothing can be committed on it"));
    }
    if indices.iter().any(|e| e.name == MEM_WAL_NAME) {
        return Err(unsupported(
            manifest,
            format_args!("has a MemWAL ({MEM_WAL_NAME}), whose catch-up records this build does not keep"),
        ));
    }
    if let Some(entry) = reuse_v0::reuse_entry(indices) {
        if indices.iter().filter(|e| e.name == FRAG_REUSE_NAME).count() > 1 {
            return Err(contradiction(manifest, format_args!("has {FRAG_REUSE_NAME} twice")));
        }
        if !matches!(entry.index_version, None | Some(0 | 1)) {
            let what = format_args!("has version {}; only 0 and 1 are interpreted", entry.index_version.unwrap_or(0));
            return Err(reuse_v0::unsupported_history(entry, what));
        }
        if reader & TAGGED_REUSE != 0 && !reuse_v0::is_tagged(entry) {
            return Err(reuse_v0::unsupported_history(entry, "stands under the flag of tagged histories"));
        }
        if reader & STABLE_ROW_IDS != 0 {
            let what = format_args!("has stable row ids together with a {FRAG_REUSE_NAME} entry, which no release writes to");
            return Err(unsupported(manifest, what));
        }
    }
    if manifest.data_storage_version == "0.1" && manifest.schema.fields.iter().any(|f| f.has_dictionary) {
        return Err(unsupported(
            manifest,
            "keeps dictionary pages inside its manifest (data format 0.1), which this build does not rewrite",
        ));
    }
    Ok(())
}

/// Refuses a manifest whose branch is not the one that was opened (`None` = main).
pub fn check_branch(manifest: &Manifest, branch: Option<&str>) -> Result<()> {
    if manifest.branch.as_deref() == branch {
        return Ok(());
    }
    let name = |b: Option<&str>| b.map_or("the main branch".to_owned(), |b| format!("branch {b:?}"));
    Err(contradiction(
        manifest,
        format_args!("belongs to {}, and was opened as {}", name(manifest.branch.as_deref()), name(branch)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::fragment::{Fragment, RowIdSource};

    fn table(reader: u64, writer: u64) -> Manifest {
        Manifest { version: 5, reader_flags: reader, writer_flags: writer, ..Manifest::default() }
    }

    fn entry(name: &str, version: i32) -> IndexMetadata {
        let bare = crate::format::transaction::tests_support::entry(name);
        IndexMetadata { index_version: Some(version), ..bare }
    }

    #[test]
    fn reading_and_writing_have_their_own_gates() {
        for bits in [0, 1, 1 << 3, 1 << 4, 1 << 7, 1 << 8, 1 << 10, 1 << 11, 1 << 14] {
            check_write(&table(bits, bits), &[]).unwrap();
        }
        for bit in [6, 9, 12, 13, 18, 40, 63] {
            let error = check_read(&table(1 << bit, 1 << bit), &[]).unwrap_err();
            assert_eq!(error.code(), ErrorCode::UnsupportedFeature);
            assert!(error.message().contains(&format!("bit {bit} (")), "{error}");
            check_read(&table(0, 1 << bit), &[]).unwrap();
            let error = check_write(&table(0, 1 << bit), &[]).unwrap_err();
            assert!(error.message().contains(&format!("bit {bit} (")), "{error}");
        }
        check_read(&table(0, 1 << 17), &[]).unwrap();
        assert!(check_write(&table(0, 1 << 17), &[]).is_err());
    }

    #[test]
    fn words_that_contradict() {
        for bit in [8, 10, 14] {
            assert_eq!(check_read(&table(1 << bit, 0), &[]).unwrap_err().code(), ErrorCode::CorruptFile);
            assert_eq!(check_read(&table(0, 1 << bit), &[]).unwrap_err().code(), ErrorCode::CorruptFile);
        }
        assert!(check_read(&table(0, 1 << 15), &[]).is_err(), "no high-water mark");
        let marked = Manifest { raw: vec![0xc0, 1, 7].into(), ..table(0, 1 << 15) };
        check_write(&marked, &[]).unwrap();
        assert!(check_read(&Manifest { writer_flags: 0, ..marked }, &[]).is_err());
    }

    #[test]
    fn content_that_refuses() {
        let overlays = Manifest { fragments: vec![Fragment { has_overlays: true, ..Fragment::default() }], ..table(0, 0) };
        assert!(check_read(&overlays, &[]).unwrap_err().message().contains("overlays"));
        let mut stable = Manifest { fragments: vec![Fragment::default()], ..table(2, 2) };
        assert!(check_read(&stable, &[]).unwrap_err().message().contains("fragment 0 has none"));
        stable.fragments[0].row_ids = Some(RowIdSource::Column);
        check_write(&stable, &[]).unwrap();
        assert!(check_write(&stable, &[entry(FRAG_REUSE_NAME, 0)]).is_err());
        let tree = Manifest { raw: vec![0xb2, 1, 0].into(), ..table(0, 0) };
        assert!(check_read(&tree, &[]).unwrap_err().message().contains("fragment tree"));
        assert!(check_write(&Manifest { version: 1 << 63, ..table(0, 0) }, &[]).unwrap_err().message().contains("detached"));
        assert!(check_write(&table(0, 0), &[entry(MEM_WAL_NAME, 0)]).unwrap_err().message().contains("MemWAL"));
    }

    #[test]
    fn reuse_histories() {
        check_write(&table(0, 0), &[entry(FRAG_REUSE_NAME, 0)]).unwrap();
        for version in [1, 2, 9] {
            check_read(&table(1024, 1024), &[entry(FRAG_REUSE_NAME, version)]).unwrap();
            let error = check_write(&table(1024, 1024), &[entry(FRAG_REUSE_NAME, version)]).unwrap_err();
            assert_eq!(error.code(), ErrorCode::HistoryUnsupported);
        }
        assert_eq!(
            check_write(&table(1024, 1024), &[entry(FRAG_REUSE_NAME, 0)]).unwrap_err().code(),
            ErrorCode::HistoryUnsupported
        );
        check_write(&table(1024, 1024), &[]).unwrap();
    }

    #[test]
    fn branches() {
        let m = Manifest { branch: Some("dev".into()), ..table(0, 0) };
        check_branch(&m, Some("dev")).unwrap();
        check_branch(&table(0, 0), None).unwrap();
        assert!(check_branch(&m, None).unwrap_err().message().contains("branch \"dev\""));
    }
}
