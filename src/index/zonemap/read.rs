//! Reading what a ZONEMAP segment holds.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, UInt32Type, UInt64Type};
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::file::gather::take;
use crate::format::row::RowAddress;
use crate::format::schema::scalar_type;
use crate::format::treemap::decode_row_treemap;
use crate::index::btree::whole;
use crate::index::json::scalar;
use crate::index::order::extreme;
use crate::index::zonemap::build::{Zones, encode};
use crate::index::zonemap::details::params_of;
use crate::index::zonemap::{DEFAULT_ROWS_PER_ZONE, FILE, NULL_BITMAP, ROWS_PER_ZONE};
use crate::index::{BuildSpec, BuiltIndex, Params, SegmentFiles};

fn corrupt(segment: &SegmentFiles, what: impl std::fmt::Display) -> Error {
    Error::corrupt(&segment.label(FILE), what)
}

fn rows_per_zone(segment: &SegmentFiles, file: &LanceFile) -> Result<u64> {
    match file.metadata().get(ROWS_PER_ZONE) {
        None => Ok(DEFAULT_ROWS_PER_ZONE),
        Some(text) => text
            .parse()
            .ok()
            .filter(|rows| *rows > 0)
            .ok_or_else(|| corrupt(segment, format!("the metadata says rows_per_zone {text}, which is not a number of rows"))),
    }
}

pub(super) async fn recover_params(segment: &SegmentFiles) -> Result<Params> {
    let file = segment.open(FILE).await?;
    let mut params = segment.entry().details.as_ref().map(params_of).unwrap_or_default();
    // The file decides how it is read, so it also wins over the details.
    params.insert(ROWS_PER_ZONE.to_owned(), rows_per_zone(segment, &file)?.into());
    Ok(params)
}

/// The null rows; `None` for a file written before they were stored.
async fn null_rows(segment: &SegmentFiles, file: &LanceFile) -> Result<Option<RoaringTreemap>> {
    let Some(text) = file.metadata().get(NULL_BITMAP) else { return Ok(None) };
    let number: u32 = text
        .parse()
        .map_err(|_| corrupt(segment, format!("the metadata says null_bitmap {text}, which is not a buffer number")))?;
    let bytes = file.global_buffer(number).await?;
    decode_row_treemap(&segment.label(FILE), &bytes).map(Some)
}

pub(super) async fn stored_rows(segment: &SegmentFiles) -> Result<RoaringTreemap> {
    let file = segment.open(FILE).await?;
    // Without the stored rows a reader rechecks everything, so nothing is answered from the file alone.
    Ok(null_rows(segment, &file).await?.unwrap_or_default())
}

async fn column(segment: &SegmentFiles, file: &LanceFile, name: &str, data_type: &DataType) -> Result<ArrayRef> {
    let at = file.column_index(name).ok_or_else(|| corrupt(segment, format!("there is no column `{name}`")))?;
    whole(file, at, data_type, data_type != &DataType::UInt32 && data_type != &DataType::UInt64).await
}

async fn u32s(segment: &SegmentFiles, file: &LanceFile, name: &str) -> Result<Vec<u32>> {
    let array = column(segment, file, name, &DataType::UInt32).await?;
    let values = array.as_primitive_opt::<UInt32Type>().map(|array| array.values().to_vec());
    values.ok_or_else(|| corrupt(segment, format!("column `{name}` is not made of counts")))
}

async fn u64s(segment: &SegmentFiles, file: &LanceFile, name: &str) -> Result<Vec<u64>> {
    let array = column(segment, file, name, &DataType::UInt64).await?;
    let values = array.as_primitive_opt::<UInt64Type>().map(|array| array.values().to_vec());
    values.ok_or_else(|| corrupt(segment, format!("column `{name}` is not made of positions")))
}

async fn zones(segment: &SegmentFiles, file: &LanceFile) -> Result<Zones> {
    Ok(Zones {
        null_counts: u32s(segment, file, "null_count").await?,
        nan_counts: u32s(segment, file, "nan_count").await?,
        fragments: u64s(segment, file, "fragment_id").await?,
        starts: u64s(segment, file, "zone_start").await?,
        lengths: u64s(segment, file, "zone_length").await?,
    })
}

async fn bounds(segment: &SegmentFiles, file: &LanceFile, data_type: &DataType) -> Result<[ArrayRef; 2]> {
    let read = async |name: &str| {
        let at = file.column_index(name).ok_or_else(|| corrupt(segment, format!("there is no column `{name}`")))?;
        whole(file, at, data_type, true).await
    };
    Ok([read("min").await?, read("max").await?])
}

