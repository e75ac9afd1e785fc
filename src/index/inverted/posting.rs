//! One posting list: blocks of documents and frequencies with their best scores, impacts, positions (index-formats §11.8-11.11).

use super::packing::{GROUP, Reader, put_packed, put_varint};
use crate::format::wire;

/// Documents of a block; all blocks of a list but the last are full.
pub(super) const BLOCK: usize = GROUP;
/// Blocks that share an entry of the second level of impacts.
pub(super) const BLOCKS_PER_GROUP: usize = 32;
/// Parameters of BM25 as Lance has them.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// What the scores of a partition are computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statistics {
    documents: f32,
    average_length: f32,
}

impl Statistics {
    pub(super) fn new(documents: usize, total_tokens: u64) -> Statistics {
        Statistics { documents: documents as f32, average_length: total_tokens as f32 / documents.max(1) as f32 }
    }

    /// Weight of a token that is in `documents` documents.
    fn idf(&self, documents: usize) -> f32 {
        let df = documents as f32;
        // The nearest f32, which an f32 logarithm of the standard library need not be: Lance's bytes are these.
        f64::from((self.documents - df + 0.5) / (df + 0.5) + 1.0).ln() as f32
    }

    /// Best score of a block of a token that is in so many documents: of the frequencies and lengths of the block's own.
    pub(super) fn block_score(&self, documents: usize, block: impl Iterator<Item = (u32, u32)>) -> f32 {
        let factor = block.map(|(frequency, length)| self.factor(frequency, length)).fold(0.0, f32::max);
        self.idf(documents) * (K1 + 1.0) * factor
    }

    /// Weight of a document that has the token `frequency` times among `length` tokens.
    fn factor(&self, frequency: u32, length: u32) -> f32 {
        let frequency = frequency as f32;
        let norm = K1 * (1.0 - B + B * length as f32 / self.average_length);
        frequency / (frequency + norm)
    }
}

/// An encoded list: the items of its columns.
#[derive(Debug, Default)]
pub(super) struct EncodedList {
    /// Bytes of all blocks, and where each ends.
    pub blocks: Vec<u8>,
    pub block_ends: Vec<usize>,
    pub max_score: f32,
    /// Bytes of all impact entries, and where each ends.
    pub impacts: Vec<u8>,
    pub impact_ends: Vec<usize>,
    /// The stream of positions, and where each block begins in it.
    pub positions: Vec<u8>,
    pub position_starts: Vec<u32>,
}

impl EncodedList {
    /// Encodes documents (ascending), their frequencies and, where they are kept, the position deltas of all of them.
    /// `lengths` are those of all documents of the partition. `None` when the position deltas are not as many as occurrences,
    /// or the stream of positions passes 4 GiB.
    pub(super) fn encode(
        documents: &[u32],
        frequencies: &[u32],
        positions: Option<Reader<'_>>,
        lengths: &[u32],
        statistics: &Statistics,
    ) -> Option<EncodedList> {
        let mut list = EncodedList::default();
        let count_of_all = documents.len();
        let mut spots = positions;
        let mut group: Vec<(u32, u8)> = Vec::new();
        let (mut second, mut second_ends) = (Vec::new(), Vec::new());
        let count = documents.len().div_ceil(BLOCK);
        for (at, (documents, frequencies)) in documents.chunks(BLOCK).zip(frequencies.chunks(BLOCK)).enumerate() {
            let length = |document: &u32| lengths.get(*document as usize).copied().unwrap_or(0);
            let rows = || documents.iter().zip(frequencies);
            let score = statistics.block_score(count_of_all, rows().map(|(d, f)| (*f, length(d))));
            list.max_score = list.max_score.max(score);
            put_block(&mut list.blocks, documents, frequencies, score);
            list.block_ends.push(list.blocks.len());
            let last = documents.last().copied().unwrap_or(0);
            let mut pairs = shortest(rows().map(|(d, f)| (*f, length_code(length(d)))));
            frontier(&mut pairs);
            put_impacts(&mut list.impacts, last, &pairs);
            list.impact_ends.push(list.impacts.len());
            group.append(&mut pairs);
            if (at + 1) % BLOCKS_PER_GROUP == 0 || at + 1 == count {
                frontier(&mut group);
                put_impacts(&mut second, last, &group);
                second_ends.push(second.len());
                group.clear();
            }
            if let Some(spots) = &mut spots {
                list.position_starts.push(u32::try_from(list.positions.len()).ok()?);
                put_positions(&mut list.positions, spots, frequencies)?;
            }
        }
        let first = list.impacts.len();
        list.impacts.append(&mut second);
        list.impact_ends.extend(second_ends.into_iter().map(|end| first + end));
        Some(list)
    }
}

