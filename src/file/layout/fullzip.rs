//! Full-zip pages (file-format §5.2): row after row, an optional control word before each value.

use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer};
use async_trait::async_trait;
use bytes::Bytes;

use super::PageDecoder;
use crate::error::Result;
use crate::file::encodings::{ItemReader, expect_flat, item_reader};
use crate::file::fault::{Decoded, Fault, corrupt, le, part, unsupported};
use crate::file::levels::Layers;
use crate::file::messages::encoding21::{FullZipLayout, ZipWidth};
use crate::file::page::{PageSource, SLICE_BYTES, SLICE_ROWS};
use crate::file::values::{Physical, Values, aligned, array};

/// How one entry goes on after its control word.
enum Entries {
    /// So many bytes.
    Fixed(usize),
    /// A length of so many bytes, then a value; row offsets of so many bytes in buffer 1.
    Variable { length: usize, offset: u64, reader: Box<dyn ItemReader> },
}

/// An opened full-zip page without lists.
pub(crate) struct FullZipPage {
    source: PageSource,
    layers: Layers,
    control: usize,
    entries: Entries,
    slice_rows: u64,
}

impl FullZipPage {
    pub(crate) fn open(source: PageSource, layout: &FullZipLayout) -> Result<FullZipPage> {
        let (layers, control) = source.check(Self::levels(&source, layout))?;
        let (entries, entry_bytes) = match layout.width {
            Some(ZipWidth::BitsPerValue(bits)) => {
                let width = match source.physical {
                    Physical::Bits => 1,
                    Physical::Fixed(width) => width,
                    _ => return Err(source.corrupt("values of fixed width in a column of strings")),
                };
                if u64::from(bits) != 8 * width as u64 {
                    return Err(source.corrupt(format!("{bits} bits per value in a column of {width}-byte values")));
                }
                source.check(expect_flat(layout.value_compression.as_ref(), u64::from(bits)))?;
                let entry = (control + width) as u64;
                if source.rows.checked_mul(entry) != Some(source.buffer_size(0)?) {
                    return Err(source.corrupt(format!("{} rows of {entry} bytes in another number of bytes", source.rows)));
                }
                (Entries::Fixed(width), entry)
            }
            Some(ZipWidth::BitsPerOffset(bits)) => {
                let length = match bits {
                    32 => 4,
                    64 => 8,
                    other => return Err(source.raise(Fault::Unsupported(format!("full-zip with {other}-bit lengths")))),
                };
                let reader = source.check(item_reader(layout.value_compression.as_ref(), source.physical))?;
                let count = source.rows.saturating_add(1);
                let size = source.buffer_size(1)?;
                let offset = size / count;
                if !matches!(offset, 1 | 2 | 4 | 8) || size % count != 0 {
                    return Err(source.corrupt(format!("{size} bytes of row offsets for {} rows", source.rows)));
                }
                let average = source.buffer_size(0)? / source.rows.max(1);
                (Entries::Variable { length, offset, reader }, average)
            }
            None => return Err(source.corrupt("a full-zip page without a width")),
        };
        let slice_rows = (SLICE_BYTES / entry_bytes.max(1)).clamp(1, SLICE_ROWS);
        Ok(FullZipPage { source, layers, control, entries, slice_rows })
    }

    fn levels(source: &PageSource, layout: &FullZipLayout) -> Decoded<(Layers, usize)> {
        let layers = Layers::parse(&layout.layers)?;
        if layout.bits_rep > 0 {
            return unsupported("repetition levels (values inside lists)");
        }
        if u64::from(layout.num_items) != source.rows || layout.num_visible_items != layout.num_items {
            return corrupt(format!(
                "{} entries and {} values for {} rows",
                layout.num_items, layout.num_visible_items, source.rows
            ));
        }
        let control = match layout.bits_def {
            0 => 0,
            1..=8 => 1,
            9..=16 => 2,
            other => return corrupt(format!("{other}-bit definition levels")),
        };
        if (control == 0) != (layers.levels == 0) {
            return corrupt("control words that do not fit its layers");
        }
        Ok((layers, control))
    }

    fn fixed(&self, bytes: Bytes, width: usize, rows: usize) -> Decoded<ArrayRef> {
        let ty = &self.source.data_type;
        let mut levels = Vec::new();
        let plain: Buffer = if self.control == 0 {
            aligned(bytes, width)
        } else {
            let mut data = MutableBuffer::with_capacity(rows.saturating_mul(width));
            levels.reserve(rows);
            for entry in bytes.chunks_exact(self.control + width) {
                let (control, value) = entry.split_at(self.control);
                levels.push(le(control) as u16);
                data.extend_from_slice(value);
            }
            data.into()
        };
        let nulls = if self.control > 0 { self.layers.validity(&levels)? } else { None };
        if self.source.physical == Physical::Bits {
            let bits: BooleanBuffer = plain.iter().map(|byte| *byte != 0).collect();
            return array(ty, rows, vec![bits.into_inner()], nulls);
        }
        array(ty, rows, vec![plain], nulls)
    }

    fn variable(&self, bytes: &[u8], offsets: &[u64], length: usize, reader: &dyn ItemReader) -> Decoded<ArrayRef> {
        let rows = offsets.len().saturating_sub(1);
        let base = offsets.first().copied().unwrap_or(0);
        let mut values = Values::new(self.source.physical, rows)?;
        let mut levels = Vec::new();
        for pair in offsets.windows(2) {
            let [from, to] = pair else { continue };
            let entry = part(bytes, (from - base) as usize, (to - from) as usize, "an entry")?;
            let level = le(part(entry, 0, self.control, "a control word")?) as u16;
            if self.control > 0 {
                levels.push(level);
            }
            if level > 0 {
                if entry.len() != self.control {
                    return corrupt(format!("a null entry of {} bytes", entry.len()));
                }
                values.texts()?.end_value()?;
                continue;
            }
            let size = le(part(entry, self.control, length, "a value's length")?);
            let value = entry.get(self.control + length..).unwrap_or_default();
            if value.len() as u64 != size {
                return corrupt(format!("a value of {size} bytes in an entry that has {}", value.len()));
            }
            reader.read(value, &mut values)?;
        }
        let nulls = if self.control > 0 { self.layers.validity(&levels)? } else { None };
        values.finish(&self.source.data_type, nulls)
    }
}

#[async_trait(?Send)]
impl PageDecoder for FullZipPage {
    fn source(&self) -> &PageSource {
        &self.source
    }

    fn slice_end(&self, start: u64) -> u64 {
        start.saturating_add(self.slice_rows)
    }

    async fn decode(&self, rows: Range<u64>) -> Result<ArrayRef> {
        let source = &self.source;
        match &self.entries {
            Entries::Fixed(width) => {
                let entry = (self.control + width) as u64;
                let bytes = source.read_one(0, rows.start * entry..rows.end * entry).await?;
                source.check(self.fixed(bytes, *width, (rows.end - rows.start) as usize))
            }
            Entries::Variable { length, offset, reader } => {
                let table = source.read_one(1, rows.start * offset..(rows.end + 1) * offset).await?;
                let offsets: Vec<u64> = table.chunks_exact(*offset as usize).map(le).collect();
                if !offsets.is_sorted() {
                    return Err(source.corrupt("row offsets that do not ascend"));
                }
                let (Some(from), Some(to)) = (offsets.first(), offsets.last()) else {
                    return Err(source.corrupt("it has no row offsets"));
                };
                let bytes = source.read_one(0, *from..*to).await?;
                source.check(self.variable(&bytes, &offsets, *length, &**reader))
            }
        }
    }
}
