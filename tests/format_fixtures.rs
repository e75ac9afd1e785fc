//! The format layer against every fixture table: each manifest, transaction and deletion vector that Lance wrote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use common::{Fixture, Rng, files_below};
use roaring::RoaringBitmap;
use serde_json::{Value, json};
use uuid::Uuid;
use whetstone::ErrorCode;
use whetstone::format::deletion::decode_deletions;
use whetstone::format::flags::{check_branch, check_read, check_write};
use whetstone::format::fragment::{Fragment, RowIdSource};
use whetstone::format::index_metadata::{FRAG_REUSE_NAME, IndexMetadata};
use whetstone::format::manifest::{ManifestFile, ManifestFooter, SectionPositions, section};
use whetstone::format::naming::{Naming, file_name, parse_name};
use whetstone::format::refs::{Branch, Tag, branch_of_file_name};
use whetstone::format::reuse_v0::{Moved, ReuseContent, ReuseHistoryV0, is_tagged, reuse_entry};
use whetstone::format::row::RowAddress;
use whetstone::format::row_ids::RowIdSequence;
use whetstone::format::transaction::{Operation, Transaction};
use whetstone::format::{NextManifest, wire};

/// Counts the largest single allocation, for the hostile inputs.
struct Watch;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Watch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watch = Watch;

fn open(fixture: &Fixture, relative: &str) -> ManifestFile {
    let object = format!("{}/{relative}", fixture.name);
    ManifestFile::parse(&object, &fixture.read(relative).into()).unwrap_or_else(|e| panic!("{e}"))
}

