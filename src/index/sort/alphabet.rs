//! Short strings as numbers.
//!
//! A column of codes, dates, ids or names uses few different bytes at each position. Numbering them in order, with "the value
//! ended before" first where that occurs, gives every value a key of a fixed number of bits; keys compare as the values do
//! and give them back. Ten digits are 40 bits, a UUID is 128. So strings are sorted as numbers, without touching their
//! bytes again.

// Hot loops over our own tables: every index below is a byte, or a position counted when the tables were made.
#![allow(clippy::indexing_slicing)]

use std::ops::{BitOr, Shl};

use crate::index::order::Key;

/// Longest values that are looked at.
pub(super) const LONGEST: usize = 64;

/// How many different bytes occur over all positions, the length of the shortest value and of the longest.
pub(super) type Extent = (usize, usize, usize);

/// Which bytes occur where.
pub(super) struct Census {
    /// `seen[256 * position + byte]`.
    seen: Vec<bool>,
    shortest: usize,
    longest: usize,
}

impl Census {
    pub(super) fn new() -> Census {
        Census { seen: vec![false; LONGEST * 256], shortest: usize::MAX, longest: 0 }
    }

    #[inline(always)]
    pub(super) fn count(&mut self, value: &[u8]) {
        self.shortest = self.shortest.min(value.len());
        self.longest = self.longest.max(value.len());
        if self.longest > LONGEST {
            // There will be no alphabet.
            return;
        }
        for (seen, byte) in self.seen.chunks_exact_mut(256).zip(value) {
            seen[usize::from(*byte)] = true;
        }
    }

    /// The longest value's bytes; an error when a u32 does not hold them.
    pub(super) fn longest(&self) -> Result<u32, usize> {
        u32::try_from(self.longest).map_err(|_| self.longest)
    }

    /// What an alphabet is made from: as long as it stays, so does the alphabet.
    pub(super) fn extent(&self) -> Extent {
        (self.seen.iter().filter(|seen| **seen).count(), self.shortest, self.longest)
    }

    /// The alphabet of all values counted; `None` when their keys would not fit 128 bits.
    pub(super) fn alphabet(&self) -> Option<Alphabet> {
        if self.longest > LONGEST {
            return None;
        }
        let mut alphabet = Alphabet { positions: Vec::new(), codes: vec![0; self.longest * 256], bits: 0 };
        for (at, seen) in self.seen.chunks_exact(256).take(self.longest).enumerate() {
            // Code 0 says that the value is over.
            let may_end = self.shortest <= at;
            let first = usize::from(may_end);
            let symbols: Vec<u8> = (0..=255u8).filter(|byte| seen[usize::from(*byte)]).collect();
            let bits = (first + symbols.len()).next_power_of_two().trailing_zeros();
            // 256 symbols and an end take nine bits; so long a code is of no use here.
            if bits > 8 {
                return None;
            }
            for (code, byte) in symbols.iter().enumerate() {
                alphabet.codes[256 * at + usize::from(*byte)] = (first + code) as u8;
            }
            alphabet.bits += bits;
            alphabet.positions.push(Position { bits, shift: 0, may_end, symbols });
        }
        let mut shift = alphabet.bits;
        for position in &mut alphabet.positions {
            shift -= position.bits;
            position.shift = shift;
        }
        (alphabet.bits <= 128).then_some(alphabet)
    }
}

struct Position {
    bits: u32,
    /// Bits to its right.
    shift: u32,
    may_end: bool,
    /// Bytes by code, the end not counted.
    symbols: Vec<u8>,
}

/// Codes of the bytes at every position.
pub(super) struct Alphabet {
    positions: Vec<Position>,
    /// `codes[256 * position + byte]`.
    codes: Vec<u8>,
    bits: u32,
}

/// An integer that is put together from codes.
pub(super) trait Word: 'static + Key + From<u8> + Shl<u32, Output = Self> + BitOr<Output = Self> {
    /// Sixteen bits from bit `shift` on, which may be past the end.
    fn low_bits_from(self, shift: u32) -> u16;
}

impl Word for u64 {
    #[inline(always)]
    fn low_bits_from(self, shift: u32) -> u16 {
        self.checked_shr(shift).unwrap_or(0) as u16
    }
}

impl Word for u128 {
    #[inline(always)]
    fn low_bits_from(self, shift: u32) -> u16 {
        self.checked_shr(shift).unwrap_or(0) as u16
    }
}

impl Alphabet {
    /// Bytes of the smallest key type.
    pub(super) fn key_bytes(&self) -> usize {
        if self.bits <= 64 { 8 } else { 16 }
    }

    /// Bytes of the tables that give values back, at most.
    pub(super) fn table_bytes(&self) -> u64 {
        let groups = self.positions.len().div_ceil(GROUP_BYTES) + self.bits.div_ceil(GROUP_BITS - 7) as usize;
        (groups << GROUP_BITS) as u64 * size_of::<([u8; GROUP_BYTES], u8)>() as u64
    }

    /// The tables that make keys.
    pub(super) fn encoder<W: Word>(&self) -> Encoder<W> {
        let first = self.positions.iter().position(|position| position.bits > 0).unwrap_or(self.positions.len());
        let positions = self.positions.iter().zip(self.codes.chunks_exact(256)).skip(first);
        let parts = positions.flat_map(|(position, codes)| codes.iter().map(|code| shifted(*code, position.shift)));
        Encoder { first, parts: parts.collect() }
    }

