//! Labels of rows and entries of the file, for an audit, and the rows of a label, for a probe.

use arrow::array::{Array, ArrayRef};
use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::bytes::ValueBytes;
use crate::index::check::{KeyCheck, NULL_KEY, key};
use crate::index::keyed::{KEYS_AND_BITMAPS, entries, probed};
use crate::index::labellist::FILE;
use crate::index::labellist::build::lists;
use crate::index::labellist::read::null_lists;
use crate::index::probe::{Matches, Op, Query};

/// The key of a list that is null.
const NULL_LIST: u64 = 0xbb67_ae85_84ca_a73b;

pub(super) struct Entries;

#[async_trait(?Send)]
impl KeyCheck for Entries {
    fn keys(&self, values: &ArrayRef, each: &mut dyn FnMut(u64)) -> Result<()> {
        let unreadable = || Error::internal("an array of lists has no readable items");
        let (items, items_of) = lists(values).ok_or_else(unreadable)?;
        let bytes = ValueBytes::new(&items).ok_or_else(unreadable)?;
        let mut keys: Vec<u64> = Vec::new();
        for row in 0..values.len() {
            if values.is_null(row) {
                each(NULL_LIST);
                continue;
            }
            keys.clear();
            keys.extend(items_of(row).map(|slot| if items.is_null(slot) { NULL_KEY } else { key(bytes.get(slot)) }));
            keys.sort_unstable();
            keys.dedup();
            each(keys.iter().fold(0, |sum, key| sum.wrapping_add(*key)));
        }
        Ok(())
    }

    async fn entries(&self, segment: &SegmentFiles, each: &mut dyn FnMut(usize, u64, u64)) -> Result<()> {
        let file = segment.open(FILE).await?;
        // Files of version 0 do not say which lists are null.
        if let Some(rows) = null_lists(segment, &file).await? {
            rows.iter().for_each(|id| each(0, NULL_LIST, id));
        }
        entries(segment, FILE, KEYS_AND_BITMAPS, each).await
    }
}

pub(super) async fn probe(segment: &SegmentFiles, query: &Query) -> Result<Matches> {
    if query.op != Op::IsNull {
        return probed(segment, FILE, KEYS_AND_BITMAPS, query).await;
    }
    let file = segment.open(FILE).await?;
    let rows = null_lists(segment, &file).await?;
    Ok(Matches { exact: rows.is_some(), rows, ..Matches::default() })
}
