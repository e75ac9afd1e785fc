//! LABEL_LIST: one row per distinct list item with the bitmap of the rows whose list has it (index-formats §9).

mod build;
mod check;
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
use crate::format::treemap::encode_row_treemap;
use crate::index::btree::Btree;
use crate::index::check::Check;
use crate::index::keyed::{KeyWriter, counted};
use crate::index::params::{check_version, merge_known};
use crate::index::parts::Parts;
use crate::index::probe::{Matches, Op, Query};
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentBuilder, SegmentFiles, Source};

const FILE: &str = "bitmap_page_lookup.lance";
/// Metadata key: number of the global buffer with the rows whose list is null.
const NULL_LISTS: &str = "lance:label_list_nulls";
const TYPE_URL: &str = "/lance.table.LabelListIndexDetails";

/// The LABEL_LIST method.
pub struct LabelList;

/// The item type of a list type.
fn item(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => Some(item.data_type()),
        _ => None,
    }
}

#[async_trait(?Send)]
impl IndexMethod for LabelList {
    fn name(&self) -> &'static str {
        "LABEL_LIST"
    }

    fn type_url(&self) -> &'static str {
        TYPE_URL
    }

    fn max_index_version(&self) -> i32 {
        1
    }

    fn accepts(&self, data_type: &DataType) -> bool {
        item(data_type).is_some_and(|item| Btree.accepts(item))
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
        // Version 0 differs in what a reader may expect, not in what is written.
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
        &[Op::Has, Op::IsNull]
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

/// The file with its count of keys and the rows of null lists.
fn file(writer: KeyWriter, null_lists: &RoaringTreemap) -> Result<(String, EncodedFile)> {
    let mut file = counted(writer)?;
    let buffer = file.global_buffer(encode_row_treemap(null_lists).into());
    file.metadata(NULL_LISTS, &buffer.to_string());
    Ok((FILE.to_owned(), file.finish()?))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
