//! Building: every text through the analyzer into the collector.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;

use super::analyze::Analyzer;
use super::collect::Collector;
use super::settings::Settings;
use super::write::Partitions;
use crate::error::{Error, ErrorCode, Result};
use crate::index::{BuildSpec, BuiltIndex, SegmentBuilder};
use crate::table::scan::ColumnBatch;

pub(super) struct Builder {
    settings: Settings,
    analyzer: Analyzer,
    collected: Collector,
    partitions: Partitions,
    data_type: DataType,
    rows: u64,
    /// Rows of finished partitions, and the least that are worth one.
    divided: u64,
    least: u64,
}

/// Most partitions, about, that a lack of memory may lead to.
const MAX_PARTITIONS: u64 = 64;

impl Builder {
    pub(super) fn new(spec: &BuildSpec) -> Result<Builder> {
        let settings = Settings::parse(&spec.params)?;
        let analyzer = Analyzer::new(&settings)?;
        let collected = Collector::new(settings.with_position);
        Ok(Builder {
            settings,
            analyzer,
            collected,
            partitions: Partitions::default(),
            data_type: spec.data_type.clone(),
            rows: 0,
            divided: 0,
            least: spec.rows_hint.unwrap_or(0) / MAX_PARTITIONS,
        })
    }

    fn add(&mut self, row: u64, text: &str) -> Result<()> {
        let mut outcome = Ok(());
        let collected = &mut self.collected;
        self.analyzer.each(text, &mut |token, position, number| {
            if outcome.is_ok() {
                outcome = collected.occurrence(token, position, number);
            }
        });
        outcome?;
        self.collected.end_document(row)
    }
}

impl SegmentBuilder for Builder {
    fn push(&mut self, batch: ColumnBatch) -> Result<()> {
        if *batch.values.data_type() != self.data_type {
            let text = format!("{} values for an index on {}", batch.values.data_type(), self.data_type);
            return Err(Error::invalid(text));
        }
        let mut joined = String::new();
        for row in 0..batch.values.len() {
            let id = batch.rows.get(row).ok_or_else(|| Error::internal("a batch with fewer ids than values"))?;
            if let Some(text) = text_at(&batch.values, row, &mut joined)? {
                self.add(id, text)?;
            }
        }
        self.rows += batch.values.len() as u64;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.partitions.bytes() + self.collected.memory_bytes() + self.analyzer.memory_bytes()
    }

    fn narrow(&mut self) -> Result<bool> {
        if self.rows - self.divided <= self.least {
            return Ok(false);
        }
        self.divided = self.rows;
        let collected = std::mem::replace(&mut self.collected, Collector::new(self.settings.with_position));
        self.analyzer.forget_notes();
        self.partitions.add(collected, &self.settings)?;
        Ok(true)
    }

    fn finish(mut self: Box<Self>) -> Result<BuiltIndex> {
        self.partitions.add(self.collected, &self.settings)?;
        self.partitions.finish(&self.settings, self.rows)
    }
}

/// The text of a row; that of a list is its elements joined by spaces, nulls left out. `None` where it is null.
pub(super) fn text_at<'a>(values: &'a ArrayRef, row: usize, joined: &'a mut String) -> Result<Option<&'a str>> {
    if values.is_null(row) {
        return Ok(None);
    }
    let items = match values.data_type() {
        DataType::Utf8 => return Ok(Some(values.as_string::<i32>().value(row))),
        DataType::LargeUtf8 => return Ok(Some(values.as_string::<i64>().value(row))),
        DataType::List(_) => values.as_list::<i32>().value(row),
        DataType::LargeList(_) => values.as_list::<i64>().value(row),
        other => {
            let text = format!("INVERTED does not index columns of type {other}");
            return Err(Error::new(ErrorCode::UnsupportedType, text));
        }
    };
    joined.clear();
    for item in 0..items.len() {
        if items.is_null(item) {
            continue;
        }
        if !joined.is_empty() {
            joined.push(' ');
        }
        match items.data_type() {
            DataType::LargeUtf8 => joined.push_str(items.as_string::<i64>().value(item)),
            _ => joined.push_str(items.as_string::<i32>().value(item)),
        }
    }
    Ok(Some(joined))
}
