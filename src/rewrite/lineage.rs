//! What rows carry with them: stable row ids, and the versions they were made and last changed at (table-format §11.2, §11.3).

use bytes::Bytes;
use prost::Message;
use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::format::proto::{ArrayKind, EncodedU64Array, OffsetArray, Range, SegmentKind, U64Segment, ValueArray};
use crate::format::row_ids::RowIdSequence;
use crate::format::{proto, wire};

/// As few ids as this on average make a run worth its own segment.
const RUN: usize = 8;

/// Serializes stable row ids in the order of their rows: runs of consecutive ids where they are long, else one array.
pub fn encode_row_ids(ids: &[u64]) -> Bytes {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for id in ids {
        match runs.last_mut() {
            Some((_, end)) if *end == *id => *end = end.saturating_add(1),
            _ => runs.push((*id, id.saturating_add(1))),
        }
    }
    let segments = if runs.len() == 1 || runs.len().saturating_mul(RUN) <= ids.len() {
        runs.into_iter().map(|(start, end)| SegmentKind::Range(Range { start, end })).collect()
    } else {
        let sorted = ids.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
        let array = encoded(ids);
        vec![if sorted { SegmentKind::SortedArray(array) } else { SegmentKind::Array(array) }]
    };
    let segments = segments.into_iter().map(|kind| U64Segment { kind: Some(kind) }).collect();
    proto::RowIdSequence { segments }.encode_to_vec().into()
}

fn encoded(ids: &[u64]) -> EncodedU64Array {
    let base = ids.iter().copied().min().unwrap_or(0);
    let span = ids.iter().copied().max().unwrap_or(0) - base;
    let width = match span {
        0..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    };
    let offsets = |width: usize| -> Bytes {
        ids.iter().flat_map(|id| (id - base).to_le_bytes().into_iter().take(width)).collect::<Vec<u8>>().into()
    };
    let array = match width {
        2 => ArrayKind::U16(OffsetArray { base, offsets: offsets(2) }),
        4 => ArrayKind::U32(OffsetArray { base, offsets: offsets(4) }),
        _ => ArrayKind::U64(ValueArray { values: ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>().into() }),
    };
    EncodedU64Array { array: Some(array) }
}

/// Versions of consecutive rows: how many rows each, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowVersions {
    runs: Vec<(u64, u64)>,
}

impl RowVersions {
    /// Appends rows of one version.
    pub fn push(&mut self, rows: u64, version: u64) {
        match self.runs.last_mut() {
            _ if rows == 0 => {}
            Some((count, last)) if *last == version => *count = count.saturating_add(rows),
            _ => self.runs.push((rows, version)),
        }
    }

    /// Appends the live rows of a fragment. Only the lengths of the stored spans count.
    ///
    /// # Errors
    /// `CORRUPT_FILE` when there are not as many versions as rows.
    pub fn append(&mut self, object: &str, stored: &Bytes, physical_rows: u64, deleted: &RoaringBitmap) -> Result<()> {
        let mut at = 0u64;
        for run in wire::split(object, stored)?.iter().filter(|field| field.number == 1) {
            let (mut rows, mut version) = (0u64, 0u64);
            for field in wire::split(object, run.as_bytes(object)?)? {
                match field.number {
                    1 => {
                        let mut sequence = Vec::new();
                        wire::put_len_field(&mut sequence, 1, field.as_bytes(object)?);
                        rows = RowIdSequence::parse(object, &sequence)?.len();
                    }
                    2 => version = field.as_varint(object)?,
                    _ => {}
                }
            }
            let end = at.saturating_add(rows);
            self.push(rows - deleted_in(deleted, at, end), version);
            at = end;
        }
        if at != physical_rows {
            return Err(Error::corrupt(object, format!("{at} row versions for {physical_rows} rows")));
        }
        Ok(())
    }

    /// The versions of `rows` rows from row `first` on, serialized.
    pub fn encode(&self, first: u64, rows: u64) -> Bytes {
        let mut out = Vec::new();
        let (mut at, mut written) = (0u64, 0u64);
        for (count, version) in &self.runs {
            let end = at.saturating_add(*count);
            let taken = end.min(first.saturating_add(rows)).saturating_sub(at.max(first));
            at = end;
            if taken == 0 {
                continue;
            }
            let span = SegmentKind::Range(Range { start: written, end: written + taken });
            let mut run = Vec::new();
            wire::put_len_field(&mut run, 1, &U64Segment { kind: Some(span) }.encode_to_vec());
            if *version != 0 {
                wire::put_varint_field(&mut run, 2, *version);
            }
            wire::put_len_field(&mut out, 1, &run);
            written += taken;
        }
        out.into()
    }
}

fn deleted_in(deleted: &RoaringBitmap, start: u64, end: u64) -> u64 {
    match (u32::try_from(start), end.checked_sub(1).map(|last| u32::try_from(last).unwrap_or(u32::MAX))) {
        (Ok(start), Some(last)) if start <= last => deleted.range_cardinality(start..=last),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_in_any_form() {
        let lists: [Vec<u64>; 7] = [
            vec![],
            vec![7],
            (5..500).collect(),
            (0..200).chain(1000..1300).chain(300..400).collect(),
            vec![5, 60_000, 200_001],
            vec![u64::MAX, 3, 9],
            vec![9, 3, 4, 1 << 20],
        ];
        for ids in lists {
            let bytes = encode_row_ids(&ids);
            let read = RowIdSequence::parse("ids", &bytes).unwrap();
            assert_eq!(read.iter().collect::<Vec<_>>(), ids);
        }
        assert!(encode_row_ids(&(0..100_000).collect::<Vec<_>>()).len() < 16, "one run takes no room");
    }

    #[test]
    fn versions_go_with_their_rows() {
        let mut first = RowVersions::default();
        first.push(3, 1);
        first.push(4, 6);
        let stored = first.encode(0, 7);
        let mut all = RowVersions::default();
        all.append("v", &stored, 7, &[0, 3, 4].into()).unwrap();
        all.push(2, 1);
        assert_eq!(all.runs, [(2, 1), (2, 6), (2, 1)]);
        let mut part = RowVersions::default();
        part.append("v", &all.encode(1, 4), 4, &RoaringBitmap::new()).unwrap();
        assert_eq!(part.runs, [(1, 1), (2, 6), (1, 1)]);
        assert!(part.append("v", &stored, 6, &RoaringBitmap::new()).unwrap_err().message().contains("7 row versions for 6"));
    }
}
