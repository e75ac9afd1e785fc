//! One member of packed struct rows of fixed width (file-format §6.1): rows lie back to back, members without padding.

use super::{ChunkReader, ItemReader, plain_bits, single};
use crate::file::fault::{Decoded, corrupt, unsupported};
use crate::file::messages::encoding21 as message;
use crate::file::values::{Physical, Values};

/// Where a member lies in a row, bytes.
pub(crate) struct PackedStruct {
    row: usize,
    start: usize,
    end: usize,
}

impl PackedStruct {
    pub(crate) fn new(message: &message::PackedStruct, physical: &Physical) -> Decoded<PackedStruct> {
        let Physical::Member(index, value) = physical else { return corrupt("PackedStruct in a column that is no struct") };
        PackedStruct::at(&message.bits_per_value, plain_bits(message.values.as_deref()), *index, value)
    }

    /// Member `index` of rows whose members have these widths; `row` is what the row says of its own width.
    pub(crate) fn at(bits: &[u64], row: Option<u64>, index: usize, value: &Physical) -> Decoded<PackedStruct> {
        if bits.iter().any(|bits| !bits.is_multiple_of(8)) {
            // Lance 14 writes bools here and loses them: their bits are in no byte of the row.
            return unsupported(format!("PackedStruct of members of {bits:?} bits"));
        }
        let sum = |bits: &[u64]| bits.iter().try_fold(0u64, |sum, bits| sum.checked_add(*bits));
        let (Some(before), Some(own)) = (bits.get(..index).and_then(sum), bits.get(index)) else {
            return corrupt(format!("member {index} of a packed struct of {}", bits.len()));
        };
        let total = sum(bits);
        if total.is_none() || row.is_some_and(|row| Some(row) != total) || value.plain_bits() != Some(*own) {
            return corrupt(format!("PackedStruct of members of {bits:?} bits in rows of {row:?}, for a column of other values"));
        }
        let bytes = |bits: u64| usize::try_from(bits / 8).unwrap_or(usize::MAX);
        let (start, row) = (bytes(before), bytes(total.unwrap_or(0)));
        Ok(PackedStruct { row, start, end: start.saturating_add(bytes(*own)) })
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row
    }

    /// Appends the member of each of `n` rows.
    pub(crate) fn rows(&self, rows: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        if Some(rows.len()) != n.checked_mul(self.row) {
            return corrupt(format!("{} bytes of {n} packed rows of {} bytes", rows.len(), self.row));
        }
        for row in rows.chunks_exact(self.row.max(1)) {
            out.push_plain(row.get(self.start..self.end).unwrap_or_default())?;
        }
        Ok(())
    }
}

impl ChunkReader for PackedStruct {
    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        self.rows(single(buffers)?, n, out)
    }
}

impl ItemReader for PackedStruct {
    fn read(&self, value: &[u8], out: &mut Values) -> Decoded<()> {
        self.rows(value, 1, out)
    }
}
