//! Every segment of a maintained method that Lance wrote into a fixture table, in any version of it: read with our readers, built
//! again from the column it was built from, and compared file by file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, UInt64Type};
use futures::executor::block_on;
use roaring::RoaringTreemap;
use serde_json::json;
use whetstone::env::TestEnv;
use whetstone::file::LanceFile;
use whetstone::format::index_metadata::{IndexFile, IndexMetadata};
use whetstone::format::schema::scalar_type;
use whetstone::format::treemap::decode_row_treemap;
use whetstone::index::{BuildSpec, BuiltIndex, IndexMethod, Params, SegmentFiles, method_by_url};
use whetstone::store::Store;
use whetstone::table::base::segment_folder;
use whetstone::table::column::field_type;
use whetstone::table::scan::{FragmentScan, ScanContext};
use whetstone::table::{At, Table};
use whetstone::{Error, ErrorCode};

/// A segment of Lance's and the version of the table it was built from.
struct Segment {
    at: String,
    method: &'static dyn IndexMethod,
    /// As the first version that lists it has it: nothing is pruned from its bitmap yet.
    entry: IndexMetadata,
    files: SegmentFiles,
    table: Table,
}

/// Segments of maintained methods in every version of a table.
fn segments(name: &str, path: &Path) -> Vec<Segment> {
    let latest = block_on(Table::open(support::folder_store(path), At::Latest, None)).unwrap();
    let mut found: BTreeMap<_, Segment> = BTreeMap::new();
    let mut versions: Vec<u64> = block_on(latest.versions()).unwrap().iter().map(|info| info.version).collect();
    versions.sort_unstable();
    for version in versions {
        let listed = block_on(latest.at(At::Version(version))).unwrap();
        for entry in &listed.manifest().indices {
            let Some(method) = entry.details.as_ref().and_then(|details| method_by_url(&details.type_url).ok()) else { continue };
            if found.contains_key(&entry.uuid) {
                continue;
            }
            let at = format!("{name} {} {}", entry.name, entry.uuid);
            let (store, folder) = segment_folder(listed.store(), &listed.manifest().manifest, entry).unwrap();
            let files = SegmentFiles::within(store, folder, entry.clone());
            // A segment remapped or merged from others keeps their oldest version, but was made in the one that lists it.
            let before = block_on(latest.manifest_at(version - 1)).unwrap();
            let replaced = before
                .iter()
                .flat_map(|file| &file.indices)
                .filter(|old| old.name == entry.name && listed.manifest().indices.iter().all(|kept| kept.uuid != old.uuid));
            let inherited = replaced.into_iter().any(|old| old.dataset_version == entry.dataset_version);
            let table = if inherited { listed.clone() } else { block_on(latest.at(At::Version(entry.dataset_version))).unwrap() };
            found.insert(entry.uuid, Segment { at, method, entry: entry.clone(), files, table });
        }
    }
    found.into_values().collect()
}

/// Data type and logical type of the indexed column, if this build reads it.
fn column_type(segment: &Segment) -> Result<(DataType, String), Error> {
    let schema = &segment.table.manifest().manifest.schema;
    let field = schema.by_id(segment.entry.fields[0]).unwrap();
    let data_type = field_type(schema, field)?;
    assert!(segment.method.accepts(&data_type), "{}: {data_type} can be read and is not accepted", segment.at);
    Ok((data_type, field.logical_type.clone()))
}

