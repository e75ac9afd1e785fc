//! Every parser of foreign bytes behind one signature, without any I/O: what `fuzz/` feeds and `tests/mutated_files.rs` replays.
//!
//! A parser may answer anything but a panic, a hang, or an allocation out of proportion.
#![allow(dead_code)]

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, Field, TimeUnit};
use bytes::Bytes;
use futures::executor::block_on;
use prost::Message;
use roaring::RoaringTreemap;
use uuid::Uuid;
use whetstone::env::TestEnv;
use whetstone::file::LanceFile;
use whetstone::file::messages::container::{ColumnMetadata, DirectEncoding, Encoding, EncodingKind, FileDescriptor, Page};
use whetstone::format::bitmap::{decode_prefix, decode_roaring32, encode_roaring32};
use whetstone::format::deletion::decode_deletions;
use whetstone::format::fragment::DeletionKind;
use whetstone::format::index_metadata::{IndexMetadata, parse_index_section};
use whetstone::format::manifest::{ManifestFile, ManifestFooter};
use whetstone::format::refs::{Branch, Tag};
use whetstone::format::reuse_v0::ReuseHistoryV0;
use whetstone::format::row::RowAddress;
use whetstone::format::row_ids::RowIdSequence;
use whetstone::format::schema::{Schema, scalar_type};
use whetstone::format::transaction::Transaction;
use whetstone::format::treemap::{decode_roaring64, decode_row_treemap};
use whetstone::index::check::Check;
use whetstone::index::probe::Query;
use whetstone::index::{BuildSpec, SegmentFiles, Source, method_by_name};
use whetstone::reuse::coverage::plans;
use whetstone::reuse::ledger::Ledger;
use whetstone::reuse::retention::needs;
use whetstone::reuse::row_map::Counts;
use whetstone::reuse::walk::Walk;
use whetstone::store::Store;
use whetstone::table::column::ReadColumn;

/// Rows that are decoded of one column at most: a page of a constant may claim any number.
const ROWS: u64 = 1 << 16;

