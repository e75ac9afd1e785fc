//! Fixed-width numbers and booleans.
//!
//! One scatter by range puts every row into a bucket that fits the second-level cache, straight from the batches into the
//! buffers that will be the index pages; each bucket is then sorted by a finer scatter of its own and written back in
//! place. Buckets too large for that (skew) are first divided in place, level by level: the range shrinks at least a
//! hundredfold each time.

// Hot loops over our own buffers: every index below comes from a histogram of the same keys in the same function.
#![allow(clippy::indexing_slicing)]

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use arrow::datatypes::DataType;

use crate::error::{Error, ErrorCode, Result};
use crate::index::order::{Key, Number, numbers};
use crate::index::sort::rows::{Chunk, for_each, rows_bytes};
use crate::index::sort::{PAGE_BYTES, PAGE_ROWS, Sorted, ValueSorter};
use crate::table::scan::BatchRows;

/// Rows a bucket of the first scatter aims at: with ids and keys about 128 KiB.
const BUCKET_ROWS: usize = 1 << 13;
/// Most buckets of one scatter: each is a write stream of its own.
const MAX_BUCKETS: usize = 1 << 10;
/// Largest bucket that is sorted through the scratch space; larger ones are divided in place first.
const LARGE_BUCKET: usize = 1 << 16;
/// Slots of one division in place.
const DIVISION_BITS: u32 = 8;

/// Collects and sorts numbers of type `N`.
pub struct NumberSorter<N: Number> {
    data_type: DataType,
    chunks: Vec<Chunk<ScalarBuffer<N>>>,
    rows: usize,
    id_bytes: u64,
    bounds: Option<(N::Key, N::Key)>,
    /// Last key seen, while everything so far came in ascending order.
    ascending: bool,
    last: N::Key,
}

impl<N: Number> NumberSorter<N> {
    /// A sorter for a column of `data_type`, whose native type is `N`.
    pub fn new(data_type: DataType) -> NumberSorter<N> {
        NumberSorter {
            data_type,
            chunks: Vec::new(),
            rows: 0,
            id_bytes: 0,
            bounds: None,
            ascending: true,
            last: N::Key::default(),
        }
    }

    fn note(&mut self, chunk: &Chunk<ScalarBuffer<N>>) {
        let (mut low, mut high) = match self.bounds {
            Some(bounds) => bounds,
            None => match first_key(chunk) {
                Some(key) => (key, key),
                None => return,
            },
        };
        let (mut ascending, mut last, mut count) = (self.ascending, self.last, 0usize);
        for_each(&chunk.values, chunk.nulls.as_ref(), &chunk.rows, |value, _| {
            let key = value.to_key();
            low = low.min(key);
            high = high.max(key);
            ascending &= last <= key;
            last = key;
            count += 1;
        });
        (self.ascending, self.last) = (ascending, last);
        self.bounds = Some((low, high));
        self.rows += count;
    }
}

fn first_key<N: Number>(chunk: &Chunk<ScalarBuffer<N>>) -> Option<N::Key> {
    let at = match &chunk.nulls {
        Some(nulls) => nulls.valid_indices().next()?,
        None => 0,
    };
    chunk.values.get(at).map(|value| value.to_key())
}

impl<N: Number> ValueSorter for NumberSorter<N> {
    fn push(&mut self, values: &ArrayRef, rows: BatchRows) -> Result<()> {
        if values.data_type() != &self.data_type {
            return Err(wrong_type(&self.data_type, values.data_type()));
        }
        let buffer = numbers::<N>(values).ok_or_else(|| Error::internal("a number array has no readable value buffer"))?;
        let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let chunk = Chunk { values: buffer, nulls, rows };
        self.note(&chunk);
        self.id_bytes += rows_bytes(&chunk.rows);
        self.chunks.push(chunk);
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let input: u64 = self.chunks.iter().map(|chunk| (chunk.values.len() * size_of::<N>()) as u64).sum();
        let output = self.rows as u64 * (size_of::<N>() as u64 + 8);
        input + self.id_bytes + output + scratch_bytes::<N>(self.rows)
    }

