//! `Flat`: plain values, or all of them in one compressed buffer.

use std::ops::Range;

use arrow::buffer::{BooleanBuffer, Buffer};
use async_trait::async_trait;
use bytes::Bytes;

use super::{MAX_HELD, Node, Opening, Part, Read, next};
use crate::error::Result;
use crate::file::encodings::{Scheme, decompress};
use crate::file::fault::{Decoded, corrupt, unsupported};
use crate::file::messages::encoding20 as message;
use crate::file::page::PageSource;
use crate::file::values::{Column, Physical, aligned};

/// Values of so many bytes, or bits.
pub(super) struct Flat {
    buffer: usize,
    /// `None` = one bit.
    width: Option<usize>,
    rows: u64,
    scheme: Option<Scheme>,
    /// The unpacked buffer, once read.
    plain: Option<Bytes>,
}

impl Flat {
    pub(super) fn new(message: &message::Flat, opening: &Opening<'_>) -> Decoded<Flat> {
        let width = match opening.physical {
            Physical::Bits if message.bits_per_value == 1 => None,
            Physical::Fixed(width) if message.bits_per_value == 8 * width as u64 => Some(width),
            _ => return corrupt(format!("Flat {} in a column of other values", message.bits_per_value)),
        };
        let scheme = match message.compression.as_ref().map(|compression| compression.scheme.as_str()) {
            None | Some("" | "none") => None,
            Some("zstd") => Some(Scheme::Zstd),
            Some("lz4") => Some(Scheme::Lz4),
            Some(other) => return unsupported(format!("Flat compressed with {other}")),
        };
        let bytes = if scheme.is_some() { Some(0) } else { size(width, opening.rows) };
        let buffer = opening.buffer(message.buffer.as_ref(), bytes, "Flat")?;
        Ok(Flat { buffer, width, rows: opening.rows, scheme, plain: None })
    }

    fn range(&self, rows: &Range<u64>) -> Range<u64> {
        match self.width {
            None => rows.start / 8..rows.end.div_ceil(8),
            Some(width) => rows.start * width as u64..rows.end * width as u64,
        }
    }
}

fn size(width: Option<usize>, rows: u64) -> Option<u64> {
    match width {
        None => Some(rows.div_ceil(8)),
        Some(width) => rows.checked_mul(width as u64),
    }
}

/// `count` bits of a bitmap whose first byte holds bit `start`.
pub(super) fn bitmap(bytes: Bytes, start: u64, count: usize) -> Decoded<BooleanBuffer> {
    let shift = (start % 8) as usize;
    if bytes.len() < (shift + count).div_ceil(8) {
        return corrupt(format!("a bitmap of {} bytes for {count} rows", bytes.len()));
    }
    Ok(BooleanBuffer::new(Buffer::from(bytes), shift, count))
}

#[async_trait(?Send)]
impl Node for Flat {
    async fn prepare(&mut self, source: &PageSource) -> Result<()> {
        let Some(scheme) = self.scheme else { return Ok(()) };
        let packed = source.read_whole(self.buffer, MAX_HELD).await?;
        let plain = source.check(decompress(scheme, &packed))?;
        if size(self.width, self.rows).is_none_or(|size| size > plain.len() as u64) {
            return Err(source.corrupt(format!("{} unpacked bytes of {} values", plain.len(), self.rows)));
        }
        self.plain = Some(plain.into());
        Ok(())
    }

    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        if self.scheme.is_none() {
            wanted.push((self.buffer, self.range(rows)));
        }
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let bytes = match &self.plain {
            None => next(source, read)?,
            Some(plain) => {
                let range = self.range(rows);
                match (usize::try_from(range.start), usize::try_from(range.end)) {
                    (Ok(from), Ok(to)) if from <= to && to <= plain.len() => plain.slice(from..to),
                    _ => return Err(source.corrupt("values past the end of an unpacked buffer")),
                }
            }
        };
        let column = match self.width {
            None => Column::Bits(source.check(bitmap(bytes, rows.start, (rows.end - rows.start) as usize))?),
            Some(width) => Column::Fixed(aligned(bytes, width)),
        };
        Ok(Part { column: Some(column), nulls: None })
    }

    fn row_bytes(&self) -> u64 {
        self.width.unwrap_or(0) as u64
    }
}
