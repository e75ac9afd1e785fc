//! Rows per second of building a BTREE in memory, beside a plain pass over the same bytes: 10 million int64 (random,
//! sorted) and 10 million short strings. Prints, never judges. `cargo bench --bench btree_sort [-- ROWS]`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, Int64Array, StringArray};
use arrow::datatypes::DataType;
use whetstone::Error;
use whetstone::index::{BuildSpec, method_by_name};
use whetstone::table::scan::{BatchRows, ColumnBatch};

const BATCH: u64 = 1 << 16;

fn mixed(row: u64) -> u64 {
    let mut bits = row.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ bits >> 27
}

fn run(
    name: &str,
    logical_type: &str,
    data_type: DataType,
    rows: u64,
    batch: impl Fn(u64, u64) -> ArrayRef,
) -> Result<(), Error> {
    let starts = || (0..rows).step_by(BATCH as usize);
    let batches: Vec<(u64, ArrayRef)> = starts().map(|start| (start, batch(start, BATCH.min(rows - start)))).collect();
    let at = Instant::now();
    let bytes =
        |array: &ArrayRef| array.to_data().buffers().iter().flat_map(|b| b.as_slice()).fold(0u64, |sum, b| sum + u64::from(*b));
    black_box(batches.iter().map(|(_, array)| bytes(array)).sum::<u64>());
    let pass = at.elapsed().as_secs_f64();

    let method = method_by_name("BTREE")?;
    let params = method.default_params();
    let spec = BuildSpec { data_type, logical_type: logical_type.to_owned(), params, index_version: 0, rows_hint: Some(rows) };
    let at = Instant::now();
    let mut builder = method.builder(spec)?;
    for (start, values) in batches {
        builder.push(ColumnBatch { fragment: 0, values, rows: BatchRows::Range { start } })?;
    }
    let peak = builder.memory_bytes();
    let built = builder.finish()?;
    let build = at.elapsed().as_secs_f64();
    let size: u64 = built.files.iter().map(|(_, file)| file.size).sum();
    println!(
        "{name:16} {:6.2} M rows/s  {build:.3} s, {:.1} x a plain pass, {} MiB of files, {} MiB reckoned at the peak",
        rows as f64 / build / 1e6,
        build / pass,
        size >> 20,
        peak >> 20
    );
    Ok(())
}

fn main() -> Result<(), Error> {
    // cargo itself adds `--bench`.
    let rows = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10_000_000);
    let ints = |value: fn(u64) -> i64| {
        move |start: u64, length: u64| Arc::new(Int64Array::from_iter_values((start..start + length).map(value))) as ArrayRef
    };
    run("int64 random", "int64", DataType::Int64, rows, ints(|row| mixed(row) as i64))?;
    run("int64 sorted", "int64", DataType::Int64, rows, ints(|row| row as i64))?;
    run("short strings", "string", DataType::Utf8, rows, |start, length| {
        let values = (start..start + length).map(|row| format!("u{:07}", mixed(row) % 10_000_000));
        Arc::new(StringArray::from_iter_values(values)) as ArrayRef
    })
}
