//! Reading what a ZONEMAP segment holds.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::Result;
use crate::file::gather::take;
use crate::format::schema::scalar_type;
use crate::index::json::scalar;
use crate::index::order::extreme;
use crate::index::zonemap::build::{Zones, encode};
use crate::index::zonemap::details::params_of;
use crate::index::zonemap::{DEFAULT_ROWS_PER_ZONE, FILE, ROWS_PER_ZONE};
use crate::index::zones::{ZoneFile, addresses, count_in};
use crate::index::{BuildSpec, BuiltIndex, Params, SegmentFiles};

fn rows_per_zone(file: &ZoneFile<'_>) -> Result<u64> {
    match file.file.metadata().get(ROWS_PER_ZONE) {
        None => Ok(DEFAULT_ROWS_PER_ZONE),
        Some(text) => text
            .parse()
            .ok()
            .filter(|rows| *rows > 0)
            .ok_or_else(|| file.corrupt(format!("the metadata says rows_per_zone {text}, which is not a number of rows"))),
    }
}

pub(super) async fn recover_params(segment: &SegmentFiles) -> Result<Params> {
    params(segment, &ZoneFile::open(segment, FILE).await?)
}

fn params(segment: &SegmentFiles, file: &ZoneFile<'_>) -> Result<Params> {
    let mut params = segment.entry().details.as_ref().map(params_of).unwrap_or_default();
    // The file decides how it is read, so it also wins over the details.
    params.insert(ROWS_PER_ZONE.to_owned(), rows_per_zone(file)?.into());
    Ok(params)
}

pub(super) async fn stored_rows(segment: &SegmentFiles) -> Result<RoaringTreemap> {
    // Without the stored rows a reader rechecks everything, so nothing is answered from the file alone.
    Ok(ZoneFile::open(segment, FILE).await?.null_rows().await?.unwrap_or_default())
}

pub(super) async fn zones(file: &ZoneFile<'_>) -> Result<Zones> {
    Ok(Zones {
        null_counts: file.u32s("null_count").await?,
        nan_counts: file.u32s("nan_count").await?,
        places: file.places().await?,
    })
}

pub(super) async fn bounds(file: &ZoneFile<'_>, data_type: &DataType) -> Result<[ArrayRef; 2]> {
    Ok([file.column("min", data_type, true).await?, file.column("max", data_type, true).await?])
}

/// The logical type of the bounds.
fn bounds_type(file: &ZoneFile<'_>) -> Result<String> {
    let at = file.file.column_index("min").and_then(|at| file.file.fields().get(at));
    at.map(|field| field.logical_type.clone()).ok_or_else(|| file.corrupt("there is no column `min`"))
}

/// Drops the zones all of whose rows go, and the dropped rows from the null rows and counts of the others. Zones may stay
/// wider than their rows: they are only a superset and every row is rechecked, the null rows are not.
pub(super) async fn copy_without(
    segment: &SegmentFiles,
    data_type: &DataType,
    drop: &dyn Fn(u64) -> bool,
) -> Result<Option<BuiltIndex>> {
    let file = ZoneFile::open(segment, FILE).await?;
    let Some(nulls) = file.null_rows().await? else { return Ok(None) };
    let logical_type = bounds_type(&file)?;
    if scalar_type(&logical_type)? != *data_type {
        return Err(file.corrupt(format!("`min` is {logical_type}, the indexed column is {data_type}")));
    }
    let old = zones(&file).await?;
    let kept_nulls: RoaringTreemap = nulls.iter().filter(|address| !drop(*address)).collect();
    let mut new = Zones::default();
    let mut kept: Vec<usize> = Vec::new();
    let counted = old.null_counts.iter().zip(&old.nan_counts);
    for (at, ((null_count, nan_count), place)) in (0..).zip(counted.zip(old.places.iter())) {
        let (fragment, start, length) = place;
        let addresses = addresses(fragment, start, length)
            .ok_or_else(|| file.corrupt(format!("zone {at} reaches past the rows a fragment can have")))?;
        if length > 0 && addresses.clone().all(drop) {
            continue;
        }
        let gone = count_in(&nulls, &addresses).saturating_sub(count_in(&kept_nulls, &addresses));
        kept.push(at);
        new.null_counts.push(u64::from(*null_count).saturating_sub(gone) as u32);
        new.nan_counts.push(*nan_count);
        new.places.push(place);
    }
    let [low, high] = bounds(&file, data_type).await?;
    let pick = |array: ArrayRef| take(&array, kept.iter().copied());
    let spec = BuildSpec {
        data_type: data_type.clone(),
        logical_type,
        params: params(segment, &file)?,
        index_version: segment.index_version(),
        rows_hint: None,
    };
    // The rows themselves are not in the file; spans of zones are all that can be counted.
    let rows = new.places.lengths.iter().sum();
    let mut built = encode(&spec, rows_per_zone(&file)?, [pick(low)?, pick(high)?], new, &kept_nulls, rows)?;
    if let Some(details) = &segment.entry().details {
        built.details = details.clone();
    }
    Ok(Some(built))
}

pub(super) async fn inspect(segment: &SegmentFiles) -> Result<Value> {
    let file = ZoneFile::open(segment, FILE).await?;
    let zones = zones(&file).await?;
    let nulls = file.null_rows().await?;
    let counted: u64 = zones.null_counts.iter().map(|count| u64::from(*count)).sum();
    let nans: u64 = zones.nan_counts.iter().map(|count| u64::from(*count)).sum();
    let mut problems = Vec::new();
    if let Some(nulls) = &nulls
        && nulls.len() != counted
    {
        problems.push(format!("{} null rows are stored, the zones count {counted}", nulls.len()));
    }
    let special = zones.null_counts.iter().zip(&zones.nan_counts).map(|(nulls, nans)| u64::from(*nulls) + u64::from(*nans));
    for (at, (length, special)) in zones.places.lengths.iter().zip(special).enumerate() {
        if *length == 0 || *length < special {
            problems.push(format!("zone {at} spans {length} rows and counts {special} nulls and NaNs"));
        }
    }
    problems.extend(zones.places.problems());
    let data_type = bounds_type(&file).and_then(|logical_type| scalar_type(&logical_type)).ok();
    let (mut min, mut max) = (Value::Null, Value::Null);
    if let Some(data_type) = data_type {
        let [low, high] = bounds(&file, &data_type).await?;
        (min, max) = (first_of(&low, false), first_of(&high, true));
    }
    Ok(json!({
        "method": "ZONEMAP",
        "index_version": segment.index_version(),
        "rows_per_zone": rows_per_zone(&file)?,
        "zones": zones.places.len(),
        "fragments": zones.places.fragments(),
        "nulls": counted,
        "nans": nans,
        "null_rows_stored": nulls.is_some(),
        "min": min,
        "max": max,
        "problems": problems,
        "remarks": zones.places.remarks(),
    }))
}

/// The smallest (or largest) value of a column in index order.
fn first_of(array: &ArrayRef, descending: bool) -> Value {
    extreme(array, descending).map_or(Value::Null, |row| scalar(array, row))
}
