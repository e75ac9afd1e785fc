//! BTREE: all values sorted, cut into pages of `batch_size` rows, with a lookup row per page (index-formats §5).

mod build;
mod check;
mod merge;
mod probe;
mod read;
mod window;
mod write;

use std::ops::Range;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use bytes::Bytes;
use roaring::RoaringTreemap;
use serde_json::Value;

use crate::error::Result;
use crate::format::index_metadata::IndexDetails;
use crate::format::row::RowDomain;
use crate::index::check::Check;
use crate::index::order::with_key;
use crate::index::params::{check_version, collected, merge_known, positive};
use crate::index::parts::Parts;
use crate::index::probe::{Matches, Op, Query};
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentBuilder, SegmentFiles, Source};

/// Build parameter: rows per page.
const ZONE_SIZE: &str = "zone_size";
/// Rows per page when nothing else is said.
const DEFAULT_BATCH_SIZE: u64 = 4096;
const PAGE_DATA: &str = "page_data.lance";
const PAGE_LOOKUP: &str = "page_lookup.lance";
/// Metadata key of the lookup file: rows per page.
const BATCH_SIZE: &str = "batch_size";
/// Metadata key of the lookup file.
const RANGE_PARTITIONED: &str = "range_partitioned";
const TYPE_URL: &str = "/lance.table.BTreeIndexDetails";

/// The BTREE method.
pub struct Btree;

#[async_trait(?Send)]
impl IndexMethod for Btree {
    fn name(&self) -> &'static str {
        "BTREE"
    }

    fn type_url(&self) -> &'static str {
        TYPE_URL
    }

    fn index_version(&self, stable_row_ids: bool) -> i32 {
        i32::from(stable_row_ids)
    }

    fn max_index_version(&self) -> i32 {
        1
    }

    fn row_domain(&self, index_version: i32, stable_row_ids: bool) -> RowDomain {
        if stable_row_ids && index_version < 1 { RowDomain::StableId } else { RowDomain::Address }
    }

    fn accepts(&self, data_type: &DataType) -> bool {
        match data_type {
            DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => true,
            // Values without bytes are not in any column file that this build reads.
            DataType::FixedSizeBinary(width) => *width > 0,
            other => with_key!(other, K => size_of::<K>() > 0, else false),
        }
    }

    fn default_params(&self) -> Params {
        collected([(ZONE_SIZE.to_owned(), DEFAULT_BATCH_SIZE.into())])
    }

    fn merge_params(&self, base: Params, given: &Params) -> Result<Params> {
        let merged = merge_known(self.name(), &[ZONE_SIZE], base, given)?;
        batch_size(&merged)?;
        Ok(merged)
    }

    async fn recover_params(&self, segment: &SegmentFiles) -> Result<Params> {
        read::recover_params(segment).await
    }

    fn details(&self, _params: &Params, _data_type: &DataType) -> IndexDetails {
        IndexDetails { type_url: TYPE_URL.to_owned(), value: Bytes::new() }
    }

    fn builder(&self, spec: BuildSpec) -> Result<Box<dyn SegmentBuilder>> {
        check_version(self, spec.index_version)?;
        Ok(Box::new(build::Builder::new(spec)?))
    }

    async fn stored_rows(&self, segment: &SegmentFiles) -> Result<RoaringTreemap> {
        read::stored_rows(segment).await
    }

    async fn copy_placed(&self, segment: &SegmentFiles, data_type: &DataType, place: Placing<'_>) -> Result<Option<BuiltIndex>> {
        read::copy_placed(segment, data_type, place).await
    }

    async fn merge(&self, sources: &[Source<'_>], spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
        merge::merge(sources, spec).await
    }

    #[cfg(feature = "full")]
    fn operators(&self) -> &'static [Op] {
        &[Op::Equal, Op::Less, Op::LessOrEqual, Op::Greater, Op::GreaterOrEqual, Op::IsNull, Op::Prefix]
    }

    #[cfg(feature = "full")]
    async fn probe(&self, segment: &SegmentFiles, data_type: &DataType, query: &Query) -> Result<Matches> {
        probe::probe(segment, data_type, query).await
    }

    #[cfg(feature = "full")]
    async fn check(&self, _segment: &SegmentFiles, data_type: &DataType) -> Result<Option<Check>> {
        Ok(Some(Check::Keys(Box::new(check::Entries(data_type.clone())))))
    }

    #[cfg(feature = "full")]
    async fn faults(&self, segment: &SegmentFiles, data_type: &DataType) -> Result<Vec<String>> {
        check::page_faults(segment, data_type).await
    }

    #[cfg(feature = "full")]
    async fn inspect(&self, segment: &SegmentFiles) -> Result<Value> {
        read::inspect(segment).await
    }

    #[cfg(feature = "full")]
    async fn parts(&self, segment: &SegmentFiles, wanted: Range<u64>) -> Result<Parts> {
        read::parts(segment, &wanted).await
    }
}

/// Rows per page; page numbers, row counts of a page and null counts are u32 in the format.
fn batch_size(params: &Params) -> Result<u64> {
    positive(params, ZONE_SIZE, DEFAULT_BATCH_SIZE, u64::from(u32::MAX))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
