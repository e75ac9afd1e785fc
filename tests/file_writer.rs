//! Files written by `FileWriter` are read by pylance: every supported type, nulls, 0 rows, several pages, slices,
//! global buffers, schema metadata.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use whetstone::file::{FileVersion, FileWriter, LanceFile, WriterField};
use whetstone::format::schema::scalar_type;

const TYPES: &[&str] = &[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float",
    "double",
    "halffloat",
    "string",
    "large_string",
    "binary",
    "large_binary",
    "date32:day",
    "date64:ms",
    "time32:s",
    "time64:ns",
    "timestamp:s:-",
    "timestamp:us:UTC",
    "timestamp:ns:+01:30",
    "duration:ms",
    "fixed_size_binary:5",
    "decimal:128:38:5",
    "decimal:256:76:3",
];

/// `n` values, every `null_every`-th of them null (0 = none).
fn values(ty: &DataType, n: usize, null_every: usize, seed: u64) -> ArrayRef {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let null = |i: usize| null_every > 0 && i.is_multiple_of(null_every);
    if let DataType::FixedSizeBinary(width) = ty {
        let rows: Vec<Option<Vec<u8>>> =
            (0..n).map(|i| (!null(i)).then(|| next().to_le_bytes()[..*width as usize].to_vec())).collect();
        return Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(rows.into_iter(), *width).unwrap());
    }
    if matches!(ty, DataType::Boolean) {
        return Arc::new((0..n).map(|i| (!null(i)).then(|| next() & 1 == 1)).collect::<BooleanArray>());
    }
    let texts = || -> Vec<Option<String>> { (0..n).map(|i| (!null(i)).then(|| format!("wert-é-{i}").repeat(i % 4))).collect() };
    match ty {
        DataType::Utf8 => return Arc::new(StringArray::from(texts())),
        DataType::LargeUtf8 => return Arc::new(LargeStringArray::from(texts())),
        DataType::Binary => return Arc::new(texts().into_iter().map(|t| t.map(String::into_bytes)).collect::<BinaryArray>()),
        DataType::LargeBinary => {
            return Arc::new(texts().into_iter().map(|t| t.map(String::into_bytes)).collect::<LargeBinaryArray>());
        }
        _ => {}
    }
    let width = ty.primitive_width().unwrap();
    // Decimals are small numbers, so that every precision holds them.
    let word = |bits: u64| -> Vec<u8> {
        let wide = [bits >> (bits % 60), 0, 0, 0];
        if width > 8 { wide.iter().flat_map(|w| w.to_le_bytes()).collect() } else { bits.to_le_bytes().to_vec() }
    };
    let bytes: Vec<u8> = (0..n).flat_map(|_| word(next())[..width].to_vec()).collect();
    let nulls = (null_every > 0).then(|| (0..n).map(|i| !null(i)).collect());
    let data = ArrayData::builder(ty.clone()).len(n).add_buffer(bytes.into()).nulls(nulls).build().unwrap();
    make_array(data)
}

fn save(dir: &Path, name: &str, logical: &str, pages: &[ArrayRef]) {
    for version in [FileVersion::V2_0, FileVersion::V2_1, FileVersion::V2_2] {
        save_as(dir, &format!("{name}-{}", version.as_str().replace('.', "_")), logical, pages, version);
    }
}

