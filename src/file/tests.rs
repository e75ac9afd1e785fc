//! Hand-made files: the worked bytes of file-format §12, what is refused, what is corrupt.

mod lies;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use bytes::Bytes;
use futures::executor::block_on;
use prost::Message;

use super::messages::container::{Any, ColumnMetadata, DirectEncoding, Encoding, EncodingKind, FileDescriptor, Page};
use super::messages::encoding20::{self as array20, ArrayEncoding, ArrayKind};
use super::{FileWriter, LanceFile, WriterField};
use crate::env::TestEnv;
use crate::error::{ErrorCode, Result};
use crate::store::Store;

const LAYOUT: &str = "/lance.encodings21.PageLayout";

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(|c| c.is_ascii_hexdigit()).collect();
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn direct(type_url: &str, value: Vec<u8>) -> Option<Encoding> {
    let any = Any { type_url: type_url.into(), value: value.into() };
    Some(Encoding { kind: Some(EncodingKind::Direct(DirectEncoding { encoding: any.encode_to_vec().into() })) })
}

/// A file of one column with one page.
fn file(version: (u16, u16), rows: u64, type_url: &str, encoding: &str, buffers: &[&str]) -> Bytes {
    let mut out = Vec::new();
    let mut page = Page { length: rows, encoding: direct(type_url, hex(encoding)), ..Page::default() };
    for buffer in buffers {
        let bytes = hex(buffer);
        page.buffer_offsets.push(out.len() as u64);
        page.buffer_sizes.push(bytes.len() as u64);
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(64), 0x48);
    }
    let schema = out.len() as u64;
    out.extend(FileDescriptor { schema: None, length: rows }.encode_to_vec());
    let column = out.len() as u64;
    out.extend(
        ColumnMetadata { encoding: direct("/lance.encodings.ColumnEncoding", hex("0A00")), pages: vec![page] }.encode_to_vec(),
    );
    let cmo = out.len() as u64;
    let gbo = cmo + 16;
    for number in [column, cmo - column, schema, column - schema, column, cmo, gbo] {
        out.extend(number.to_le_bytes());
    }
    for number in [1u32, 1] {
        out.extend(number.to_le_bytes());
    }
    out.extend(version.0.to_le_bytes());
    out.extend(version.1.to_le_bytes());
    out.extend(b"LANC");
    out.into()
}

fn open(bytes: Bytes) -> Result<LanceFile> {
    let store = Store::memory(Arc::new(TestEnv::new(0, 1)));
    let size = bytes.len() as u64;
    block_on(store.put("f.lance", vec![bytes]))?;
    block_on(LanceFile::open(&store, "f.lance", Some(size)))
}

fn read(bytes: Bytes, ty: &DataType) -> Result<ArrayRef> {
    let file = open(bytes)?;
    let mut scan = file.scan(0, ty, true, 0..file.rows());
    Ok(block_on(scan.next())?.unwrap())
}

fn longs(array: &ArrayRef) -> Vec<i64> {
    array.as_primitive::<Int64Type>().values().to_vec()
}

fn texts(array: &ArrayRef) -> Vec<Option<&str>> {
    array.as_string::<i32>().iter().collect()
}

const LONGS: &str = "0100000000000000 0200000000000000 0300000000000000";
const MINI_LONGS: &str = "0A 0F 1A 04 0A 02 08 40 32 01 01 38 01 48 03 50 01";
const MINI_LONGS_CHUNK: &str = "0000 18000000 FEFE 0100000000000000 0200000000000000 0300000000000000";

#[test]
fn mini_block_pages_of_the_worked_example() {
    let a = file((2, 2), 3, LAYOUT, MINI_LONGS, &["30000000", MINI_LONGS_CHUNK]);
    assert_eq!(longs(&read(a, &DataType::Int64).unwrap()), [1, 2, 3]);
    let old = "0A 0D 1A 04 0A 02 08 40 32 01 01 38 01 48 03";
    let chunk = "0000 1800 FEFEFEFE 0100000000000000 0200000000000000 0300000000000000";
    let a = file((2, 1), 3, LAYOUT, old, &["3000", chunk]);
    assert_eq!(longs(&read(a, &DataType::Int64).unwrap()), [1, 2, 3]);
    let s = file(
        (2, 2),
        3,
        LAYOUT,
        "0A 19 12 04 0A 02 08 10 1A 08 12 06 0A 04 0A 02 08 20 32 01 03 38 01 48 03 50 01",
        &["40000000", "0300 0600 14000000 000001000000FEFE 10000000 11000000 11000000 13000000 78797A48 FEFEFEFE"],
    );
    assert_eq!(texts(&read(s, &DataType::Utf8).unwrap()), [Some("x"), None, Some("yz")]);
}

