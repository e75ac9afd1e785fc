//! `ZoneMapIndexDetails` (index-formats §7.3).

use arrow::datatypes::DataType;
use prost::Message;

use crate::format::index_metadata::IndexDetails;
use crate::index::Params;
use crate::index::params::flag;
use crate::index::zonemap::{DEFAULT_ROWS_PER_ZONE, ROWS_PER_ZONE, TYPE_URL, USE_SEEDS, rows_per_zone};

/// The message; every field is written even when it has its default.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ZoneMapDetails {
    /// Live rows per zone.
    #[prost(uint64, optional, tag = "1")]
    pub rows_per_zone: Option<u64>,
    /// May summaries left in data files be used.
    #[prost(bool, optional, tag = "2")]
    pub use_seeds: Option<bool>,
    /// Does the file hold the null rows.
    #[prost(bool, optional, tag = "3")]
    pub has_null_bitmap: Option<bool>,
}

/// Lance's rule for a flag nobody set: only where scanning the column costs more than reading summaries.
fn seeds_by_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeBinary(width) => *width > 8,
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _) => true,
        other => other.is_nested(),
    }
}

pub(super) fn encode(params: &Params, data_type: &DataType) -> IndexDetails {
    let message = ZoneMapDetails {
        // Params that reach a builder have passed merge_params; the fallback is what a reader assumes.
        rows_per_zone: Some(rows_per_zone(params).unwrap_or(DEFAULT_ROWS_PER_ZONE)),
        use_seeds: Some(flag(params, USE_SEEDS).ok().flatten().unwrap_or_else(|| seeds_by_type(data_type))),
        has_null_bitmap: Some(true),
    };
    IndexDetails { type_url: TYPE_URL.to_owned(), value: message.encode_to_vec().into() }
}

/// Parameters the details of a segment carry.
pub(super) fn params_of(details: &IndexDetails) -> Params {
    let mut params = Params::new();
    if let Ok(message) = ZoneMapDetails::decode(details.value.as_ref()) {
        if let Some(rows) = message.rows_per_zone {
            params.insert(ROWS_PER_ZONE.to_owned(), rows.into());
        }
        if let Some(seeds) = message.use_seeds {
            params.insert(USE_SEEDS.to_owned(), seeds.into());
        }
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_details() {
        let details = encode(&Params::new(), &DataType::Int64);
        assert_eq!(details.value.as_ref(), [0x08, 0x80, 0x40, 0x10, 0x00, 0x18, 0x01]);
        assert_eq!(details.type_url, "/lance.table.ZoneMapIndexDetails");
    }

    #[test]
    fn seeds_follow_the_type_unless_said() {
        assert_eq!(encode(&Params::new(), &DataType::Utf8).value.as_ref(), [0x08, 0x80, 0x40, 0x10, 0x01, 0x18, 0x01]);
        assert!(!seeds_by_type(&DataType::FixedSizeBinary(8)));
        assert!(seeds_by_type(&DataType::FixedSizeBinary(9)));
        let said = Params::from_iter([(USE_SEEDS.to_owned(), false.into()), (ROWS_PER_ZONE.to_owned(), 3.into())]);
        let details = encode(&said, &DataType::Utf8);
        assert_eq!(details.value.as_ref(), [0x08, 0x03, 0x10, 0x00, 0x18, 0x01]);
        assert_eq!(params_of(&details), said);
        assert_eq!(params_of(&IndexDetails { type_url: TYPE_URL.to_owned(), value: vec![].into() }), Params::new());
    }
}
