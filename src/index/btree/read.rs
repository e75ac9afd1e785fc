//! Reading what a BTREE segment holds: parameters, ids, the summary of its pages, and a copy with rows elsewhere.

use std::sync::Arc;

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, UInt32Type, UInt64Type};
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::file::gather::{concat, filter};
use crate::format::schema::scalar_type;
use crate::index::btree::write::PageWriter;
use crate::index::btree::{BATCH_SIZE, DEFAULT_BATCH_SIZE, PAGE_DATA, PAGE_LOOKUP, RANGE_PARTITIONED, ZONE_SIZE};
use crate::index::columns::{Pieces, Rows, pair, whole};
use crate::index::json::scalar;
use crate::index::order::descent;
use crate::index::params::collected;
use crate::index::parts::Parts;
use crate::index::sort::PAGE_ROWS;
use crate::index::{BuiltIndex, Params, Placing, SegmentFiles};
use crate::lists::sorted_by;

/// Files of a segment by what they are.
pub(super) struct Layout {
    /// One, or one per range in the legacy layout (index-formats §5.4).
    pub(super) data: Vec<String>,
    /// The lookup file; in the legacy layout possibly that of a single part.
    pub(super) lookup: Vec<String>,
    /// Is it the legacy layout?
    pub(super) parts: bool,
}

pub(super) async fn layout(segment: &SegmentFiles) -> Result<Layout> {
    let files = segment.files().await?;
    let names: Vec<String> = files.into_iter().map(|file| file.path).collect();
    let ending = |suffix: &str| -> Vec<String> {
        let found = names.iter().filter(|name| name.starts_with("part_") && name.ends_with(suffix)).cloned().collect();
        // Parts are numbered by a decimal u64; of equal digits text order is number order.
        sorted_by(found, |a: &String, b| (a.len(), a).cmp(&(b.len(), b)))
    };
    let parts = ending(PAGE_DATA);
    let has_lookup = names.iter().any(|name| name == PAGE_LOOKUP);
    if parts.is_empty() || names.iter().any(|name| name == PAGE_DATA) {
        return Ok(Layout { data: vec![PAGE_DATA.to_owned()], lookup: vec![PAGE_LOOKUP.to_owned()], parts: false });
    }
    let lookup = if has_lookup { vec![PAGE_LOOKUP.to_owned()] } else { ending(PAGE_LOOKUP) };
    Ok(Layout { data: parts, lookup, parts: true })
}

/// `batch_size` of a lookup file; 4096 when it is not there.
pub(super) fn batch_size(segment: &SegmentFiles, name: &str, lookup: &LanceFile) -> Result<u64> {
    match lookup.metadata().get(BATCH_SIZE) {
        None => Ok(DEFAULT_BATCH_SIZE),
        Some(text) => text.parse().ok().filter(|size| *size > 0).ok_or_else(|| {
            Error::corrupt(&segment.label(name), format!("the metadata says batch_size {text}, which is not a number of rows"))
        }),
    }
}

/// The lookup file, whole: one slot a page.
pub(super) struct PageBounds {
    /// Rows per page.
    pub(super) size: u64,
    pub(super) low: ArrayRef,
    pub(super) high: ArrayRef,
    /// Nulls of each page.
    pub(super) counts: UInt32Array,
}

pub(super) fn unreadable() -> Error {
    Error::internal("page bounds have no readable values")
}

pub(super) async fn page_bounds(segment: &SegmentFiles, name: &str, data_type: &DataType) -> Result<PageBounds> {
    let lookup = segment.open(name).await?;
    let size = batch_size(segment, name, &lookup)?;
    let (low, high) = (whole(&lookup, 0, data_type, true).await?, whole(&lookup, 1, data_type, true).await?);
    let counts = whole(&lookup, 2, &DataType::UInt32, false).await?;
    let counts = counts.as_primitive_opt::<UInt32Type>().cloned().ok_or_else(unreadable)?;
    Ok(PageBounds { size, low, high, counts })
}

pub(super) async fn recover_params(segment: &SegmentFiles) -> Result<Params> {
    let layout = layout(segment).await?;
    let Some(name) = layout.lookup.first() else { return Ok(Params::new()) };
    let size = batch_size(segment, name, &segment.open(name).await?)?;
    Ok(collected([(ZONE_SIZE.to_owned(), size.into())]))
}

/// The two columns of a data file, found by name and checked to be where Lance reads them.
pub(super) fn columns(segment: &SegmentFiles, name: &str, file: &LanceFile) -> Result<(usize, usize)> {
    match (file.column_index("values"), file.column_index("ids")) {
        (Some(0), Some(1)) => Ok((0, 1)),
        _ => Err(Error::corrupt(&segment.label(name), "the first two columns are not `values` and `ids`")),
    }
}