#[test]
fn full_zip_pages_of_the_worked_example() {
    let a = file((2, 2), 3, LAYOUT, "1A 0F 18 40 28 03 30 03 3A 04 0A 02 08 40 42 01 01", &[LONGS]);
    assert_eq!(longs(&read(a, &DataType::Int64).unwrap()), [1, 2, 3]);
    let s = file(
        (2, 2),
        3,
        LAYOUT,
        "1A 15 10 01 20 20 28 03 30 03 3A 08 12 06 0A 04 0A 02 08 20 42 01 03",
        &["00 01000000 78 01 00 02000000 797A", "00 06 07 0E"],
    );
    assert_eq!(texts(&read(s, &DataType::Utf8).unwrap()), [Some("x"), None, Some("yz")]);
}

#[test]
fn all_null_leaf_below_a_struct() {
    let page = file(
        (2, 2),
        10,
        LAYOUT,
        "12 16 2A 02 03 03 42 0E 42 0C 0A 04 0A 02 08 10 12 04 0A 02 08 08 50 0A",
        &["", "0200000000000000 0200 0A"],
    );
    let read = read(page, &DataType::Int32).unwrap();
    assert_eq!((read.len(), read.null_count()), (10, 10));
}

#[test]
fn a_constant_page_of_absurd_length_is_read_in_slices() {
    let page = file((2, 2), 1 << 60, LAYOUT, "12 0A 2A 01 01 32 05 0700000001", &[]);
    let error = read(page, &DataType::Int32).unwrap_err();
    assert!(error.message().contains("a constant of 5 bytes"), "{error}");
    let page = file((2, 2), 1 << 60, LAYOUT, "12 09 2A 01 01 32 04 07000000", &[]);
    let read = read(page, &DataType::Int32).unwrap();
    assert!(read.len() <= 1 << 20);
    assert!(read.as_primitive::<arrow::datatypes::Int32Type>().values().iter().all(|v| *v == 7));
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let refused = |page: Bytes, ty: &DataType, what: &str| {
        let error = read(page, ty).unwrap_err();
        assert_eq!(error.code(), ErrorCode::UnsupportedEncoding, "{error}");
        for part in ["f.lance", "column 0", "page 0", what] {
            assert!(error.message().contains(part), "{error}");
        }
    };
    let indexed = "0A 0C 12 0A 0A 08 0A 06 08 02 12 02 1A 00 12 02 2A 00";
    refused(file((2, 3), 3, "/lance.encodings23.PlanarLayout", indexed, &[]), &DataType::Int64, "indexed");
    let delta = "0A 0F 1A 04 7A 02 08 40 32 01 01 38 01 48 03 50 01";
    refused(file((2, 2), 3, LAYOUT, delta, &["30000000", MINI_LONGS_CHUNK]), &DataType::Int64, "Delta");
    refused(file((2, 2), 3, LAYOUT, "22 00", &[]), &DataType::Binary, "blob");
    refused(file((2, 2), 3, "/somebody.Elses", "00", &[]), &DataType::Int64, "somebody.Elses");
    let structs = DataType::Struct(vec![arrow::datatypes::Field::new("a", DataType::Int8, true)].into());
    let unread = read(file((2, 2), 3, LAYOUT, MINI_LONGS, &[]), &structs).unwrap_err();
    assert_eq!(unread.code(), ErrorCode::UnsupportedType);
}

#[test]
fn a_sparse_page_of_nulls() {
    let planar = "0A 0C 12 0A 0A 08 0A 06 08 02 12 02 1A 00 12 02 22 00";
    let array = read(file((2, 3), 1 << 40, "/lance.encodings23.PlanarLayout", planar, &[]), &DataType::Int64).unwrap();
    assert!(array.len() <= 1 << 20 && array.null_count() == array.len());
}

