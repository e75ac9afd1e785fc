//! Reading what a BLOOMFILTER segment holds.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use arrow::datatypes::{DataType, UInt64Type};
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::Result;
use crate::index::bloomfilter::build::{Filters, encode};
use crate::index::bloomfilter::filter::{BLOCK, fill_rate, set_bits, size};
use crate::index::bloomfilter::{
    DEFAULT_ITEMS, DEFAULT_PROBABILITY, FILE, META_ITEMS, META_PROBABILITY, NUMBER_OF_ITEMS, PROBABILITY, sizing,
};
use crate::index::columns::position;
use crate::index::keep::Keep;
use crate::index::params::collected;
use crate::index::parts::Parts;
use crate::index::zones::{Places, ZoneFile, addresses, count_in};
use crate::index::{BuildSpec, BuiltIndex, Params, Placing, SegmentFiles, Source};

/// What the metadata says; like Lance's reader, values that are not there or no numbers count as the defaults.
fn params(file: &ZoneFile<'_>) -> Result<Params> {
    let text = |key: &str| file.file.metadata().get(key);
    let items = text(META_ITEMS).and_then(|text| text.parse().ok()).filter(|items| *items > 0).unwrap_or(DEFAULT_ITEMS);
    let probability = text(META_PROBABILITY).and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_PROBABILITY);
    if !(0.0..1.0).contains(&probability) {
        return Err(file.corrupt(format!("the metadata says bloomfilter_probability {probability}")));
    }
    Ok(collected([(NUMBER_OF_ITEMS.to_owned(), items.into()), (PROBABILITY.to_owned(), probability.into())]))
}

pub(super) async fn recover_params(segment: &SegmentFiles) -> Result<Params> {
    params(&ZoneFile::open(segment, FILE).await?)
}

pub(super) async fn stored_rows(segment: &SegmentFiles) -> Result<RoaringTreemap> {
    // Without the stored rows a reader rechecks everything, so nothing is answered from the file alone.
    Ok(ZoneFile::open(segment, FILE).await?.null_rows().await?.unwrap_or_default())
}

pub(super) async fn has_null(file: &ZoneFile<'_>) -> Result<Vec<bool>> {
    let flags = file.column("has_null", &DataType::Boolean, false).await?;
    let flags = flags.as_boolean_opt().ok_or_else(|| file.corrupt("column `has_null` is not made of flags"))?;
    Ok(flags.values().iter().collect())
}

/// Calls `each` with the filters of all zones, in order and with their numbers.
pub(super) async fn each_filter(
    segment: &SegmentFiles,
    file: &ZoneFile<'_>,
    each: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let at = position(segment, FILE, &file.file, "bloom_filter_data")?;
    let mut scan = file.file.scan(at, &DataType::Binary, false, 0..file.file.rows());
    let mut zone = 0;
    while let Some(array) = scan.next().await? {
        let filters: &BinaryArray =
            array.as_binary_opt().ok_or_else(|| file.corrupt("column `bloom_filter_data` is not made of filters"))?;
        for row in 0..filters.len() {
            each(zone, filters.value(row))?;
            zone += 1;
        }
    }
    Ok(())
}

/// Zones and null rows that were kept of one or several files.
struct Kept {
    places: Places,
    filters: Filters,
    nulls: RoaringTreemap,
    rows: u64,
}

impl Kept {
    fn new() -> Kept {
        Kept { places: Places::default(), filters: Filters::new(0), nulls: RoaringTreemap::new(), rows: 0 }
    }

    /// Takes the zones of a file of which rows stay. Filters may keep values of dropped rows: they are only a superset and
    /// every row is rechecked, the null rows are not. False for a file without null rows.
    async fn add(&mut self, segment: &SegmentFiles, file: &ZoneFile<'_>, rows: Keep<'_>) -> Result<bool> {
        let Some(nulls) = file.null_rows().await? else { return Ok(false) };
        let old = file.places().await?;
        let flags = has_null(file).await?;
        let kept_nulls = rows.of(&nulls);
        let mut kept: Vec<Option<bool>> = Vec::with_capacity(old.len());
        for (at, (place, flag)) in old.iter().zip(&flags).enumerate() {
            let (fragment, start, length) = place;
            let addresses = addresses(fragment, start, length)
                .ok_or_else(|| file.corrupt(format!("zone {at} reaches past the rows a fragment can have")))?;
            let inside = rows.in_zone(&addresses);
            kept.push(inside.map(|_| *flag && count_in(&kept_nulls, &addresses) > 0));
            if let Some(inside) = inside {
                self.rows += inside;
                self.places.push(place);
            }
        }
        let filters = &mut self.filters;
        each_filter(segment, file, &mut |zone, filter| match kept.get(zone) {
            Some(Some(has_null)) => filters.push(filter, *has_null),
            _ => Ok(()),
        })
        .await?;
        self.nulls |= kept_nulls;
        Ok(true)
    }

    fn write(self, params: &Params) -> Result<BuiltIndex> {
        encode(params, self.places, self.filters, &self.nulls, self.rows)
    }
}

/// Drops the zones all of whose rows go, and the dropped rows from the null rows.
pub(super) async fn copy_placed(segment: &SegmentFiles, place: Placing<'_>) -> Result<Option<BuiltIndex>> {
    let file = ZoneFile::open(segment, FILE).await?;
    let mut kept = Kept::new();
    if !kept.add(segment, &file, Keep::At(place)).await? {
        return Ok(None);
    }
    let mut built = kept.write(&params(&file)?)?;
    if let Some(details) = &segment.entry().details {
        built.details = details.clone();
    }
    Ok(Some(built))
}

