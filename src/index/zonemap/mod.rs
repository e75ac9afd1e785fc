//! ZONEMAP: bounds and counts for every run of `rows_per_zone` live rows of a fragment (index-formats §7).

mod build;
mod check;
mod details;
mod extrema;
mod read;

use std::ops::Range;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use roaring::RoaringTreemap;
use serde_json::Value;

use crate::error::Result;
use crate::format::index_metadata::IndexDetails;
use crate::format::row::RowDomain;
use crate::index::btree::Btree;
use crate::index::check::Check;
use crate::index::params::{check_version, collected, flag, merge_known, positive};
use crate::index::parts::Parts;
use crate::index::probe::{Matches, Op, Query};
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentBuilder, SegmentFiles, Source};

/// Build parameter and metadata key: live rows per zone.
const ROWS_PER_ZONE: &str = "rows_per_zone";
/// Build parameter: may Lance use summaries left in data files by their writer.
const USE_SEEDS: &str = "use_seeds";
const DEFAULT_ROWS_PER_ZONE: u64 = 8192;
const FILE: &str = "zonemap.lance";
const TYPE_URL: &str = "/lance.table.ZoneMapIndexDetails";

/// The ZONEMAP method.
pub struct ZoneMap;

#[async_trait(?Send)]
impl IndexMethod for ZoneMap {
    fn name(&self) -> &'static str {
        "ZONEMAP"
    }

    fn type_url(&self) -> &'static str {
        TYPE_URL
    }

    fn row_domain(&self, _index_version: i32, _stable_row_ids: bool) -> RowDomain {
        RowDomain::Address
    }

    fn accepts(&self, data_type: &DataType) -> bool {
        // Nested types would only carry null counts; they are left to Lance.
        Btree.accepts(data_type)
    }

    fn default_params(&self) -> Params {
        // `use_seeds` has no default of its own: unless it is said, the column type decides (details).
        collected([(ROWS_PER_ZONE.to_owned(), DEFAULT_ROWS_PER_ZONE.into())])
    }

    fn param_names(&self) -> Vec<String> {
        vec![ROWS_PER_ZONE.to_owned(), USE_SEEDS.to_owned()]
    }

    fn merge_params(&self, base: Params, given: &Params) -> Result<Params> {
        let merged = merge_known(self.name(), &[ROWS_PER_ZONE, USE_SEEDS], base, given)?;
        rows_per_zone(&merged)?;
        flag(&merged, USE_SEEDS)?;
        Ok(merged)
    }

    async fn recover_params(&self, segment: &SegmentFiles) -> Result<Params> {
        read::recover_params(segment).await
    }

    fn details(&self, params: &Params, data_type: &DataType) -> IndexDetails {
        details::encode(params, data_type)
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
        read::merge(sources, spec).await
    }

    #[cfg(feature = "full")]
    fn operators(&self) -> &'static [Op] {
        &[Op::Equal, Op::Less, Op::LessOrEqual, Op::Greater, Op::GreaterOrEqual, Op::IsNull, Op::Prefix]
    }

    #[cfg(feature = "full")]
    async fn probe(&self, segment: &SegmentFiles, data_type: &DataType, query: &Query) -> Result<Matches> {
        check::probe(segment, data_type, query).await
    }

    #[cfg(feature = "full")]
    async fn check(&self, segment: &SegmentFiles, data_type: &DataType) -> Result<Option<Check>> {
        Ok(Some(Check::Zones(check::check(segment, data_type).await?)))
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

/// Live rows per zone; null and NaN counts of a zone are u32 in the format.
fn rows_per_zone(params: &Params) -> Result<u64> {
    positive(params, ROWS_PER_ZONE, DEFAULT_ROWS_PER_ZONE, u64::from(u32::MAX))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