/// Drops the zones all of whose rows go, and the dropped rows from the null rows and counts of the others. Zones may stay
/// wider than their rows: they are only a superset and every row is rechecked, the null rows are not.
pub(super) async fn copy_without(
    segment: &SegmentFiles,
    data_type: &DataType,
    drop: &dyn Fn(u64) -> bool,
) -> Result<Option<BuiltIndex>> {
    let file = segment.open(FILE).await?;
    let Some(nulls) = null_rows(segment, &file).await? else { return Ok(None) };
    let logical_type = file
        .column_index("min")
        .and_then(|at| file.fields().get(at))
        .map(|field| field.logical_type.clone())
        .ok_or_else(|| corrupt(segment, "there is no column `min`"))?;
    if scalar_type(&logical_type)? != *data_type {
        return Err(corrupt(segment, format!("`min` is {logical_type}, the indexed column is {data_type}")));
    }
    let old = zones(segment, &file).await?;
    let kept_nulls: RoaringTreemap = nulls.iter().filter(|address| !drop(*address)).collect();
    let mut new = Zones::default();
    let mut kept: Vec<usize> = Vec::new();
    let counted = old.null_counts.iter().zip(&old.nan_counts);
    let placed = old.fragments.iter().zip(&old.starts).zip(&old.lengths);
    for (at, ((null_count, nan_count), ((fragment, start), length))) in (0..).zip(counted.zip(placed)) {
        let addresses = zone_addresses(*fragment, *start, *length)
            .ok_or_else(|| corrupt(segment, format!("zone {at} reaches past the rows a fragment can have")))?;
        if *length > 0 && addresses.clone().all(drop) {
            continue;
        }
        let count = |rows: &RoaringTreemap| -> u64 {
            let below = |end: u64| if end == 0 { 0 } else { rows.rank(end - 1) };
            below(addresses.end) - below(addresses.start)
        };
        let gone = count(&nulls) - count(&kept_nulls);
        kept.push(at);
        new.null_counts.push(u64::from(*null_count).saturating_sub(gone) as u32);
        new.nan_counts.push(*nan_count);
        new.fragments.push(*fragment);
        new.starts.push(*start);
        new.lengths.push(*length);
    }
    let [low, high] = bounds(segment, &file, data_type).await?;
    let pick = |array: ArrayRef| take(&array, kept.iter().copied());
    let spec = BuildSpec {
        data_type: data_type.clone(),
        logical_type,
        params: recover_params(segment).await?,
        index_version: segment.index_version(),
        rows_hint: None,
    };
    // The rows themselves are not in the file; spans of zones are all that can be counted.
    let rows = new.lengths.iter().sum();
    let mut built = encode(&spec, rows_per_zone(segment, &file)?, [pick(low)?, pick(high)?], new, &kept_nulls, rows)?;
    if let Some(details) = &segment.entry().details {
        built.details = details.clone();
    }
    Ok(Some(built))
}

fn zone_addresses(fragment: u64, start: u64, length: u64) -> Option<std::ops::Range<u64>> {
    let fragment = u32::try_from(fragment).ok()?;
    let end = start.checked_add(length).filter(|end| *end <= 1 << 32)?;
    let base = RowAddress::new(fragment, 0).0;
    // The very last address of the last fragment would need one more bit for its end.
    Some(base.checked_add(start)?..base.checked_add(end)?)
}

pub(super) async fn inspect(segment: &SegmentFiles) -> Result<Value> {
    let file = segment.open(FILE).await?;
    let zones = zones(segment, &file).await?;
    let nulls = null_rows(segment, &file).await?;
    let mut fragments = zones.fragments.clone();
    fragments.sort_unstable();
    fragments.dedup();
    let counted: u64 = zones.null_counts.iter().map(|count| u64::from(*count)).sum();
    let nans: u64 = zones.nan_counts.iter().map(|count| u64::from(*count)).sum();
    let mut problems = Vec::new();
    if let Some(nulls) = &nulls
        && nulls.len() != counted
    {
        problems.push(format!("{} null rows are stored, the zones count {counted}", nulls.len()));
    }
    let special = zones.null_counts.iter().zip(&zones.nan_counts).map(|(nulls, nans)| u64::from(*nulls) + u64::from(*nans));
    for (at, (length, special)) in zones.lengths.iter().zip(special).enumerate() {
        if *length == 0 || *length < special {
            problems.push(format!("zone {at} spans {length} rows and counts {special} nulls and NaNs"));
        }
    }
    let placed: Vec<_> = zones.fragments.iter().zip(&zones.starts).zip(&zones.lengths).collect();
    for pair in placed.windows(2) {
        if let [((fragment, start), length), ((next, next_start), _)] = pair
            && (fragment > next || (fragment == next && start.saturating_add(**length) > **next_start))
        {
            problems.push(format!(
                "the zone of fragment {next} from row {next_start} on comes after the one of fragment {fragment} that ends at row {}",
                start.saturating_add(**length)
            ));
        }
    }
    let data_type =
        file.column_index("min").and_then(|at| file.fields().get(at)).and_then(|field| scalar_type(&field.logical_type).ok());
    let (mut min, mut max) = (Value::Null, Value::Null);
    if let Some(data_type) = data_type {
        let [low, high] = bounds(segment, &file, &data_type).await?;
        (min, max) = (first_of(&low, false), first_of(&high, true));
    }
    Ok(json!({
        "method": "ZONEMAP",
        "index_version": segment.index_version(),
        "rows_per_zone": rows_per_zone(segment, &file)?,
        "zones": zones.starts.len(),
        "fragments": fragments,
        "nulls": counted,
        "nans": nans,
        "null_rows_stored": nulls.is_some(),
        "min": min,
        "max": max,
        "problems": problems,
    }))
}

/// The smallest (or largest) value of a column in index order.
fn first_of(array: &ArrayRef, descending: bool) -> Value {
    extreme(array, descending).map_or(Value::Null, |row| scalar(array, row))
}
