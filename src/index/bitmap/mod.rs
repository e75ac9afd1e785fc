//! BITMAP: one row per distinct value with the bitmap of its row ids (index-formats §6).

mod build;
mod read;

use std::ops::Range;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use bytes::Bytes;
use roaring::RoaringTreemap;
use serde_json::Value;

use crate::error::Result;
use crate::file::EncodedFile;
use crate::format::index_metadata::IndexDetails;
use crate::index::btree::Btree;
use crate::index::check::Check;
use crate::index::keyed::{KEYS_AND_BITMAPS, KeyWriter, counted, probed};
use crate::index::params::{check_version, merge_known};
use crate::index::parts::Parts;
use crate::index::probe::{Matches, Op, Query};
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentBuilder, SegmentFiles, Source};

const FILE: &str = "bitmap_page_lookup.lance";
const TYPE_URL: &str = "/lance.table.BitmapIndexDetails";

/// The BITMAP method.
pub struct Bitmap;

#[async_trait(?Send)]
impl IndexMethod for Bitmap {
    fn name(&self) -> &'static str {
        "BITMAP"
    }

    fn type_url(&self) -> &'static str {
        TYPE_URL
    }

    fn accepts(&self, data_type: &DataType) -> bool {
        Btree.accepts(data_type)
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
        &[Op::Equal, Op::Less, Op::LessOrEqual, Op::Greater, Op::GreaterOrEqual, Op::IsNull]
    }

    #[cfg(feature = "full")]
    async fn probe(&self, segment: &SegmentFiles, _data_type: &DataType, query: &Query) -> Result<Matches> {
        probed(segment, FILE, KEYS_AND_BITMAPS, query).await
    }

    #[cfg(feature = "full")]
    async fn check(&self, _segment: &SegmentFiles, _data_type: &DataType) -> Result<Option<Check>> {
        Ok(Some(Check::Keys(Box::new(read::Entries))))
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

/// The file with its count of keys.
fn file(writer: KeyWriter) -> Result<(String, EncodedFile)> {
    Ok((FILE.to_owned(), counted(writer)?.finish()?))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
