//! Integers packed by old releases: one stream of bits (file-format §7.2), or groups of 1024 (§7.1).

use std::ops::Range;

use arrow::buffer::MutableBuffer;
use async_trait::async_trait;

use super::{Node, Opening, Part, Read, next};
use crate::error::Result;
use crate::file::encodings::unpack_group;
use crate::file::fault::{Decoded, corrupt, part};
use crate::file::messages::encoding20 as message;
use crate::file::page::PageSource;
use crate::file::values::{Column, Physical};

const GROUP: u64 = 1024;

/// Width of the type in bytes, and of a packed value in bits.
fn widths(compressed: u64, uncompressed: u64, physical: &Physical, of: &str) -> Decoded<(usize, u64)> {
    match physical {
        Physical::Fixed(width @ (1 | 2 | 4 | 8)) if uncompressed == 8 * *width as u64 && compressed <= uncompressed => {
            Ok((*width, compressed))
        }
        _ => corrupt(format!("{of} of {compressed} of {uncompressed} bits in a column of other values")),
    }
}

/// Value `i` is bits `i * bits ..` of one stream.
pub(super) struct Bitpacked {
    buffer: usize,
    width: usize,
    bits: u64,
    signed: bool,
}

impl Bitpacked {
    pub(super) fn new(message: &message::Bitpacked, opening: &Opening<'_>) -> Decoded<Bitpacked> {
        let (width, bits) = widths(message.compressed_bits, message.uncompressed_bits, &opening.physical, "Bitpacked")?;
        let size = opening.rows.checked_mul(bits).map(|bits| bits.div_ceil(8));
        let buffer = opening.buffer(message.buffer.as_ref(), size, "Bitpacked")?;
        Ok(Bitpacked { buffer, width, bits, signed: message.signed })
    }

    fn unpack(&self, bytes: &[u8], rows: &Range<u64>) -> Decoded<Column> {
        let base = rows.start * self.bits / 8 * 8;
        let mut out = MutableBuffer::with_capacity(self.width.saturating_mul((rows.end - rows.start) as usize));
        for row in rows.clone() {
            let at = row * self.bits - base;
            let (byte, shift) = ((at / 8) as usize, at % 8);
            let length = (shift + self.bits).div_ceil(8) as usize;
            let packed = part(bytes, byte, length, "a packed value")?;
            let wide = packed.iter().rev().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
            let mask = (1u128 << self.bits) - 1;
            let mut value = ((wide >> shift) & mask) as u64;
            if self.signed && self.bits > 0 && self.bits < 64 && value >> (self.bits - 1) == 1 {
                value |= u64::MAX << self.bits;
            }
            out.extend_from_slice(value.to_le_bytes().get(..self.width).unwrap_or_default());
        }
        Ok(Column::Fixed(out.into()))
    }
}

#[async_trait(?Send)]
impl Node for Bitpacked {
    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        wanted.push((self.buffer, rows.start * self.bits / 8..(rows.end * self.bits).div_ceil(8)));
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let bytes = next(source, read)?;
        Ok(Part { column: Some(source.check(self.unpack(&bytes, rows))?), nulls: None })
    }

    fn row_bytes(&self) -> u64 {
        self.width as u64
    }
}

/// Groups of 1024 values, the last one padded.
pub(super) struct BitpackedForNonNeg {
    buffer: usize,
    width: usize,
    bits: u64,
}

impl BitpackedForNonNeg {
    pub(super) fn new(message: &message::BitpackedForNonNeg, opening: &Opening<'_>) -> Decoded<BitpackedForNonNeg> {
        let of = "BitpackedForNonNeg";
        let (width, bits) = widths(message.compressed_bits, message.uncompressed_bits, &opening.physical, of)?;
        let size = opening.rows.div_ceil(GROUP).checked_mul(128 * bits);
        let buffer = opening.buffer(message.buffer.as_ref(), size, of)?;
        Ok(BitpackedForNonNeg { buffer, width, bits })
    }
}

#[async_trait(?Send)]
impl Node for BitpackedForNonNeg {
    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        let group = 128 * self.bits;
        wanted.push((self.buffer, rows.start / GROUP * group..rows.end.div_ceil(GROUP) * group));
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let bytes = next(source, read)?;
        let groups = (rows.end.div_ceil(GROUP) - rows.start / GROUP) as usize;
        let size = 128 * self.bits as usize;
        let mut out = MutableBuffer::new(0);
        for group in 0..groups {
            let packed = source.check(part(&bytes, group * size, size, "a packed group"))?;
            source.check(unpack_group(self.width, self.bits as usize, packed, &mut out))?;
        }
        let (skip, count) = ((rows.start % GROUP) as usize, (rows.end - rows.start) as usize);
        let values = arrow::buffer::Buffer::from(out).slice_with_length(skip * self.width, count * self.width);
        Ok(Part { column: Some(Column::Fixed(values)), nulls: None })
    }

    fn row_bytes(&self) -> u64 {
        self.width as u64
    }
}
