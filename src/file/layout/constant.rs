//! Constant pages (file-format §5.3): all null, or one value in every slot, with or without nulls.

use std::ops::Range;

use arrow::array::{ArrayRef, new_null_array};
use arrow::buffer::NullBuffer;
use async_trait::async_trait;
use bytes::Bytes;

use super::PageDecoder;
use crate::error::Result;
use crate::file::encodings::{MAX_BLOCK_VALUES, block_reader};
use crate::file::fault::{Decoded, Fault, corrupt, le, part};
use crate::file::levels::{Layers, raw_levels, read_levels};
use crate::file::messages::encoding21::{CompressiveEncoding, ConstantLayout};
use crate::file::nesting;
use crate::file::page::{PageSource, SLICE_BYTES, SLICE_ROWS};
use crate::file::values::{Physical, Values};

/// A value or a compressed level block is held whole; larger ones are refused, bytes.
const MAX_SIDE_BUFFER: u64 = 256 << 20;

/// Levels of pages of lists are held whole, decoded; more bytes are refused.
const MAX_LEVELS: u64 = 64 << 20;

enum Levels {
    /// None: every row has the value, or every row is null.
    None,
    /// Plain u16 in this buffer.
    Raw(usize),
    /// Decoded already.
    Whole(Vec<u16>),
    /// Repetition and definition levels, and the entries at which rows begin.
    Lists(Vec<u16>, Option<Vec<u16>>, Vec<usize>),
}

/// An opened constant page.
pub(crate) struct ConstantPage {
    source: PageSource,
    layers: Layers,
    /// `None` = all null.
    value: Option<Bytes>,
    levels: Levels,
    slice_rows: u64,
}

impl ConstantPage {
    pub(crate) async fn open(source: PageSource, layout: ConstantLayout) -> Result<ConstantPage> {
        let layers = source.check(Layers::parse(&layout.layers, source.lists.len()))?;
        let (value_buffer, rep, def) = match source.buffer_count() {
            0 => (None, None, None),
            1 => (Some(0), None, None),
            2 => (None, Some(0), Some(1)),
            3 => (Some(0), Some(1), Some(2)),
            other => return Err(source.corrupt(format!("a constant page with {other} buffers"))),
        };
        if let (0, Some(rep)) = (layers.lists, rep)
            && source.buffer_size(rep)? > 0
        {
            return Err(source.corrupt("repetition levels in a page without lists"));
        }
        let value = match (layout.inline_value.clone(), value_buffer) {
            (Some(inline), None) => Some(inline),
            (None, Some(buffer)) => {
                let stored = source.read_whole(buffer, MAX_SIDE_BUFFER).await?;
                Some(source.check(stored_value(&stored, &source.physical))?)
            }
            (None, None) => None,
            (Some(_), Some(_)) => return Err(source.corrupt("a constant page with two values")),
        };
        let levels = match def {
            _ if layers.lists > 0 => Self::lists(&source, &layers, &layout, rep, def).await?,
            None => Levels::None,
            Some(buffer) if layout.def_compression.is_none() => {
                // An empty buffer is an absent stream; otherwise two bytes per row.
                if source.buffer_size(buffer)? == 0 {
                    Levels::None
                } else {
                    source.expect_size(buffer, source.rows.checked_mul(2), "definition levels")?;
                    Levels::Raw(buffer)
                }
            }
            Some(buffer) => {
                let reader = source.check(block_reader(layout.def_compression.as_ref(), &Physical::Fixed(2)))?;
                let count = layout.num_def_values;
                if count != source.rows || count > MAX_BLOCK_VALUES as u64 {
                    return Err(source.corrupt(format!("{count} definition levels for {} rows", source.rows)));
                }
                let block = source.read_whole(buffer, MAX_SIDE_BUFFER).await?;
                let mut levels = Vec::new();
                source.check(read_levels(&*reader, &block, count as usize, &mut levels))?;
                Levels::Whole(levels)
            }
        };
        if value.is_some() && matches!(levels, Levels::None) && layers.levels > 0 && rep.is_none() {
            return Err(source.corrupt("nullable layers without definition levels"));
        }
        if value.is_none() && layers.levels == 0 {
            return Err(source.corrupt("an all-null page whose layers own no null"));
        }
        let width = value.as_ref().map_or(1, |value| value.len() as u64).max(1);
        let entries = match &levels {
            Levels::Lists(rep, ..) => rep.len() as u64,
            _ => source.rows,
        };
        let slice_rows = (4 * SLICE_BYTES / width).min(SLICE_ROWS).saturating_mul(source.rows) / entries.max(1);
        let slice_rows = slice_rows.max(1);
        Ok(ConstantPage { source, layers, value, levels, slice_rows })
    }

