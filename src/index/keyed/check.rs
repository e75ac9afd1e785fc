//! Entries of a file of keys, for an audit, and the rows of keys that match, for a probe.

use arrow::array::{Array, BinaryArray};

use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::bytes::ValueBytes;
use crate::index::check::{NULL_KEY, key};
use crate::index::keyed::{Keys, Names};
use crate::index::probe::{Matches, Query};

/// Hands the hash of the key and the row of every entry of a file to `each`.
///
/// # Errors
/// Those of reading the file.
pub async fn entries(segment: &SegmentFiles, file_name: &str, names: Names, each: &mut dyn FnMut(usize, u64, u64)) -> Result<()> {
    let mut keys = Keys::open(segment, file_name, &segment.open(file_name).await?, names)?;
    while let Some((values, bitmaps)) = keys.next().await? {
        let bitmaps: BinaryArray = bitmaps;
        let bytes = ValueBytes::new(&values).ok_or_else(|| Error::internal("an array has no readable values"))?;
        for row in 0..values.len() {
            let hash = if values.is_null(row) { NULL_KEY } else { key(bytes.get(row)) };
            keys.rows(&bitmaps, row)?.iter().for_each(|id| each(0, hash, id));
        }
    }
    Ok(())
}

/// The rows of all keys that meet a condition; exact.
///
/// # Errors
/// Those of reading the file.
pub async fn probed(segment: &SegmentFiles, file_name: &str, names: Names, query: &Query) -> Result<Matches> {
    let mut keys = Keys::open(segment, file_name, &segment.open(file_name).await?, names)?;
    let mut found = roaring::RoaringTreemap::new();
    while let Some((values, bitmaps)) = keys.next().await? {
        let bytes = ValueBytes::new(&values).ok_or_else(|| Error::internal("an array has no readable values"))?;
        for row in (0..values.len()).filter(|row| query.matches(values.is_valid(*row).then(|| bytes.get(*row)))) {
            found |= keys.rows(&bitmaps, row)?;
        }
    }
    Ok(Matches { exact: true, rows: Some(found), ..Matches::default() })
}
