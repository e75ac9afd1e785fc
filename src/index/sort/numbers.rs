//! Fixed-width numbers and booleans.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::{BooleanBuffer, ScalarBuffer};
use arrow::datatypes::DataType;

use crate::error::{Error, ErrorCode, Result};
use crate::index::order::{Key, KeyOrder, numbers};
use crate::index::sort::pages::{cut, fixed_pages};
use crate::index::sort::rows::{Ascent, Chunk, for_each, order_ties, rows_bytes};
use crate::index::sort::scatter::{Rows, scratch_bytes, sort_chunks};
use crate::index::sort::{PAGE_BYTES, PAGE_ROWS, Sorted, ValueSorter};
use crate::table::scan::BatchRows;

/// Collects and sorts numbers of the width of `K`.
pub struct NumberSorter<K: Key> {
    data_type: DataType,
    order: KeyOrder<K>,
    chunks: Vec<Chunk<ScalarBuffer<K::Raw>>>,
    rows: usize,
    id_bytes: u64,
    bounds: Option<(K, K)>,
    /// Last key seen, while everything so far came in ascending order.
    ascending: bool,
    last: K,
    ids: Ascent,
}

impl<K: Key> NumberSorter<K> {
    /// A sorter for a column of `data_type`, whose values are as wide as `K`.
    pub fn new(data_type: DataType, order: KeyOrder<K>) -> NumberSorter<K> {
        NumberSorter {
            data_type,
            order,
            chunks: Vec::new(),
            rows: 0,
            id_bytes: 0,
            bounds: None,
            ascending: true,
            last: K::default(),
            ids: Ascent::default(),
        }
    }

    fn note(&mut self, chunk: &Chunk<ScalarBuffer<K::Raw>>) {
        let order = self.order;
        let (mut low, mut high) = match self.bounds {
            Some(bounds) => bounds,
            None => match first_key(chunk, &order) {
                Some(key) => (key, key),
                None => return,
            },
        };
        let (mut ascending, mut last, mut count) = (self.ascending, self.last, 0usize);
        for_each(&chunk.values, chunk.nulls.as_ref(), &chunk.rows, |value, _| {
            let key = order.key(value);
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

fn first_key<K: Key>(chunk: &Chunk<ScalarBuffer<K::Raw>>, order: &KeyOrder<K>) -> Option<K> {
    let at = match &chunk.nulls {
        Some(nulls) => nulls.valid_indices().next()?,
        None => 0,
    };
    chunk.values.get(at).map(|value| order.key(*value))
}

impl<K: Key> ValueSorter for NumberSorter<K> {
    fn push(&mut self, values: &ArrayRef, rows: BatchRows) -> Result<()> {
        if values.data_type() != &self.data_type {
            return Err(wrong_type(&self.data_type, values.data_type()));
        }
        let buffer = numbers::<K>(values).ok_or_else(|| Error::internal("a number array has no readable value buffer"))?;
        let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let chunk = Chunk { values: buffer, nulls, rows };
        self.note(&chunk);
        self.ids.note(&chunk.rows, chunk.values.len());
        self.id_bytes += rows_bytes(&chunk.rows);
        self.chunks.push(chunk);
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let input: u64 = self.chunks.iter().map(|chunk| (chunk.values.len() * size_of::<K>()) as u64).sum();
        let output = self.rows as u64 * (size_of::<K>() as u64 + 8);
        input + self.id_bytes + output + scratch_bytes::<K>(self.rows)
    }

    fn finish(self: Box<Self>) -> Result<Sorted> {
        let NumberSorter { data_type, order, chunks, rows, bounds, ascending, ids: ascent, .. } = *self;
        let mut values = zeroed::<K::Raw>(rows)?;
        let mut ids = zeroed::<u64>(rows)?;
        if let Some(bounds) = bounds {
            if ascending {
                let mut slots = values.iter_mut().zip(ids.iter_mut());
                for chunk in chunks {
                    for_each(&chunk.values, chunk.nulls.as_ref(), &chunk.rows, |value, id| {
                        if let Some(slot) = slots.next() {
                            (*slot.0, *slot.1) = (value, id);
                        }
                    });
                }
            } else {
                sort_chunks(chunks, &order, bounds, Rows { values: &mut values, ids: &mut ids });
            }
        }
        if !ascent.unbroken() {
            let bits = |at: usize| values.get(at).map(|value| K::from_bits(*value));
            order_ties(&mut ids, |at| bits(at - 1) == bits(at));
        }
        let pages = fixed_pages(&data_type, rows, values, PAGE_BYTES / size_of::<K>())?;
        Ok(Sorted { pages, ids: ScalarBuffer::from(ids) })
    }
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

/// Booleans: false, then true.
#[derive(Default)]
pub struct BoolSorter {
    falses: Vec<u64>,
    trues: Vec<u64>,
    ids: Ascent,
}

impl ValueSorter for BoolSorter {
    fn push(&mut self, values: &ArrayRef, rows: BatchRows) -> Result<()> {
        let array =
            values.as_any().downcast_ref::<BooleanArray>().ok_or_else(|| wrong_type(&DataType::Boolean, values.data_type()))?;
        let bits: Vec<bool> = array.values().iter().collect();
        self.ids.note(&rows, bits.len());
        for_each(&bits, array.nulls(), &rows, |value, id| if value { self.trues.push(id) } else { self.falses.push(id) });
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let rows = (self.falses.len() + self.trues.len()) as u64;
        8 * (self.falses.capacity() + self.trues.capacity()) as u64 + 8 * rows + rows / 8
    }

    fn finish(self: Box<Self>) -> Result<Sorted> {
        let BoolSorter { mut falses, mut trues, ids: ascent } = *self;
        if !ascent.unbroken() {
            falses.sort_unstable();
            trues.sort_unstable();
        }
        let (split, rows) = (falses.len(), falses.len() + trues.len());
        let values: ArrayRef = Arc::new(BooleanArray::from(BooleanBuffer::collect_bool(rows, |row| row >= split)));
        let mut ids = falses;
        ids.try_reserve_exact(trues.len()).map_err(|_| out_of_memory(trues.len() * 8))?;
        ids.extend_from_slice(&trues);
        // A multiple of eight, so that every page starts on a byte.
        Ok(Sorted { pages: cut(values, 8 * PAGE_ROWS), ids: ScalarBuffer::from(ids) })
    }
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
