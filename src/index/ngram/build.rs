//! Building: every row into the lists of its trigrams.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;

use crate::error::{Error, ErrorCode, Result};
use crate::index::keyed::KeyWriter;
use crate::index::ngram::trigram::{Folder, LAST, NULL};
use crate::index::ngram::{NAMES, Ngram, file};
use crate::index::params::collected;
use crate::index::postings::{Layout, Postings};
use crate::index::sort::row_id;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, SegmentBuilder};
use crate::table::scan::ColumnBatch;

/// One past the last code.
const END: u32 = LAST + 1;

pub(super) struct Builder {
    spec: BuildSpec,
    folder: Folder,
    postings: Postings,
    writer: KeyWriter,
    /// Codes of this pass over the column; those below are written.
    window: Range<u32>,
    nulls: u64,
    rows: u64,
    /// Rows of all codes, counted in the first pass.
    seen: u64,
}

impl Builder {
    pub(super) fn new(spec: BuildSpec) -> Result<Builder> {
        if !Ngram.accepts(&spec.data_type) {
            let text = format!("NGRAM does not index columns of type {}", spec.data_type);
            return Err(Error::new(ErrorCode::UnsupportedType, text));
        }
        Ok(Builder {
            spec,
            folder: Folder::new(),
            postings: Postings::default(),
            writer: KeyWriter::new(NAMES, &DataType::UInt32, "uint32"),
            window: NULL..END,
            nulls: 0,
            rows: 0,
            seen: 0,
        })
    }

    /// Writes the codes of the window.
    fn write(&mut self) -> Result<()> {
        if self.window.start == NULL {
            self.nulls = self.postings.count(NULL);
        }
        let Builder { postings, writer, .. } = self;
        for code in self.window.clone().filter(|code| postings.count(*code) > 0).collect::<Vec<u32>>() {
            writer.push(Some(&code.to_le_bytes()), &mut |out| postings.encode(code, Layout::Roaring64, out))?;
        }
        self.postings = Postings::default();
        Ok(())
    }
}

/// The text of a slot, whatever the offset width.
pub(super) fn text(values: &ArrayRef, slot: usize) -> Option<&str> {
    match values.data_type() {
        DataType::Utf8 => values.as_string_opt::<i32>().map(|texts| texts.value(slot)),
        _ => values.as_string_opt::<i64>().map(|texts| texts.value(slot)),
    }
}

impl SegmentBuilder for Builder {
    fn push(&mut self, batch: ColumnBatch) -> Result<()> {
        let ColumnBatch { values, rows, .. } = batch;
        if values.data_type() != &self.spec.data_type {
            let (wanted, given) = (&self.spec.data_type, values.data_type());
            return Err(Error::invalid(format!("an n-gram index over {wanted} was given values of type {given}")));
        }
        let first = self.window.start == NULL;
        for slot in 0..values.len() {
            let id = row_id(&rows, slot).ok_or_else(|| Error::internal("a batch has fewer row ids than values"))?;
            if values.is_null(slot) {
                if first {
                    self.postings.push(NULL, id)?;
                }
                continue;
            }
            let text = text(&values, slot).ok_or_else(|| Error::internal("an array of texts has no readable values"))?;
            let mut outcome = Ok(());
            self.folder.codes(text, |code| {
                self.seen += u64::from(first);
                if outcome.is_ok() && self.window.contains(&code) {
                    outcome = self.postings.push(code, id);
                }
            });
            outcome?;
        }
        if first {
            self.rows += values.len() as u64;
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        // In the file a token takes its code and a position; the offsets of a page beside them.
        self.writer.position() + self.postings.memory_bytes() + 16 * self.postings.len() as u64
    }

    fn narrow(&mut self) -> Result<bool> {
        let total = self.postings.ids();
        let mut rows = 0;
        let mut end = self.window.start;
        // At least one code stays.
        while end < self.window.end && (rows == 0 || rows + self.postings.count(end) <= total / 2) {
            rows += self.postings.count(end);
            end += 1;
        }
        if rows == total {
            return Ok(false);
        }
        self.window.end = end;
        self.postings.keep(self.window.clone().map(|code| (code, code)))?;
        Ok(true)
    }

    fn again(&mut self) -> Result<bool> {
        if self.window.end == END {
            return Ok(false);
        }
        self.write()?;
        self.window = self.window.end..END;
        Ok(true)
    }

    fn file_bytes(&self) -> u64 {
        2 * self.seen + 50 * u64::from(END)
    }

    fn finish(mut self: Box<Self>) -> Result<BuiltIndex> {
        self.write()?;
        let Builder { spec, writer, rows, nulls, .. } = *self;
        let stats = collected([("tokens".to_owned(), writer.count().into()), ("nulls".to_owned(), nulls.into())]);
        Ok(BuiltIndex {
            files: vec![file(writer)?],
            details: Ngram.details(&spec.params, &spec.data_type),
            index_version: spec.index_version,
            rows,
            stats,
        })
    }
}
