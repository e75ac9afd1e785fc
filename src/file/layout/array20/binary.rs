//! `Binary`: end offsets and bytes. Nulls are folded into the offsets.

use std::ops::Range;

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use async_trait::async_trait;

use super::{Node, Opening, Part, Read, numbers, read_node};
use crate::error::Result;
use crate::file::fault::{Decoded, Fault, corrupt};
use crate::file::messages::encoding20 as message;
use crate::file::page::PageSource;
use crate::file::values::{Column, Physical};

/// Strings or binaries.
pub(super) struct Binary {
    ends: Box<dyn Node>,
    bytes: Box<dyn Node>,
    adjustment: u64,
    row_bytes: u64,
}

impl Binary {
    pub(super) fn new(message: &message::Binary, opening: &Opening<'_>) -> Decoded<Binary> {
        if !matches!(opening.physical, Physical::Variable(_)) {
            return corrupt("strings in a column of fixed width");
        }
        let ends = opening.inner(message.indices.as_deref(), opening.rows, Physical::Fixed(8))?;
        // How many bytes there are, only the ends tell: the bytes are read as they are named, and checked then.
        let bytes = opening.inner(message.bytes.as_deref(), 0, Physical::Fixed(1))?;
        let row_bytes = 8 + opening.source.bytes() / opening.source.rows.max(1);
        Ok(Binary { ends, bytes, adjustment: message.null_adjustment, row_bytes })
    }

    /// The rows whose ends are needed: also the one before the first.
    fn end_rows(rows: &Range<u64>) -> Range<u64> {
        rows.start.saturating_sub(1)..rows.end
    }
}

#[async_trait(?Send)]
impl Node for Binary {
    async fn prepare(&mut self, source: &PageSource) -> Result<()> {
        self.ends.prepare(source).await?;
        self.bytes.prepare(source).await
    }

    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        self.ends.plan(&Binary::end_rows(rows), wanted);
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let count = (rows.end - rows.start) as usize;
        let raw = numbers(&*self.ends, source, &Binary::end_rows(rows), read, "string ends").await?;
        // Offsets of more than 31 bits wrap and are refused in the next line.
        let ends = source.check(Ends::parse(&raw, count, self.adjustment, rows.start > 0, |offset| offset as i32))?;
        if ends.range.end - ends.range.start > i32::MAX as u64 {
            return source.check(Err(Fault::TooLarge("more than 2 GiB of strings in one slice".to_owned())));
        }
        let bytes = match read_node(&*self.bytes, source, &ends.range).await? {
            Part { column: Some(Column::Fixed(bytes)), nulls: None } => bytes,
            // Every string is empty.
            Part { column: None, .. } if ends.range.is_empty() => Buffer::from_vec(Vec::<u8>::new()),
            _ => return source.check(corrupt("the bytes of strings are null")),
        };
        Ok(Part { column: Some(Column::Variable(ends.offsets, bytes)), nulls: ends.nulls })
    }

    fn row_bytes(&self) -> u64 {
        self.row_bytes
    }
}

/// End offsets of consecutive strings or lists, resolved.
pub(super) struct Ends<O> {
    /// From 0, one more than rows.
    pub(super) offsets: Vec<O>,
    /// What these rows own of the page's bytes or items.
    pub(super) range: Range<u64>,
    pub(super) nulls: Option<NullBuffer>,
}

impl<O> Ends<O> {
    /// `raw` holds `count` ends, after the end of the row before them when there is one. `of` makes offsets of what lies
    /// between the first end and theirs.
    pub(super) fn parse(
        raw: &[u8],
        count: usize,
        adjustment: u64,
        has_previous: bool,
        of: impl Fn(u64) -> O,
    ) -> Decoded<Ends<O>> {
        let (ends, _) = raw.as_chunks::<8>();
        if ends.len() != count + usize::from(has_previous) {
            return corrupt(format!("{} ends for {count} rows", ends.len()));
        }
        // A null has the adjustment, which is larger than any end, added to its end. It may own bytes: filler of its writer.
        let resolve = |raw: &[u8; 8]| {
            let end = u64::from_le_bytes(*raw);
            if adjustment > 0 && end >= adjustment { (end - adjustment, true) } else { (end, false) }
        };
        let (previous, ends) =
            if has_previous { ends.split_first().map_or((None, ends), |(p, e)| (Some(p), e)) } else { (None, ends) };
        let start = previous.map_or(0, |raw| resolve(raw).0);
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(of(0));
        let (mut last, mut ascending, mut any_null) = (start, true, false);
        for raw in ends {
            let (end, null) = resolve(raw);
            ascending &= end >= last;
            any_null |= null;
            last = end;
            offsets.push(of(end.wrapping_sub(start)));
        }
        if !ascending {
            return corrupt("ends that do not ascend");
        }
        let nulls = any_null.then(|| NullBuffer::new(ends.iter().map(|raw| !resolve(raw).1).collect::<BooleanBuffer>()));
        Ok(Ends { offsets, range: start..last, nulls })
    }
}