    /// Both level streams whole: where a row begins can only be found by looking.
    async fn lists(
        source: &PageSource,
        layers: &Layers,
        layout: &ConstantLayout,
        rep: Option<usize>,
        def: Option<usize>,
    ) -> Result<Levels> {
        let (Some(rep), Some(def)) = (rep, def) else { return Err(source.corrupt("a constant page of lists without levels")) };
        let rep = level_stream(source, rep, layout.rep_compression.as_ref(), layout.num_rep_values).await?;
        let def = if source.buffer_size(def)? == 0 {
            None
        } else {
            Some(level_stream(source, def, layout.def_compression.as_ref(), layout.num_def_values).await?)
        };
        let begins: Vec<usize> = rep.iter().enumerate().filter(|(_, rep)| **rep == layers.lists).map(|(at, _)| at).collect();
        if begins.len() as u64 != source.rows || def.as_ref().is_some_and(|def| def.len() != rep.len()) {
            let (rows, def) = (begins.len(), def.map(|def| def.len()));
            let what =
                format!("{} repetition levels of {rows} rows and {def:?} definition levels for {}", rep.len(), source.rows);
            return Err(source.corrupt(what));
        }
        if def.is_none() && layers.levels > 0 {
            return Err(source.corrupt("nullable layers without definition levels"));
        }
        Ok(Levels::Lists(rep, def, begins))
    }

    fn build(&self, rows: usize, levels: Option<&[u16]>) -> Decoded<ArrayRef> {
        let nulls: Option<NullBuffer> = match levels {
            Some(levels) => self.layers.validity(levels)?,
            None => None,
        };
        constant(&self.source, self.value.as_ref(), rows, nulls)
    }

    fn nested(&self, rep: &[u16], def: Option<&[u16]>) -> Decoded<ArrayRef> {
        let slots = def.map_or(rep.len(), |def| self.layers.slots(def));
        let leaf = self.build(slots, def)?;
        nesting::wrap(leaf, &self.source.lists, self.layers.lists(rep, def)?)
    }
}

async fn level_stream(
    source: &PageSource,
    buffer: usize,
    encoding: Option<&CompressiveEncoding>,
    count: u64,
) -> Result<Vec<u16>> {
    let block = source.read_whole(buffer, MAX_LEVELS).await?;
    let mut levels = Vec::new();
    source.check(match encoding {
        None => raw_levels(&block, block.len() / 2, &mut levels),
        Some(_) if count > MAX_BLOCK_VALUES as u64 => {
            Err(Fault::TooLarge(format!("{count} levels, the limit is {MAX_BLOCK_VALUES}")))
        }
        Some(_) => block_reader(encoding, &Physical::Fixed(2))
            .and_then(|reader| read_levels(&*reader, &block, count as usize, &mut levels)),
    })?;
    Ok(levels)
}

/// `rows` times the value, or nulls only without one.
pub(super) fn constant(source: &PageSource, value: Option<&Bytes>, rows: usize, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
    let ty = &source.leaf_type;
    let Some(value) = value else {
        // Without a value even a level of 0 has nothing to show.
        return match nulls {
            Some(nulls) if nulls.null_count() != rows => corrupt("a valid row in a page without a value"),
            _ => Ok(new_null_array(ty, rows)),
        };
    };
    let mut values = Values::new(&source.physical, rows)?;
    repeat(value, rows, nulls.as_ref(), &mut values)?;
    if values.len() != rows {
        return corrupt(format!("a constant of {} bytes in a column of other values", value.len()));
    }
    values.finish(ty, nulls)
}

