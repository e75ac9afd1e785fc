//! A builder says what it will hold at its peak, and reading a column holds a few slices of it, however long its pages are; an
//! allocator that counts says what was held.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unsafe_code)] // an allocator is unsafe by its trait; it only counts and hands on

#[path = "support/counting.rs"]
mod counting;
mod support;
#[path = "support/touched.rs"]
mod touched;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use futures::executor::block_on;
use serde_json::{Value, json};
use whetstone::format::schema::scalar_type;
use whetstone::index::{BuildSpec, SegmentBuilder, method_by_name};
use whetstone::table::scan::{BatchRows, ColumnBatch};
use whetstone::table::values::{ColumnRequest, ColumnValues};
use whetstone::table::{At, Table};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const ROWS: u64 = 200_000;
const BATCH: u64 = 40_000;
/// Where pages are to fill up in several passes.
const MANY_ROWS: u64 = 600_000;

fn mixed(row: u64) -> u64 {
    let mut bits = row.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ bits >> 27
}

type Batch<'a> = &'a dyn Fn(std::ops::Range<u64>) -> ArrayRef;

fn builder(method: &str, params: Value, logical_type: &str, data_type: DataType) -> Box<dyn SegmentBuilder> {
    let method = method_by_name(method).unwrap();
    let spec = BuildSpec {
        data_type,
        logical_type: logical_type.to_owned(),
        params: method.merge_params(method.default_params(), params.as_object().unwrap()).unwrap(),
        index_version: method.max_index_version().min(2),
        rows_hint: Some(ROWS),
    };
    method.builder(spec).unwrap()
}

fn batches(rows: u64, listed: bool, batch: Batch) -> impl Iterator<Item = ColumnBatch> {
    (0..rows).step_by(BATCH as usize).map(move |start| {
        let range = start..start + BATCH;
        let rows = if listed { BatchRows::List(range.clone().collect()) } else { BatchRows::Range { start } };
        ColumnBatch { fragment: 0, values: batch(range), rows }
    })
}

/// What was reckoned before finishing, and what it came to.
fn build(rows: u64, method: &str, params: Value, logical_type: &str, listed: bool, batch: Batch) -> (u64, u64) {
    let before = counting::held();
    let mut builder = builder(method, params, logical_type, batch(0..0).data_type().clone());
    batches(rows, listed, batch).for_each(|batch| builder.push(batch).unwrap());
    let reckoned = builder.memory_bytes();
    counting::mark();
    let built = builder.finish().unwrap();
    let peak = counting::peak() - before;
    assert_eq!(built.rows, rows);
    (reckoned, peak as u64)
}

/// What was held at most when it was not to be more than `limit`, and whether that took several passes or partitions; `None`
/// when it could not be kept.
fn build_within(limit: u64, method: &str, logical_type: &str, batch: Batch) -> Option<(u64, bool)> {
    let before = counting::mark();
    let mut builder = builder(method, json!({}), logical_type, batch(0..0).data_type().clone());
    let mut divided = false;
    for _ in 0..40 {
        for batch in batches(MANY_ROWS, false, batch) {
            builder.push(batch).unwrap();
            while builder.memory_bytes() > limit {
                divided = true;
                if !builder.narrow().unwrap() {
                    return None;
                }
            }
        }
        if !builder.again().unwrap() {
            assert_eq!(builder.finish().unwrap().rows, MANY_ROWS);
            return Some(((counting::peak() - before) as u64, divided));
        }
    }
    None
}

/// Some words each, a few of which are everywhere.
fn texts(range: std::ops::Range<u64>) -> ArrayRef {
    let word = |bits: u64| format!("w{}", (bits % 60) * (bits / 60 % 60));
    strings(range, |row| Some((0..8).map(|at| word(mixed(row * 8 + at))).collect::<Vec<_>>().join(" ")))
}

/// Up to four labels of some thousands.
fn labels(range: std::ops::Range<u64>) -> ArrayRef {
    let lengths: Vec<usize> = range.clone().map(|row| (mixed(row) % 5) as usize).collect();
    let first = range.start * 4;
    let items = strings(first..first + lengths.iter().sum::<usize>() as u64, |at| Some(format!("label{}", mixed(at) % 3000)));
    Arc::new(ListArray::new(Arc::new(Field::new("item", DataType::Utf8, true)), OffsetBuffer::from_lengths(lengths), items, None))
}

fn strings(range: std::ops::Range<u64>, text: impl Fn(u64) -> Option<String>) -> ArrayRef {
    let mut built = StringArray::from_iter(range.map(text));
    // Builders leave room to grow, the arrays of a file scan do not.
    built.shrink_to_fit();
    Arc::new(built)
}