/// The zones of several files one after the other, where all have filters of one kind.
pub(super) async fn merge(sources: &[Source<'_>], spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
    let mut kept = Kept::new();
    for source in sources {
        let file = ZoneFile::open(source.files, FILE).await?;
        let alike = sizing(&params(&file)?)? == sizing(&spec.params)?;
        if !alike || !kept.add(source.files, &file, Keep::Only(source.rows)).await? {
            return Ok(None);
        }
    }
    kept.write(&spec.params).map(Some)
}

pub(super) async fn inspect(segment: &SegmentFiles) -> Result<Value> {
    let file = ZoneFile::open(segment, FILE).await?;
    let params = params(&file)?;
    let places = file.places().await?;
    let nulls = file.null_rows().await?;
    let flags = has_null(&file).await?;
    let mut problems = places.problems();
    for (at, ((fragment, start, length), flag)) in places.iter().zip(&flags).enumerate() {
        if length == 0 {
            problems.push(format!("zone {at} spans no rows"));
        }
        if let (Some(nulls), Some(addresses)) = (&nulls, addresses(fragment, start, length))
            && (count_in(nulls, &addresses) > 0) != *flag
        {
            let (stored, said) = if *flag { ("no", "has some") } else { ("some", "has none") };
            problems.push(format!("{stored} null rows are stored for zone {at}, which says that it {said}"));
        }
    }
    if let Some(nulls) = &nulls {
        let placed = places.iter().filter_map(|(fragment, start, length)| addresses(fragment, start, length));
        let inside: u64 = placed.map(|addresses| count_in(nulls, &addresses)).sum();
        if inside < nulls.len() {
            problems.push(format!("{} null rows are stored that lie in no zone", nulls.len() - inside));
        }
    }
    let (mut sizes, mut rates, mut filters) = (Vec::<usize>::new(), 0.0, 0usize);
    each_filter(segment, &file, &mut |zone, filter| {
        filters += 1;
        rates += fill_rate(filter);
        if !sizes.contains(&filter.len()) {
            sizes.push(filter.len());
            if filter.is_empty() || !filter.len().is_multiple_of(BLOCK) {
                problems.push(format!("the filter of zone {zone} has {} bytes, which are no blocks", filter.len()));
            }
        }
        Ok(())
    })
    .await?;
    if filters != places.len() {
        problems.push(format!("{filters} filters for {} zones", places.len()));
    }
    let expected = match (params.get(NUMBER_OF_ITEMS).and_then(Value::as_u64), params.get(PROBABILITY).and_then(Value::as_f64)) {
        (Some(items), Some(probability)) => Some(size(items, probability)),
        _ => None,
    };
    if let Some(other) = sizes.iter().find(|size| Some(**size) != expected) {
        problems.push(format!("a filter has {other} bytes where its parameters give {}", expected.unwrap_or_default()));
    }
    Ok(json!({
        "method": "BLOOMFILTER",
        "index_version": segment.index_version(),
        "number_of_items": params.get(NUMBER_OF_ITEMS),
        "probability": params.get(PROBABILITY),
        "zones": places.len(),
        "fragments": places.fragments(),
        "filter_bytes": expected,
        "false_positive_estimate": if filters == 0 { None } else { Some(rates / filters as f64) },
        "nulls": nulls.as_ref().map(RoaringTreemap::len),
        "null_rows_stored": nulls.is_some(),
        "problems": problems,
        "remarks": places.remarks(),
    }))
}

/// Zones in the order of the file.
pub(super) async fn parts(segment: &SegmentFiles, wanted: &Range<u64>) -> Result<Parts> {
    let file = ZoneFile::open(segment, FILE).await?;
    let mut parts = Parts::new("zones", file.file.rows(), wanted);
    let nulls = file.null_rows().await?;
    let columns = [
        ("fragment_id", DataType::UInt64, false),
        ("zone_start", DataType::UInt64, false),
        ("zone_length", DataType::UInt64, false),
        ("bloom_filter_data", DataType::Binary, false),
    ];
    let mut rows = file.rows(&columns, &parts.inside(0, file.file.rows()))?;
    while let Some(arrays) = rows.next().await? {
        let [fragments, starts, lengths, filters] = arrays.as_slice() else { break };
        let number = |array: &ArrayRef, row: usize| array.as_primitive_opt::<UInt64Type>().map(|array| array.value(row));
        for row in 0..fragments.len() {
            let place = (number(fragments, row), number(starts, row), number(lengths, row));
            let filter = filters.as_binary_opt::<i32>().map(|filters| filters.value(row));
            let ((Some(fragment), Some(start), Some(length)), Some(filter)) = (place, filter) else {
                return Err(file.corrupt("a zone without a place or a filter"));
            };
            let inside = nulls.as_ref().zip(addresses(fragment, start, length)).map(|(nulls, rows)| count_in(nulls, &rows));
            let more = parts.push(json!({
                "fragment": fragment,
                "start": start,
                "length": length,
                "nulls": inside,
                "filter_bytes": filter.len(),
                "fill": set_bits(filter),
                "false_positive_estimate": fill_rate(filter),
            }));
            if !more {
                return Ok(parts);
            }
        }
    }
    Ok(parts)
}