/// Score, documents and frequencies of one block: packed when it is full, else as varints.
fn put_block(out: &mut Vec<u8>, documents: &[u32], frequencies: &[u32], score: f32) {
    out.extend(score.to_le_bytes());
    let first = documents.first().copied().unwrap_or(0);
    let deltas = || std::iter::once(0).chain(documents.windows(2).map(difference));
    match <&[u32; BLOCK]>::try_from(frequencies) {
        Ok(frequencies) => {
            out.extend(first.to_le_bytes());
            let mut gaps = [0u32; BLOCK];
            gaps.iter_mut().zip(deltas()).for_each(|(gap, delta)| *gap = delta);
            put_packed(out, &gaps);
            put_packed(out, frequencies);
        }
        Err(_) => {
            put_varint(out, first);
            deltas().skip(1).for_each(|delta| put_varint(out, delta));
            frequencies.iter().for_each(|frequency| put_varint(out, *frequency));
        }
    }
}

fn difference(pair: &[u32]) -> u32 {
    match pair {
        [a, b] => b.wrapping_sub(*a),
        _ => 0,
    }
}

/// How the last block of a list is stored when it is not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Differences and frequencies as varints: `varint_delta_v1`, what is written here.
    Varint,
    /// Documents and frequencies of four bytes each: `fixed32_v1`.
    Fixed,
}

/// Appends the documents and frequencies of a block of `rows`; `None` for bytes that are no such block.
pub(super) fn read_block(
    block: &[u8],
    rows: usize,
    tail: Tail,
    documents: &mut Vec<u32>,
    frequencies: &mut Vec<u32>,
) -> Option<()> {
    let mut reader = Reader(block);
    reader.take(4)?;
    let from = documents.len();
    if rows == BLOCK {
        let first = reader.u32()?;
        reader.packed(documents)?;
        if let Some(slot) = documents.get_mut(from) {
            *slot = first;
        }
        reader.packed(frequencies)?;
    } else if tail == Tail::Fixed {
        let mut before = 0;
        for _ in 0..rows {
            let document = reader.u32()?;
            documents.push(document.checked_sub(before)?);
            before = document;
        }
        for _ in 0..rows {
            frequencies.push(reader.u32()?);
        }
    } else {
        for _ in 0..rows {
            documents.push(reader.varint()?);
        }
        for _ in 0..rows {
            frequencies.push(reader.varint()?);
        }
    }
    let mut at = 0u32;
    for (n, document) in documents.iter_mut().skip(from).enumerate() {
        at = at.checked_add(*document).filter(|next| n == 0 || *next > at)?;
        *document = at;
    }
    (reader.is_empty() && !frequencies.iter().rev().take(rows).any(|f| *f == 0)).then_some(())
}

/// Moves the deltas of one block's positions: groups of 128 packed, the rest as varints.
fn put_positions(out: &mut Vec<u8>, deltas: &mut Reader<'_>, frequencies: &[u32]) -> Option<()> {
    let mut left = total(frequencies)?;
    while left >= GROUP {
        let mut group = [0u32; GROUP];
        for slot in &mut group {
            *slot = deltas.varint()?;
        }
        put_packed(out, &group);
        left -= GROUP;
    }
    for _ in 0..left {
        put_varint(out, deltas.varint()?);
    }
    Some(())
}