/// A parser and its name. It answers whether the input was accepted.
pub type Target = (&'static str, fn(&[u8]) -> bool);

/// All of them.
pub const TARGETS: &[Target] = &[
    ("manifest", manifest),
    ("index_section", index_section),
    ("transaction", transaction),
    ("bitmap", bitmap),
    ("treemap", treemap),
    ("deletion_bitmap", deletion_bitmap),
    ("deletion_arrow", deletion_arrow),
    ("row_ids", row_ids),
    ("reuse_history", reuse_history),
    ("row_map", row_map),
    ("refs", refs),
    ("container", container),
    ("page", page),
    ("data_file", data_file),
    ("btree", btree),
    ("zonemap", zonemap),
    ("bitmap_index", bitmap_index),
    ("bloomfilter", bloomfilter),
    ("ngram", ngram),
    ("labellist", labellist),
    ("inverted", inverted),
];

/// An answer that nobody wants: it was computed, that is all.
fn used<T>(answer: T) {
    std::hint::black_box(&answer);
}

/// A whole manifest file, its footer alone, and the transaction inside.
pub fn manifest(data: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(data);
    used(ManifestFooter::parse("m", data, data.len() as u64));
    let parsed = ManifestFile::parse("m", &bytes);
    if let Ok(file) = &parsed {
        used(file.transaction("m"));
        let manifest = &file.manifest;
        used((manifest.live(), manifest.live_rows(), manifest.has_stable_row_ids()));
        for field in manifest.schema.fields.iter().take(64) {
            if let Some(path) = manifest.schema.path_of(field.id) {
                used(manifest.schema.resolve(&path));
            }
            used(scalar_type(&field.logical_type));
        }
        for fragment in manifest.fragments.iter().take(64) {
            used(fragment.live_rows());
        }
    }
    parsed.is_ok()
}

/// The index section of a manifest.
pub fn index_section(data: &[u8]) -> bool {
    let parsed = parse_index_section("i", &Bytes::copy_from_slice(data));
    if let Ok(entries) = &parsed {
        for entry in entries.iter().take(16) {
            used((entry.type_name(), entry.is_system(), entry.check_touch(), entry.encode()));
        }
    }
    parsed.is_ok()
}

/// A `.txn` file.
pub fn transaction(data: &[u8]) -> bool {
    let parsed = Transaction::parse("t", &Bytes::copy_from_slice(data));
    if let Ok(transaction) = &parsed {
        used((transaction.file_name(), transaction.encode(), transaction.operation.name()));
    }
    parsed.is_ok()
}

/// 32-bit roaring bitmaps.
pub fn bitmap(data: &[u8]) -> bool {
    let parsed = decode_roaring32("b", data).ok();
    if let Some(bitmap) = &parsed {
        assert_eq!(decode_roaring32("b", &encode_roaring32(bitmap)).ok(), parsed);
    }
    if let Ok((_, length)) = decode_prefix("b", data) {
        assert!(length <= data.len());
    }
    parsed.is_some()
}

/// 64-bit roaring bitmaps in both spellings.
pub fn treemap(data: &[u8]) -> bool {
    decode_roaring64("b", data).is_ok() | decode_row_treemap("b", data).is_ok()
}

/// Deletion vectors as bitmaps.
pub fn deletion_bitmap(data: &[u8]) -> bool {
    decode_deletions(DeletionKind::Bitmap, "d", &Bytes::copy_from_slice(data)).is_ok()
}

/// Deletion vectors as Arrow files.
pub fn deletion_arrow(data: &[u8]) -> bool {
    decode_deletions(DeletionKind::Arrow, "d", &Bytes::copy_from_slice(data)).is_ok()
}

/// Stable row id sequences.
pub fn row_ids(data: &[u8]) -> bool {
    let parsed = RowIdSequence::parse("r", data);
    if let Ok(ids) = &parsed {
        used((ids.min(), ids.max(), ids.is_empty()));
        for offset in [0, 1, ids.len() / 2, ids.len().saturating_sub(1), u64::MAX] {
            used(ids.get(offset));
        }
        assert!(ids.iter().take(4096).count() as u64 == ids.len().min(4096));
    }
    parsed.is_ok()
}

/// The version-0 fragment reuse history.
pub fn reuse_history(data: &[u8]) -> bool {
    // The content itself, or an envelope around it.
    let content = Bytes::copy_from_slice(data);
    let inside = whetstone::format::wire::split("h", &content).ok().and_then(|fields| Some(fields.into_iter().next()?.value));
    let tagged = ledger(&content) | inside.is_some_and(|content| ledger(&content));
    let parsed = ReuseHistoryV0::parse("h", &Bytes::copy_from_slice(data));
    if let Ok(history) = &parsed {
        used(history.destinations());
        used(history.map_bitmap(&(0..64).collect()));
        for fragment in 0..16 {
            used(history.map_address(RowAddress::new(fragment, fragment)));
        }
    }
    tagged | parsed.is_ok()
}

/// A tagged history, and all that is concluded from it.
fn ledger(content: &Bytes) -> bool {
    let Ok(ledger) = Ledger::decode("h", content) else { return false };
    let live = ledger.destinations();
    let stored = (0..64).collect();
    used(plans(&ledger, &live, &[&stored, &live]));
    used(needs(&ledger, &[]));
    used(ledger.reach(&stored));
    for transition in ledger.transitions.iter().take(8) {
        let from: Vec<RowAddress> = transition.source_ids().take(4).map(|id| RowAddress::new(id, 0)).collect();
        let excluded = Default::default();
        let mut walk = Walk::new(&ledger, &live, &excluded, &from);
        while let Ok(Some(question)) = walk.ask() {
            walk.answer(&question, &[]);
        }
        used(walk.finish());
    }
    true
}

/// The counts of a row map, with labels to go with them.
pub fn row_map(data: &[u8]) -> bool {
    let Ok(counts) = Counts::parse("m", &Bytes::copy_from_slice(data)) else { return false };
    for block in 0..counts.blocks().min(4) {
        let mut labels = counts.enter(block);
        let rows = counts.rows_of(block);
        for label in 0..(rows.end - rows.start).min(64) as u16 {
            let label = (label % 3 > 0).then_some(label % 5);
            if labels.next("m", label).is_err() {
                break;
            }
        }
        used(labels.finish("m").is_ok());
    }
    used((counts.total(0), counts.destinations()));
    true
}

/// Tags and branches.
pub fn refs(data: &[u8]) -> bool {
    Tag::parse("t", data).is_ok() | Branch::parse("b", data).is_ok()
}

fn memory() -> Store {
    Store::memory(Arc::new(TestEnv::new(0, 1)))
}

fn opened(data: &[u8]) -> Option<LanceFile> {
    let store = memory();
    block_on(store.put("f.lance", vec![Bytes::copy_from_slice(data)])).ok()?;
    block_on(LanceFile::open(&store, "f.lance", Some(data.len() as u64))).ok()
}

/// Whether all of the rows could be read.
fn decode(file: &LanceFile, column: usize, ty: &DataType, rows: std::ops::Range<u64>) -> bool {
    let mut scan = file.scan(column, ty, true, rows.clone());
    let mut left = rows.end.saturating_sub(rows.start);
    while let Ok(Some(array)) = block_on(scan.next()) {
        assert_eq!(array.data_type(), ty);
        assert!(!array.is_empty() && array.len() as u64 <= left, "{} rows of {left}", array.len());
        left -= array.len() as u64;
        // What was decoded must be sound by Arrow's own rules: offsets, lengths, UTF-8.
        array.to_data().validate_full().expect("a decoded array is sound");
    }
    left == 0
}

/// Some rows here and there, and the column as a member of a packed struct: the same bytes by other ways.
fn decode_parts(file: &LanceFile, column: usize, ty: &DataType, rows: u64) -> bool {
    let some: Vec<u64> = [0, 1, rows / 3, rows / 2, rows.saturating_sub(1)].into_iter().filter(|row| *row < rows).collect();
    if let Ok(array) = block_on(file.take(column, ty, true, &some)) {
        assert_eq!(array.len(), some.len());
        array.to_data().validate_full().expect("rows taken are sound");
    }
    block_on(file.take_member(column, 1, ty, &some)).is_ok_and(|array| !array.is_empty())
}

/// Footer, tables, schema and column metadata of a data file; no page is decoded.
pub fn container(data: &[u8]) -> bool {
    let Some(file) = opened(data) else { return false };
    used((file.metadata().len(), file.version(), file.column_index("a")));
    for buffer in 0..file.global_buffers().min(8) {
        used(block_on(file.global_buffer(buffer as u32)));
    }
    for column in 0..file.columns().min(16) {
        used(file.column_rows(column));
    }
    true
}

/// A whole data file: every column with the type its schema gives, from the beginning and from the middle.
pub fn data_file(data: &[u8]) -> bool {
    let Some(file) = opened(data) else { return false };
    let mut read = false;
    for (column, ty) in leaves(&file).into_iter().enumerate().take(file.columns()).take(24) {
        let Some(ty) = ty else { continue };
        let rows = file.rows();
        read |= decode(&file, column, &ty, 0..rows.min(ROWS));
        let middle = rows / 2;
        read |= decode(&file, column, &ty, middle..rows.min(middle.saturating_add(100)));
    }
    let schema = Schema { fields: file.fields().to_vec(), metadata: Default::default() };
    for field in schema.children(-1).take(24) {
        let (Some(column), Ok(read_as)) = (file.column_index(&field.name), ReadColumn::new(&schema, field.id)) else { continue };
        used(decode_parts(&file, column, &read_as.data_type, file.rows()));
        read |= decode(&file, column, &read_as.data_type, 0..file.rows().min(ROWS));
    }
    read
}

/// Types of the physical columns, as far as they are scalars.
pub fn leaves(file: &LanceFile) -> Vec<Option<DataType>> {
    let fields = file.fields();
    let is_leaf = |id: i32| !fields.iter().any(|field| field.parent_id == id);
    // 2.0 gives every field a column, later versions only the leaves.
    let every = file.version().as_str() == "2.0";
    let held = fields.iter().filter(|field| every || is_leaf(field.id));
    held.map(|field| if is_leaf(field.id) { scalar_type(&field.logical_type).ok() } else { None }).collect()
}

fn item(ty: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", ty, true))
}

fn list(ty: DataType) -> DataType {
    DataType::List(item(ty))
}

/// Types a page is decoded as.
pub fn page_types() -> Vec<DataType> {
    vec![
        DataType::Int64,
        DataType::Utf8,
        DataType::Int32,
        DataType::Boolean,
        DataType::Float64,
        DataType::Binary,
        DataType::UInt8,
        DataType::LargeUtf8,
        DataType::FixedSizeBinary(3),
        DataType::Decimal128(20, 2),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::UInt16,
        DataType::Float16,
        DataType::UInt64,
        DataType::Null,
        DataType::LargeBinary,
        list(DataType::Int64),
        DataType::LargeList(item(DataType::Utf8)),
        DataType::FixedSizeList(item(DataType::Float32), 3),
        list(list(DataType::Int32)),
        DataType::Decimal256(50, 3),
    ]
}

/// A page in a container that is sound: `type, version, rows u32, buffers u8, encoding length u16, encoding (an Any)`, then each
/// buffer with its length (u32) before it.
pub fn page(data: &[u8]) -> bool {
    let Some((ty, file)) = page_file(data) else { return false };
    let Some(file) = opened(&file) else { return false };
    let rows = file.rows();
    let middle = rows / 2;
    decode_parts(&file, 0, &ty, rows)
        | decode(&file, 0, &ty, 0..rows.min(ROWS))
        | decode(&file, 0, &ty, middle..rows.min(middle.saturating_add(100)))
}

fn page_file(data: &[u8]) -> Option<(DataType, Vec<u8>)> {
    let (head, mut rest) = data.split_at_checked(9)?;
    let types = page_types();
    let ty = types.get(usize::from(*head.first()?) % types.len())?.clone();
    let versions = [(0u16, 3u16), (2, 1), (2, 2), (2, 3)];
    let version = versions.get(usize::from(*head.get(1)?) % versions.len())?;
    let rows = u32::from_le_bytes(head.get(2..6)?.try_into().ok()?);
    let buffers = usize::from(*head.get(6)?);
    let length = usize::from(u16::from_le_bytes(head.get(7..9)?.try_into().ok()?));
    let encoding = rest.get(..length.min(rest.len()))?;
    rest = rest.get(encoding.len()..)?;
    let mut out = Vec::new();
    let direct = |encoding: &[u8]| {
        Some(Encoding { kind: Some(EncodingKind::Direct(DirectEncoding { encoding: Bytes::copy_from_slice(encoding) })) })
    };
    let mut page = Page { length: u64::from(rows), encoding: direct(encoding), ..Page::default() };
    for _ in 0..buffers {
        let Some((size, after)) = rest.split_at_checked(4) else { break };
        let size = u32::from_le_bytes(size.try_into().ok()?) as usize;
        let (buffer, after) = after.split_at(size.min(after.len()));
        page.buffer_offsets.push(out.len() as u64);
        page.buffer_sizes.push(buffer.len() as u64);
        out.extend_from_slice(buffer);
        out.resize(out.len().next_multiple_of(64), 0);
        rest = after;
    }
    let schema = out.len() as u64;
    out.extend(FileDescriptor { schema: None, length: u64::from(rows) }.encode_to_vec());
    let column = out.len() as u64;
    // The `ColumnEncoding` of plain values.
    let mut any = vec![0x0a, 0x1f];
    any.extend_from_slice(b"/lance.encodings.ColumnEncoding");
    any.extend_from_slice(&[0x12, 0x02, 0x0a, 0x00]);
    out.extend(ColumnMetadata { encoding: direct(&any), pages: vec![page] }.encode_to_vec());
    let cmo = out.len() as u64;
    for number in [column, cmo - column, schema, column - schema, column, cmo, cmo + 16] {
        out.extend(number.to_le_bytes());
    }
    for number in [1u32, 1] {
        out.extend(number.to_le_bytes());
    }
    out.extend(version.0.to_le_bytes());
    out.extend(version.1.to_le_bytes());
    out.extend(b"LANC");
    Some((ty, out))
}

fn segment(names: &[&str], method: &str, data: &[u8]) -> bool {
    let Some((head, mut rest)) = data.split_at_checked(2) else { return false };
    let (version, ty) = (i32::from(head[0] % 3), usize::from(head[1]));
    let types = page_types();
    let ty = &types[ty % types.len()];
    let store = memory();
    for (at, name) in names.iter().enumerate() {
        let bytes = if at + 1 == names.len() {
            rest
        } else {
            let Some((size, after)) = rest.split_at_checked(4) else { return false };
            let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
            let (bytes, after) = after.split_at(size.min(after.len()));
            rest = after;
            bytes
        };
        used(block_on(store.put(name, vec![Bytes::copy_from_slice(bytes)])));
    }
    let entry = IndexMetadata {
        uuid: Uuid::from_u128(1),
        fields: vec![0],
        name: "i".to_owned(),
        dataset_version: 1,
        fragment_bitmap: None,
        details: None,
        index_version: Some(version),
        created_at_ms: None,
        base_id: None,
        files: Vec::new(),
        covering_fields: Vec::new(),
        metadata: Default::default(),
        raw: Bytes::new(),
    };
    let files = SegmentFiles::new(store, entry);
    let method = method_by_name(method).expect("a method of ours");
    used(block_on(method.recover_params(&files)));
    used(block_on(method.inspect(&files)));
    used(block_on(method.faults(&files, ty)));
    used(block_on(method.check_beside(&files, &method.default_params())));
    used(block_on(method.copy_placed(&files, ty, &|row| (row % 3 != 0).then_some(row ^ 1))));
    let spec = BuildSpec {
        data_type: ty.clone(),
        logical_type: "int64".to_owned(),
        params: method.default_params(),
        index_version: version,
        rows_hint: None,
    };
    let rows = RoaringTreemap::from_iter(0..100);
    let source = || Source { files: &files, rows: &rows };
    used(block_on(method.merge(&[source(), source()], &spec)));
    if let Ok(Some(Check::Keys(check))) = block_on(method.check(&files, ty)) {
        used(block_on(check.entries(&files, &mut |rank, key, row| used((rank, key, row)))));
    }
    for op in method.operators() {
        if let Ok(query) = Query::new(*op, vec![7, 0, 0, 0, 0, 0, 0, 0], ty) {
            used(block_on(method.probe(&files, ty, &query)));
        }
    }
    block_on(method.stored_rows(&files)).is_ok()
}

/// The files of a BTREE segment: `version, type, lookup length u32, lookup file, page file`.
pub fn btree(data: &[u8]) -> bool {
    segment(&["page_lookup.lance", "page_data.lance"], "BTREE", data)
}

/// The file of a ZONEMAP segment: `version, type, file`.
pub fn zonemap(data: &[u8]) -> bool {
    segment(&["zonemap.lance"], "ZONEMAP", data)
}

/// The file of a BITMAP segment.
pub fn bitmap_index(data: &[u8]) -> bool {
    segment(&["bitmap_page_lookup.lance"], "BITMAP", data)
}

/// The file of a BLOOMFILTER segment.
pub fn bloomfilter(data: &[u8]) -> bool {
    segment(&["bloomfilter.lance"], "BLOOMFILTER", data)
}

/// The file of an NGRAM segment.
pub fn ngram(data: &[u8]) -> bool {
    segment(&["ngram_postings.lance"], "NGRAM", data)
}

/// The file of a LABEL_LIST segment.
pub fn labellist(data: &[u8]) -> bool {
    segment(&["bitmap_page_lookup.lance"], "LABEL_LIST", data)
}

/// The files of an INVERTED segment with one partition, all but the last with their length before them.
pub fn inverted(data: &[u8]) -> bool {
    segment(&["metadata.lance", "part_0_tokens.lance", "part_0_invert.lance", "part_0_docs.lance"], "INVERTED", data)
}