/// Builds the segment again, and the rows it ought to hold with which of them are null.
fn rebuild(segment: &Segment, params: &Params) -> Result<(BuiltIndex, RoaringTreemap, RoaringTreemap), Error> {
    let (data_type, logical_type) = column_type(segment)?;
    let manifest = segment.table.manifest();
    let version = segment.entry.index_version.unwrap_or(0);
    let domain = segment.method.row_domain(version, manifest.manifest.has_stable_row_ids());
    let params = segment.method.merge_params(segment.method.default_params(), params).unwrap();
    let spec = BuildSpec { data_type, logical_type, params, index_version: version, rows_hint: None };
    let mut builder = segment.method.builder(spec).unwrap();
    let context = ScanContext::new(segment.table.store().clone(), manifest.clone(), segment.entry.fields[0], domain);
    let (mut rows, mut nulls) = (RoaringTreemap::new(), RoaringTreemap::new());
    for id in segment.entry.fragment_bitmap.clone().unwrap_or_else(|| manifest.manifest.live()) {
        let fragment = manifest.manifest.fragment(id).unwrap();
        let mut scan = block_on(FragmentScan::open(&context, fragment))?;
        while let Some(batch) = block_on(scan.next())? {
            for slot in 0..batch.values.len() {
                let row = batch.rows.get(slot).unwrap();
                rows.insert(row);
                if batch.values.is_null(slot) {
                    nulls.insert(row);
                }
            }
            builder.push(batch).unwrap();
        }
    }
    Ok((builder.finish().unwrap(), rows, nulls))
}

/// The built files as a stored segment under the original's entry.
fn store(built: &BuiltIndex, entry: &IndexMetadata) -> SegmentFiles {
    let store = Store::memory(Arc::new(TestEnv::new(0, 1)));
    let mut entry = entry.clone();
    entry.base_id = None;
    entry.files.clear();
    for (name, file) in &built.files {
        block_on(store.put(name, file.chunks.clone())).unwrap();
        entry.files.push(IndexFile { path: name.clone(), size_bytes: file.size });
    }
    SegmentFiles::new(store, entry)
}

fn file_of(segment: &SegmentFiles, name: &str) -> LanceFile {
    block_on(segment.open(name)).unwrap()
}

fn column(file: &LanceFile, name: &str, nullable: bool) -> ArrayRef {
    let at = file.column_index(name).unwrap_or_else(|| panic!("no column {name}"));
    let data_type = scalar_type(&file.fields()[at].logical_type).unwrap();
    support::collect_scan(file.scan(at, &data_type, nullable, 0..file.rows()), &data_type).unwrap()
}

/// Ids sorted inside each run of values that are equal bit by bit: their order says nothing.
fn by_ties(values: &ArrayRef, ids: &ArrayRef) -> Vec<u64> {
    let mut ids = ids.as_primitive::<UInt64Type>().values().to_vec();
    let value = |row: usize| values.slice(row, 1).to_data();
    let mut start = 0;
    for end in 1..=ids.len() {
        if end == ids.len() || value(end) != value(start) {
            ids[start..end].sort_unstable();
            start = end;
        }
    }
    ids
}

/// Names, types and nullability of a file's columns.
fn layout(file: &LanceFile) -> Vec<(String, String, bool)> {
    file.fields().iter().map(|field| (field.name.clone(), field.logical_type.clone(), field.nullable)).collect()
}

fn same_columns(at: &str, theirs: &LanceFile, ours: &LanceFile, nullable: &[&str]) {
    assert_eq!(layout(theirs), layout(ours), "{at}");
    assert_eq!(theirs.metadata(), ours.metadata(), "{at}");
    for field in ours.fields() {
        let wanted = nullable.contains(&field.name.as_str());
        assert_eq!(field.nullable, wanted, "{at} {}", field.name);
        let (their, our) = (column(theirs, &field.name, wanted), column(ours, &field.name, wanted));
        // Array data is compared byte by byte, so a NaN equals only a NaN of the same bits.
        assert_eq!(their.to_data(), our.to_data(), "{at} {}", field.name);
    }
}

