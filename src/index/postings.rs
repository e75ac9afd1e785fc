//! Row ids by key, collected in little memory: what BITMAP, LABEL_LIST and NGRAM segments are made of.
//!
//! A list is kept as differences of one to ten bytes each: ids come in ascending order, so nearly all take one byte.

use crate::error::{Error, ErrorCode, Result};
use crate::format::bitmap::PlainEncoder;
use crate::format::wire::put_varint;

/// Values of a roaring container that is an array; larger ones are bitsets, which have a fixed size.
const ARRAY_MAX: u16 = 4096;

/// The ids of one key.
#[derive(Default)]
struct Posting {
    /// Zigzag differences from the id before, the first from zero; empty while there is only one id.
    deltas: Vec<u8>,
    last: u64,
    count: u32,
    /// Ids in the container of `last`, up to [`ARRAY_MAX`].
    card: u16,
    unsorted: bool,
}

/// How a list is laid out in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `RowAddrTreeMap` (index-formats §3.2).
    RowTreemap,
    /// Roaring treemap (index-formats §3.3).
    Roaring64,
}

/// Lists of ids by number of their key.
#[derive(Default)]
pub struct Postings {
    lists: Vec<Posting>,
    /// Bytes of the lists' differences.
    held: u64,
    /// Bytes of all lists in a file, and of the largest.
    encoded: u64,
    /// Ids of the longest list, and of the longest that has to be sorted.
    longest: u64,
    longest_unsorted: u64,
}

impl Postings {
    /// Keys, empty ones included.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Ids under a key; an id that came twice in a row counts once.
    pub fn count(&self, key: u32) -> u64 {
        self.lists.get(key as usize).map_or(0, |list| u64::from(list.count))
    }

    /// Adds an id to the list of a key.
    ///
    /// # Errors
    /// `MEMORY_LIMIT` for more ids than a list can count.
    #[inline]
    pub fn push(&mut self, key: u32, id: u64) -> Result<()> {
        let at = key as usize;
        if at >= self.lists.len() {
            self.lists.resize_with(at + 1, Posting::default);
        }
        let Some(list) = self.lists.get_mut(at) else { return Ok(()) };
        if list.count == 0 {
            // Count of blocks, the block's number and length; then cookie, count, key and offset of a container.
            self.encoded += 4 + 8 + 16 + 2;
            list.card = 1;
        } else {
            if list.last == id {
                return Ok(());
            }
            let before = list.deltas.capacity();
            if list.count == 1 {
                put_varint(&mut list.deltas, zigzag(0, list.last));
            }
            put_varint(&mut list.deltas, zigzag(list.last, id));
            self.held += (list.deltas.capacity() - before) as u64;
            if id >> 16 != list.last >> 16 {
                list.card = 0;
                self.encoded += if id >> 32 == list.last >> 32 { 8 } else { 8 + 16 };
            }
            if list.card < ARRAY_MAX {
                list.card += 1;
                self.encoded += 2;
            }
            list.unsorted |= id < list.last;
        }
        list.last = id;
        list.count = list
            .count
            .checked_add(1)
            .ok_or_else(|| Error::new(ErrorCode::MemoryLimit, "one key of a segment cannot have more than 4294967295 rows"))?;
        self.longest = self.longest.max(u64::from(list.count));
        if list.unsorted {
            self.longest_unsorted = self.longest_unsorted.max(u64::from(list.count));
        }
        Ok(())
    }

    /// Bytes held, and what encoding all lists takes beside them.
    pub fn memory_bytes(&self) -> u64 {
        // The containers of a bitmap are put together before their table can be written; buffers grow by doubling.
        let building = (4 * self.longest).min(2 * self.encoded) + 8 * self.longest_unsorted;
        (self.lists.capacity() * size_of::<Posting>()) as u64 + self.held + self.encoded + building
    }

    /// Ids in all lists.
    pub fn ids(&self) -> u64 {
        self.lists.iter().map(|list| u64::from(list.count)).sum()
    }

    /// Only keeps the lists named first in a pair, under the number named second; the lists that go are freed one by one.
    ///
    /// # Errors
    /// Those of [`Postings::push`].
    pub fn keep(&mut self, moves: impl Iterator<Item = (u32, u32)>) -> Result<()> {
        let mut kept = Postings::default();
        for (from, to) in moves {
            let Some(list) = self.lists.get_mut(from as usize).map(std::mem::take) else { continue };
            let mut outcome = Ok(());
            list.each(|id| {
                if outcome.is_ok() {
                    outcome = kept.push(to, id);
                }
            });
            outcome?;
        }
        *self = kept;
        Ok(())
    }

    /// Appends the list of a key to `out` in a layout and forgets it.
    pub fn encode(&mut self, key: u32, layout: Layout, out: &mut Vec<u8>) {
        let list = self.lists.get_mut(key as usize).map(std::mem::take).unwrap_or_default();
        encode_ids(&list, layout, out);
    }
}

