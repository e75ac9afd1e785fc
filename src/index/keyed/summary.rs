//! What a file of keys holds, for inspection.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::index::SegmentFiles;
use crate::index::bytes::ValueBytes;
use crate::index::json::scalar;
use crate::index::keyed::{INDEX_STATS, KEYS_AND_BITMAPS, Keys, Names};
use crate::index::order::comparison;
use crate::index::parts::Parts;

/// Keys named in an inspection, those with the most rows.
const TOP: usize = 10;

/// What people want to know of a file of keys.
#[derive(Default)]
pub struct Summary {
    /// Keys, the null key included.
    pub keys: u64,
    /// Rows of all keys, counted once for each.
    pub rows: u64,
    /// Rows of the null key.
    pub nulls: u64,
    /// Smallest key.
    pub min: Value,
    /// Largest key.
    pub max: Value,
    /// Keys of the most rows, with their rows.
    pub top: Top,
}

/// Keys of the most rows, the most first.
#[derive(Default)]
pub struct Top(Vec<(u64, Value)>);

impl Top {
    /// Takes a key into account; `key` is only asked for when it is among the largest.
    pub fn offer(&mut self, rows: u64, key: impl FnOnce() -> Value) {
        if self.0.len() < TOP || self.0.last().is_some_and(|(fewest, _)| *fewest < rows) {
            let at = self.0.partition_point(|(other, _)| *other >= rows);
            self.0.insert(at, (rows, key()));
            self.0.truncate(TOP);
        }
    }

    /// Takes the keys of another file into account.
    pub fn merge(&mut self, other: Top) {
        other.0.into_iter().for_each(|(rows, key)| self.offer(rows, || key));
    }

    /// `[{name: key, "rows": n}]`.
    pub fn named(self, name: &str) -> Value {
        self.0.into_iter().map(|(rows, key)| json!({name: key, "rows": rows})).collect()
    }
}

/// Goes through the keys of a file once. Rows are added to `seen`, what would mislead a reader to `problems`.
///
/// # Errors
/// Those of reading the file.
pub async fn summarise(
    segment: &SegmentFiles,
    name: &str,
    file: &LanceFile,
    seen: &mut RoaringTreemap,
    problems: &mut Vec<String>,
) -> Result<Summary> {
    let mut summary = Summary::default();
    let mut keys = Keys::open(segment, name, file, KEYS_AND_BITMAPS)?;
    let compare = comparison(keys.data_type());
    let mut last: Option<Option<Vec<u8>>> = None;
    let mut descents = 0u64;
    while let Some((values, bitmaps)) = keys.next().await? {
        let bytes = ValueBytes::new(&values).ok_or_else(|| Error::internal("an array has no readable values"))?;
        for row in 0..values.len() {
            let rows = keys.rows(&bitmaps, row)?;
            let key = values.is_valid(row).then(|| bytes.get(row));
            let ascends = match (&last, key) {
                (None, _) | (Some(None), Some(_)) => true,
                (Some(_), None) => false,
                (Some(Some(last)), Some(key)) => compare.is_none_or(|compare| compare(last, key).is_lt()),
            };
            descents += u64::from(!ascends);
            if rows.is_empty() {
                problems.push(format!("key {} has no row", scalar(&values, row)));
            }
            if key.is_none() {
                summary.nulls += rows.len();
            } else {
                let value = || scalar(&values, row);
                if summary.min.is_null() {
                    summary.min = value();
                }
                summary.top.offer(rows.len(), value);
            }
            summary.keys += 1;
            summary.rows += rows.len();
            last = Some(key.map(<[u8]>::to_vec));
            *seen |= rows;
        }
        if let Some(row) = values.len().checked_sub(1).filter(|row| values.is_valid(*row)) {
            summary.max = scalar(&values, row);
        }
    }
    if descents > 0 {
        problems.push(format!("{descents} keys do not come after the one before them"));
    }
    match file.metadata().get(INDEX_STATS).map(|text| serde_json::from_str::<Value>(text)) {
        Some(Ok(stats)) if stats.get("num_bitmaps").and_then(Value::as_u64) == Some(summary.keys) => {}
        Some(_) => problems.push(format!("the metadata does not count the {} bitmaps there are", summary.keys)),
        None => {}
    }
    Ok(summary)
}

/// Keys in the order of the files; `shown` is a key as JSON.
///
/// # Errors
/// Those of opening and decoding.
pub async fn key_parts(
    segment: &SegmentFiles,
    files: &[String],
    names: Names,
    wanted: &Range<u64>,
    shown: &dyn Fn(&ArrayRef, usize) -> Value,
) -> Result<Parts> {
    let mut opened = Vec::with_capacity(files.len());
    for name in files {
        opened.push((name, segment.open(name).await?));
    }
    let mut parts = Parts::new("keys", opened.iter().map(|(_, file)| file.rows()).sum(), wanted);
    let mut first = 0u64;
    for (name, file) in &opened {
        let mut keys = Keys::open_at(segment, name, file, names, parts.inside(first, file.rows()))?;
        first += file.rows();
        while let Some((values, bitmaps)) = keys.next().await? {
            for row in 0..values.len() {
                let (rows, bytes) = (keys.rows(&bitmaps, row)?.len(), bitmaps.value(row).len());
                if !parts.push(json!({ "key": shown(&values, row), "rows": rows, "bytes": bytes })) {
                    return Ok(parts);
                }
            }
        }
    }
    Ok(parts)
}
