//! `Fsst`: strings of symbols (file-format §7.3), stored as binaries.

use std::ops::Range;

use async_trait::async_trait;

use super::{Node, Opening, Part, Read};
use crate::error::Result;
use crate::file::encodings::Symbols;
use crate::file::fault::{Decoded, corrupt};
use crate::file::messages::encoding20 as message;
use crate::file::page::PageSource;
use crate::file::values::{Column, Physical, Texts};

/// The codes and their table.
pub(super) struct Fsst {
    codes: Box<dyn Node>,
    symbols: Symbols,
}

impl Fsst {
    pub(super) fn new(message: &message::Fsst, opening: &Opening<'_>) -> Decoded<Fsst> {
        if !matches!(opening.physical, Physical::Variable(_)) {
            return corrupt("strings in a column of fixed width");
        }
        let codes = opening.inner(message.binary.as_deref(), opening.rows, opening.physical.clone())?;
        Ok(Fsst { codes, symbols: Symbols::parse(&message.symbol_table)? })
    }

    fn decode(&self, offsets: &[i32], codes: &[u8]) -> Decoded<Column> {
        let mut out = Texts::with_capacity(offsets.len());
        let (first, last) = (offsets.first().copied().unwrap_or(0) as usize, offsets.last().copied().unwrap_or(0) as usize);
        let Some(codes) = codes.get(first..last) else { return corrupt("FSST codes past their end") };
        let ends = offsets.iter().skip(1).map(|end| (*end as usize).wrapping_sub(first));
        self.symbols.decode(codes, ends, &mut out)?;
        Ok(Column::Variable(out.offsets, out.data.into()))
    }
}

#[async_trait(?Send)]
impl Node for Fsst {
    async fn prepare(&mut self, source: &PageSource) -> Result<()> {
        self.codes.prepare(source).await
    }

    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        self.codes.plan(rows, wanted);
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let Part { column, nulls } = self.codes.finish(source, rows, read).await?;
        let column = match column {
            Some(Column::Variable(offsets, codes)) => Some(source.check(self.decode(&offsets, &codes))?),
            None => None,
            _ => return source.check(corrupt("FSST codes that are no strings")),
        };
        Ok(Part { column, nulls })
    }

    fn row_bytes(&self) -> u64 {
        // A code stands for two to three bytes of usual text.
        self.codes.row_bytes().saturating_mul(3)
    }
}
