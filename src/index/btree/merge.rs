//! Several segments made one: their sorted rows in one order, page by page. No file is held whole.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::format::schema::scalar_type;
use crate::index::btree::read::{columns, ids_of, layout, unreadable};
use crate::index::btree::write::PageWriter;
use crate::index::btree::{PAGE_DATA, batch_size};
use crate::index::bytes::{ValueBytes, ValueColumn};
use crate::index::columns::{Pieces, pair};
use crate::index::order::{Comparison, comparison};
use crate::index::sort::{PAGE_BYTES, PAGE_ROWS};
use crate::index::{BuildSpec, BuiltIndex, Source};

/// The rows of a segment that are kept, in their order.
struct Run<'a> {
    source: &'a Source<'a>,
    values: Pieces,
    ids: Pieces,
    batch: Option<(ArrayRef, ValueBytes, UInt64Array)>,
    row: usize,
    /// Value of the last row of the batch before.
    before: Option<Option<Vec<u8>>>,
}

impl<'a> Run<'a> {
    /// `None` for the legacy layout.
    async fn open(source: &'a Source<'a>, data_type: &DataType) -> Result<Option<Run<'a>>> {
        let segment = source.files;
        if layout(segment).await?.parts {
            return Ok(None);
        }
        let file = segment.open(PAGE_DATA).await?;
        let (values, ids) = columns(segment, PAGE_DATA, &file)?;
        let logical_type = file.fields().get(values).map(|field| field.logical_type.clone()).unwrap_or_default();
        if scalar_type(&logical_type)? != *data_type {
            let what = format!("`values` is {logical_type}, the indexed column is {data_type}");
            return Err(Error::corrupt(&segment.label(PAGE_DATA), what));
        }
        Ok(Some(Run {
            source,
            values: Pieces::new(file.scan(values, data_type, true, 0..file.rows())),
            ids: Pieces::new(file.scan(ids, &DataType::UInt64, false, 0..file.rows())),
            batch: None,
            row: 0,
            before: None,
        }))
    }

    /// Value (`None`: null) and id of the row at hand.
    fn head(&self) -> Option<(Option<&[u8]>, u64)> {
        let (values, bytes, ids) = self.batch.as_ref()?;
        let id = ids.values().get(self.row)?;
        Some((values.is_valid(self.row).then(|| bytes.get(self.row)), *id))
    }

    /// Goes to the next row that is kept; false at the end.
    async fn advance(&mut self, compare: Comparison) -> Result<Step> {
        loop {
            let last = self.head().map(|(value, _)| value.map(<[u8]>::to_vec));
            self.row += 1;
            if self.batch.as_ref().is_none_or(|(values, _, _)| self.row >= values.len()) {
                self.before = last;
                let Some((values, ids)) = pair(&mut self.values, &mut self.ids).await? else { return Ok(Step::End) };
                let bytes = ValueBytes::new(&values).ok_or_else(unreadable)?;
                let ids = ids_of(self.source.files, PAGE_DATA, &ids)?;
                (self.batch, self.row) = (Some((values, bytes, ids)), 0);
            } else {
                self.before = last;
            }
            let Some((value, id)) = self.head() else { return Ok(Step::End) };
            if self.before.as_ref().is_some_and(|before| by_value(compare, before.as_deref(), value).is_gt()) {
                return Ok(Step::Descent);
            }
            if self.source.rows.contains(id) {
                return Ok(Step::Row);
            }
        }
    }
}

#[derive(PartialEq)]
enum Step {
    Row,
    End,
    /// A value smaller than the one before it: such rows cannot be merged.
    Descent,
}

fn by_value(compare: Comparison, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

pub(super) async fn merge(sources: &[Source<'_>], spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
    let Some(compare) = comparison(&spec.data_type) else { return Ok(None) };
    let mut runs = Vec::with_capacity(sources.len());
    for source in sources {
        match Run::open(source, &spec.data_type).await? {
            Some(run) => runs.push(run),
            None => return Ok(None),
        }
    }
    // Runs by the row at hand, the smallest at the end; rows of equal values by id, as a build would have them.
    let mut order: Vec<usize> = Vec::new();
    for at in 0..runs.len() {
        if !step(&mut runs, &mut order, at, compare).await? {
            return Ok(None);
        }
    }
    let mut writer = PageWriter::new(&spec.data_type, &spec.logical_type, batch_size(&spec.params)?, spec.index_version);
    let (mut values, mut ids) = (ValueColumn::new(&spec.data_type), Vec::<u64>::new());
    while let Some(at) = order.pop() {
        let Some((value, id)) = runs.get(at).and_then(Run::head) else { break };
        values.push(value);
        ids.push(id);
        if ids.len() >= PAGE_ROWS || values.byte_len() >= PAGE_BYTES {
            writer.push(&values.finish()?, UInt64Array::from(std::mem::take(&mut ids)))?;
        }
        if !step(&mut runs, &mut order, at, compare).await? {
            return Ok(None);
        }
    }
    writer.push(&values.finish()?, UInt64Array::from(ids))?;
    writer.finish().map(Some)
}

/// Takes a run to its next row and puts it into its place; false when its rows are not in order.
async fn step(runs: &mut [Run<'_>], order: &mut Vec<usize>, at: usize, compare: Comparison) -> Result<bool> {
    let Some(run) = runs.get_mut(at) else { return Ok(true) };
    match run.advance(compare).await? {
        Step::Descent => return Ok(false),
        Step::End => return Ok(true),
        Step::Row => {}
    }
    let place = {
        let head = |at: usize| runs.get(at).and_then(Run::head);
        let own = head(at);
        let later = |other: &usize| match (head(*other), own) {
            (Some((a, id)), Some((b, own))) => by_value(compare, a, b).then(id.cmp(&own)).is_gt(),
            _ => false,
        };
        // Mostly the same run goes on.
        if order.last().is_none_or(later) { order.len() } else { order.partition_point(later) }
    };
    order.insert(place, at);
    Ok(true)
}
