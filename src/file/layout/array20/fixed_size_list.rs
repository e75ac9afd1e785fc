//! `FixedSizeList`: the items of all rows as values of their own.

use std::ops::Range;

use arrow::buffer::{MutableBuffer, NullBuffer};
use async_trait::async_trait;

use super::{Node, Opening, Part, Read};
use crate::error::Result;
use crate::file::fault::{Decoded, Fault, corrupt, unsupported};
use crate::file::messages::encoding20 as message;
use crate::file::page::PageSource;
use crate::file::values::{Column, Physical};

/// So many items per row.
pub(super) struct FixedSizeList {
    dimension: u64,
    items: Box<dyn Node>,
    inner: Physical,
}

impl FixedSizeList {
    pub(super) fn new(message: &message::FixedSizeList, opening: &Opening<'_>) -> Decoded<FixedSizeList> {
        let inner = match &opening.physical {
            Physical::List(dimension, inner) if *dimension as u64 == u64::from(message.dimension) => &**inner,
            _ => return corrupt(format!("FixedSizeList of {} items in a column of other values", message.dimension)),
        };
        if message.has_validity {
            return unsupported("FixedSizeList with a validity of its own");
        }
        let dimension = u64::from(message.dimension);
        let Some(count) = opening.rows.checked_mul(dimension) else {
            return corrupt(format!("{} rows of {dimension} items", opening.rows));
        };
        let items = opening.inner(message.items.as_deref(), count, inner.clone())?;
        Ok(FixedSizeList { dimension, items, inner: inner.clone() })
    }

    fn items_of(&self, rows: &Range<u64>) -> Range<u64> {
        // Checked for all rows of the page when it was opened.
        rows.start * self.dimension..rows.end * self.dimension
    }
}

/// Values for slots that are all null.
fn filler(physical: &Physical, count: usize) -> Decoded<Column> {
    let too_large = || Fault::TooLarge(format!("{count} null items"));
    Ok(match physical {
        Physical::Bits => Column::Bits(arrow::buffer::BooleanBuffer::new_unset(count)),
        Physical::Fixed(width) => {
            Column::Fixed(MutableBuffer::from_len_zeroed(count.checked_mul(*width).ok_or_else(too_large)?).into())
        }
        Physical::List(dimension, inner) => {
            Column::List(Box::new(filler(inner, count.checked_mul(*dimension).ok_or_else(too_large)?)?), None)
        }
        _ => return corrupt("items of such values"),
    })
}

#[async_trait(?Send)]
impl Node for FixedSizeList {
    async fn prepare(&mut self, source: &PageSource) -> Result<()> {
        self.items.prepare(source).await
    }

    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        self.items.plan(&self.items_of(rows), wanted);
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let range = self.items_of(rows);
        let count = usize::try_from(range.end - range.start);
        let count = source.check(count.map_err(|_| Fault::TooLarge("items of one slice".to_owned())))?;
        let part = self.items.finish(source, &range, read).await?;
        let column = match part.column {
            Some(items) => Column::List(Box::new(items), part.nulls),
            None => Column::List(Box::new(source.check(filler(&self.inner, count))?), Some(NullBuffer::new_null(count))),
        };
        Ok(Part { column: Some(column), nulls: None })
    }

    fn row_bytes(&self) -> u64 {
        let bits = self.inner.plain_bits().unwrap_or(8).saturating_mul(self.dimension);
        (bits / 8).max(self.items.row_bytes().saturating_mul(self.dimension))
    }
}