type Made = Box<dyn Fn(std::ops::Range<u64>) -> ArrayRef>;

#[test]
fn the_peak_is_reckoned_and_not_by_much_too_high() {
    let null = |row: u64| mixed(row).is_multiple_of(5);
    let of = |text: &'static dyn Fn(u64) -> Option<String>| -> Made { Box::new(move |range| strings(range, text)) };
    let shapes: Vec<(&str, &str, Made)> = vec![
        ("random", "int64", Box::new(|range| Arc::new(Int64Array::from_iter_values(range.map(|row| mixed(row) as i64))))),
        ("sorted", "int64", Box::new(|range| Arc::new(Int64Array::from_iter_values(range.map(|row| row as i64))))),
        (
            "nulls",
            "double",
            Box::new(move |range| {
                let mut array = Float64Array::from_iter(range.map(|row| (!null(row)).then(|| mixed(row) as f64)));
                array.shrink_to_fit();
                Arc::new(array)
            }),
        ),
        (
            "flags",
            "bool",
            Box::new(|range| Arc::new(range.map(|row| Some(mixed(row).is_multiple_of(3))).collect::<BooleanArray>())),
        ),
        ("keys", "string", of(&|row| Some(format!("user_{:010}", mixed(row) % 10_000_000_000)))),
        ("sorted", "string", of(&|row| Some(format!("user_{row:010}")))),
        ("tiny", "string", of(&|row| Some(((b'a' + (mixed(row) % 26) as u8) as char).to_string()))),
        ("empty", "string", of(&|_| Some(String::new()))),
        ("few", "string", of(&|row| Some(format!("https://tenant-{}.example.org", mixed(row) % 4)))),
        ("half", "string", of(&|row| if mixed(row).is_multiple_of(2) { None } else { Some(format!("{:x}", mixed(row))) })),
        // One outlier hides what the others share, so nearly all rows are divided twice.
        (
            "outlier",
            "string",
            of(&|row| Some(if row == 7 { "x".to_owned() } else { format!("http://www.example.org/{:x}", mixed(row)) })),
        ),
        ("texts", "string", Box::new(texts)),
        ("labels", "list", Box::new(labels)),
        // Nothing but zeros after the common start: only lengths differ.
        ("zeros", "string", of(&|row| Some("\0".repeat((mixed(row) % 20) as usize)))),
    ];
    for (name, logical_type, batch) in &shapes {
        for listed in [false, true] {
            for (method, params) in [
                ("BTREE", json!({})),
                ("ZONEMAP", json!({})),
                ("ZONEMAP", json!({"rows_per_zone": 5})),
                ("BITMAP", json!({})),
                ("NGRAM", json!({})),
                ("LABEL_LIST", json!({})),
                ("INVERTED", json!({})),
                ("INVERTED", json!({"with_position": true})),
                ("BLOOMFILTER", json!({"number_of_items": 50, "probability": 0.1})),
            ] {
                if !method_by_name(method).unwrap().accepts(batch(0..0).data_type()) {
                    continue;
                }
                // Texts take long to cut, and how rows are given makes no difference to them.
                if method == "INVERTED" && (listed || !["keys", "texts", "labels"].contains(name)) {
                    continue;
                }
                let (reckoned, peak) = build(ROWS, method, params, logical_type, listed, batch);
                let at = format!("{method} of {name} {logical_type}, listed {listed}: {reckoned} bytes reckoned, {peak} held");
                println!("{at} {:.2}", reckoned as f64 / peak as f64);
                // Headers, small vectors and the file's tail are not reckoned.
                assert!(peak <= reckoned + reckoned / 50 + 100_000, "{at}");
                assert!(reckoned <= 2 * peak + 100_000, "{at}");
            }
        }
    }
}

