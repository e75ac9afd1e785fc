//! Full-zip pages (file-format §5.2): row after row, an optional control word before each value.

use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::buffer::{Buffer, MutableBuffer};
use async_trait::async_trait;
use bytes::Bytes;

use super::PageDecoder;
use crate::error::Result;
use crate::file::encodings::{ItemReader, item_reader, plain_bits};
use crate::file::fault::{Decoded, corrupt, le, part, unsupported};
use crate::file::levels::Layers;
use crate::file::messages::encoding21::{FullZipLayout, ZipWidth};
use crate::file::nesting;
use crate::file::page::{PageSource, SLICE_BYTES, SLICE_ROWS};
use crate::file::values::{Column, Physical, Values, aligned};

/// How one entry goes on after its control word.
enum Entries {
    /// So many plain bytes.
    Plain(usize),
    /// So many bytes that need a reader.
    Fixed(usize, Box<dyn ItemReader>),
    /// A length of so many bytes, then a value.
    Variable(usize, Box<dyn ItemReader>),
}

/// An opened full-zip page.
pub(crate) struct FullZipPage {
    source: PageSource,
    layers: Layers,
    /// Bytes of the control word.
    control: usize,
    bits_def: u32,
    entries: Entries,
    /// Bytes of a row offset in buffer 1; 0 = none: all entries are of one size.
    offset: u64,
    slice_rows: u64,
}

impl FullZipPage {
    pub(crate) fn open(source: PageSource, layout: &FullZipLayout) -> Result<FullZipPage> {
        let (layers, control) = source.check(Self::levels(&source, layout))?;
        let entries = source.check(Self::entries(&source, layout))?;
        let width = match &entries {
            Entries::Plain(width) | Entries::Fixed(width, _) if layers.lists == 0 => Some(*width),
            _ => None,
        };
        let (entry_bytes, offset) = match width {
            Some(width) => {
                let entry = (control as u64).saturating_add(width as u64);
                if source.rows.checked_mul(entry) != Some(source.buffer_size(0)?) {
                    return Err(source.corrupt(format!("{} rows of {entry} bytes in another number of bytes", source.rows)));
                }
                (entry, 0)
            }
            None => {
                let count = source.rows.saturating_add(1);
                let size = source.buffer_size(1)?;
                let offset = size / count;
                if !matches!(offset, 1 | 2 | 4 | 8) || size % count != 0 {
                    return Err(source.corrupt(format!("{size} bytes of row offsets for {} rows", source.rows)));
                }
                (source.buffer_size(0)? / source.rows.max(1), offset)
            }
        };
        let slice_rows = (SLICE_BYTES / entry_bytes.max(1)).clamp(1, SLICE_ROWS);
        Ok(FullZipPage { source, layers, control, bits_def: layout.bits_def, entries, offset, slice_rows })
    }

    fn entries(source: &PageSource, layout: &FullZipLayout) -> Decoded<Entries> {
        let encoding = layout.value_compression.as_ref();
        match layout.width {
            Some(ZipWidth::BitsPerValue(bits)) => {
                if matches!(source.physical, Physical::Null | Physical::Variable(_)) {
                    return corrupt("values of fixed width in a column of strings");
                }
                if bits == 0 || bits % 8 != 0 {
                    return unsupported(format!("full-zip values of {bits} bits"));
                }
                let (bits, width) = (u64::from(bits), bits as usize / 8);
                let plain = plain_bits(encoding);
                if plain.is_some_and(|plain| plain != bits) {
                    return corrupt(format!("{plain:?} bits of a value in entries of {bits} bits"));
                }
                if plain.is_some() && source.physical.plain_bits() == plain {
                    return Ok(Entries::Plain(width));
                }
                Ok(Entries::Fixed(width, item_reader(encoding, &source.physical)?))
            }
            Some(ZipWidth::BitsPerOffset(bits)) => {
                let length = match bits {
                    32 => 4,
                    64 => 8,
                    other => return unsupported(format!("full-zip with {other}-bit lengths")),
                };
                Ok(Entries::Variable(length, item_reader(encoding, &source.physical)?))
            }
            None => corrupt("a full-zip page without a width"),
        }
    }

    fn levels(source: &PageSource, layout: &FullZipLayout) -> Decoded<(Layers, usize)> {
        let layers = Layers::parse(&layout.layers, source.lists.len())?;
        let (items, visible) = (u64::from(layout.num_items), u64::from(layout.num_visible_items));
        let sound = if layers.lists == 0 { items == source.rows && visible == items } else { visible <= items };
        if !sound {
            return corrupt(format!("{items} entries and {visible} values for {} rows", source.rows));
        }
        let control = match layout.bits_rep.saturating_add(layout.bits_def) {
            0 => 0,
            1..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            other => return corrupt(format!("{other}-bit levels")),
        };
        if (layout.bits_def == 0) != (layers.levels == 0) || (layout.bits_rep == 0) != (layers.lists == 0) {
            return corrupt("control words that do not fit its layers");
        }
        if layout.bits_def > 16 || layout.bits_rep > 16 {
            return corrupt(format!("levels of {} and {} bits", layout.bits_rep, layout.bits_def));
        }
        Ok((layers, control))
    }