fn save_as(dir: &Path, name: &str, logical: &str, pages: &[ArrayRef], version: FileVersion) {
    let fields = vec![WriterField::new("v", logical, true), WriterField::new("n", "uint64", false)];
    let mut writer = FileWriter::with_version(fields, version);
    let mut row = 0u64;
    let mut counters = Vec::new();
    for page in pages {
        writer.write_page(0, page).unwrap();
        let counter: ArrayRef = Arc::new(UInt64Array::from_iter_values(row..row + page.len() as u64));
        row += page.len() as u64;
        writer.write_page(1, &counter).unwrap();
        counters.push(counter);
    }
    writer.metadata("rows_per_zone", "8192");
    writer.metadata("null_bitmap", "1");
    assert_eq!(writer.global_buffer(Bytes::from_static(b"first")), 1);
    assert_eq!(writer.global_buffer(Bytes::new()), 2);
    assert_eq!(writer.global_buffer(Bytes::from(vec![7u8; 100])), 3);
    let file = writer.finish().unwrap();
    assert_eq!(file.size, file.chunks.iter().map(|c| c.len() as u64).sum::<u64>());
    fs::write(dir.join(format!("{name}.lance")), file.to_bytes()).unwrap();
    let side = format!(
        r#"{{"metadata": {{"rows_per_zone": "8192", "null_bitmap": "1"}}, "global_buffers": ["6669727374", "", "{}"]}}"#,
        "07".repeat(100)
    );
    fs::write(dir.join(format!("{name}.json")), side).unwrap();

    let ty = scalar_type(logical).unwrap();
    let joined = |pages: &[ArrayRef], ty: &DataType| -> ArrayRef {
        if pages.is_empty() {
            new_empty_array(ty)
        } else {
            concat(&pages.iter().map(|p| p.as_ref()).collect::<Vec<_>>()).unwrap()
        }
    };
    let schema = Arc::new(Schema::new(vec![Field::new("v", ty.clone(), true), Field::new("n", DataType::UInt64, false)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![joined(pages, &ty), joined(&counters, &DataType::UInt64)]).unwrap();
    let store = support::folder_store(dir);
    let read = futures::executor::block_on(LanceFile::open(&store, &format!("{name}.lance"), Some(file.size))).unwrap();
    assert_eq!(read.version(), version);
    let own = support::collect_scan(read.scan(0, &ty, true, 0..read.rows()), &ty).unwrap();
    assert_eq!(own.to_data(), batch.column(0).to_data(), "{name}");
    let mut ipc =
        arrow::ipc::writer::FileWriter::try_new(fs::File::create(dir.join(format!("{name}.arrow"))).unwrap(), &schema).unwrap();
    ipc.write(&batch).unwrap();
    ipc.finish().unwrap();
}

#[test]
fn pylance_reads_what_we_write() {
    let dir = tempfile::tempdir().unwrap();
    for logical in TYPES {
        let ty = scalar_type(logical).unwrap();
        let short = logical.replace([':', '+'], "_");
        save(dir.path(), &format!("{short}-empty"), logical, &[]);
        save(dir.path(), &format!("{short}-one"), logical, &[values(&ty, 1, 0, 3)]);
        save(dir.path(), &format!("{short}-plain"), logical, &[values(&ty, 5000, 0, 5)]);
        save(dir.path(), &format!("{short}-nulls"), logical, &[values(&ty, 1025, 3, 7)]);
        save(dir.path(), &format!("{short}-allnull"), logical, &[values(&ty, 77, 1, 9)]);
        let slice = values(&ty, 300, 4, 11).slice(13, 201);
        save(dir.path(), &format!("{short}-pages"), logical, &[values(&ty, 10, 1, 1), slice, values(&ty, 1024, 0, 2)]);
    }
    let report = support::run_oracle("check_written.py", &[dir.path().as_os_str()]);
    assert_eq!(report.lines().filter(|line| line.ends_with(" ok")).count(), TYPES.len() * 6 * 3, "{report}");
}

#[test]
fn a_null_slot_that_owns_bytes_is_compacted() {
    let nulls = vec![true, false, true].into();
    let array =
        StringArray::new(arrow::buffer::OffsetBuffer::new(vec![0, 1, 4, 6].into()), b"axxxbc".as_slice().into(), Some(nulls));
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), "filled", "string", &[Arc::new(array)]);
    support::run_oracle("check_written.py", &[dir.path().as_os_str()]);
}

#[test]
fn wrong_pages_are_refused() {
    let mut writer = FileWriter::new(vec![WriterField::new("v", "int32", false), WriterField::new("w", "int32", false)]);
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let null: ArrayRef = Arc::new(Int32Array::from(vec![None]));
    let fine: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    assert!(writer.write_page(0, &longs).unwrap_err().message().contains("Int64"));
    assert!(writer.write_page(0, &null).unwrap_err().message().contains("takes no nulls"));
    assert!(writer.write_page(2, &fine).unwrap_err().message().contains("no column 2"));
    writer.write_page(0, &fine).unwrap();
    assert!(writer.finish().unwrap_err().message().contains("0 rows, the first column 1"));
}
