//! Reading what a ZONEMAP segment holds.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::Result;
use crate::file::gather::{concat, take};
use crate::format::schema::scalar_type;
use crate::index::json::scalar;
use crate::index::keep::Keep;
use crate::index::order::extreme;
use crate::index::parts::Parts;
use crate::index::zonemap::build::{Zones, encode};
use crate::index::zonemap::details::params_of;
use crate::index::zonemap::{DEFAULT_ROWS_PER_ZONE, FILE, ROWS_PER_ZONE, rows_per_zone as rows_per_zone_of};
use crate::index::zones::{ZoneFile, addresses, count_in};
use crate::index::{BuildSpec, BuiltIndex, Params, Placing, SegmentFiles, Source};

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

/// Zones and null rows that were kept of one or several files.
#[derive(Default)]
struct Kept {
    low: Vec<ArrayRef>,
    high: Vec<ArrayRef>,
    zones: Zones,
    nulls: RoaringTreemap,
    rows: u64,
}

impl Kept {
    /// Takes the zones of a file of which rows stay, and adjusts their counts of nulls. Zones may stay wider than their rows:
    /// they are only a superset and every row is rechecked, the null rows are not. False for a file without null rows.
    async fn add(&mut self, file: &ZoneFile<'_>, data_type: &DataType, rows: Keep<'_>) -> Result<bool> {
        let Some(nulls) = file.null_rows().await? else { return Ok(false) };
        let logical_type = bounds_type(file)?;
        if scalar_type(&logical_type)? != *data_type {
            return Err(file.corrupt(format!("`min` is {logical_type}, the indexed column is {data_type}")));
        }
        let old = zones(file).await?;
        let kept_nulls = rows.of(&nulls);
        let mut kept: Vec<usize> = Vec::new();
        let counted = old.null_counts.iter().zip(&old.nan_counts);
        for (at, ((null_count, nan_count), place)) in (0..).zip(counted.zip(old.places.iter())) {
            let (fragment, start, length) = place;
            let addresses = addresses(fragment, start, length)
                .ok_or_else(|| file.corrupt(format!("zone {at} reaches past the rows a fragment can have")))?;
            let Some(rows) = rows.in_zone(&addresses) else { continue };
            let gone = count_in(&nulls, &addresses).saturating_sub(count_in(&kept_nulls, &addresses));
            kept.push(at);
            self.rows += rows;
            self.zones.null_counts.push(u64::from(*null_count).saturating_sub(gone) as u32);
            self.zones.nan_counts.push(*nan_count);
            self.zones.places.push(place);
        }
        let [low, high] = bounds(file, data_type).await?;
        self.low.push(take(&low, kept.iter().copied())?);
        self.high.push(take(&high, kept.iter().copied())?);
        self.nulls |= kept_nulls;
        Ok(true)
    }

    fn write(self, spec: &BuildSpec, rows_per_zone: u64) -> Result<BuiltIndex> {
        let bounds = [concat(&self.low, &spec.data_type)?, concat(&self.high, &spec.data_type)?];
        encode(spec, rows_per_zone, bounds, self.zones, &self.nulls, self.rows)
    }
}

/// Drops the zones all of whose rows go, and the dropped rows from what is stored of nulls.
pub(super) async fn copy_placed(segment: &SegmentFiles, data_type: &DataType, place: Placing<'_>) -> Result<Option<BuiltIndex>> {
    let file = ZoneFile::open(segment, FILE).await?;
    let mut kept = Kept::default();
    if !kept.add(&file, data_type, Keep::At(place)).await? {
        return Ok(None);
    }
    let spec = BuildSpec {
        data_type: data_type.clone(),
        logical_type: bounds_type(&file)?,
        params: params(segment, &file)?,
        index_version: segment.index_version(),
        rows_hint: None,
    };
    let mut built = kept.write(&spec, rows_per_zone(&file)?)?;
    if let Some(details) = &segment.entry().details {
        built.details = details.clone();
    }
    Ok(Some(built))
}

/// The zones of several files one after the other, where all were cut alike.
pub(super) async fn merge(sources: &[Source<'_>], spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
    let wanted = rows_per_zone_of(&spec.params)?;
    let mut kept = Kept::default();
    for source in sources {
        let file = ZoneFile::open(source.files, FILE).await?;
        if rows_per_zone(&file)? != wanted || !kept.add(&file, &spec.data_type, Keep::Only(source.rows)).await? {
            return Ok(None);
        }
    }
    kept.write(spec, wanted).map(Some)
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

/// Zones in the order of the file.
pub(super) async fn parts(segment: &SegmentFiles, wanted: &Range<u64>) -> Result<Parts> {
    let file = ZoneFile::open(segment, FILE).await?;
    let mut parts = Parts::new("zones", file.file.rows(), wanted);
    let bound = scalar_type(&bounds_type(&file)?)?;
    let columns = [
        ("fragment_id", DataType::UInt64, false),
        ("zone_start", DataType::UInt64, false),
        ("zone_length", DataType::UInt64, false),
        ("min", bound.clone(), true),
        ("max", bound, true),
        ("null_count", DataType::UInt32, false),
        ("nan_count", DataType::UInt32, false),
    ];
    let mut rows = file.rows(&columns, &parts.inside(0, file.file.rows()))?;
    while let Some(arrays) = rows.next().await? {
        let [fragment, start, length, low, high, nulls, nans] = arrays.as_slice() else { break };
        for row in 0..fragment.len() {
            let more = parts.push(json!({
                "fragment": scalar(fragment, row),
                "start": scalar(start, row),
                "length": scalar(length, row),
                "min": scalar(low, row),
                "max": scalar(high, row),
                "nulls": scalar(nulls, row),
                "nans": scalar(nans, row),
            }));
            if !more {
                return Ok(parts);
            }
        }
    }
    Ok(parts)
}

/// The smallest (or largest) value of a column in index order.
fn first_of(array: &ArrayRef, descending: bool) -> Value {
    extreme(array, descending).map_or(Value::Null, |row| scalar(array, row))
}