fn same_btree(at: &str, theirs: &SegmentFiles, ours: &SegmentFiles) {
    same_columns(at, &file_of(theirs, "page_lookup.lance"), &file_of(ours, "page_lookup.lance"), &["min", "max"]);
    let (their, our) = (file_of(theirs, "page_data.lance"), file_of(ours, "page_data.lance"));
    assert_eq!((layout(&their), their.metadata()), (layout(&our), our.metadata()), "{at}");
    let (their_values, our_values) = (column(&their, "values", true), column(&our, "values", true));
    assert_eq!(their_values.to_data(), our_values.to_data(), "{at}: values");
    let (their_ids, our_ids) = (column(&their, "ids", false), column(&our, "ids", false));
    assert_eq!(by_ties(&their_values, &their_ids), by_ties(&our_values, &our_ids), "{at}: ids");
}

/// Keys and the very bytes of their bitmaps.
fn same_bitmap(at: &str, theirs: &SegmentFiles, ours: &SegmentFiles) {
    let name = "bitmap_page_lookup.lance";
    same_columns(at, &file_of(theirs, name), &file_of(ours, name), &["keys", "bitmaps"]);
}

/// Every column of a file of zones, the bytes of filters included, and the null rows.
fn same_zones(at: &str, name: &str, nullable: &[&str], theirs: &SegmentFiles, ours: &SegmentFiles) {
    let (their, our) = (file_of(theirs, name), file_of(ours, name));
    same_columns(at, &their, &our, nullable);
    let nulls = |file: &LanceFile| {
        let number: u32 = file.metadata()["null_bitmap"].parse().unwrap();
        decode_row_treemap(at, &block_on(file.global_buffer(number)).unwrap()).unwrap()
    };
    assert_eq!(nulls(&their), nulls(&our), "{at}: null rows");
}

/// Compares everything about a segment with one built here from the same rows. `Ok(false)`: Lance merged zones of rows that
/// were pruned before.
fn compare(segment: &Segment) -> Result<bool, Error> {
    let at = &segment.at;
    let method = segment.method;
    let params = block_on(method.recover_params(&segment.files)).unwrap_or_else(|e| panic!("{at}: {e:?}"));
    let (built, rows, nulls) = rebuild(segment, &params)?;
    let seen = block_on(method.inspect(&segment.files)).unwrap_or_else(|e| panic!("{at}: {e:?}"));
    if at.starts_with("stale_pages_merged") && seen["zones"] == 4 {
        // Lance's merge keeps the zones of a fragment that was pruned before and adds new ones behind those of later
        // fragments: harmless, as zones are only a superset, and yet worth a word.
        assert_eq!(seen["fragments"], json!([0, 1, 2]), "{at}");
        let problem = "the zone of fragment 1 from row 0 on comes after the one of fragment 2 that ends at row 30";
        assert_eq!((&seen["problems"], &seen["remarks"]), (&json!([]), &json!([problem])), "{at}");
        return Ok(false);
    }
    assert_eq!(seen["problems"], json!([]), "{at}: {seen}");
    let stored = block_on(method.stored_rows(&segment.files)).unwrap();
    let ours = store(&built, &segment.entry);
    match method.name() {
        "BTREE" => {
            assert_eq!(stored, rows, "{at}");
            same_btree(at, &segment.files, &ours);
        }
        "BITMAP" => {
            assert_eq!(stored, rows, "{at}");
            same_bitmap(at, &segment.files, &ours);
        }
        "LABEL_LIST" => {
            let name = "bitmap_page_lookup.lance";
            let (their, our) = (file_of(&segment.files, name), file_of(&ours, name));
            same_columns(at, &their, &our, &["keys", "bitmaps"]);
            let null_lists = |file: &LanceFile| block_on(file.global_buffer(1)).unwrap();
            assert_eq!(null_lists(&their), null_lists(&our), "{at}");
            // Rows with an empty list are in none of the bitmaps.
            assert!(stored.is_subset(&rows), "{at}");
        }
        "NGRAM" => {
            // Every row is looked at again by a reader.
            assert!(stored.is_empty(), "{at}");
            let name = "ngram_postings.lance";
            same_columns(at, &file_of(&segment.files, name), &file_of(&ours, name), &["tokens"]);
        }
        "INVERTED" => {
            // Lance may have cut the documents into several partitions; that they are the same ones, with the same tokens, the
            // oracle looks at byte for byte.
            assert!(stored.is_subset(&rows), "{at}");
            assert_eq!(block_on(method.stored_rows(&ours)).unwrap(), stored, "{at}");
            let again = block_on(method.inspect(&ours)).unwrap();
            for key in ["documents", "tokens", "total_tokens", "top_tokens", "params", "posting_format", "problems"] {
                assert_eq!(again[key], seen[key], "{at} {key}");
            }
            assert_eq!(&built.details, segment.entry.details.as_ref().unwrap(), "{at}");
            return Ok(true);
        }
        "BLOOMFILTER" => {
            assert_eq!(stored, nulls, "{at}");
            same_zones(at, "bloomfilter.lance", &[], &segment.files, &ours);
        }
        _ => {
            assert_eq!(stored, nulls, "{at}");
            same_zones(at, "zonemap.lance", &["min", "max"], &segment.files, &ours);
        }
    }
    assert_eq!(block_on(method.inspect(&ours)).unwrap(), seen, "{at}");
    assert_eq!(block_on(method.recover_params(&ours)).unwrap(), params, "{at}");
    let details = segment.entry.details.as_ref().unwrap();
    assert_eq!(&method.details(&params, &column_type(segment).unwrap().0), details, "{at}");
    assert_eq!(&built.details, details, "{at}");
    Ok(true)
}

