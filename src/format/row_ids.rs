//! Stable row id sequences (table-format §11.2): one id per physical row, in physical order, in one of five compact forms.

use bytes::Bytes;

use super::proto::{self, ArrayKind, SegmentKind};
use crate::error::{Error, Result};

/// Ids between two entries of a presence bitmap's rank table.
const RANK_BYTES: usize = 64;

/// The ids of one fragment's physical rows, in physical order. Nothing is expanded: memory stays that of the stored bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowIdSequence {
    segments: Vec<Segment>,
    /// Index of the first id of each segment.
    starts: Vec<u64>,
    len: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Segment {
    Range { start: u64, end: u64 },
    Holes { start: u64, end: u64, holes: Encoded },
    Bitmap { start: u64, bits: Bytes, ranks: Vec<u64>, len: u64 },
    Array { values: Encoded, sorted: bool },
}

/// `EncodedU64Array`: a base and fixed-width little-endian offsets.
#[derive(Clone, Debug, Default, PartialEq)]
struct Encoded {
    base: u64,
    width: usize,
    bytes: Bytes,
}

impl Encoded {
    fn parse(object: &str, array: Option<proto::EncodedU64Array>) -> Result<Encoded> {
        let Some(kind) = array.and_then(|a| a.array) else { return Ok(Encoded { width: 8, ..Encoded::default() }) };
        let encoded = match kind {
            ArrayKind::U16(a) => Encoded { base: a.base, width: 2, bytes: a.offsets },
            ArrayKind::U32(a) => Encoded { base: a.base, width: 4, bytes: a.offsets },
            ArrayKind::U64(a) => Encoded { base: 0, width: 8, bytes: a.values },
        };
        if !encoded.bytes.len().is_multiple_of(encoded.width) {
            let (bytes, width) = (encoded.bytes.len(), encoded.width);
            return Err(Error::corrupt(object, format!("row ids: {bytes} bytes are no whole number of {width}-byte values")));
        }
        let largest_offset = (0..encoded.len()).filter_map(|i| encoded.offset(i)).max().unwrap_or(0);
        if encoded.base.checked_add(largest_offset).is_none() {
            return Err(Error::corrupt(object, format!("row ids: base {} plus {largest_offset} exceeds 64 bits", encoded.base)));
        }
        Ok(encoded)
    }

    fn len(&self) -> u64 {
        (self.bytes.len() / self.width.max(1)) as u64
    }

    fn offset(&self, i: u64) -> Option<u64> {
        let at = usize::try_from(i).ok()?.checked_mul(self.width)?;
        let stored = self.bytes.get(at..at.checked_add(self.width)?)?;
        let mut padded = [0u8; 8];
        padded.get_mut(..self.width)?.copy_from_slice(stored);
        Some(u64::from_le_bytes(padded))
    }

    fn get(&self, i: u64) -> Option<u64> {
        self.base.checked_add(self.offset(i)?)
    }

    fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    fn check_increasing(&self, object: &str, what: &str) -> Result<()> {
        let mut previous = None;
        for value in self.iter() {
            if previous.is_some_and(|p| p >= value) {
                return Err(Error::corrupt(object, format!("row ids: {what} are not strictly increasing at {value}")));
            }
            previous = Some(value);
        }
        Ok(())
    }
}

impl Segment {
    fn parse(object: &str, segment: proto::U64Segment) -> Result<Segment> {
        let ordered = |start: u64, end: u64| {
            if start > end {
                return Err(Error::corrupt(object, format!("row ids: a range starts at {start} and ends at {end}")));
            }
            Ok(())
        };
        Ok(match segment.kind {
            None => return Err(Error::corrupt(object, "row ids: a segment has no kind this build knows")),
            Some(SegmentKind::Range(r)) => {
                ordered(r.start, r.end)?;
                Segment::Range { start: r.start, end: r.end }
            }
            Some(SegmentKind::RangeWithHoles(r)) => {
                ordered(r.start, r.end)?;
                let holes = Encoded::parse(object, r.holes)?;
                holes.check_increasing(object, "holes")?;
                let outside = [holes.get(0), holes.len().checked_sub(1).and_then(|i| holes.get(i))];
                if let Some(hole) = outside.into_iter().flatten().find(|h| *h < r.start || *h >= r.end) {
                    return Err(Error::corrupt(object, format!("row ids: hole {hole} lies outside {}..{}", r.start, r.end)));
                }
                Segment::Holes { start: r.start, end: r.end, holes }
            }
            Some(SegmentKind::RangeWithBitmap(r)) => {
                ordered(r.start, r.end)?;
                let width = r.end - r.start;
                if r.bitmap.len() as u64 != width.div_ceil(8) {
                    let text =
                        format!("row ids: {} bitmap bytes for the {width} values of {}..{}", r.bitmap.len(), r.start, r.end);
                    return Err(Error::corrupt(object, text));
                }
                let padding = (8 - width % 8) % 8;
                if r.bitmap.last().is_some_and(|last| u64::from(last.leading_zeros()) < padding) {
                    return Err(Error::corrupt(object, "row ids: padding bits of a bitmap are set"));
                }
                let mut ranks = Vec::with_capacity(r.bitmap.len() / RANK_BYTES + 1);
                let mut len = 0u64;
                for block in r.bitmap.chunks(RANK_BYTES) {
                    ranks.push(len);
                    len += block.iter().map(|b| u64::from(b.count_ones())).sum::<u64>();
                }
                Segment::Bitmap { start: r.start, bits: r.bitmap, ranks, len }
            }
            Some(SegmentKind::SortedArray(a)) => {
                let values = Encoded::parse(object, Some(a))?;
                values.check_increasing(object, "sorted values")?;
                Segment::Array { values, sorted: true }
            }
            Some(SegmentKind::Array(a)) => Segment::Array { values: Encoded::parse(object, Some(a))?, sorted: false },
        })
    }

