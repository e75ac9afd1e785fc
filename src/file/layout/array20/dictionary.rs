//! `Dictionary`, of two conventions: the writer's own of strings counts from 1 and means null by 0, that of Arrow dictionary
//! columns counts from 0 and may have a null item.

use std::ops::Range;

use arrow::buffer::{BooleanBuffer, NullBuffer};
use async_trait::async_trait;

use super::{MAX_HELD, Node, Opening, Part, Read, numbers, read_node};
use crate::error::Result;
use crate::file::encodings::MAX_BLOCK_VALUES;
use crate::file::fault::{Decoded, Fault, corrupt, le, unsupported};
use crate::file::messages::encoding20::{self as message, ArrayEncoding, ArrayKind, Nullability};
use crate::file::page::PageSource;
use crate::file::values::{Column, Physical, Texts, Values, gather_values};

/// Indices, and the items once they are read.
pub(super) struct Dictionary {
    indices: Box<dyn Node>,
    width: usize,
    /// Index of the first item: 0, or 1 when 0 means null.
    first: u64,
    items_node: Box<dyn Node>,
    count: u64,
    physical: Physical,
    items: Option<(Values, Option<NullBuffer>)>,
    row_bytes: u64,
}

/// Width of the indices in bytes.
fn index_width(encoding: Option<&ArrayEncoding>) -> Decoded<usize> {
    let flat = |bits: u64| match bits {
        8 | 16 | 32 | 64 => Ok(bits as usize / 8),
        other => unsupported(format!("dictionary indices of {other} bits")),
    };
    match encoding.and_then(|encoding| encoding.kind.as_ref()) {
        Some(ArrayKind::Flat(inner)) => flat(inner.bits_per_value),
        Some(ArrayKind::Bitpacked(inner)) => flat(inner.uncompressed_bits),
        Some(ArrayKind::BitpackedForNonNeg(inner)) => flat(inner.uncompressed_bits),
        Some(ArrayKind::Nullable(inner)) => match &inner.nullability {
            Some(Nullability::NoNulls(inner)) => index_width(inner.values.as_deref()),
            _ => unsupported("dictionary indices with nulls"),
        },
        _ => unsupported("dictionary indices of such an encoding"),
    }
}

impl Dictionary {
    pub(super) fn new(message: &message::Dictionary, opening: &Opening<'_>) -> Decoded<Dictionary> {
        let first = u64::from(!opening.source.dictionary);
        if first == 1 && !matches!(opening.physical, Physical::Variable(_)) {
            return unsupported("a dictionary of values of fixed width");
        }
        let width = index_width(message.indices.as_deref())?;
        let indices = opening.inner(message.indices.as_deref(), opening.rows, Physical::Fixed(width))?;
        let count = u64::from(message.num_dictionary_items);
        let items_node = opening.inner(message.items.as_deref(), count, opening.physical.clone())?;
        // Items are held whole; no item takes less than a bit of the page, unless all are null.
        let items_bytes = opening.source.bytes().saturating_sub(opening.rows.saturating_mul(width as u64));
        if items_bytes > MAX_HELD || count > MAX_BLOCK_VALUES as u64 {
            return Err(Fault::TooLarge(format!("a dictionary of {count} items in {items_bytes} bytes")));
        }
        let physical = opening.physical.clone();
        Ok(Dictionary { indices, width, first, items_node, count, physical, items: None, row_bytes: width as u64 })
    }

    fn pick(&self, raw: &[u8]) -> Decoded<Part> {
        let Some((items, item_nulls)) = &self.items else { return corrupt("a dictionary that was not read") };
        let count = items.len() as u64;
        // One filler item follows the others: rows that are null show it.
        let last = items.len().saturating_sub(1);
        let mut picked = Vec::with_capacity(raw.len() / self.width);
        for index in raw.chunks_exact(self.width).map(le) {
            match index.checked_sub(self.first) {
                None => picked.push(last as u32),
                Some(item) if item + 1 < count => picked.push(item as u32),
                Some(_) => return corrupt(format!("dictionary index {index} of {} items", last)),
            }
        }
        let null = |item: u32| item as usize == last || item_nulls.as_ref().is_some_and(|nulls| nulls.is_null(item as usize));
        let valid = BooleanBuffer::collect_bool(picked.len(), |row| picked.get(row).is_some_and(|item| !null(*item)));
        let mut out = Values::new(&self.physical, picked.len())?;
        gather_values(items, &picked, &mut out)?;
        Ok(Part { column: Some(out.build()), nulls: Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0) })
    }
}

/// Finished values as items to pick from, with a filler at the end.
fn items_of(column: Option<Column>, physical: &Physical, count: usize) -> Decoded<Values> {
    let mut values = match column {
        None => {
            let mut fillers = Values::new(physical, count)?;
            for _ in 0..count {
                fillers.push_filler()?;
            }
            fillers
        }
        Some(Column::Variable(offsets, data)) => Values::Variable(Texts { offsets, data: data.to_vec() }),
        Some(Column::Fixed(data)) => {
            let mut values = Values::new(physical, count)?;
            values.push_plain(&data)?;
            values
        }
        Some(_) => return unsupported("a dictionary of such values"),
    };
    if values.len() != count {
        return corrupt(format!("a dictionary of {count} items that holds {}", values.len()));
    }
    values.push_filler()?;
    Ok(values)
}

#[async_trait(?Send)]
impl Node for Dictionary {
    async fn prepare(&mut self, source: &PageSource) -> Result<()> {
        self.indices.prepare(source).await?;
        self.items_node.prepare(source).await?;
        let part = read_node(&*self.items_node, source, &(0..self.count)).await?;
        // Without values every item is null.
        let nulls = match part.column {
            None => Some(NullBuffer::new_null(self.count as usize)),
            Some(_) => part.nulls,
        };
        let items = source.check(items_of(part.column, &self.physical, self.count as usize))?;
        let longest = match &items {
            Values::Variable(texts) => texts.longest() as u64,
            _ => self.physical.plain_bits().unwrap_or(8) / 8,
        };
        self.row_bytes = (longest / 4).max(self.width as u64);
        self.items = Some((items, nulls));
        Ok(())
    }

    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        self.indices.plan(rows, wanted);
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let raw = numbers(&*self.indices, source, rows, read, "dictionary indices").await?;
        source.check(self.pick(&raw))
    }

    fn row_bytes(&self) -> u64 {
        self.row_bytes
    }
}
