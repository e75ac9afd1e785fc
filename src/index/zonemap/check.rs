//! Bounds and counts held against rows.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::bytes::ValueBytes;
use crate::index::check::{Admits, ZoneCheck, ZoneRows};
use crate::index::order::{Comparison, comparison, is_nan};
use crate::index::zonemap::FILE;
use crate::index::zonemap::read::{bounds, zones};
use crate::index::zones::ZoneFile;

struct Bounds {
    data_type: DataType,
    compare: Comparison,
    low: (ArrayRef, ValueBytes),
    high: (ArrayRef, ValueBytes),
    null_counts: Vec<u32>,
    nan_counts: Vec<u32>,
}

pub(super) async fn check(segment: &SegmentFiles, data_type: &DataType) -> Result<Box<dyn ZoneCheck>> {
    let file = ZoneFile::open(segment, FILE).await?;
    let zones = zones(&file).await?;
    let unreadable = || Error::internal("zone bounds have no readable values");
    let [low, high] = bounds(&file, data_type).await?;
    let content = Bounds {
        data_type: data_type.clone(),
        compare: comparison(data_type).ok_or_else(unreadable)?,
        low: (low.clone(), ValueBytes::new(&low).ok_or_else(unreadable)?),
        high: (high.clone(), ValueBytes::new(&high).ok_or_else(unreadable)?),
        null_counts: zones.null_counts,
        nan_counts: zones.nan_counts,
    };
    Ok(Box::new(ZoneRows::new(&zones.places, file.null_rows().await?, content)))
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