    fn finish(self: Box<Self>) -> Result<Sorted> {
        let NumberSorter { data_type, chunks, rows, bounds, ascending, .. } = *self;
        let mut values = zeroed::<N>(rows)?;
        let mut ids = zeroed::<u64>(rows)?;
        if let Some((low, high)) = bounds {
            if ascending {
                let mut at = 0;
                for chunk in chunks {
                    for_each(&chunk.values, chunk.nulls.as_ref(), &chunk.rows, |value, id| {
                        values[at] = value;
                        ids[at] = id;
                        at += 1;
                    });
                }
            } else {
                sort_chunks(chunks, low, high, &mut values, &mut ids);
            }
        }
        Ok(Sorted { pages: number_pages(&data_type, values)?, ids: ScalarBuffer::from(ids) })
    }
}

fn scratch_bytes<N: Number>(rows: usize) -> u64 {
    (rows.min(LARGE_BUCKET) * size_of::<(N::Key, u64)>()) as u64
}

/// A zeroed vector, or `MEMORY_LIMIT` instead of a trap.
pub fn zeroed<T: Clone + Default>(length: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(length).map_err(|_| out_of_memory(length * size_of::<T>()))?;
    vector.resize(length, T::default());
    Ok(vector)
}

/// `MEMORY_LIMIT` for an allocation of `bytes` bytes that failed.
pub fn out_of_memory(bytes: usize) -> Error {
    Error::new(ErrorCode::MemoryLimit, format!("sorting needs {bytes} more bytes than can be had; nothing was written"))
        .with("bytes", bytes as u64)
}

/// `INVALID_ARGUMENT`: a batch of another type than announced.
pub fn wrong_type(expected: &DataType, found: &DataType) -> Error {
    Error::invalid(format!("an index builder for {expected} was given values of type {found}"))
}