    fn len(&self) -> u64 {
        match self {
            Segment::Range { start, end } => end - start,
            Segment::Holes { start, end, holes } => (end - start).saturating_sub(holes.len()),
            Segment::Bitmap { len, .. } => *len,
            Segment::Array { values, .. } => values.len(),
        }
    }

    fn get(&self, i: u64) -> Option<u64> {
        if i >= self.len() {
            return None;
        }
        match self {
            Segment::Range { start, .. } => start.checked_add(i),
            Segment::Holes { start, holes, .. } => {
                // The number of holes at or before the wanted value: hole k has `hole - start - k` values before it.
                let (mut low, mut high) = (0u64, holes.len());
                while low < high {
                    let middle = low + (high - low) / 2;
                    let before = holes.get(middle)?.checked_sub(*start)?.checked_sub(middle)?;
                    if before <= i { low = middle + 1 } else { high = middle }
                }
                start.checked_add(i)?.checked_add(low)
            }
            Segment::Bitmap { start, bits, ranks, .. } => {
                let block = ranks.partition_point(|rank| *rank <= i).checked_sub(1)?;
                let mut left = i - ranks.get(block)?;
                for (at, byte) in bits.iter().enumerate().skip(block * RANK_BYTES) {
                    let ones = u64::from(byte.count_ones());
                    if left < ones {
                        let bit = (0..8u64).filter(|bit| byte >> bit & 1 == 1).nth(left as usize)?;
                        return start.checked_add(at as u64 * 8 + bit);
                    }
                    left -= ones;
                }
                None
            }
            Segment::Array { values, .. } => values.get(i),
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Segment::Range { start, end } => Box::new(*start..*end),
            Segment::Holes { start, end, holes } => {
                let mut holes = holes.iter().peekable();
                Box::new((*start..*end).filter(move |value| holes.next_if_eq(value).is_none()))
            }
            Segment::Bitmap { start, bits, .. } => Box::new(bits.iter().enumerate().flat_map(move |(at, byte)| {
                (0..8u64).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| start + at as u64 * 8 + bit)
            })),
            Segment::Array { values, .. } => Box::new(values.iter()),
        }
    }

    fn bounds(&self) -> Option<(u64, u64)> {
        if let Segment::Array { values, sorted: false } = self {
            return Some((values.iter().min()?, values.iter().max()?));
        }
        Some((self.get(0)?, self.get(self.len().checked_sub(1)?)?))
    }
}

impl RowIdSequence {
    /// Reads a serialized `RowIdSequence`; contradictions are `CORRUPT_FILE`.
    pub fn parse(object: &str, bytes: &[u8]) -> Result<RowIdSequence> {
        let message: proto::RowIdSequence = proto::decode(object, "a row id sequence", Bytes::copy_from_slice(bytes))?;
        let mut sequence = RowIdSequence::default();
        for segment in message.segments {
            let segment = Segment::parse(object, segment)?;
            sequence.starts.push(sequence.len);
            let len = sequence.len.checked_add(segment.len());
            sequence.len = len.ok_or_else(|| Error::corrupt(object, "row ids: more than 2^64 in one sequence"))?;
            sequence.segments.push(segment);
        }
        Ok(sequence)
    }