    /// The tables that give values back.
    pub(super) fn decoder(&self) -> Decoder {
        let mut groups = Vec::new();
        let mut rest = self.positions.as_slice();
        while !rest.is_empty() {
            let mut bits = 0;
            let wanted = rest.iter().take(GROUP_BYTES).take_while(|position| {
                bits += position.bits;
                bits <= GROUP_BITS
            });
            let (positions, later) = rest.split_at(wanted.count());
            groups.push(Group::new(positions));
            rest = later;
        }
        Decoder { groups }
    }
}

fn shifted<W: Word>(code: u8, shift: u32) -> W {
    // A code of no bits, at the very top.
    if code == 0 { W::default() } else { W::from(code) << shift }
}

/// Parts of keys by position and byte.
pub(super) struct Encoder<W> {
    /// Positions before it have one byte only.
    first: usize,
    /// `parts[256 * (position - first) + byte]`.
    parts: Vec<W>,
}

impl<W: Word> Encoder<W> {
    /// The key of a value that was counted.
    #[inline(always)]
    pub(super) fn encode(&self, value: &[u8]) -> W {
        let rest = value.get(self.first..).unwrap_or_default();
        rest.iter().zip(self.parts.chunks_exact(256)).fold(W::default(), |key, (byte, parts)| key | parts[usize::from(*byte)])
    }
}

/// Most bytes that are decoded at once.
const GROUP_BYTES: usize = 8;
/// Most bits of a key that are decoded at once: 4096 entries of 16 bytes.
const GROUP_BITS: u32 = 12;

/// Some positions next to each other, by their codes together.
struct Group {
    shift: u32,
    mask: u16,
    /// Bytes and how many of them count: fewer where the value is over.
    entries: Vec<([u8; GROUP_BYTES], u8)>,
}

impl Group {
    fn new(positions: &[Position]) -> Group {
        let shift = positions.last().map_or(0, |position| position.shift);
        let bits: u32 = positions.iter().map(|position| position.bits).sum();
        let entry = |code: usize| {
            let (mut bytes, mut length) = ([0; GROUP_BYTES], 0u8);
            for (slot, position) in bytes.iter_mut().zip(positions) {
                let code = code >> (position.shift - shift) & ((1 << position.bits) - 1);
                let Some(symbol) = code.checked_sub(usize::from(position.may_end)) else { break };
                *slot = position.symbols.get(symbol).copied().unwrap_or_default();
                length += 1;
            }
            (bytes, length)
        };
        Group { shift, mask: (1u16 << bits) - 1, entries: (0..1 << bits).map(entry).collect() }
    }
}

/// Values by key.
pub(super) struct Decoder {
    groups: Vec<Group>,
}

impl Decoder {
    /// Appends the value of a key.
    #[inline(always)]
    pub(super) fn decode<W: Word>(&self, key: W, into: &mut Vec<u8>) {
        // Every group stores all its bytes; those that do not count are overwritten by the next, or cut off.
        let mut value = [0; LONGEST + GROUP_BYTES];
        let mut length = 0;
        for group in &self.groups {
            let (bytes, count) = group.entries[usize::from(key.low_bits_from(group.shift) & group.mask)];
            if let Some(slot) = value.get_mut(length..length + GROUP_BYTES) {
                slot.copy_from_slice(&bytes);
            }
            length += usize::from(count);
        }
        into.extend_from_slice(&value[..length.min(LONGEST)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alphabet(values: &[&[u8]]) -> Option<Alphabet> {
        let mut census = Census::new();
        values.iter().for_each(|value| census.count(value));
        census.alphabet()
    }

    fn check<W: Word>(values: &[&[u8]]) {
        let alphabet = alphabet(values).unwrap();
        let (encoder, decoder) = (alphabet.encoder::<W>(), alphabet.decoder());
        let mut sorted = values.to_vec();
        sorted.sort();
        sorted.dedup();
        let keys: Vec<W> = sorted.iter().map(|value| encoder.encode(value)).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
        for (key, value) in keys.into_iter().zip(sorted) {
            let mut decoded = b"kept".to_vec();
            decoder.decode(key, &mut decoded);
            assert_eq!(decoded.strip_prefix(b"kept"), Some(value));
        }
    }

    #[test]
    fn keys_order_and_give_back() {
        check::<u64>(&[b"user1", b"user12", b"user2", b"", b"us", b"v"]);
        check::<u64>(&[b"same"]);
        check::<u64>(&[b"", b"\0", b"\0\0", b"\0\xff", b"\xff"]);
        let hex = [
            "0d9f8a7c-6b5e-4d3c-2b1a-009f8e7d6c5b",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "123e4567-e89b-12d3-a456-426614174000",
        ];
        check::<u128>(&hex.map(str::as_bytes));
    }

    #[test]
    fn what_does_not_fit_is_left_alone() {
        assert!(alphabet(&[&[b'a'; LONGEST + 1]]).is_none());
        assert_eq!(alphabet(&[&[b'a'; LONGEST]]).unwrap().bits, 0);
        let every: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte; 16]).collect();
        let every: Vec<&[u8]> = every.iter().map(Vec::as_slice).collect();
        assert_eq!(alphabet(&every).unwrap().bits, 128);
        let mut with_end = every.clone();
        with_end.push(b"");
        assert!(alphabet(&with_end).is_none());
        let longer: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte; 17]).collect();
        assert!(alphabet(&longer.iter().map(Vec::as_slice).collect::<Vec<_>>()).is_none());
    }
}