/// Writes the blocks of a list.
fn encode_ids(list: &Posting, layout: Layout, out: &mut Vec<u8>) {
    let start = out.len();
    let width = match layout {
        Layout::RowTreemap => 4,
        Layout::Roaring64 => 8,
    };
    out.resize(start + width, 0);
    let mut blocks = 0u64;
    let mut high = 0u32;
    let mut encoder = PlainEncoder::default();
    let mut close = |high: u32, encoder: &mut PlainEncoder| {
        if encoder.is_empty() {
            return;
        }
        out.extend_from_slice(&high.to_le_bytes());
        let size = out.len();
        if layout == Layout::RowTreemap {
            out.extend_from_slice(&[0; 4]);
        }
        let start = out.len();
        encoder.finish(out);
        let length = (out.len() - start) as u32;
        if layout == Layout::RowTreemap
            && let Some(place) = out.get_mut(size..start)
        {
            place.copy_from_slice(&length.to_le_bytes());
        }
        blocks += 1;
    };
    let mut take = |id: u64| {
        let own = (id >> 32) as u32;
        if own != high {
            close(high, &mut encoder);
            high = own;
        }
        encoder.push(id as u32);
    };
    if list.unsorted {
        let mut ids: Vec<u64> = Vec::with_capacity(list.count as usize);
        list.each(|id| ids.push(id));
        ids.sort_unstable();
        ids.into_iter().for_each(&mut take);
    } else {
        list.each(&mut take);
    }
    close(high, &mut encoder);
    if let Some(place) = out.get_mut(start..start + width) {
        place.copy_from_slice(blocks.to_le_bytes().get(..width).unwrap_or_default());
    }
}

impl Posting {
    #[inline]
    fn each(&self, mut f: impl FnMut(u64)) {
        if self.count == 1 {
            return f(self.last);
        }
        let mut id = 0u64;
        let (mut delta, mut shift) = (0u64, 0u32);
        for byte in &self.deltas {
            delta |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                id = id.wrapping_add(delta >> 1 ^ (delta & 1).wrapping_neg());
                f(id);
                (delta, shift) = (0, 0);
            }
        }
    }
}

/// The difference `to - from` as a number that is small when the difference is, whatever its sign.
#[inline]
fn zigzag(from: u64, to: u64) -> u64 {
    let delta = to.wrapping_sub(from).cast_signed();
    (delta << 1 ^ delta >> 63).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use roaring::RoaringTreemap;

    use super::*;
    use crate::format::treemap::{encode_roaring64, encode_row_treemap};
    use crate::index::testing::Random;

    fn check(ids: &[u64]) {
        let mut postings = Postings::default();
        for id in ids {
            postings.push(3, *id).unwrap();
        }
        let map: RoaringTreemap = ids.iter().copied().collect();
        let (mut rows, mut plain) = (vec![9], vec![]);
        let reckoned = postings.encoded;
        let mut again = Postings::default();
        ids.iter().for_each(|id| again.push(0, *id).unwrap());
        postings.encode(3, Layout::RowTreemap, &mut rows);
        again.encode(0, Layout::Roaring64, &mut plain);
        assert_eq!(&rows[1..], encode_row_treemap(&map), "{} ids", ids.len());
        assert_eq!(plain, encode_roaring64(&map));
        if ids.is_sorted() && !ids.is_empty() {
            assert_eq!(reckoned, rows.len() as u64 - 1, "{} ids", ids.len());
        }
    }

    #[test]
    fn lists_are_encoded_as_bitmaps_are() {
        let mut random = Random(7);
        check(&[]);
        for id in [0, 1, 65_535, 1 << 32, u64::MAX] {
            check(&[id]);
            check(&[id, id]);
        }
        check(&[0, u64::MAX]);
        check(&[1, 3, (2 << 32) + 5]);
        check(&(0..200_000).collect::<Vec<_>>());
        check(&(0..4096).map(|id| id * 2).collect::<Vec<_>>());
        check(&(0..4097).map(|id| id * 2).collect::<Vec<_>>());
        for step in [2, 17, 70_000, 1 << 31] {
            let mut id = 5;
            let ids: Vec<u64> = (0..9000)
                .map(|_| {
                    id += 1 + random.below(step);
                    id
                })
                .collect();
            check(&ids);
            let mut mixed = ids.clone();
            for at in 0..mixed.len() {
                mixed.swap(at, random.below(9000) as usize);
            }
            mixed.extend_from_slice(&ids[..50]);
            check(&mixed);
        }
    }

    #[test]
    fn ten_million_rows_of_one_key_take_a_byte_each() {
        let mut postings = Postings::default();
        for id in 0..10_000_000u64 {
            postings.push(0, id).unwrap();
        }
        assert!(postings.memory_bytes() < 30_000_000, "{}", postings.memory_bytes());
        assert_eq!(postings.count(0), 10_000_000);
        let mut out = Vec::new();
        postings.encode(0, Layout::RowTreemap, &mut out);
        assert_eq!(out, encode_row_treemap(&(0..10_000_000u64).collect()));
    }
}