/// Members of old releases, which no pylance writes any more (file-format §3.1).
#[test]
fn old_pages_of_2_0() {
    const ARRAY: &str = "/lance.encodings.ArrayEncoding";
    let bytes = |values: &[i64]| -> String { values.iter().map(|v| hex_of(&v.to_le_bytes())).collect() };
    // Bitpacked: 5, 1, 7, 2 in 3 bits each, then signed -3, 3, 0, -4.
    let packed = |signed: &str| format!("52 {} 08 03 10 40 1A 00 {signed}", if signed.is_empty() { "06" } else { "08" });
    let page = file((0, 3), 4, ARRAY, &packed(""), &["CD 05"]);
    assert_eq!(longs(&read(page, &DataType::Int64).unwrap()), [5, 1, 7, 2]);
    let page = file((0, 3), 4, ARRAY, &packed("20 01"), &["1D 08"]);
    assert_eq!(longs(&read(page, &DataType::Int64).unwrap()), [-3, 3, 0, -4]);
    // BitpackedForNonNeg: one group of one-bit values, all set.
    let page = file((0, 3), 5, ARRAY, "62 06 08 01 10 40 1A 00", &[&"FF".repeat(128)]);
    assert_eq!(longs(&read(page, &DataType::Int64).unwrap()), [1; 5]);
    // FixedSizeBinary of strings of two bytes.
    let page = file((0, 3), 3, ARRAY, "5A 0A 0A 06 0A 04 08 08 12 00 10 02", &["6162 6364 6566"]);
    assert_eq!(texts(&read(page, &DataType::Utf8).unwrap()), [Some("ab"), Some("cd"), Some("ef")]);
    // Flat in one LZ4 unit.
    let unit = lz4_flex::block::compress_prepend_size(&hex(&bytes(&[7, 8, 9])));
    let page = file((0, 3), 3, ARRAY, "0A 0B 08 40 12 00 1A 05 0A 03 6C 7A 34", &[&hex_of(&unit)]);
    assert_eq!(longs(&read(page, &DataType::Int64).unwrap()), [7, 8, 9]);
    // A dictionary of strings: 1, 0 (null), 2 of "x", "yz".
    let flat = |bits_per_value, buffer_index| {
        let buffer = Some(array20::Buffer { buffer_index, buffer_type: 0 });
        let flat = array20::Flat { bits_per_value, buffer, compression: None };
        Some(Box::new(ArrayEncoding { kind: Some(ArrayKind::Flat(flat)) }))
    };
    let binary = array20::Binary { indices: flat(64, 1), bytes: flat(8, 2), null_adjustment: 4 };
    let items = Some(Box::new(ArrayEncoding { kind: Some(ArrayKind::Binary(Box::new(binary))) }));
    let dictionary = array20::Dictionary { indices: flat(8, 0), items, num_dictionary_items: 2 };
    let dictionary = ArrayEncoding { kind: Some(ArrayKind::Dictionary(Box::new(dictionary))) };
    let dictionary = &hex_of(&dictionary.encode_to_vec());
    let page = file((0, 3), 3, ARRAY, dictionary, &["010002", &bytes(&[1, 3]), "78797A"]);
    assert_eq!(texts(&read(page, &DataType::Utf8).unwrap()), [Some("x"), None, Some("yz")]);
    for (page, ty) in [
        (file((0, 3), 5, ARRAY, &packed(""), &["CD"]), DataType::Int64),
        (file((0, 3), 4, ARRAY, &packed(""), &["CD 05"]), DataType::Int32),
        (file((0, 3), 1025, ARRAY, "62 06 08 01 10 40 1A 00", &[&"FF".repeat(128)]), DataType::Int64),
        (file((0, 3), 4, ARRAY, "5A 0A 0A 06 0A 04 08 08 12 00 10 02", &["6162 6364 6566"]), DataType::Utf8),
        (file((0, 3), 4, ARRAY, "0A 0B 08 40 12 00 1A 05 0A 03 6C 7A 34", &[&hex_of(&unit)]), DataType::Int64),
        (file((0, 3), 3, ARRAY, dictionary, &["010003", &bytes(&[1, 3]), "78797A"]), DataType::Utf8),
    ] {
        let error = read(page, &ty).unwrap_err();
        assert_eq!(error.code(), ErrorCode::CorruptFile, "{error}");
    }
}

