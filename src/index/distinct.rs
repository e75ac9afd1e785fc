//! Distinct values of a column, numbered as they come.

use arrow::datatypes::DataType;

use crate::error::{Error, ErrorCode, Result};
use crate::index::bytes::fixed_width;
use crate::index::hash::table_hash;
use crate::index::order::Comparison;

const FREE: u32 = u32::MAX;

/// Whether two values are the same. Most are a few bytes: comparing words is less work than a call that compares memory.
#[inline]
fn same(left: &[u8], right: &[u8]) -> bool {
    if let (Ok(left), Ok(right)) = (<[u8; 4]>::try_from(left), <[u8; 4]>::try_from(right)) {
        return u32::from_le_bytes(left) == u32::from_le_bytes(right);
    }
    let ((words, rest), (others, other_rest)) = (left.as_chunks::<8>(), right.as_chunks::<8>());
    left.len() == right.len()
        && words.iter().zip(others).all(|(a, b)| u64::from_le_bytes(*a) == u64::from_le_bytes(*b))
        && rest.iter().zip(other_rest).all(|(a, b)| a == b)
}

/// A set of values, given and kept as plain bytes, each with the number of values before it.
pub struct Distinct {
    width: Option<usize>,
    bytes: Vec<u8>,
    /// Where each value ends; not kept for values of one width.
    ends: Vec<u64>,
    count: u32,
    /// Open addressing, at most half full; the slots hold value numbers.
    table: Vec<u32>,
    last: u32,
}

impl Distinct {
    /// An empty set of values of a scalar type.
    pub fn new(data_type: &DataType) -> Distinct {
        Distinct { width: fixed_width(data_type), bytes: Vec::new(), ends: Vec::new(), count: 0, table: vec![FREE; 16], last: 0 }
    }

    /// Values.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// The value of that number.
    #[inline]
    pub fn get(&self, number: u32) -> &[u8] {
        let at = number as usize;
        let range = match self.width {
            Some(width) => at * width..(at + 1) * width,
            None => {
                let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
                at.checked_sub(1).map_or(0, end)..end(at)
            }
        };
        self.bytes.get(range).unwrap_or(&[])
    }

    /// The number of a value, a new one if it was not there.
    ///
    /// # Errors
    /// `MEMORY_LIMIT` when there are more values than numbers.
    #[inline]
    pub fn number(&mut self, value: &[u8]) -> Result<u32> {
        // Equal values often come in a row.
        if self.last < self.count && same(self.get(self.last), value) {
            return Ok(self.last);
        }
        let slot = self.slot(value);
        let number = match self.table.get(slot).copied() {
            Some(number) if number != FREE => number,
            _ => self.add(slot, value)?,
        };
        self.last = number;
        Ok(number)
    }

    /// Adds a value that is not there; `slot` is where it was looked for.
    fn add(&mut self, mut slot: usize, value: &[u8]) -> Result<u32> {
        if self.count == FREE {
            return Err(Error::new(ErrorCode::MemoryLimit, "a segment cannot have more than 4294967295 distinct values"));
        }
        if self.table.len() < 2 * (self.len() + 1) {
            self.grow();
            slot = self.slot(value);
        }
        let number = self.count;
        self.bytes.extend_from_slice(value);
        if self.width.is_none() {
            self.ends.push(self.bytes.len() as u64);
        }
        self.count += 1;
        if let Some(place) = self.table.get_mut(slot) {
            *place = number;
        }
        Ok(number)
    }

    /// The slot that holds a value or is free for it.
    #[inline]
    fn slot(&self, value: &[u8]) -> usize {
        let mask = self.table.len() - 1;
        let mut at = table_hash(value) as usize & mask;
        while self.table.get(at).is_some_and(|number| *number != FREE && !same(self.get(*number), value)) {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let mask = 2 * self.table.len() - 1;
        self.table = Vec::new();
        let mut table = vec![FREE; mask + 1];
        for number in 0..self.count {
            let mut at = table_hash(self.get(number)) as usize & mask;
            while table.get(at).is_some_and(|number| *number != FREE) {
                at = (at + 1) & mask;
            }
            if let Some(place) = table.get_mut(at) {
                *place = number;
            }
        }
        self.table = table;
    }

    /// The numbers in the order of their values. The table is given up: nothing can be added any more.
    pub fn order(&mut self, compare: Comparison) -> Vec<u32> {
        self.table = Vec::new();
        let mut order: Vec<u32> = (0..self.count).collect();
        order.sort_unstable_by(|left, right| compare(self.get(*left), self.get(*right)));
        order
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + 8 * self.ends.capacity() + 4 * self.table.capacity()) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::index::order::comparison;
    use crate::index::testing::Random;

    #[test]
    fn numbers_are_those_of_a_map() {
        let mut random = Random(5);
        let mut strings = Distinct::new(&DataType::Utf8);
        let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
        for _ in 0..20_000 {
            let value = vec![b'a' + random.below(3) as u8; random.below(3000) as usize % 700];
            let next = known.len() as u32;
            let expected = *known.entry(value.clone()).or_insert(next);
            assert_eq!(strings.number(&value).unwrap(), expected);
            assert_eq!(strings.get(expected), value);
        }
        assert_eq!(strings.len(), known.len());
        let order = strings.order(comparison(&DataType::Utf8).unwrap());
        assert!(order.is_sorted_by_key(|number| strings.get(*number)) && order.len() == known.len());
    }

    #[test]
    fn numbers_are_ordered_by_value_not_by_bytes() {
        let mut numbers = Distinct::new(&DataType::Int64);
        for value in [3i64, -1, 256, 3, i64::MIN, 256, 0] {
            numbers.number(&value.to_le_bytes()).unwrap();
        }
        assert_eq!(numbers.len(), 5);
        assert_eq!(numbers.order(comparison(&DataType::Int64).unwrap()), [3, 1, 4, 0, 2]);
    }
}