fn set(bitmap: Option<&RoaringBitmap>) -> Value {
    bitmap.map_or(Value::Null, |b| b.iter().collect::<Vec<_>>().into())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// An entry in the words of the expected JSON.
fn entry_json(entry: &IndexMetadata) -> Value {
    json!({
        "uuid": entry.uuid.to_string(), "name": entry.name, "fields": entry.fields, "dataset_version": entry.dataset_version,
        "index_version": entry.index_version, "created_at_ms": entry.created_at_ms, "base_id": entry.base_id,
        "fragment_bitmap": set(entry.fragment_bitmap.as_ref()),
        "files": entry.files.iter().map(|f| json!({"path": f.path, "size_bytes": f.size_bytes})).collect::<Vec<_>>(),
        "covering_fields": entry.covering_fields,
        "details_type_url": entry.details.as_ref().map(|d| &d.type_url),
        "details_len": entry.details.as_ref().map(|d| d.value.len()),
    })
}

/// A manifest in the words of the expected JSON.
fn manifest_json(file: &ManifestFile, relative: &str) -> Value {
    let m = &file.manifest;
    let fields = m.schema.fields.iter().map(
        |f| json!({"id": f.id, "parent_id": f.parent_id, "name": f.name, "logical_type": f.logical_type, "nullable": f.nullable}),
    );
    let bases =
        m.base_paths.iter().map(|b| json!({"id": b.id, "name": b.name, "is_dataset_root": b.is_dataset_root, "path": b.path}));
    json!({
        "file": relative, "version": m.version, "reader_feature_flags": m.reader_flags, "writer_feature_flags": m.writer_flags,
        "max_fragment_id": m.max_fragment_id, "next_row_id": m.next_row_id, "data_format": m.data_storage_version,
        "config": m.config, "table_metadata": m.table_metadata, "transaction_file": m.transaction_file.as_deref().unwrap_or(""), "branch": m.branch,
        "base_paths": bases.collect::<Vec<_>>(), "fields": fields.collect::<Vec<_>>(),
        "indices": file.indices.iter().map(entry_json).collect::<Vec<_>>(),
    })
}

/// Every key that the expected object and ours share must agree, and at least `least` keys must be shared.
fn agree(at: &str, ours: &Value, expected: &Value, least: usize) {
    let (ours, expected) = (ours.as_object().unwrap(), expected.as_object().unwrap());
    let mut shared = 0;
    for (key, value) in ours {
        if let Some(want) = expected.get(key) {
            shared += 1;
            match (value, want) {
                (Value::Array(a), Value::Array(b)) if a.iter().chain(b).any(Value::is_object) => {
                    assert_eq!(a.len(), b.len(), "{at}.{key}");
                    for (i, (a, b)) in a.iter().zip(b).enumerate() {
                        agree(&format!("{at}.{key}[{i}]"), a, b, 2);
                    }
                }
                _ => assert_eq!(value, want, "{at}.{key}"),
            }
        }
    }
    assert!(shared >= least, "{at}: only {shared} keys in common");
}

fn latest(fixture: &Fixture) -> String {
    fixture.expected["manifest"]["file"].as_str().unwrap().to_owned()
}

#[test]
fn manifests_equal_the_expected_ones() {
    let mut details = 0;
    for fixture in common::tables() {
        let relative = latest(&fixture);
        let file = open(&fixture, &relative);
        let want = &fixture.expected["manifest"];
        agree(&fixture.name, &manifest_json(&file, &relative), want, 14);
        for (entry, want) in file.indices.iter().zip(want["indices"].as_array().unwrap()) {
            if let Some(text) = want["details_hex"].as_str() {
                assert_eq!(hex(&entry.details.as_ref().unwrap().value), text, "{}: details of {}", fixture.name, entry.name);
                details += 1;
            }
        }
        assert_eq!(file.manifest.has_stable_row_ids(), fixture.expected["has_stable_row_ids"].as_bool().unwrap());
        check_read(&file.manifest, &file.indices).unwrap();
        check_branch(&file.manifest, None).unwrap();
        for want in fixture.expected["manifests"].as_array().unwrap() {
            let relative = want["file"].as_str().unwrap();
            let (naming, version) = parse_name(relative.rsplit('/').next().unwrap()).unwrap();
            assert_eq!(Some(version), want["version"].as_u64());
            assert_eq!(naming, if want["naming"] == "V1" { Naming::V1 } else { Naming::V2 }, "{relative}");
            assert_eq!(format!("_versions/{}", file_name(naming, version)), relative);
            assert_eq!(open(&fixture, relative).manifest.version, version);
        }
    }
    assert!(details > 60, "{details} details compared");
}

fn fragment_json(fragment: &Fragment, fixture: &Fixture) -> Value {
    let files = fragment.files.iter().map(|f| {
        json!({"path": f.path, "fields": f.fields, "column_indices": f.column_indices, "file_version": format!("{}.{}", f.major, f.minor), "size": f.size})
    });
    let deleted = fragment.deletion_file.as_ref().map(|d| {
        let path = d.path(fragment.id);
        let offsets =
            decode_deletions(d.kind, &path, &fixture.read(&path).into()).unwrap_or_else(|e| panic!("{}: {e}", fixture.name));
        assert_eq!(d.num_deleted_rows, Some(offsets.len()), "{path}");
        (path, offsets)
    });
    assert!(fragment.files.iter().all(|f| f.format_version().is_some()), "{}", fixture.name);
    let mut value = json!({
        "id": fragment.id, "physical_rows": fragment.physical_rows, "rows": fragment.live_rows(),
        "num_deletions": deleted.as_ref().map_or(0, |(_, offsets)| offsets.len()),
        "deletion_file": deleted.as_ref().map(|(path, _)| path), "data_files": files.collect::<Vec<_>>(),
    });
    if let Some((_, offsets)) = deleted.filter(|(_, offsets)| offsets.len() <= 400) {
        value["deleted_offsets"] = offsets.iter().collect::<Vec<_>>().into();
    }
    value
}

#[test]
fn fragments_and_deletion_vectors_equal_the_expected_ones() {
    let mut offsets = 0;
    for fixture in common::tables() {
        let file = open(&fixture, &latest(&fixture));
        let want = fixture.expected["fragments"].as_array().unwrap();
        assert_eq!(file.manifest.fragments.len(), want.len(), "{}", fixture.name);
        for (fragment, want) in file.manifest.fragments.iter().zip(want) {
            let ours = fragment_json(fragment, &fixture);
            offsets +=
                usize::from(want.get("deleted_offsets").is_some_and(|o| !o.is_null()) && ours.get("deleted_offsets").is_some());
            agree(&format!("{} fragment {}", fixture.name, fragment.id), &ours, want, 6);
        }
        assert_eq!(file.manifest.live_rows(), fixture.expected["rows"].as_u64(), "{}", fixture.name);
    }
    assert!(offsets >= 5, "{offsets} lists of deleted offsets compared");
}

#[test]
fn tagged_tables_equal_their_state_and_are_refused_for_writing() {
    let mut refused = 0;
    for fixture in common::tagged() {
        let state = &fixture.expected["state"];
        let version = state["version"].as_u64().unwrap();
        let file = open(&fixture, &format!("_versions/{}", file_name(Naming::V2, version)));
        let m = &file.manifest;
        let segments = file.indices.iter().map(|e| {
            json!({
                "name": e.name, "uuid": e.uuid.to_string(), "fields": e.fields, "type_url": e.details.as_ref().map(|d| &d.type_url),
                "stored_bitmap": set(e.fragment_bitmap.as_ref()), "dataset_version": e.dataset_version, "index_version": e.index_version,
                "base_id": e.base_id,
            })
        });
        let fragments = m.fragments.iter().map(|f| {
            let deleted = f.deletion_file.as_ref().map_or(Some(0), |d| d.num_deleted_rows);
            json!({"id": f.id, "physical_rows": f.physical_rows, "num_deleted_rows": deleted})
        });
        let ours = json!({
            "version": m.version, "reader_feature_flags": m.reader_flags, "writer_feature_flags": m.writer_flags,
            "max_fragment_id": m.max_fragment_id, "live_fragments": m.live().iter().collect::<Vec<_>>(),
            "segments": segments.collect::<Vec<_>>(), "fragments": fragments.collect::<Vec<_>>(),
        });
        agree(&fixture.name, &ours, state, 7);
        check_read(m, &file.indices).unwrap();
        if reuse_entry(&file.indices).is_some_and(is_tagged) {
            let error = check_write(m, &file.indices).unwrap_err();
            assert_eq!(error.code(), ErrorCode::HistoryUnsupported, "{}: {error}", fixture.name);
            assert!(error.message().contains(FRAG_REUSE_NAME));
            refused += 1;
        }
    }
    assert!(refused > 20, "{refused} tagged tables refused");
}

#[test]
fn every_manifest_transaction_and_ref_reads() {
    let base = common::root().join("fixtures");
    let (mut manifests, mut inline, mut refs) = (0, 0, 0);
    for path in files_below(&base, ".manifest") {
        let object = path.to_string_lossy();
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        let file = ManifestFile::parse(&object, &bytes).unwrap_or_else(|e| panic!("{e}"));
        manifests += 1;
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(parse_name(name).unwrap().1, file.manifest.version, "{object}");

        // In ranges, as a big manifest is read, the result is the same.
        let footer = ManifestFooter::parse(&object, &bytes.slice(bytes.len().saturating_sub(100)..), bytes.len() as u64).unwrap();
        let of = |r: std::ops::Range<u64>| bytes.slice(r.start as usize..r.end as usize);
        let message = footer.manifest_message(&object, &of(footer.manifest_range())).unwrap();
        let range = SectionPositions::parse(&object, &message).unwrap().index_range(&object, &footer).unwrap();
        let entries = range.map(|range| section(&object, "index section", &of(range), 0).unwrap());
        assert_eq!(entries.is_some(), !file.indices.is_empty(), "{object}");
        assert_eq!(ManifestFile::parse_parts(&object, message, entries, None).unwrap().indices, file.indices);

        if let Some(transaction) = file.transaction(&object).unwrap() {
            inline += 1;
            assert!(!matches!(transaction.operation, Operation::Unknown(_)), "{object}");
            let txn = file
                .manifest
                .transaction_file
                .as_ref()
                .map(|name| path.parent().unwrap().with_file_name("_transactions").join(name));
            if let Some(bytes) = txn.and_then(|path| std::fs::read(path).ok()) {
                assert_eq!(transaction.raw, bytes, "{object}: the two copies of the transaction");
                assert_eq!(file.manifest.transaction_file, Some(transaction.file_name()));
            }
        }
        for fragment in &file.manifest.fragments {
            if let (Some(RowIdSource::Inline(ids)), Some(rows)) = (&fragment.row_ids, fragment.physical_rows) {
                let ids = RowIdSequence::parse(&object, ids).unwrap();
                assert_eq!(ids.len(), rows, "{object} fragment {}", fragment.id);
                let all: Vec<_> = ids.iter().collect();
                assert_eq!(all, (0..rows).map(|i| ids.get(i).unwrap()).collect::<Vec<_>>());
                assert_eq!(ids.max(), all.iter().max().copied());
                assert!(ids.max() < Some(file.manifest.next_row_id));
            }
        }
    }
    for path in files_below(&base, ".txn") {
        let transaction = Transaction::parse(&path.to_string_lossy(), &std::fs::read(&path).unwrap().into()).unwrap();
        assert_eq!(transaction.file_name(), path.file_name().unwrap().to_str().unwrap());
    }
    for path in files_below(&base, ".json") {
        let text = path.to_string_lossy().into_owned();
        let bytes = || std::fs::read(&path).unwrap();
        if text.contains("_refs/tags/") {
            Tag::parse(&text, &bytes()).unwrap();
            refs += 1;
        } else if text.contains("_refs/branches/") {
            Branch::parse(&text, &bytes()).unwrap();
            assert!(branch_of_file_name(path.file_name().unwrap().to_str().unwrap()).is_some());
            refs += 1;
        }
    }
    assert!(manifests > 500 && inline > 500 && refs >= 3, "{manifests} manifests, {inline} transactions, {refs} refs");
}

/// The content of a table's version-0 history.
fn history(fixture: &Fixture, file: &ManifestFile) -> Option<ReuseHistoryV0> {
    let entry = reuse_entry(&file.indices).filter(|e| !is_tagged(e))?;
    let content = match ReuseContent::locate(&fixture.name, entry).unwrap() {
        ReuseContent::Inline(bytes) => bytes,
        ReuseContent::External { path, offset, size } => {
            let file = Bytes::from(fixture.read(&format!("_indices/{}/{path}", entry.uuid)));
            file.slice(offset as usize..(offset + size) as usize)
        }
    };
    Some(ReuseHistoryV0::parse(&fixture.name, &content).unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn version_0_histories_map_coverage_and_addresses() {
    let (mut histories, mut segments) = (0, 0);
    for fixture in common::tables() {
        let file = open(&fixture, &latest(&fixture));
        let Some(history) = history(&fixture, &file) else { continue };
        histories += 1;
        let recorded = file.indices.iter().zip(fixture.expected["manifest"]["indices"].as_array().unwrap());
        let recorded = recorded.filter_map(|(_, want)| want.get("fragment_reuse")).find(|r| !r.is_null()).unwrap();
        let versions = recorded["legacy_versions"].as_array().unwrap();
        assert_eq!(history.versions.len(), versions.len(), "{}", fixture.name);
        for (ours, want) in history.versions.iter().zip(versions) {
            assert_eq!(Some(ours.dataset_version), want["dataset_version"].as_u64());
            for (group, want) in ours.groups.iter().zip(want["groups"].as_array().unwrap()) {
                let ids = |key: &str| {
                    want[key].as_array().unwrap().iter().map(|f| f["id"].as_u64().unwrap() as u32).collect::<Vec<_>>()
                };
                assert_eq!(group.old.iter().map(|f| f.id).collect::<Vec<_>>(), ids("old_fragments"));
                assert_eq!(group.new.iter().map(|f| f.id).collect::<Vec<_>>(), ids("new_fragments"));
                let survivors = &want["changed_row_addrs"];
                if let Some(runs) = survivors.as_array() {
                    let number = |v: &Value| v.as_u64().unwrap();
                    let addresses =
                        runs.iter().flat_map(|r| (number(&r[1])..=number(&r[2])).map(move |o| number(&r[0]) << 32 | o));
                    assert!(group.survivors.iter().eq(addresses), "{}", fixture.name);
                } else {
                    assert_eq!(Some(group.survivors.len()), survivors["rows"].as_u64(), "{}", fixture.name);
                }
                // Survivors, in order, are the rows of the new fragments, in order.
                let places = group.new.iter().flat_map(|f| (0..f.physical_rows).map(move |o| RowAddress::new(f.id, o)));
                let mut ranked: Vec<u64> = Vec::new();
                for old in &group.old {
                    ranked.extend(group.survivors.iter().filter(|a| RowAddress(*a).fragment() == old.id));
                }
                assert_eq!(places.clone().count(), ranked.len());
                let step = if ranked.len() > 100_000 { 997 } else { 1 };
                for (address, place) in ranked.into_iter().zip(places).step_by(step) {
                    assert_eq!(ours.step(RowAddress(address)), Moved::To(place));
                }
            }
        }
        // Coverage as Lance reports it: bitmaps carried through the history, restricted to live fragments.
        let live = file.manifest.live();
        let mapped = history.map_indices(&file.indices);
        for index in fixture.expected["indices"].as_array().unwrap() {
            let name = index["name"].as_str().unwrap();
            let covered = mapped.iter().filter(|e| e.name == name).filter_map(|e| e.fragment_bitmap.as_ref());
            let covered = covered.fold(RoaringBitmap::new(), |all, b| all | b) & &live;
            assert_eq!(set(Some(&covered)), index["covered_live_fragments"], "{} {name}", fixture.name);
            segments += 1;
        }
        assert!(mapped.iter().zip(&file.indices).all(|(a, b)| a.raw == b.raw));
    }
    assert!(histories >= 5 && segments >= 5, "{histories} histories, {segments} indexes");
}

#[test]
fn a_rewritten_manifest_differs_only_where_it_must() {
    for fixture in common::tables() {
        let base = open(&fixture, &latest(&fixture));
        if base.manifest.data_storage_version == "0.1" && base.manifest.schema.fields.iter().any(|f| f.has_dictionary) {
            continue;
        }
        let transaction = Transaction::create_index(base.manifest.version, Uuid::from_u128(7), vec![], vec![]);
        let next = NextManifest {
            base: &base,
            indices: base.indices.clone(),
            transaction: &transaction,
            transaction_file: transaction.file_name(),
            now_ms: 1_800_000_000_123,
            fragments: None,
        };
        let again = ManifestFile::parse("next", &next.encode().unwrap()).unwrap();
        let (mut ours, mut want) = (manifest_json(&again, ""), manifest_json(&base, ""));
        for value in [&mut ours, &mut want] {
            for key in ["version", "transaction_file", "max_fragment_id"] {
                value.as_object_mut().unwrap().remove(key);
            }
        }
        assert_eq!(ours, want, "{}", fixture.name);
        assert_eq!(again.indices, base.indices, "{}: entries are kept byte for byte", fixture.name);
        assert_eq!(again.manifest.fragments, base.manifest.fragments);
        let kept = |raw: &Bytes| {
            let fields = wire::split("m", raw).unwrap();
            fields
                .into_iter()
                .filter(|f| [1, 2, 5, 14, 15, 16, 18, 19, 20].contains(&f.number))
                .map(|f| f.raw)
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(&again.manifest.raw), kept(&base.manifest.raw));
        assert_eq!(again.transaction("next").unwrap().unwrap(), transaction);
    }
}

/// Parses everything that hangs on a manifest file; any answer will do, as long as there is one.
fn exercise(bytes: &Bytes) {
    let Ok(file) = ManifestFile::parse("m", bytes) else { return };
    let _ = file.transaction("m");
    let _ = check_write(&file.manifest, &file.indices);
    for fragment in &file.manifest.fragments {
        if let Some(RowIdSource::Inline(ids)) = &fragment.row_ids
            && let Ok(ids) = RowIdSequence::parse("m", ids)
        {
            let _ = (ids.get(ids.len() / 2), ids.iter().take(100).count());
        }
    }
    let content = reuse_entry(&file.indices).filter(|e| !is_tagged(e)).and_then(|e| ReuseContent::locate("m", e).ok());
    if let Some(ReuseContent::Inline(bytes)) = content {
        let _ = ReuseHistoryV0::parse("m", &bytes).map(|h| h.map_address(RowAddress::new(1, 1)));
    }
}

#[test]
fn mutated_manifests_never_panic_nor_allocate_absurdly() {
    let mut rng = Rng::new(20_260_101);
    let mut mutations = 0;
    let paths = files_below(&common::root().join("fixtures"), ".manifest");
    for path in paths.iter().step_by(6) {
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        let before = LARGEST.swap(0, Ordering::Relaxed);
        for _ in 0..8 {
            exercise(&bytes.slice(..rng.below(bytes.len())));
            exercise(&bytes.slice(rng.below(bytes.len())..));
            mutations += 2;
        }
        for flips in [1, 1, 1, 1, 1, 1, 2, 4, 16] {
            let mut changed = bytes.to_vec();
            for _ in 0..flips {
                let at = rng.below(changed.len());
                changed[at] ^= 1 << rng.below(8);
            }
            exercise(&changed.into());
            mutations += 1;
        }
        // One byte set to an extreme, so that lengths and counts become huge.
        for _ in 0..8 {
            let mut changed = bytes.to_vec();
            let at = rng.below(changed.len());
            let end = (at + 1 + rng.below(8)).min(changed.len());
            changed[at..end].fill(0xff);
            exercise(&changed.into());
            mutations += 1;
        }
        let largest = LARGEST.load(Ordering::Relaxed);
        // Other tests of this binary run beside this one and read whole fixtures; 16 MiB is far above those.
        assert!(largest < 16 << 20, "{}: one allocation of {largest} bytes for a file of {}", path.display(), bytes.len());
        LARGEST.fetch_max(before, Ordering::Relaxed);
    }
    assert!(mutations > 3000, "{mutations} mutations");
}
