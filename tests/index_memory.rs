//! A builder says what it will hold at its peak; an allocator that counts says what it held.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unsafe_code)] // an allocator is unsafe by its trait; it only counts and hands on

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use serde_json::{Value, json};
use whetstone::format::schema::scalar_type;
use whetstone::index::{BuildSpec, method_by_name};
use whetstone::table::scan::{BatchRows, ColumnBatch};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // As if in place, which is how the system grows large blocks.
        grow(size.saturating_sub(layout.size()));
        HELD.fetch_sub(layout.size().saturating_sub(size), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROWS: u64 = 200_000;
const BATCH: u64 = 40_000;

fn mixed(row: u64) -> u64 {
    let mut bits = row.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ bits >> 27
}

/// What was reckoned before finishing, and what it came to.
fn build(
    method: &str,
    params: Value,
    logical_type: &str,
    listed: bool,
    batch: &dyn Fn(std::ops::Range<u64>) -> ArrayRef,
) -> (u64, u64) {
    let before = HELD.load(Ordering::Relaxed);
    let method = method_by_name(method).unwrap();
    let spec = BuildSpec {
        data_type: scalar_type(logical_type).unwrap(),
        logical_type: logical_type.to_owned(),
        params: method.merge_params(method.default_params(), params.as_object().unwrap()).unwrap(),
        index_version: 0,
        rows_hint: None,
    };
    let mut builder = method.builder(spec).unwrap();
    for start in (0..ROWS).step_by(BATCH as usize) {
        let range = start..start + BATCH;
        let rows = if listed { BatchRows::List(range.clone().collect()) } else { BatchRows::Range { start } };
        builder.push(ColumnBatch { fragment: 0, values: batch(range), rows }).unwrap();
    }
    let reckoned = builder.memory_bytes();
    PEAK.store(HELD.load(Ordering::Relaxed), Ordering::Relaxed);
    let built = builder.finish().unwrap();
    let peak = PEAK.load(Ordering::Relaxed) - before;
    assert_eq!(built.rows, ROWS);
    (reckoned, peak as u64)
}

fn strings(range: std::ops::Range<u64>, text: impl Fn(u64) -> Option<String>) -> ArrayRef {
    let mut built = StringArray::from_iter(range.map(text));
    // Builders leave room to grow, the arrays of a file scan do not.
    built.shrink_to_fit();
    Arc::new(built)
}

#[test]
fn the_peak_is_reckoned_and_not_by_much_too_high() {
    let null = |row: u64| mixed(row).is_multiple_of(5);
    type Batch = Box<dyn Fn(std::ops::Range<u64>) -> ArrayRef>;
    let of = |text: &'static dyn Fn(u64) -> Option<String>| -> Batch { Box::new(move |range| strings(range, text)) };
    let shapes: Vec<(&str, &str, Batch)> = vec![
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
                ("BLOOMFILTER", json!({"number_of_items": 50, "probability": 0.1})),
            ] {
                if !method_by_name(method).unwrap().accepts(&scalar_type(logical_type).unwrap()) {
                    continue;
                }
                let (reckoned, peak) = build(method, params, logical_type, listed, batch);
                let at = format!("{method} of {name} {logical_type}, listed {listed}: {reckoned} bytes reckoned, {peak} held");
                println!("{at} {:.2}", reckoned as f64 / peak as f64);
                // Headers, small vectors and the file's tail are not reckoned.
                assert!(peak <= reckoned + reckoned / 50 + 100_000, "{at}");
                assert!(reckoned <= 2 * peak + 100_000, "{at}");
            }
        }
    }
}