    /// Entries one after another, whatever they are.
    fn walk(&self, bytes: &[u8], rows: usize) -> Decoded<ArrayRef> {
        let mut values = Values::new(&self.source.physical, rows)?;
        let (mut rep, mut def) = (Vec::new(), Vec::new());
        let mut at = 0usize;
        while at < bytes.len() {
            let control = le(part(bytes, at, self.control, "a control word")?);
            at += self.control;
            let (r, d) = (control >> self.bits_def, control & ((1 << self.bits_def) - 1));
            rep.push(u16::try_from(r).unwrap_or(u16::MAX));
            def.push(u16::try_from(d).unwrap_or(u16::MAX));
            if d > u64::from(self.layers.visible) {
                continue;
            }
            let (size, reader) = match &self.entries {
                Entries::Plain(width) => {
                    values.push_plain(part(bytes, at, *width, "a value")?)?;
                    at += width;
                    continue;
                }
                Entries::Fixed(width, reader) => (*width, reader),
                Entries::Variable(..) if d > 0 => {
                    values.push_filler()?;
                    continue;
                }
                Entries::Variable(length, reader) => {
                    let size = le(part(bytes, at, *length, "a value's length")?);
                    at += length;
                    (usize::try_from(size).unwrap_or(usize::MAX), reader)
                }
            };
            reader.read(part(bytes, at, size, "a value")?, &mut values)?;
            at += size;
        }
        let nulls = if self.layers.levels > 0 { self.layers.validity(&def)? } else { None };
        let array = values.finish(&self.source.leaf_type, nulls)?;
        if self.layers.lists == 0 {
            return Ok(array);
        }
        let parts = self.layers.lists(&rep, Some(&def))?;
        nesting::wrap(array, &self.source.lists, parts)
    }

    fn fixed(&self, bytes: Bytes, width: usize, rows: usize) -> Decoded<ArrayRef> {
        let ty = &self.source.data_type;
        let mut levels = Vec::new();
        let plain: Buffer = if self.control == 0 {
            aligned(bytes, item_width(&self.source.physical))
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
        nested_column(&self.source.physical, plain).finish(ty, rows, nulls)
    }

    fn variable(&self, bytes: &[u8], offsets: &[u64], length: usize, reader: &dyn ItemReader) -> Decoded<ArrayRef> {
        let rows = offsets.len().saturating_sub(1);
        let base = offsets.first().copied().unwrap_or(0);
        let mut values = Values::new(&self.source.physical, rows)?;
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
                values.push_filler()?;
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
        let count = (rows.end - rows.start) as usize;
        if self.offset == 0 {
            let (Entries::Plain(width) | Entries::Fixed(width, _) | Entries::Variable(width, _)) = &self.entries;
            let entry = (self.control + width) as u64;
            let bytes = source.read_one(0, rows.start * entry..rows.end * entry).await?;
            return source.check(match &self.entries {
                Entries::Plain(width) => self.fixed(bytes, *width, count),
                _ => self.walk(&bytes, count),
            });
        }
        let table = source.read_one(1, rows.start * self.offset..(rows.end + 1) * self.offset).await?;
        let offsets: Vec<u64> = table.chunks_exact(self.offset as usize).map(le).collect();
        if !offsets.is_sorted() {
            return Err(source.corrupt("row offsets that do not ascend"));
        }
        let (Some(from), Some(to)) = (offsets.first(), offsets.last()) else {
            return Err(source.corrupt("it has no row offsets"));
        };
        let bytes = source.read_one(0, *from..*to).await?;
        source.check(match &self.entries {
            Entries::Variable(length, reader) if self.layers.lists == 0 => self.variable(&bytes, &offsets, *length, &**reader),
            _ => self.walk(&bytes, count),
        })
    }
}

/// Bytes of an innermost value.
fn item_width(physical: &Physical) -> usize {
    match physical {
        Physical::List(_, inner) => item_width(inner),
        Physical::Fixed(width) => *width,
        _ => 1,
    }
}

/// Plain bytes as values of that form.
fn nested_column(physical: &Physical, plain: Buffer) -> Column {
    match physical {
        Physical::List(_, inner) => Column::List(Box::new(nested_column(inner, plain)), None),
        _ => Column::Fixed(plain),
    }
}
