//! Sorting keys together with row ids.
//!
//! One scatter by range puts every row into a bucket that fits the second-level cache, straight from the batches into the
//! buffers that will be the index pages; each bucket is then sorted by a finer scatter of its own and written back in
//! place. Buckets too large for that (skew) are first divided in place, level by level: the range shrinks at least a
//! hundredfold each time.

// Hot loops over our own buffers: every index below comes from a histogram of the same keys in the same function.
#![allow(clippy::indexing_slicing)]

use arrow::buffer::ScalarBuffer;

use crate::index::order::{Key, KeyOrder};
use crate::index::sort::rows::{Chunk, for_each, order_ties};

/// Rows a bucket of the first scatter aims at: with ids and keys about 128 KiB.
const BUCKET_ROWS: usize = 1 << 13;
/// Most buckets of one scatter: each is a write stream of its own.
const MAX_BUCKETS: usize = 1 << 10;
/// Largest bucket that is sorted through the scratch space; larger ones are divided in place first.
const LARGE_BUCKET: usize = 1 << 16;
/// Slots of one division in place.
const DIVISION_BITS: u32 = 8;
/// Most rows of a slot that are sorted by insertion.
const FEW: usize = 16;

/// Where sorted rows go: two buffers of one length.
pub(super) struct Rows<'a, K: Key> {
    /// Keys while sorting, stored bits at the end.
    pub values: &'a mut [K::Raw],
    pub ids: &'a mut [u64],
}

impl<K: Key> Rows<'_, K> {
    fn part(&mut self, start: usize, end: usize) -> Rows<'_, K> {
        Rows { values: &mut self.values[start..end], ids: &mut self.ids[start..end] }
    }

    fn len(&self) -> usize {
        self.values.len()
    }
}

/// Bytes of scratch space that sorting `rows` rows takes.
pub(super) fn scratch_bytes<K: Key>(rows: usize) -> u64 {
    (rows.min(LARGE_BUCKET) * size_of::<(K, u64)>()) as u64
}

/// Moves the non-null rows of `chunks`, all between `low` and `high`, into `rows`, ascending by `order`. Ties keep their order,
/// or come out in that of their ids.
pub(super) fn sort_chunks<K: Key>(
    chunks: Vec<Chunk<ScalarBuffer<K::Raw>>>,
    order: &KeyOrder<K>,
    (low, high): (K, K),
    mut rows: Rows<K>,
) {
    let buckets = (rows.len() / BUCKET_ROWS).next_power_of_two().min(MAX_BUCKETS);
    let shift = low.bits_to(high).saturating_sub(buckets.trailing_zeros());
    // Cursor of each bucket, from a histogram; one more for the end.
    let mut cursors = vec![0usize; buckets + 1];
    for chunk in &chunks {
        for_each(&chunk.values, chunk.nulls.as_ref(), &chunk.rows, |value, _| {
            cursors[order.key(value).slot(low, shift) + 1] += 1;
        });
    }
    for slot in 1..cursors.len() {
        cursors[slot] += cursors[slot - 1];
    }
    for chunk in chunks {
        for_each(&chunk.values, chunk.nulls.as_ref(), &chunk.rows, |value, id| {
            let key = order.key(value);
            let cursor = &mut cursors[key.slot(low, shift)];
            rows.values[*cursor] = key.to_bits();
            rows.ids[*cursor] = id;
            *cursor += 1;
        });
    }
    let mut scratch = Scratch::default();
    let mut start = 0;
    for end in &cursors[..buckets] {
        let mut bucket = rows.part(start, *end);
        sort_bucket(bucket.part(0, end - start), &mut scratch);
        if bucket.len() > LARGE_BUCKET {
            // Dividing in place loses the order of ties; everything else keeps it.
            order_ties(bucket.ids, |at| K::from_bits(bucket.values[at - 1]) == K::from_bits(bucket.values[at]));
        }
        for value in bucket.values {
            *value = order.raw(K::from_bits(*value));
        }
        start = *end;
    }
}

struct Scratch<K> {
    pairs: Vec<(K, u64)>,
    cursors: Vec<u32>,
}

impl<K> Default for Scratch<K> {
    fn default() -> Self {
        Scratch { pairs: Vec::new(), cursors: Vec::new() }
    }
}