/// Appends the deltas of a block's positions.
pub(super) fn read_positions(stream: &mut Reader<'_>, frequencies: &[u32], out: &mut Vec<u32>) -> Option<()> {
    let mut left = total(frequencies)?;
    while left >= GROUP {
        stream.packed(out)?;
        left -= GROUP;
    }
    for _ in 0..left {
        out.push(stream.varint()?);
    }
    Some(())
}

/// Bytes of a block's positions.
pub(super) fn positions_size(stream: Reader<'_>, frequencies: &[u32]) -> Option<usize> {
    let (mut rest, mut ignored) = (stream, Vec::new());
    read_positions(&mut rest, frequencies, &mut ignored)?;
    stream.0.len().checked_sub(rest.0.len())
}

fn total(frequencies: &[u32]) -> Option<usize> {
    frequencies.iter().try_fold(0usize, |sum, frequency| sum.checked_add(*frequency as usize))
}

/// A length in eight bits: exact below 16, then three bits after the leading one, rounded down.
pub(super) fn length_code(length: u32) -> u8 {
    if length < 8 {
        return length as u8;
    }
    let shift = u32::BITS - length.leading_zeros() - 4;
    ((length >> shift & 7) | ((shift + 1) << 3)) as u8
}

/// Of each frequency the shortest document: no other pair of it can be on the [`frontier`]. Frequencies are small nearly always.
fn shortest(pairs: impl Iterator<Item = (u32, u8)>) -> Vec<(u32, u8)> {
    let (mut small, mut rest) = ([u8::MAX; 16], Vec::new());
    for (frequency, code) in pairs {
        match small.get_mut(frequency as usize) {
            // No length has the highest code.
            Some(best) => *best = code.min(*best),
            None => rest.push((frequency, code)),
        }
    }
    rest.extend((0u32..).zip(small).filter(|(_, code)| *code < u8::MAX));
    rest
}

/// Leaves the pairs that no other pair beats: with rising frequency the shortest document having at least that frequency.
fn frontier(pairs: &mut Vec<(u32, u8)>) {
    pairs.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut shortest = None;
    pairs.retain(|(_, code)| {
        let better = shortest.is_none_or(|known| *code < known);
        if better {
            shortest = Some(*code);
        }
        better
    });
    pairs.reverse();
}

fn put_impacts(out: &mut Vec<u8>, last: u32, pairs: &[(u32, u8)]) {
    put_varint(out, last);
    put_varint(out, pairs.len() as u32);
    let (mut frequency, mut code) = (0u32, 0u8);
    for (f, c) in pairs {
        let (step, rise) = (f.wrapping_sub(frequency).wrapping_sub(1), c.wrapping_sub(code));
        let wide = u64::from(step) << 1 | u64::from(rise != 1);
        wire::put_varint(out, wide);
        if rise != 1 {
            out.push(rise);
        }
        (frequency, code) = (*f, *c);
    }
}