fn repeat(value: &[u8], rows: usize, nulls: Option<&NullBuffer>, values: &mut Values) -> Decoded<()> {
    match values {
        Values::Bits(bits) => match value {
            [byte @ (0 | 1)] => bits.append_n(rows, *byte == 1),
            other => return corrupt(format!("a constant of {} bytes in a column of bool", other.len())),
        },
        Values::Fixed { width, data } => {
            if !value.len().is_multiple_of(*width) {
                return corrupt(format!("a constant of {} bytes in a column of {width}-byte values", value.len()));
            }
            data.repeat_slice_n_times(value, rows);
        }
        Values::Variable(texts) => {
            let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
            for row in 0..rows {
                if valid(row) { texts.push(value)? } else { texts.end_value()? }
            }
        }
        Values::List { items, .. } => repeat(value, rows, None, items)?,
    }
    Ok(())
}

/// The value out of a serialized array of one element: a count, lengths, buffers.
fn stored_value(stored: &Bytes, physical: &Physical) -> Decoded<Bytes> {
    let count = le(part(stored, 0, 4, "a stored value")?);
    let wanted = if matches!(physical, Physical::Variable(_)) { 2 } else { 1 };
    if count != wanted {
        return corrupt(format!("a stored value of {count} buffers where {wanted} belong"));
    }
    let mut at = 4 + 4 * wanted as usize;
    let mut value = Bytes::new();
    for index in 0..wanted as usize {
        let size = usize::try_from(le(part(stored, 4 + 4 * index, 4, "a stored value")?)).unwrap_or(usize::MAX);
        part(stored, at, size, "a stored value")?;
        let buffer = stored.slice(at..at + size);
        at += size;
        match physical {
            Physical::Variable(bits) if index == 0 => {
                if buffer.len() as u64 != 2 * *bits / 8 {
                    return corrupt(format!("{} bytes of offsets of a stored value", buffer.len()));
                }
                value = buffer;
            }
            Physical::Variable(_) => {
                let (from, to) = value.split_at(value.len() / 2);
                if le(from) != 0 || le(to) != buffer.len() as u64 {
                    return corrupt(format!("a stored value of {} bytes whose offsets disagree", buffer.len()));
                }
                value = buffer;
            }
            _ => value = buffer,
        }
    }
    Ok(value)
}

#[async_trait(?Send)]
impl PageDecoder for ConstantPage {
    fn source(&self) -> &PageSource {
        &self.source
    }

    fn slice_end(&self, start: u64) -> u64 {
        start.saturating_add(self.slice_rows)
    }

    async fn decode(&self, rows: Range<u64>) -> Result<ArrayRef> {
        let count = (rows.end - rows.start) as usize;
        let built = match &self.levels {
            Levels::None => self.build(count, None),
            Levels::Raw(buffer) => {
                let bytes = self.source.read_one(*buffer, 2 * rows.start..2 * rows.end).await?;
                let mut levels = Vec::new();
                raw_levels(&bytes, count, &mut levels).and_then(|()| self.build(count, Some(&levels)))
            }
            Levels::Lists(rep, def, begins) => {
                let at = |row: u64| usize::try_from(row).ok().and_then(|row| begins.get(row)).copied().unwrap_or(rep.len());
                let entries = at(rows.start)..at(rows.end);
                let def = def.as_ref().map(|def| def.get(entries.clone()).unwrap_or_default());
                self.nested(rep.get(entries).unwrap_or_default(), def)
            }
            Levels::Whole(levels) => match levels.get(rows.start as usize..rows.end as usize) {
                Some(levels) => self.build(count, Some(levels)),
                None => corrupt("rows past its definition levels"),
            },
        };
        self.source.check(built)
    }
}
