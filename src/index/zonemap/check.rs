//! Bounds and counts held against rows, and against conditions.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::bytes::ValueBytes;
use crate::index::check::{Admits, ZoneCheck, ZoneRows};
use crate::index::order::{Comparison, comparison, is_nan};
use crate::index::probe::{Matches, Op, Query};
use crate::index::zonemap::FILE;
use crate::index::zonemap::read::{bounds, zones};
use crate::index::zones::{Places, ZoneFile};

struct Bounds {
    data_type: DataType,
    compare: Comparison,
    low: (ArrayRef, ValueBytes),
    high: (ArrayRef, ValueBytes),
    null_counts: Vec<u32>,
    nan_counts: Vec<u32>,
    lengths: Vec<u64>,
}

pub(super) async fn check(segment: &SegmentFiles, data_type: &DataType) -> Result<Box<dyn ZoneCheck>> {
    let file = ZoneFile::open(segment, FILE).await?;
    let (places, content) = read(&file, data_type).await?;
    Ok(Box::new(ZoneRows::new(&places, file.null_rows().await?, content)))
}

pub(super) async fn probe(segment: &SegmentFiles, data_type: &DataType, query: &Query) -> Result<Matches> {
    let file = ZoneFile::open(segment, FILE).await?;
    let nulls = if query.op == Op::IsNull { file.null_rows().await? } else { None };
    let (places, content) = read(&file, data_type).await?;
    let zones = places.iter().enumerate().filter(|(zone, _)| content.may_match(*zone, query)).map(|(_, place)| place).collect();
    Ok(Matches { exact: nulls.is_some(), rows: nulls, zones: Some(zones), pages: None })
}

async fn read(file: &ZoneFile<'_>, data_type: &DataType) -> Result<(Places, Bounds)> {
    let zones = zones(file).await?;
    let unreadable = || Error::internal("zone bounds have no readable values");
    let [low, high] = bounds(file, data_type).await?;
    let content = Bounds {
        data_type: data_type.clone(),
        compare: comparison(data_type).ok_or_else(unreadable)?,
        low: (low.clone(), ValueBytes::new(&low).ok_or_else(unreadable)?),
        high: (high.clone(), ValueBytes::new(&high).ok_or_else(unreadable)?),
        null_counts: zones.null_counts,
        nan_counts: zones.nan_counts,
        lengths: zones.places.lengths.clone(),
    };
    Ok((zones.places, content))
}

impl Bounds {
    /// What a reader keeps (index-formats §7.4).
    fn may_match(&self, zone: usize, query: &Query) -> bool {
        let some = |counts: &[u32]| counts.get(zone).is_some_and(|count| *count > 0);
        if query.op == Op::IsNull {
            return some(&self.null_counts);
        }
        if query.op == Op::Equal && is_nan(&self.data_type, &query.value) {
            return some(&self.nan_counts);
        }
        let (low, high) = (self.low.0.is_valid(zone), self.high.0.is_valid(zone));
        if !low && !high {
            return query.op != Op::Prefix && self.unknown(zone);
        }
        let high = high.then(|| self.high.1.get(zone)).filter(|high| !is_nan(&self.data_type, high));
        query.may_match_between(low.then(|| self.low.1.get(zone)), high)
    }

    /// Whether a zone without bounds has values: then it may hold any.
    fn unknown(&self, zone: usize) -> bool {
        let count = |counts: &[u32]| u64::from(counts.get(zone).copied().unwrap_or(0));
        self.lengths.get(zone).is_some_and(|length| *length > count(&self.null_counts) + count(&self.nan_counts))
    }
}

impl Admits for Bounds {
    fn refuses(&self, zone: usize, value: Option<&[u8]>) -> Option<&'static str> {
        let some = |counts: &[u32]| counts.get(zone).is_some_and(|count| *count > 0);
        let Some(value) = value else {
            return (!some(&self.null_counts)).then_some("its zone counts no nulls");
        };
        if is_nan(&self.data_type, value) {
            return (!some(&self.nan_counts)).then_some("its zone counts no NaN");
        }
        let bound = |(array, bytes): &'_ (ArrayRef, ValueBytes)| array.is_valid(zone).then(|| bytes.get(zone).to_vec());
        let (low, high) = (bound(&self.low), bound(&self.high));
        match (low, high) {
            // Unknown bounds let every value through, but for a search by prefix (index-formats §7.2).
            (None, None) if matches!(self.data_type, DataType::FixedSizeBinary(_)) => None,
            (None, None) => Some("its zone has no bounds"),
            (Some(low), _) if (self.compare)(&low, value).is_gt() => Some("it is below the lower bound of its zone"),
            (None, _) => Some("its zone has no lower bound"),
            (_, None) => Some("its zone has no upper bound"),
            // A NaN on top stands for no upper bound.
            (_, Some(high)) if is_nan(&self.data_type, &high) => None,
            (_, Some(high)) => (self.compare)(value, &high).is_gt().then_some("it is above the upper bound of its zone"),
        }
    }
}