/// The last document and the pairs of an entry; `None` for damaged bytes.
pub(super) fn read_impacts(entry: &[u8]) -> Option<(u32, Vec<(u32, u8)>)> {
    let mut reader = Reader(entry);
    let (last, count) = (reader.varint()?, reader.varint()?);
    let (mut frequency, mut code) = (0u32, 0u8);
    let mut pairs = Vec::new();
    for _ in 0..count {
        let step = reader.wide()?;
        frequency = u32::try_from(step >> 1).ok()?.checked_add(frequency)?.checked_add(1)?;
        code = code.wrapping_add(if step & 1 == 1 { reader.byte()? } else { 1 });
        pairs.push((frequency, code));
    }
    reader.is_empty().then_some((last, pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_blocks() {
        let mut out = Vec::new();
        put_block(&mut out, &[5, 9, 300], &[1, 2, 130], 1.5);
        assert_eq!(out, [0, 0, 0xc0, 0x3f, 5, 4, 0xa3, 2, 1, 2, 0x82, 1]);
        let documents: Vec<u32> = (0..BLOCK as u32).map(|i| 10 + 2 * i).collect();
        let mut out = Vec::new();
        put_block(&mut out, &documents, &[1; BLOCK], 0.5);
        assert_eq!(out.len(), 58);
        assert_eq!(out[..13], [0, 0, 0, 0x3f, 0x0a, 0, 0, 0, 2, 0xa8, 0xaa, 0xaa, 0xaa]);
    }

    #[test]
    fn blocks_come_back() {
        for rows in [1, 2, 127, 128] {
            let documents: Vec<u32> = (0..rows as u32).map(|i| 7 + i * i * 3).collect();
            let frequencies: Vec<u32> = (0..rows as u32).map(|i| 1 + i % 9).collect();
            let mut out = Vec::new();
            put_block(&mut out, &documents, &frequencies, 1.0);
            let (mut d, mut f) = (vec![1], vec![1]);
            read_block(&out, rows, Tail::Varint, &mut d, &mut f).unwrap();
            assert_eq!((&d[1..], &f[1..]), (documents.as_slice(), frequencies.as_slice()));
            assert!(read_block(&out[..out.len() - 1], rows, Tail::Varint, &mut Vec::new(), &mut Vec::new()).is_none());
        }
    }

    #[test]
    fn short_blocks_of_format_1_have_four_bytes_a_number() {
        let block = [1.5f32.to_bits(), 5, 9, 300, 1, 2, 130].map(u32::to_le_bytes).concat();
        let read = |block: &[u8], rows: usize| {
            let (mut d, mut f) = (Vec::new(), Vec::new());
            read_block(block, rows, Tail::Fixed, &mut d, &mut f).map(|()| (d, f))
        };
        assert_eq!(read(&block, 3), Some((vec![5, 9, 300], vec![1, 2, 130])));
        assert_eq!((read(&block, 2), read(&block[..24], 3)), (None, None), "too long, too short");
        let descending = [0, 9, 5, 1, 1].map(u32::to_le_bytes).concat();
        assert_eq!(read(&descending, 2), None);
    }

    #[test]
    fn the_golden_impact() {
        let mut pairs = vec![(1, length_code(10)), (2, length_code(10)), (1, length_code(4)), (5, length_code(33))];
        frontier(&mut pairs);
        let mut out = Vec::new();
        put_impacts(&mut out, 20, &pairs);
        assert_eq!(out, [0x14, 3, 1, 4, 1, 6, 5, 0x0e]);
        assert_eq!(read_impacts(&out), Some((20, pairs)));
        assert_eq!(read_impacts(&out[..7]), None);
    }

    #[test]
    fn the_shortest_of_each_frequency_make_the_same_frontier() {
        let mut random = crate::index::testing::Random(3);
        for most in [2, 8, 15, 16, 40] {
            let mut all: Vec<(u32, u8)> = (0..128).map(|_| (random.below(most) as u32 + 1, random.below(240) as u8)).collect();
            let mut few = shortest(all.iter().copied());
            frontier(&mut all);
            frontier(&mut few);
            assert_eq!(few, all);
        }
        assert_eq!(length_code(u32::MAX), 239);
    }

    #[test]
    fn length_codes() {
        let codes: Vec<u8> = [7, 8, 15, 17, 18, 100, 1000].into_iter().map(length_code).collect();
        assert_eq!(codes, [7, 8, 15, 16, 17, 36, 63]);
    }

    #[test]
    fn positions_come_back() {
        let deltas: Vec<u32> = (0..300).map(|i| i * 37 % 1000).collect();
        let mut compact = Vec::new();
        deltas.iter().for_each(|d| put_varint(&mut compact, *d));
        let mut out = Vec::new();
        put_positions(&mut out, &mut Reader(&compact), &[100, 100, 100]).unwrap();
        let mut back = Vec::new();
        let mut stream = Reader(&out);
        read_positions(&mut stream, &[100, 100, 100], &mut back).unwrap();
        assert!(stream.is_empty());
        assert_eq!(back, deltas);
        assert!(put_positions(&mut Vec::new(), &mut Reader(&compact), &[301]).is_none());
    }
}