#[test]
fn a_limit_is_kept() {
    let shapes: Vec<(&str, &str, Made)> = vec![
        ("BTREE", "int64", Box::new(|range| Arc::new(Int64Array::from_iter_values(range.map(|row| mixed(row) as i64))))),
        ("BTREE", "string", Box::new(|range| strings(range, |row| Some(format!("user_{:010}", mixed(row) % 10_000_000_000))))),
        (
            "BTREE",
            "string",
            Box::new(|range| strings(range, |row| Some(format!("http://example.org/some/where/{:x}", mixed(row))))),
        ),
        (
            "BITMAP",
            "int64",
            Box::new(|range| Arc::new(Int64Array::from_iter_values(range.map(|row| (mixed(row) % 5000) as i64)))),
        ),
        ("NGRAM", "string", Box::new(|range| texts(range))),
        ("LABEL_LIST", "list", Box::new(|range| labels(range))),
        ("INVERTED", "string", Box::new(|range| texts(range))),
    ];
    for (method, logical_type, batch) in &shapes {
        let mut kept = 0;
        let (needed, _) = build(MANY_ROWS, method, json!({}), logical_type, false, batch);
        for percent in [90, 80, 70] {
            let limit = needed * percent / 100;
            let Some((peak, divided)) = build_within(limit, method, logical_type, batch) else { continue };
            // A batch is there before it is taken in: its values, and what the builder makes of it.
            let batch_bytes = 3 * batch(0..BATCH).get_array_memory_size() as u64;
            let at = format!("{method} of {logical_type}: {peak} held of {limit}, batches of {batch_bytes}; {needed} at once");
            println!("{at}, divided {divided}");
            assert!(peak <= limit + limit / 20 + batch_bytes + 100_000, "{at}");
            kept += u32::from(divided);
        }
        assert!(kept > 0, "{method} of {logical_type} was never divided");
    }
}

/// Bytes that reading holds at a time at most: some slices ahead of the caller, each of some MB, encoded and decoded.
const READING: usize = 24 << 20;

/// A table of one column in one page of hundreds of MB: Lance does not split what it is given as one batch.
fn one_page(dir: &std::path::Path, kind: &str, rows: u64) -> Table {
    support::run_oracle("make_long_page.py", &[dir.as_os_str(), kind.as_ref(), rows.to_string().as_ref()]);
    let table = block_on(Table::open(support::folder_store(dir), At::Latest, None)).unwrap();
    let file = &table.manifest().manifest.fragments[0].files[0];
    let bytes = std::fs::read(dir.join("data").join(&file.path)).unwrap();
    let (_, columns) = touched::columns(&bytes).unwrap();
    assert_eq!((columns.len(), columns[0].pages.len()), (1, 1), "{kind}: one page");
    assert!(bytes.len() > 2 * READING, "{kind}: {} bytes", bytes.len());
    table
}

#[test]
fn long_pages_are_read_by_slices() {
    for (kind, rows) in [("int64", 20_000_000), ("utf8", 2_000_000)] {
        let dir = tempfile::tempdir().unwrap();
        let table = one_page(dir.path(), kind, rows);
        let before = counting::mark();
        let (count, bytes) = block_on(ColumnValues::new(&table, "v", ColumnRequest::default()).unwrap().count()).unwrap();
        let peak = counting::peak() - before;
        println!("{kind}: {bytes} bytes decoded, at most {peak} held");
        assert!(count == rows && bytes > 2 * READING as u64);
        assert!(peak < READING, "{kind}: {peak} bytes held");
        // A few rows out of the middle take a few chunks.
        let before = counting::mark();
        let part = ColumnRequest { offset: rows / 2, limit: Some(10), ..ColumnRequest::default() };
        assert_eq!(block_on(ColumnValues::new(&table, "v", part).unwrap().count()).unwrap().0, 10);
        assert!(counting::peak() - before < READING / 8, "{kind}: {} bytes for ten rows", counting::peak() - before);
    }
}

#[test]
fn building_never_holds_the_encoded_column() {
    const ROWS: u64 = 10_000_000;
    let dir = tempfile::tempdir().unwrap();
    let table = one_page(dir.path(), "int64", ROWS);
    let method = method_by_name("BTREE").unwrap();
    let spec = BuildSpec {
        data_type: scalar_type("int64").unwrap(),
        logical_type: "int64".to_owned(),
        params: method.default_params(),
        index_version: 0,
        rows_hint: Some(ROWS),
    };
    let before = counting::mark();
    let mut builder = method.builder(spec).unwrap();
    let column = ColumnValues::new(&table, "v", ColumnRequest::default()).unwrap();
    block_on(column.read(&mut |batch| builder.push(batch))).unwrap();
    let (peak, reckoned) = (counting::peak() - before, builder.memory_bytes() as usize);
    println!("{ROWS} rows: at most {peak} bytes held while reading, the builder will hold {reckoned}");
    // Values once, and what reading holds; the column in the file is another 80 MB that would show.
    assert!(peak < 8 * ROWS as usize + READING, "{peak} bytes held while reading");
    assert!(reckoned < 4 * 8 * ROWS as usize, "{reckoned} bytes reckoned for building");
}
