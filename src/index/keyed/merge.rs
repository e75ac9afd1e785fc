//! Several such files made one: their keys in one order, the rows of equal keys together. No file is held whole.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, BinaryArray};
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::format::treemap::{encode_roaring64, encode_row_treemap};
use crate::index::bytes::ValueBytes;
use crate::index::keep::Keep;
use crate::index::keyed::{KeyWriter, Keys};
use crate::index::order::Comparison;
use crate::index::postings::Layout;

/// A file on its way into another.
pub struct KeyInput<'a> {
    keys: Keys,
    keep: Keep<'a>,
    batch: Option<(ArrayRef, ValueBytes, BinaryArray)>,
    row: usize,
    /// Key of the last row of the batch before.
    before: Option<Option<Vec<u8>>>,
}

impl<'a> KeyInput<'a> {
    /// All keys of a file with the rows that are kept.
    pub fn new(keys: Keys, keep: Keep<'a>) -> KeyInput<'a> {
        KeyInput { keys, keep, batch: None, row: 0, before: None }
    }

    /// The key at hand; `None` for the null key.
    fn key(&self) -> Option<&[u8]> {
        let (values, bytes, _) = self.batch.as_ref()?;
        values.is_valid(self.row).then(|| bytes.get(self.row))
    }

    /// The kept rows of the key at hand.
    fn rows(&self) -> Result<RoaringTreemap> {
        match &self.batch {
            Some((_, _, bitmaps)) => Ok(self.keep.of(&self.keys.rows(bitmaps, self.row)?)),
            None => Ok(RoaringTreemap::new()),
        }
    }

    /// Goes to the next key; false at the end.
    async fn advance(&mut self, compare: Comparison) -> Result<bool> {
        self.before = self.batch.as_ref().map(|_| self.key().map(<[u8]>::to_vec));
        self.row += 1;
        if self.batch.as_ref().is_none_or(|(values, _, _)| self.row >= values.len()) {
            let Some((values, bitmaps)) = self.keys.next().await? else { return Ok(false) };
            let bytes = ValueBytes::new(&values).ok_or_else(|| Error::internal("an array has no readable values"))?;
            (self.batch, self.row) = (Some((values, bytes, bitmaps)), 0);
        }
        match &self.before {
            Some(before) if in_order(compare, before.as_deref(), self.key()).is_ge() => Err(self.keys.unsorted()),
            _ => Ok(true),
        }
    }
}

/// The order of keys, null first.
fn in_order(compare: Comparison, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// What came together.
#[derive(Default)]
pub struct MergedKeys {
    /// Rows of all keys.
    pub rows: RoaringTreemap,
    /// Rows of all keys, counted once for each.
    pub entries: u64,
}

/// Writes all keys that keep a row.
///
/// # Errors
/// Those of reading, `CORRUPT_FILE` for keys that do not ascend, `MEMORY_LIMIT` for what no page can hold.
pub async fn merge_keys(
    mut inputs: Vec<KeyInput<'_>>,
    compare: Comparison,
    layout: Layout,
    writer: &mut KeyWriter,
) -> Result<MergedKeys> {
    // Inputs by their key at hand, the smallest at the end.
    let mut order: Vec<usize> = Vec::new();
    for at in 0..inputs.len() {
        step(&mut inputs, &mut order, at, compare).await?;
    }
    let mut merged = MergedKeys::default();
    while let Some(at) = order.pop() {
        let Some(input) = inputs.get(at) else { break };
        let key = input.key().map(<[u8]>::to_vec);
        let mut rows = input.rows()?;
        step(&mut inputs, &mut order, at, compare).await?;
        while let Some(other) = order.last().copied()
            && let Some(input) = inputs.get(other)
            && in_order(compare, input.key(), key.as_deref()).is_eq()
        {
            rows |= input.rows()?;
            order.pop();
            step(&mut inputs, &mut order, other, compare).await?;
        }
        if rows.is_empty() {
            continue;
        }
        writer.push(key.as_deref(), &mut |out| {
            out.extend_from_slice(&match layout {
                Layout::RowTreemap => encode_row_treemap(&rows),
                Layout::Roaring64 => encode_roaring64(&rows),
            });
        })?;
        merged.entries += rows.len();
        merged.rows |= rows;
    }
    Ok(merged)
}

/// Takes an input to its next key and puts it into its place.
async fn step(inputs: &mut [KeyInput<'_>], order: &mut Vec<usize>, at: usize, compare: Comparison) -> Result<()> {
    let Some(input) = inputs.get_mut(at) else { return Ok(()) };
    if !input.advance(compare).await? {
        return Ok(());
    }
    let place = {
        let key = inputs.get(at).and_then(KeyInput::key);
        order.partition_point(|other| in_order(compare, inputs.get(*other).and_then(KeyInput::key), key).is_gt())
    };
    order.insert(place, at);
    Ok(())
}