#[test]
fn contradictions_are_corrupt() {
    let corrupt = |words: &str, chunk: &str, rows: u64, ty: &DataType| {
        let error = read(file((2, 2), rows, LAYOUT, MINI_LONGS, &[words, chunk]), ty).unwrap_err();
        assert_eq!(error.code(), ErrorCode::CorruptFile, "{error}");
        assert!(error.message().contains("column 0, page 0"), "{error}");
    };
    corrupt("40000000", MINI_LONGS_CHUNK, 3, &DataType::Int64);
    corrupt("3000000000", MINI_LONGS_CHUNK, 3, &DataType::Int64);
    corrupt("", MINI_LONGS_CHUNK, 3, &DataType::Int64);
    corrupt("30000000", MINI_LONGS_CHUNK, 4, &DataType::Int64);
    corrupt("30000000", MINI_LONGS_CHUNK, 3, &DataType::Int32);
    corrupt("30000000", MINI_LONGS_CHUNK, 3, &DataType::Utf8);
    corrupt("30000000", &MINI_LONGS_CHUNK.replacen("18", "10", 1), 3, &DataType::Int64);
    let s = "1A 15 10 01 20 20 28 03 30 03 3A 08 12 06 0A 04 0A 02 08 20 42 01 03";
    for (entries, offsets) in [
        ("00 01000000 78 01 00 02000000 797A", "00 06 07 0F"),
        ("00 01000000 78 01 00 02000000 797A", "00 07 06 0E"),
        ("00 01000000 FF 01 00 02000000 797A", "00 06 07 0E"),
        ("00 02000000 78 01 00 02000000 797A", "00 06 07 0E"),
        ("00 01000000 78 02 00 02000000 797A", "00 06 07 0E"),
    ] {
        let error = read(file((2, 2), 3, LAYOUT, s, &[entries, offsets]), &DataType::Utf8).unwrap_err();
        assert_eq!(error.code(), ErrorCode::CorruptFile, "{error}");
    }
}

#[test]
fn footers_are_checked() {
    let good = file((2, 2), 3, LAYOUT, MINI_LONGS, &["30000000", MINI_LONGS_CHUNK]);
    let size = good.len();
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = good.to_vec();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        open(bad.into()).map(|_| ()).unwrap_err()
    };
    assert!(with(size - 4, b"LANX").message().contains("does not end as a Lance file"));
    assert_eq!(with(size - 8, &[0, 0, 2, 0]).code(), ErrorCode::UnsupportedEncoding);
    assert_eq!(with(size - 8, &[9, 0, 1, 0]).code(), ErrorCode::UnsupportedEncoding);
    for field in [size - 40, size - 32, size - 24, size - 16, size - 12] {
        assert_eq!(with(field, &[0xFF; 4]).code(), ErrorCode::CorruptFile);
    }
    assert_eq!(with(size - 16, &[0; 4]).code(), ErrorCode::CorruptFile);
    assert_eq!(open(good.slice(..39)).unwrap_err().code(), ErrorCode::CorruptFile);
    assert_eq!(open(good.slice(1..)).unwrap_err().code(), ErrorCode::CorruptFile);
}

