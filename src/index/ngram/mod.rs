//! NGRAM: for every run of three letters or digits the rows whose text has it (index-formats §10).

mod build;
mod check;
mod read;
mod trigram;

use std::ops::Range;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use bytes::Bytes;
use roaring::RoaringTreemap;
use serde_json::Value;

use crate::error::Result;
use crate::file::EncodedFile;
use crate::format::index_metadata::IndexDetails;
use crate::index::check::Check;
use crate::index::keyed::{KeyWriter, Names};
use crate::index::params::{check_version, merge_known};
use crate::index::parts::Parts;
use crate::index::postings::Layout;
use crate::index::probe::{Matches, Op, Query};
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentBuilder, SegmentFiles, Source};

const FILE: &str = "ngram_postings.lance";
const NAMES: Names = Names { key: "tokens", bitmap: "posting_list", nullable: false, layout: Layout::Roaring64 };
const TYPE_URL: &str = "/lance.table.NGramIndexDetails";

/// The NGRAM method.
pub struct Ngram;

#[async_trait(?Send)]
impl IndexMethod for Ngram {
    fn name(&self) -> &'static str {
        "NGRAM"
    }

    fn type_url(&self) -> &'static str {
        TYPE_URL
    }

    fn accepts(&self, data_type: &DataType) -> bool {
        matches!(data_type, DataType::Utf8 | DataType::LargeUtf8)
    }

    fn default_params(&self) -> Params {
        Params::new()
    }

    fn merge_params(&self, base: Params, given: &Params) -> Result<Params> {
        merge_known(self.name(), &[], base, given)
    }

    async fn recover_params(&self, _segment: &SegmentFiles) -> Result<Params> {
        Ok(Params::new())
    }

    fn details(&self, _params: &Params, _data_type: &DataType) -> IndexDetails {
        IndexDetails { type_url: TYPE_URL.to_owned(), value: Bytes::new() }
    }

    fn builder(&self, spec: BuildSpec) -> Result<Box<dyn SegmentBuilder>> {
        check_version(self, spec.index_version)?;
        Ok(Box::new(build::Builder::new(spec)?))
    }

    async fn stored_rows(&self, _segment: &SegmentFiles) -> Result<RoaringTreemap> {
        // Every row a reader finds here is looked at again, so nothing is answered from the file alone.
        Ok(RoaringTreemap::new())
    }

    async fn copy_placed(&self, segment: &SegmentFiles, _data_type: &DataType, place: Placing<'_>) -> Result<Option<BuiltIndex>> {
        read::copy_placed(segment, place).await.map(Some)
    }

    async fn merge(&self, sources: &[Source<'_>], spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
        read::merge(sources, spec).await.map(Some)
    }

    #[cfg(feature = "full")]
    fn operators(&self) -> &'static [Op] {
        &[Op::Contains]
    }

    #[cfg(feature = "full")]
    async fn probe(&self, segment: &SegmentFiles, _data_type: &DataType, query: &Query) -> Result<Matches> {
        check::probe(segment, query).await
    }

    #[cfg(feature = "full")]
    async fn check(&self, _segment: &SegmentFiles, _data_type: &DataType) -> Result<Option<Check>> {
        Ok(Some(Check::Keys(Box::new(check::Entries))))
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

fn file(writer: KeyWriter) -> Result<(String, EncodedFile)> {
    Ok((FILE.to_owned(), writer.finish()?.finish()?))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