pub(super) async fn stored_rows(segment: &SegmentFiles) -> Result<RoaringTreemap> {
    let mut rows = RoaringTreemap::new();
    for name in layout(segment).await?.data {
        let file = segment.open(&name).await?;
        let (_, ids) = columns(segment, &name, &file)?;
        let mut scan = file.scan(ids, &DataType::UInt64, false, 0..file.rows());
        while let Some(array) = scan.next().await? {
            let mut batch = ids_of(segment, &name, &array)?.values().to_vec();
            batch.sort_unstable();
            rows.extend(batch);
        }
    }
    Ok(rows)
}

pub(super) fn ids_of(segment: &SegmentFiles, name: &str, array: &ArrayRef) -> Result<UInt64Array> {
    match array.as_primitive_opt::<UInt64Type>() {
        Some(ids) if ids.null_count() == 0 => Ok(ids.clone()),
        _ => Err(Error::corrupt(&segment.label(name), "the column `ids` is not made of row ids")),
    }
}

pub(super) async fn copy_placed(segment: &SegmentFiles, data_type: &DataType, place: Placing<'_>) -> Result<Option<BuiltIndex>> {
    if layout(segment).await?.parts {
        return Ok(None);
    }
    let lookup = segment.open(PAGE_LOOKUP).await?;
    let size = batch_size(segment, PAGE_LOOKUP, &lookup)?;
    let file = segment.open(PAGE_DATA).await?;
    let (values_at, ids_at) = columns(segment, PAGE_DATA, &file)?;
    let logical_type = file.fields().get(values_at).map(|field| field.logical_type.clone()).unwrap_or_default();
    if scalar_type(&logical_type)? != *data_type {
        return Err(Error::corrupt(
            &segment.label(PAGE_DATA),
            format!("`values` is {logical_type}, the indexed column is {data_type}"),
        ));
    }
    let mut values = Pieces::new(file.scan(values_at, data_type, true, 0..file.rows()));
    let mut ids = Pieces::new(file.scan(ids_at, &DataType::UInt64, false, 0..file.rows()));
    let mut writer = PageWriter::new(data_type, &logical_type, size, segment.index_version());
    let mut waiting: (Vec<ArrayRef>, Vec<ArrayRef>, usize) = Default::default();
    while let Some((value_part, id_part)) = pair(&mut values, &mut ids).await? {
        let part = ids_of(segment, PAGE_DATA, &id_part)?;
        let places: Vec<Option<u64>> = part.values().iter().map(|id| place(*id)).collect();
        let keep: Vec<bool> = places.iter().map(Option::is_some).collect();
        let ids: UInt64Array = places.into_iter().flatten().collect::<Vec<u64>>().into();
        waiting.0.push(filter(&value_part, &keep)?);
        waiting.2 += ids.len();
        waiting.1.push(Arc::new(ids));
        if waiting.2 >= PAGE_ROWS {
            flush(segment, &mut writer, std::mem::take(&mut waiting))?;
        }
    }
    flush(segment, &mut writer, waiting)?;
    let mut built = writer.finish()?;
    if let Some(details) = &segment.entry().details {
        built.details = details.clone();
    }
    Ok(Some(built))
}

fn flush(segment: &SegmentFiles, writer: &mut PageWriter, waiting: (Vec<ArrayRef>, Vec<ArrayRef>, usize)) -> Result<()> {
    let (values, ids, rows) = waiting;
    if rows == 0 {
        return Ok(());
    }
    let Some(data_type) = values.first().map(|part| part.data_type().clone()) else { return Ok(()) };
    let ids = ids_of(segment, PAGE_DATA, &concat(&ids, &DataType::UInt64)?)?;
    writer.push(&concat(&values, &data_type)?, ids)
}

