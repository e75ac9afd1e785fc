//! Rough costs of a plan, from the manifest alone: nothing is opened to estimate.

use arrow::datatypes::DataType;

use super::plan::Estimate;
use crate::format::fragment::{DataFile, Fragment};
use crate::format::manifest::Manifest;
use crate::format::schema::Schema;

/// Bytes of a row address or id.
const ROW: u64 = 8;
/// Requests to open a column file and read its pages, and per segment to write its files and look at them.
const READS_PER_FRAGMENT: u64 = 3;
const WRITES_PER_SEGMENT: u64 = 3;
/// Listing, manifest, transaction, next manifest.
const COMMIT: u64 = 5;

/// Bytes of one value; `None` when values differ in length.
fn width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Boolean => Some(1),
        other => other.primitive_width().map(|w| w as u64),
    }
}

/// Bytes of the indexed column in a fragment: rows times width where values are of one length, never more than its file; an
/// even share of the file otherwise.
pub fn column_bytes(fragment: &Fragment, schema: &Schema, field: i32, data_type: &DataType) -> Option<u64> {
    // From 2.1 on a list has only a column of its items.
    let stored = |file: &&DataFile| file.fields.contains(&field) || schema.children(field).any(|c| file.fields.contains(&c.id));
    let Some(file) = fragment.files.iter().find(stored) else { return Some(0) };
    match width(data_type) {
        Some(width) => Some(fragment.physical_rows?.saturating_mul(width).min(file.size.unwrap_or(u64::MAX))),
        None => {
            let fields = file.fields.iter().filter(|id| **id >= 0).count();
            Some(file.size? / (fields.max(1) as u64))
        }
    }
}

/// Sum of [`column_bytes`].
pub fn read_bytes(
    manifest: &Manifest,
    fragments: impl IntoIterator<Item = u32>,
    field: i32,
    data_type: &DataType,
) -> Option<u64> {
    fragments.into_iter().try_fold(0u64, |sum, id| {
        let fragment = manifest.fragment(id)?;
        sum.checked_add(column_bytes(fragment, &manifest.schema, field, data_type)?)
    })
}

/// One task as the estimate sees it.
pub struct TaskCost {
    /// Fragments read.
    pub fragments: u64,
    /// Live rows.
    pub rows: u64,
    /// Column bytes, or the bytes of the segment that is copied.
    pub read: Option<u64>,
}

/// The whole plan. Index files are estimated as the values plus one row address each, memory as three times that: what is
/// collected, what is sorted, what is encoded.
pub fn estimate(tasks: &[TaskCost]) -> Estimate {
    if tasks.is_empty() {
        return Estimate { requests: 0, read_bytes: Some(0), write_bytes: Some(0), memory_bytes: Some(0) };
    }
    let written = |task: &TaskCost| Some(task.read?.saturating_add(task.rows.saturating_mul(ROW)));
    let sum =
        |of: &dyn Fn(&TaskCost) -> Option<u64>| tasks.iter().try_fold(0u64, |sum, task| Some(sum.saturating_add(of(task)?)));
    let requests = tasks.iter().map(|t| t.fragments * READS_PER_FRAGMENT + WRITES_PER_SEGMENT).sum::<u64>() + COMMIT;
    Estimate {
        requests,
        read_bytes: sum(&|task| task.read),
        write_bytes: sum(&written),
        memory_bytes: tasks.iter().map(written).try_fold(0u64, |most, bytes| Some(most.max(bytes?.saturating_mul(3)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unrecorded_size_makes_the_sum_unknown() {
        let known = TaskCost { fragments: 2, rows: 10, read: Some(80) };
        let unknown = TaskCost { fragments: 1, rows: 10, read: None };
        let both = estimate(&[known, unknown]);
        assert_eq!((both.read_bytes, both.memory_bytes), (None, None));
        assert_eq!(both.requests, 3 * READS_PER_FRAGMENT + 2 * WRITES_PER_SEGMENT + COMMIT);
        let one = estimate(&[TaskCost { fragments: 2, rows: 10, read: Some(80) }]);
        assert_eq!((one.read_bytes, one.write_bytes, one.memory_bytes), (Some(80), Some(160), Some(480)));
    }
}