#[test]
fn written_pages_have_the_worked_bytes() {
    let mut writer = FileWriter::new(vec![WriterField::new("a", "int64", false), WriterField::new("s", "string", true)]);
    let a: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let s: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("yz")]));
    writer.write_page(0, &a).unwrap();
    writer.write_page(1, &s).unwrap();
    writer.metadata("batch_size", "4096");
    writer.global_buffer(Bytes::from_static(b"extra"));
    let bytes = writer.finish().unwrap().to_bytes();
    assert_eq!(bytes[..24], hex(LONGS));
    assert!(bytes[24..64].iter().all(|b| *b == 0x48));
    assert_eq!(bytes[64..88], hex("0100000000000000 0500000000000000 0300000000000000"));
    assert_eq!(&bytes[128..131], b"xyz");
    assert_eq!(&bytes[192..197], b"extra");
    let contains = |part: Vec<u8>| bytes.windows(part.len()).any(|window| window == part);
    assert!(contains(hex("12 0C 12 0A 0A 08 0A 06 0A 04 08 40 12 00")));
    assert!(contains(hex("32 1A 0A 0C 12 0A 0A 08 0A 06 0A 04 08 40 12 00 12 08 0A 06 08 08 12 02 08 01 18 04")));

    let file = open(bytes).unwrap();
    assert_eq!((file.rows(), file.columns(), file.version().as_str()), (3, 2, "2.0"));
    assert_eq!(file.metadata().get("batch_size").map(String::as_str), Some("4096"));
    assert_eq!(&block_on(file.global_buffer(1)).unwrap()[..], b"extra");
    assert!(block_on(file.global_buffer(2)).is_err());
    assert_eq!((file.column_index("s"), file.column_index("t")), (Some(1), None));
    let read = block_on(file.scan(0, &DataType::Int64, false, 1..3).next()).unwrap().unwrap();
    assert_eq!(longs(&read), [2, 3]);
    let read = block_on(file.scan(1, &DataType::Utf8, true, 1..3).next()).unwrap().unwrap();
    assert_eq!(texts(&read), [None, Some("yz")]);
    assert_eq!(block_on(file.scan(1, &DataType::Utf8, false, 0..3).next()).unwrap_err().code(), ErrorCode::CorruptFile);
}

#[test]
fn large_metadata_takes_one_more_read() {
    let mut writer = FileWriter::new(vec![WriterField::new("a", "int64", false)]);
    for page in 0..3000i64 {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![page]));
        writer.write_page(0, &values).unwrap();
    }
    let bytes = writer.finish().unwrap().to_bytes();
    let store = Store::memory(Arc::new(TestEnv::new(0, 1)));
    let size = bytes.len() as u64;
    block_on(store.put("f", vec![bytes])).unwrap();
    let before = store.requests().count;
    let file = block_on(LanceFile::open(&store, "f", Some(size))).unwrap();
    assert_eq!(store.requests().count - before, 2);
    let mut scan = file.scan(0, &DataType::Int64, false, 0..3000);
    let mut all = Vec::new();
    while let Some(array) = block_on(scan.next()).unwrap() {
        all.extend(longs(&array));
    }
    assert_eq!(all, (0..3000).collect::<Vec<i64>>());
    let whole = block_on(LanceFile::open(&store, "f", None)).unwrap();
    assert_eq!(whole.rows(), 3000);
}

#[test]
fn written_lists_come_back() {
    use arrow::array::{ListArray, UInt32Array};
    use arrow::datatypes::UInt32Type;

    let rows =
        |rows: Vec<Option<Vec<Option<u32>>>>| -> ArrayRef { Arc::new(ListArray::from_iter_primitive::<UInt32Type, _, _>(rows)) };
    let pages = [
        rows(vec![Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(7)])]),
        rows(vec![Some(vec![]), None]),
        rows(vec![Some(vec![Some(9)])]),
    ];
    let mut writer = FileWriter::new(vec![WriterField::list("l", "uint32", true, true), WriterField::new("n", "uint32", false)]);
    for page in &pages {
        writer.write_page(0, page).unwrap();
        let other: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..page.len() as u32));
        writer.write_page(1, &other).unwrap();
    }
    let file = open(writer.finish().unwrap().to_bytes()).unwrap();
    assert_eq!(
        (file.columns(), file.column_index("n"), file.list_column("l"), file.list_column("n")),
        (3, Some(2), Some(0), None)
    );
    let mut scan = file.scan(0, pages[0].data_type(), true, 0..7);
    let mut found = Vec::new();
    while let Some(array) = block_on(scan.next()).unwrap() {
        found.push(array);
    }
    let parts: Vec<&dyn Array> = found.iter().map(|array| array.as_ref()).collect();
    let all: Vec<&dyn Array> = pages.iter().map(|array| array.as_ref()).collect();
    assert_eq!(&arrow::compute::concat(&parts).unwrap(), &arrow::compute::concat(&all).unwrap());
    let sliced = pages[0].slice(2, 2);
    let mut writer = FileWriter::new(vec![WriterField::list("l", "uint32", true, true)]);
    writer.write_page(0, &sliced).unwrap();
    let file = open(writer.finish().unwrap().to_bytes()).unwrap();
    assert_eq!(&block_on(file.scan(0, sliced.data_type(), true, 0..2).next()).unwrap().unwrap(), &sliced);
}
