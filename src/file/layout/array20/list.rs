//! `List`: a column of end offsets; the items are the next column, whose pages are cut elsewhere.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field};
use async_trait::async_trait;
use prost::Message;

use super::binary::Ends;
use super::{Node, Opening, numbers};
use crate::error::Result;
use crate::file::fault::{Fault, corrupt};
use crate::file::gather::concat;
use crate::file::layout::PageDecoder;
use crate::file::messages::encoding20::{self as message, ArrayEncoding, ArrayKind};
use crate::file::nesting;
use crate::file::page::{PageSource, SLICE_BYTES, SLICE_ROWS};
use crate::file::values::{Physical, decoded_type};

/// Items of one slice at most.
const MAX_ITEMS: u64 = 1 << 28;

/// An opened page of list offsets.
pub(super) struct ListPage {
    source: PageSource,
    ends: Box<dyn Node>,
    adjustment: u64,
    items: u64,
    /// Items of all pages before this one.
    base: u64,
    /// As asked for: dictionary types are still there.
    item: DataType,
    nullable: bool,
    slice_rows: u64,
}

impl ListPage {
    pub(super) async fn open(source: PageSource, message: &message::List) -> Result<ListPage> {
        let (DataType::List(field) | DataType::LargeList(field)) = &source.asked else {
            return Err(source.corrupt("lists in a column of another type"));
        };
        let field: &Field = field;
        let (item, nullable) = (field.data_type().clone(), field.is_nullable());
        let opening = Opening { source: &source, rows: source.rows, physical: Physical::Fixed(8), depth: 0 };
        let mut ends = source.check(opening.inner(message.offsets.as_deref(), source.rows, Physical::Fixed(8)))?;
        ends.prepare(&source).await?;
        let (column, index) = source.place();
        let metadata = source.file().column(column)?;
        let mut base = 0u64;
        for page in metadata.pages.iter().take(index) {
            base = match source.encoding(page).map(|(_, bytes)| ArrayEncoding::decode(bytes).map(|e| e.kind))? {
                Ok(Some(ArrayKind::List(list))) => base.saturating_add(list.num_items),
                Ok(Some(ArrayKind::Nullable(_))) => base,
                _ => return Err(source.corrupt("an earlier page of its column that holds no lists")),
            };
        }
        let rows = source.file().column_rows(column + 1)?;
        let bytes: u64 = source.file().column(column + 1)?.pages.iter().flat_map(|page| &page.buffer_sizes).sum();
        let row_bytes = 8 + (bytes / rows.max(1)).max(1).saturating_mul(message.num_items / source.rows.max(1));
        Ok(ListPage {
            ends,
            adjustment: message.null_offset_adjustment,
            items: message.num_items,
            base,
            item,
            nullable,
            slice_rows: (SLICE_BYTES / row_bytes).clamp(1, SLICE_ROWS),
            source,
        })
    }
}

#[async_trait(?Send)]
impl PageDecoder for ListPage {
    fn source(&self) -> &PageSource {
        &self.source
    }

    fn slice_end(&self, start: u64) -> u64 {
        start.saturating_add(self.slice_rows)
    }

    async fn decode(&self, rows: Range<u64>) -> Result<ArrayRef> {
        let source = &self.source;
        let count = (rows.end - rows.start) as usize;
        let end_rows = rows.start.saturating_sub(1)..rows.end;
        let mut wanted = Vec::new();
        self.ends.plan(&end_rows, &mut wanted);
        let mut read = source.read(&wanted).await?.into_iter();
        let raw = numbers(&*self.ends, source, &end_rows, &mut read, "list ends").await?;
        let ends = source.check(Ends::parse(&raw, count, self.adjustment, rows.start > 0, |offset| offset as usize))?;
        if ends.range.end > self.items {
            return Err(source.corrupt(format!("lists of {} items in a page of {}", ends.range.end, self.items)));
        }
        let wanted = ends.range.end - ends.range.start;
        if wanted > MAX_ITEMS {
            return source.check(Err(Fault::TooLarge(format!("{wanted} list items in one slice"))));
        }
        let Some(base) = self.base.checked_add(ends.range.end).map(|_| self.base) else {
            return source.check(corrupt("more list items than can be counted"));
        };
        let mut parts: Vec<ArrayRef> = Vec::new();
        if wanted > 0 {
            let items = base + ends.range.start..base + ends.range.end;
            let mut scan = source.file().scan(source.place().0 + 1, &self.item, self.nullable, items);
            while let Some(array) = scan.next().await? {
                parts.push(array);
            }
        }
        let items = concat(&parts, &decoded_type(&self.item))?;
        if items.len() as u64 != wanted {
            return Err(source.corrupt(format!("{} list items were read where {wanted} belong", items.len())));
        }
        source.check(nesting::list(&source.data_type, ends.offsets, ends.nulls, &items))
    }
}