/// Whether a refusal of a segment's column is one this build is known for.
fn refused_by_design(error: &Error, segment: &Segment) -> bool {
    let version = &segment.table.manifest().manifest.data_storage_version;
    error.code() == ErrorCode::UnsupportedEncoding && ["0.1", "2.3"].contains(&version.as_str())
}

#[test]
fn every_segment_of_every_fixture_is_built_again() {
    let (mut same, mut refused) = (BTreeMap::<&str, usize>::new(), BTreeSet::new());
    for fixture in common::tables() {
        for segment in segments(&fixture.name, &fixture.path) {
            match compare(&segment) {
                Ok(alike) => *same.entry(segment.method.name()).or_default() += usize::from(alike),
                Err(error) => {
                    assert!(refused_by_design(&error, &segment), "{}: {error:?}", segment.at);
                    refused.insert(format!("{} {}", fixture.name, segment.entry.name));
                }
            }
        }
    }
    let expected = ["b_idx", "l_idx", "m_idx", "t_idx", "z_idx"].map(|index| format!("storage_legacy {index}"));
    assert!(refused.iter().eq(&expected), "{refused:?}");
    let expected = [
        ("BITMAP", 69),
        ("BLOOMFILTER", 32),
        ("BTREE", 100),
        ("INVERTED", 20),
        ("LABEL_LIST", 19),
        ("NGRAM", 13),
        ("ZONEMAP", 45),
    ];
    assert_eq!(same, BTreeMap::from(expected));
}

/// Types, NaNs and sizes that the fixtures have not: the tables are made by the oracle.
#[test]
fn segments_of_odd_columns_are_built_again() {
    let folder = tempfile::tempdir().unwrap();
    support::run_oracle("make_segments.py", &[folder.path().as_os_str()]);
    let mut types = BTreeSet::new();
    for version in ["2.0", "2.1", "2.2"] {
        for name in [version.to_owned(), format!("{version}-stable")] {
            let segments = segments(&name, &folder.path().join(format!("{name}.lance")));
            assert_eq!(segments.len(), 3 * 33 + 25, "{name}");
            for segment in segments {
                let alike = compare(&segment).unwrap_or_else(|e| panic!("{}: {e:?}", segment.at));
                assert!(alike);
                types.insert((segment.method.name(), column_type(&segment).unwrap().1));
            }
        }
    }
    assert_eq!(types.len(), 3 * 30 + 22, "{types:?}");
}
