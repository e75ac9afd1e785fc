//! `Nullable`: a validity bitmap around values, or the word that nothing or everything is null.

use std::ops::Range;

use arrow::buffer::NullBuffer;
use async_trait::async_trait;

use super::{Node, Opening, Part, Read};
use crate::error::Result;
use crate::file::fault::{Decoded, corrupt, unsupported};
use crate::file::messages::encoding20::{self as message, Nullability};
use crate::file::page::PageSource;
use crate::file::values::{Column, Physical};

/// Validity, when some are null, and values, when not all are.
pub(super) struct Nullable {
    validity: Option<Box<dyn Node>>,
    values: Option<Box<dyn Node>>,
}

/// Whether the message says that everything is null.
pub(super) fn is_all_null(message: &message::Nullable) -> bool {
    matches!(message.nullability, Some(Nullability::AllNulls(_)))
}

impl Nullable {
    pub(super) fn new(message: &message::Nullable, opening: &Opening<'_>) -> Decoded<Nullable> {
        let values = |encoding| opening.inner(encoding, opening.rows, opening.physical.clone()).map(Some);
        match &message.nullability {
            Some(Nullability::AllNulls(_)) => Ok(Nullable { validity: None, values: None }),
            Some(Nullability::NoNulls(inner)) => Ok(Nullable { validity: None, values: values(inner.values.as_deref())? }),
            Some(Nullability::SomeNulls(inner)) => {
                let validity = opening.inner(inner.validity.as_deref(), opening.rows, Physical::Bits)?;
                Ok(Nullable { validity: Some(validity), values: values(inner.values.as_deref())? })
            }
            None => unsupported("Nullable of a kind that this build does not know"),
        }
    }
}

#[async_trait(?Send)]
impl Node for Nullable {
    async fn prepare(&mut self, source: &PageSource) -> Result<()> {
        for node in self.validity.iter_mut().chain(self.values.iter_mut()) {
            node.prepare(source).await?;
        }
        Ok(())
    }

    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        for node in self.validity.iter().chain(self.values.iter()) {
            node.plan(rows, wanted);
        }
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let valid = match &self.validity {
            None => None,
            Some(node) => match node.finish(source, rows, read).await? {
                Part { column: Some(Column::Bits(bits)), nulls: None } => Some(NullBuffer::new(bits)),
                _ => return source.check(corrupt("a validity that is no bitmap")),
            },
        };
        let Some(values) = &self.values else { return Ok(Part { column: None, nulls: None }) };
        let part = values.finish(source, rows, read).await?;
        Ok(Part { column: part.column, nulls: NullBuffer::union(valid.as_ref(), part.nulls.as_ref()) })
    }

    fn row_bytes(&self) -> u64 {
        self.values.as_ref().map_or(0, |values| values.row_bytes())
    }
}