fn sort_chunks<N: Number>(chunks: Vec<Chunk<ScalarBuffer<N>>>, low: N::Key, high: N::Key, values: &mut [N], ids: &mut [u64]) {
    let buckets = (values.len() / BUCKET_ROWS).next_power_of_two().min(MAX_BUCKETS);
    let shift = low.bits_to(high).saturating_sub(buckets.trailing_zeros());
    // Cursor of each bucket, from a histogram; one more for the end.
    let mut cursors = vec![0usize; buckets + 1];
    for chunk in &chunks {
        for_each(&chunk.values, chunk.nulls.as_ref(), &chunk.rows, |value, _| cursors[value.to_key().slot(low, shift) + 1] += 1);
    }
    for slot in 1..cursors.len() {
        cursors[slot] += cursors[slot - 1];
    }
    for chunk in chunks {
        for_each(&chunk.values, chunk.nulls.as_ref(), &chunk.rows, |value, id| {
            let cursor = &mut cursors[value.to_key().slot(low, shift)];
            values[*cursor] = value;
            ids[*cursor] = id;
            *cursor += 1;
        });
    }
    let mut scratch = Scratch::default();
    let mut start = 0;
    for end in &cursors[..buckets] {
        sort_bucket(&mut values[start..*end], &mut ids[start..*end], &mut scratch);
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

/// Sorts values and their ids together.
fn sort_bucket<N: Number>(values: &mut [N], ids: &mut [u64], scratch: &mut Scratch<N::Key>) {
    let Some((low, high, ascending)) = survey(values) else { return };
    if ascending {
        return;
    }
    if values.len() > LARGE_BUCKET {
        return divide(values, ids, low, high, scratch);
    }
    let length = values.len();
    let slots = (length / 2).next_power_of_two();
    let shift = low.bits_to(high).saturating_sub(slots.trailing_zeros());
    let Scratch { pairs, cursors } = scratch;
    cursors.clear();
    cursors.resize(slots + 1, 0);
    for value in values.iter() {
        cursors[value.to_key().slot(low, shift) + 1] += 1;
    }
    for slot in 1..=slots {
        cursors[slot] += cursors[slot - 1];
    }
    pairs.resize(pairs.len().max(length), (N::Key::default(), 0));
    let pairs = &mut pairs[..length];
    for (value, id) in values.iter().zip(ids.iter()) {
        let key = value.to_key();
        let cursor = &mut cursors[key.slot(low, shift)];
        pairs[*cursor as usize] = (key, *id);
        *cursor += 1;
    }
    if shift > 0 {
        let mut start = 0;
        for end in &cursors[..slots] {
            sort_pairs(&mut pairs[start..*end as usize]);
            start = *end as usize;
        }
    }
    for ((value, id), (key, row)) in values.iter_mut().zip(ids.iter_mut()).zip(pairs.iter()) {
        *value = N::from_key(*key);
        *id = *row;
    }
}

fn sort_pairs<K: Key>(pairs: &mut [(K, u64)]) {
    match pairs {
        [] | [_] => {}
        [a, b] => {
            if b.0 < a.0 {
                std::mem::swap(a, b);
            }
        }
        pairs if pairs.len() <= 16 => {
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
        pairs => pairs.sort_unstable_by_key(|pair| pair.0),
    }
}

fn survey<N: Number>(values: &[N]) -> Option<(N::Key, N::Key, bool)> {
    let first = values.first()?.to_key();
    let (mut low, mut high, mut last, mut ascending) = (first, first, first, true);
    for value in values {
        let key = value.to_key();
        low = low.min(key);
        high = high.max(key);
        ascending &= last <= key;
        last = key;
    }
    Some((low, high, ascending))
}

/// Divides a large bucket by range without further memory (cycles of swaps between 256 slots), then sorts the parts.
fn divide<N: Number>(values: &mut [N], ids: &mut [u64], low: N::Key, high: N::Key, scratch: &mut Scratch<N::Key>) {
    let shift = low.bits_to(high).saturating_sub(DIVISION_BITS);
    let slot_of = |value: N| value.to_key().slot(low, shift);
    let mut ends = [0usize; 1 << DIVISION_BITS];
    for value in values.iter() {
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
            let (mut value, mut id) = (values[at], ids[at]);
            loop {
                let target = slot_of(value);
                let to = heads[target];
                heads[target] += 1;
                if target == slot {
                    values[to] = value;
                    ids[to] = id;
                    break;
                }
                std::mem::swap(&mut value, &mut values[to]);
                std::mem::swap(&mut id, &mut ids[to]);
            }
        }
    }
    if shift > 0 {
        let mut start = 0;
        for end in ends {
            sort_bucket(&mut values[start..end], &mut ids[start..end], scratch);
            start = end;
        }
    }
}

/// Cuts one buffer into page arrays without copying it.
fn number_pages<N: Number>(data_type: &DataType, values: Vec<N>) -> Result<Vec<ArrayRef>> {
    let rows = values.len();
    let data = arrow::array::ArrayData::builder(data_type.clone())
        .len(rows)
        .add_buffer(Buffer::from_vec(values))
        .build()
        .map_err(|error| Error::internal(format!("sorted values do not form an array: {error}")))?;
    Ok(cut(&make_array(data), (PAGE_BYTES / size_of::<N>()).max(1)))
}

/// Slices of at most `rows` rows.
pub fn cut(array: &ArrayRef, rows: usize) -> Vec<ArrayRef> {
    (0..array.len()).step_by(rows.max(1)).map(|start| array.slice(start, rows.min(array.len() - start))).collect()
}

/// Booleans: false, then true.
#[derive(Default)]
pub struct BoolSorter {
    falses: Vec<u64>,
    trues: Vec<u64>,
}

impl ValueSorter for BoolSorter {
    fn push(&mut self, values: &ArrayRef, rows: BatchRows) -> Result<()> {
        let array =
            values.as_any().downcast_ref::<BooleanArray>().ok_or_else(|| wrong_type(&DataType::Boolean, values.data_type()))?;
        let bits: Vec<bool> = array.values().iter().collect();
        for_each(&bits, array.nulls(), &rows, |value, id| if value { self.trues.push(id) } else { self.falses.push(id) });
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let rows = (self.falses.len() + self.trues.len()) as u64;
        8 * (self.falses.capacity() + self.trues.capacity()) as u64 + 8 * rows + rows / 8
    }

    fn finish(self: Box<Self>) -> Result<Sorted> {
        let BoolSorter { falses, trues } = *self;
        let (split, rows) = (falses.len(), falses.len() + trues.len());
        let values: ArrayRef = Arc::new(BooleanArray::from(BooleanBuffer::collect_bool(rows, |row| row >= split)));
        let mut ids = falses;
        ids.try_reserve_exact(trues.len()).map_err(|_| out_of_memory(trues.len() * 8))?;
        ids.extend_from_slice(&trues);
        // A multiple of eight, so that every page starts on a byte.
        Ok(Sorted { pages: cut(&values, 8 * PAGE_ROWS), ids: ScalarBuffer::from(ids) })
    }
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