    /// Number of ids.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// No ids.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ids in physical order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.segments.iter().flat_map(Segment::iter)
    }

    /// The id of physical row `offset`.
    pub fn get(&self, offset: u64) -> Option<u64> {
        let at = self.starts.partition_point(|start| *start <= offset).checked_sub(1)?;
        self.segments.get(at)?.get(offset - self.starts.get(at)?)
    }

    /// Smallest id; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        self.segments.iter().filter_map(Segment::bounds).map(|(min, _)| min).min()
    }

    /// Largest id; `None` when empty.
    pub fn max(&self) -> Option<u64> {
        self.segments.iter().filter_map(Segment::bounds).map(|(_, max)| max).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        text.as_bytes().chunks(2).map(|c| u8::from_str_radix(std::str::from_utf8(c).unwrap(), 16).unwrap()).collect()
    }

    fn check(bytes: &[u8], expected: Vec<u64>) {
        let s = RowIdSequence::parse("s", bytes).unwrap();
        assert_eq!(s.iter().collect::<Vec<_>>(), expected);
        assert_eq!(s.len(), expected.len() as u64);
        assert_eq!((0..s.len()).map(|i| s.get(i).unwrap()).collect::<Vec<_>>(), expected);
        assert_eq!(s.get(s.len()), None);
        assert_eq!((s.min(), s.max()), (expected.iter().min().copied(), expected.iter().max().copied()));
    }

    #[test]
    fn golden_samples() {
        check(&hex("0a060a0410a08d06"), (0..100_000).collect());
        check(&hex("0a14221212100805120c000000005bea00003c0d0300"), vec![5, 60000, 200001]);
        check(&hex("0a15121308d00f10b8171a0b0a0908b410120400006400"), {
            (2000..3000).filter(|v| *v != 2100 && *v != 2200).collect()
        });
        check(&hex("0a211a1f080310c2011a18010410400001041040000104104000010410400001041040"), (3..194).step_by(10).collect());
    }

    #[test]
    fn unsorted_arrays_u64_and_many_segments() {
        use prost::Message;
        let array = |values: &[u64]| proto::EncodedU64Array {
            array: Some(ArrayKind::U64(proto::ValueArray {
                values: values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into(),
            })),
        };
        let segment = |kind| proto::U64Segment { kind: Some(kind) };
        let bits: Vec<u8> = (0..200u32).map(|i| (i * 37 % 251) as u8).collect();
        let message = proto::RowIdSequence {
            segments: vec![
                segment(SegmentKind::Array(array(&[u64::MAX, 3, 9]))),
                segment(SegmentKind::Range(proto::Range { start: 7, end: 7 })),
                segment(SegmentKind::SortedArray(array(&[1, 1 << 50]))),
                segment(SegmentKind::RangeWithBitmap(proto::RangeWithBitmap {
                    start: 50,
                    end: 1650,
                    bitmap: bits.clone().into(),
                })),
                segment(SegmentKind::Range(proto::Range { start: 2, end: 4 })),
            ],
        };
        let mut expected = vec![u64::MAX, 3, 9, 1, 1 << 50];
        expected.extend((0..1600u64).filter(|i| bits[*i as usize / 8] >> (i % 8) & 1 == 1).map(|i| 50 + i));
        expected.extend([2, 3]);
        check(&message.encode_to_vec(), expected);
        check(&[], vec![]);
    }

    #[test]
    fn contradictions() {
        use prost::Message;
        let one = |kind| proto::RowIdSequence { segments: vec![proto::U64Segment { kind: Some(kind) }] }.encode_to_vec();
        let u16s = |base, offsets: &[u8]| proto::EncodedU64Array {
            array: Some(ArrayKind::U16(proto::OffsetArray { base, offsets: Bytes::copy_from_slice(offsets) })),
        };
        let holes = |array| proto::RangeWithHoles { start: 10, end: 20, holes: Some(array) };
        let bitmap = |end, bytes: &[u8]| proto::RangeWithBitmap { start: 0, end, bitmap: Bytes::copy_from_slice(bytes) };
        for (bytes, part) in [
            (one(SegmentKind::Range(proto::Range { start: 5, end: 4 })), "starts at 5"),
            (one(SegmentKind::Array(u16s(0, &[1]))), "whole number"),
            (one(SegmentKind::Array(u16s(u64::MAX, &[1, 0]))), "64 bits"),
            (one(SegmentKind::SortedArray(u16s(0, &[1, 0, 1, 0]))), "strictly increasing"),
            (one(SegmentKind::RangeWithHoles(holes(u16s(10, &[10, 0])))), "outside"),
            (one(SegmentKind::RangeWithBitmap(bitmap(9, &[1]))), "bitmap bytes"),
            (one(SegmentKind::RangeWithBitmap(bitmap(9, &[1, 2]))), "padding"),
            (hex("0a00"), "no kind"),
        ] {
            let error = RowIdSequence::parse("frag", &bytes).unwrap_err();
            assert!(error.message().starts_with("frag: ") && error.message().contains(part), "{error}");
        }
        let huge = one(SegmentKind::Range(proto::Range { start: 0, end: u64::MAX }));
        assert_eq!(RowIdSequence::parse("s", &huge).unwrap().get(1 << 40), Some(1 << 40));
    }
}