fn sort_bucket<K: Key>(mut rows: Rows<K>, scratch: &mut Scratch<K>) {
    let Some((low, high, ascending)) = survey::<K>(rows.values) else { return };
    if ascending {
        return;
    }
    let length = rows.len();
    if length > LARGE_BUCKET {
        return divide(rows, low, high, scratch);
    }
    let slots = (length / 2).next_power_of_two();
    let shift = low.bits_to(high).saturating_sub(slots.trailing_zeros());
    let Scratch { pairs, cursors } = scratch;
    cursors.clear();
    cursors.resize(slots + 1, 0);
    for value in rows.values.iter() {
        cursors[K::from_bits(*value).slot(low, shift) + 1] += 1;
    }
    for slot in 1..=slots {
        cursors[slot] += cursors[slot - 1];
    }
    if pairs.len() < length {
        pairs.resize(length, (K::default(), 0));
    }
    let pairs = &mut pairs[..length];
    for (value, id) in rows.values.iter().zip(rows.ids.iter()) {
        let key = K::from_bits(*value);
        let cursor = &mut cursors[key.slot(low, shift)];
        pairs[*cursor as usize] = (key, *id);
        *cursor += 1;
    }
    // Slots that hold too much for insertion: the range of each is narrower by the number of slots.
    let mut crowded = Vec::new();
    if shift > 0 {
        let mut start = 0;
        for end in &cursors[..slots] {
            let end = *end as usize;
            if end - start > FEW {
                crowded.push((start, end));
            } else {
                insert(&mut pairs[start..end]);
            }
            start = end;
        }
    }
    for ((value, id), (key, row)) in rows.values.iter_mut().zip(rows.ids.iter_mut()).zip(pairs.iter()) {
        *value = key.to_bits();
        *id = *row;
    }
    for (start, end) in crowded {
        sort_bucket(rows.part(start, end), scratch);
    }
}

#[inline(always)]
fn insert<K: Key>(pairs: &mut [(K, u64)]) {
    for end in 1..pairs.len() {
        let moving = pairs[end];
        let mut at = end;
        while at > 0 && moving.0 < pairs[at - 1].0 {
            pairs[at] = pairs[at - 1];
            at -= 1;
        }
        pairs[at] = moving;
    }
}

/// Smallest and largest key, and whether the keys ascend; `None` without rows.
fn survey<K: Key>(values: &[K::Raw]) -> Option<(K, K, bool)> {
    let first = K::from_bits(*values.first()?);
    let (mut low, mut high, mut last, mut ascending) = (first, first, first, true);
    for value in values {
        let key = K::from_bits(*value);
        low = low.min(key);
        high = high.max(key);
        ascending &= last <= key;
        last = key;
    }
    Some((low, high, ascending))
}

/// Divides a large bucket by range without further memory (cycles of swaps between 256 slots), then sorts the parts.
fn divide<K: Key>(mut rows: Rows<K>, low: K, high: K, scratch: &mut Scratch<K>) {
    let shift = low.bits_to(high).saturating_sub(DIVISION_BITS);
    let slot_of = |value: K::Raw| K::from_bits(value).slot(low, shift);
    let mut ends = [0usize; 1 << DIVISION_BITS];
    for value in rows.values.iter() {
        ends[slot_of(*value)] += 1;
    }
    let mut heads = [0usize; 1 << DIVISION_BITS];
    let mut total = 0;
    for (head, end) in heads.iter_mut().zip(ends.iter_mut()) {
        *head = total;
        total += *end;
        *end = total;
    }
    for slot in 0..ends.len() {
        while heads[slot] < ends[slot] {
            let at = heads[slot];
            let (mut value, mut id) = (rows.values[at], rows.ids[at]);
            loop {
                let target = slot_of(value);
                let to = heads[target];
                heads[target] += 1;
                if target == slot {
                    rows.values[to] = value;
                    rows.ids[to] = id;
                    break;
                }
                std::mem::swap(&mut value, &mut rows.values[to]);
                std::mem::swap(&mut id, &mut rows.ids[to]);
            }
        }
    }
    if shift > 0 {
        let mut start = 0;
        for end in ends {
            sort_bucket(rows.part(start, end), scratch);
            start = end;
        }
    }
}
