//! Batches kept until the sort: values as they came, null positions, row ids as compactly as they came.

use arrow::buffer::NullBuffer;

use crate::table::scan::BatchRows;

/// Values of one batch. `V` gives the value of a slot.
pub struct Chunk<V> {
    /// Values including the slots of nulls.
    pub values: V,
    /// Where nulls are; `None` when there are none.
    pub nulls: Option<NullBuffer>,
    /// Row id of every slot.
    pub rows: BatchRows,
}

/// Row id of slot `index`.
#[inline]
pub fn row_id(rows: &BatchRows, index: usize) -> Option<u64> {
    match rows {
        BatchRows::Range { start } => start.checked_add(index as u64),
        BatchRows::List(list) => list.get(index).copied(),
    }
}

/// Bytes the ids take.
pub fn rows_bytes(rows: &BatchRows) -> u64 {
    match rows {
        BatchRows::Range { .. } => 0,
        BatchRows::List(list) => 8 * list.capacity() as u64,
    }
}

/// Appends the ids of null slots to `into`.
pub fn null_ids(nulls: &NullBuffer, rows: &BatchRows, into: &mut Vec<u64>) {
    into.extend((0..nulls.len()).filter(|index| nulls.is_null(*index)).filter_map(|index| row_id(rows, index)));
}

/// Calls `each(value, id)` for every non-null slot in order.
pub fn for_each<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, rows: &BatchRows, mut each: impl FnMut(T, u64)) {
    match (nulls, rows) {
        (None, BatchRows::Range { start }) => values.iter().zip(*start..).for_each(|(value, id)| each(*value, id)),
        (None, BatchRows::List(list)) => values.iter().zip(list).for_each(|(value, id)| each(*value, *id)),
        (Some(nulls), BatchRows::Range { start }) => {
            values
                .iter()
                .zip(*start..)
                .zip(nulls.iter())
                .filter(|(_, valid)| *valid)
                .for_each(|((value, id), _)| each(*value, id));
        }
        (Some(nulls), BatchRows::List(list)) => {
            values.iter().zip(list).zip(nulls.iter()).filter(|(_, valid)| *valid).for_each(|((value, id), _)| each(*value, *id));
        }
    }
}

/// Whether ids only ever grow, over all batches.
#[derive(Default)]
pub struct Ascent {
    next: u64,
    broken: bool,
}

impl Ascent {
    /// Takes note of the ids of `slots` rows.
    pub fn note(&mut self, rows: &BatchRows, slots: usize) {
        let (first, last, sorted) = match rows {
            BatchRows::Range { start } => (*start, start.saturating_add(slots as u64).saturating_sub(1), true),
            BatchRows::List(list) => match (list.first(), list.last()) {
                (Some(first), Some(last)) => (*first, *last, self.broken || list.is_sorted()),
                _ => return,
            },
        };
        self.broken |= !sorted || first < self.next;
        self.next = last;
    }

    /// Do rows of equal value come in the order of their ids when their order is kept?
    pub fn unbroken(&self) -> bool {
        !self.broken
    }
}

/// Puts the ids of equal values in order. `same(at)` says whether the values at `at - 1` and `at` are equal, and is asked
/// from 1 on, once for each.
pub fn order_ties(ids: &mut [u64], mut same: impl FnMut(usize) -> bool) {
    let mut start = 0;
    for at in 1..=ids.len() {
        if at < ids.len() && same(at) {
            continue;
        }
        if let Some(ties) = ids.get_mut(start..at)
            && !ties.is_sorted()
        {
            ties.sort_unstable();
        }
        start = at;
    }
}
