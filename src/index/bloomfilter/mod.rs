//! BLOOMFILTER: for every run of `number_of_items` live rows of a fragment a filter of its values (index-formats §8).

mod build;
mod check;
mod filter;
mod read;

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
use crate::index::params::{check_version, collected, fraction, merge_known, positive};
use crate::index::parts::Parts;
use crate::index::probe::{Matches, Op, Query};
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentBuilder, SegmentFiles, Source};

/// Build parameter: live rows per zone, for which each filter is sized.
const NUMBER_OF_ITEMS: &str = "number_of_items";
/// Build parameter: rate of false answers of a full zone.
const PROBABILITY: &str = "probability";
const DEFAULT_ITEMS: u64 = 8192;
const DEFAULT_PROBABILITY: f64 = 0.00057;
const FILE: &str = "bloomfilter.lance";
/// Metadata keys of the two parameters.
const META_ITEMS: &str = "bloomfilter_item";
const META_PROBABILITY: &str = "bloomfilter_probability";
const TYPE_URL: &str = "/lance.index.pb.BloomFilterIndexDetails";

/// The BLOOMFILTER method.
pub struct BloomFilter;

#[async_trait(?Send)]
impl IndexMethod for BloomFilter {
    fn name(&self) -> &'static str {
        "BLOOMFILTER"
    }

    fn type_url(&self) -> &'static str {
        TYPE_URL
    }

    fn row_domain(&self, _index_version: i32, _stable_row_ids: bool) -> RowDomain {
        RowDomain::Address
    }

    fn accepts(&self, data_type: &DataType) -> bool {
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => true,
            DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(_, _) => true,
            DataType::Float32 | DataType::Float64 => true,
            other => other.is_integer(),
        }
    }

    fn default_params(&self) -> Params {
        collected([(NUMBER_OF_ITEMS.to_owned(), DEFAULT_ITEMS.into()), (PROBABILITY.to_owned(), DEFAULT_PROBABILITY.into())])
    }

    fn merge_params(&self, base: Params, given: &Params) -> Result<Params> {
        let merged = merge_known(self.name(), &[NUMBER_OF_ITEMS, PROBABILITY], base, given)?;
        sizing(&merged)?;
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

    async fn copy_placed(&self, segment: &SegmentFiles, _data_type: &DataType, place: Placing<'_>) -> Result<Option<BuiltIndex>> {
        read::copy_placed(segment, place).await
    }

    async fn merge(&self, sources: &[Source<'_>], spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
        read::merge(sources, spec).await
    }

    #[cfg(feature = "full")]
    fn operators(&self) -> &'static [Op] {
        &[Op::Equal, Op::IsNull]
    }

    #[cfg(feature = "full")]
    async fn probe(&self, segment: &SegmentFiles, _data_type: &DataType, query: &Query) -> Result<Matches> {
        check::probe(segment, query).await
    }

    #[cfg(feature = "full")]
    async fn check(&self, segment: &SegmentFiles, _data_type: &DataType) -> Result<Option<Check>> {
        Ok(Some(Check::Zones(check::check(segment).await?)))
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

/// Live rows per zone and rate of false answers. Lance also takes a rate of 0, which makes every filter 128 MiB.
fn sizing(params: &Params) -> Result<(u64, f64)> {
    let items = positive(params, NUMBER_OF_ITEMS, DEFAULT_ITEMS, u64::from(u32::MAX))?;
    Ok((items, fraction(params, PROBABILITY, DEFAULT_PROBABILITY)?))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