pub(super) async fn inspect(segment: &SegmentFiles) -> Result<Value> {
    let layout = layout(segment).await?;
    let mut rows = 0u64;
    let mut data = Vec::new();
    for name in &layout.data {
        let file = segment.open(name).await?;
        columns(segment, name, &file)?;
        rows += file.rows();
        data.push(file);
    }
    let (mut pages, mut nulls, mut max) = (0u64, 0u64, Value::Null);
    let mut sizes = Vec::new();
    let mut problems: Vec<String> = Vec::new();
    let mut range_partitioned = layout.parts;
    for name in &layout.lookup {
        let lookup = segment.open(name).await?;
        range_partitioned |= lookup.metadata().get(RANGE_PARTITIONED).is_some_and(|text| text == "true");
        sizes.push(batch_size(segment, name, &lookup)?);
        pages += lookup.rows();
        let counts = whole(&lookup, 2, &DataType::UInt32, false).await?;
        let counts = counts
            .as_primitive_opt::<UInt32Type>()
            .ok_or_else(|| Error::corrupt(&segment.label(name), "`null_count` is not made of counts"))?;
        nulls += counts.values().iter().map(|count| u64::from(*count)).sum::<u64>();
        if !layout.parts {
            problems.extend(lookup_problem(&lookup).await?);
        }
        if let Some(data_type) = bounds_type(&lookup)
            && lookup.rows() > 0
        {
            let last = lookup.rows() - 1;
            if let Some(array) = lookup.scan(1, &data_type, true, last..lookup.rows()).next().await? {
                max = scalar(&array, 0);
            }
        }
    }
    let mut min = Value::Null;
    if let (Some(file), false) = (data.first(), layout.parts)
        && nulls < rows
        && let Some(data_type) = bounds_type(file)
        && let Some(array) = file.scan(0, &data_type, true, nulls..nulls + 1).next().await?
    {
        min = scalar(&array, 0);
    }
    if let ([size], false) = (sizes.as_slice(), layout.parts)
        && pages != rows.div_ceil(*size)
    {
        problems.push(format!("{pages} lookup rows for {rows} rows in pages of {size}"));
    }
    if nulls > rows {
        problems.push(format!("{nulls} nulls in {rows} rows"));
    }
    Ok(json!({
        "method": "BTREE",
        "index_version": segment.index_version(),
        "rows": rows,
        "pages": pages,
        "batch_size": sizes.first(),
        "nulls": nulls,
        "min": min,
        "max": max,
        "range_partitioned": range_partitioned,
        "data_files": layout.data,
        "problems": problems,
    }))
}

/// Pages in the order of the lookup rows.
pub(super) async fn parts(segment: &SegmentFiles, wanted: &Range<u64>) -> Result<Parts> {
    let layout = layout(segment).await?;
    // Of the older layout nothing says which page of which file a lookup row is for.
    let total = if layout.parts { None } else { Some(segment.open(PAGE_DATA).await?.rows()) };
    let mut lookups = Vec::with_capacity(layout.lookup.len());
    for name in &layout.lookup {
        lookups.push((name, segment.open(name).await?));
    }
    let mut parts = Parts::new("pages", lookups.iter().map(|(_, lookup)| lookup.rows()).sum(), wanted);
    let mut first = 0u64;
    for (name, lookup) in &lookups {
        let inside = parts.inside(first, lookup.rows());
        first += lookup.rows();
        let size = batch_size(segment, name, lookup)?;
        let logical_type = lookup.fields().first().map(|field| field.logical_type.clone()).unwrap_or_default();
        let bound = scalar_type(&logical_type)?;
        let columns = [(0, bound.clone(), true), (1, bound, true), (2, DataType::UInt32, false), (3, DataType::UInt32, false)];
        let mut page = inside.start;
        let mut rows = Rows::new(lookup, &columns, &inside);
        while let Some(columns) = rows.next().await? {
            let [low, high, nulls, numbers] = columns.as_slice() else { break };
            for row in 0..low.len() {
                let rows = total.map(|total| total.saturating_sub(page.saturating_mul(size)).min(size));
                page += 1;
                let (page, nulls) = (scalar(numbers, row), scalar(nulls, row));
                let (min, max) = (scalar(low, row), scalar(high, row));
                if !parts.push(json!({ "page": page, "rows": rows, "min": min, "max": max, "nulls": nulls })) {
                    return Ok(parts);
                }
            }
        }
    }
    Ok(parts)
}

/// What a reader that searches the lookup rows by halving would stumble over.
async fn lookup_problem(lookup: &LanceFile) -> Result<Option<String>> {
    let numbers = whole(lookup, 3, &DataType::UInt32, false).await?;
    if let Some(numbers) = numbers.as_primitive_opt::<UInt32Type>()
        && let Some((row, number)) = (0u32..).zip(numbers.values()).find(|(row, number)| row != *number)
    {
        return Ok(Some(format!("lookup row {row} is for page {number}")));
    }
    let Some(data_type) = bounds_type(lookup) else { return Ok(None) };
    let mins = whole(lookup, 0, &data_type, true).await?;
    Ok(descent(&mins).map(|row| format!("page {row} begins before page {}", row - 1)))
}

/// Type of the first column of a file; `None` for a type this build has no name for.
fn bounds_type(file: &LanceFile) -> Option<DataType> {
    file.fields().first().and_then(|field| scalar_type(&field.logical_type).ok())
}
