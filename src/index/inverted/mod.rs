//! INVERTED: full text search, tokens with the documents they are in (index-formats §11).
//!
//! `settings` are the parameters and the details, `analyze` cuts text into tokens, `collect` gathers documents and posting
//! lists, `posting` and `packing` are the bytes of a list, `write` the files of a segment, `read` looks into existing ones,
//! `check` and `faults` hold them against rows and against themselves, `probe` searches them.

mod analyze;
mod build;
mod check;
mod collect;
mod faults;
mod listing;
mod packing;
mod posting;
mod probe;
mod read;
mod settings;
mod transducer;
mod write;

use std::ops::Range;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use bytes::Bytes;
use roaring::RoaringTreemap;
use serde_json::Value;

use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::IndexDetails;
use crate::index::check::Check;
use crate::index::parts::Parts;
use crate::index::probe::{Matches, Op, Query};
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentBuilder, SegmentFiles, Source};
use posting::Tail;
use settings::{FORMAT, Settings, same_details};

const TYPE_URL: &str = "/lance.table.InvertedIndexDetails";
const METADATA: &str = "metadata.lance";

fn tokens_file(partition: u64) -> String {
    format!("part_{partition}_tokens.lance")
}

fn invert_file(partition: u64) -> String {
    format!("part_{partition}_invert.lance")
}

fn docs_file(partition: u64) -> String {
    format!("part_{partition}_docs.lance")
}

/// The INVERTED method.
pub struct Inverted;

#[async_trait(?Send)]
impl IndexMethod for Inverted {
    fn name(&self) -> &'static str {
        "INVERTED"
    }

    fn type_url(&self) -> &'static str {
        TYPE_URL
    }

    fn max_index_version(&self) -> i32 {
        // Version 3 has blocks of 256 documents, or one document per list element.
        FORMAT as i32
    }

    fn accepts(&self, data_type: &DataType) -> bool {
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 => true,
            DataType::List(item) | DataType::LargeList(item) => {
                matches!(item.data_type(), DataType::Utf8 | DataType::LargeUtf8)
            }
            _ => false,
        }
    }

    fn default_params(&self) -> Params {
        settings::defaults()
    }

    fn merge_params(&self, base: Params, given: &Params) -> Result<Params> {
        settings::merge(self.name(), base, given)
    }

    async fn recover_params(&self, segment: &SegmentFiles) -> Result<Params> {
        read::recover_params(segment).await
    }

    fn details(&self, params: &Params, _data_type: &DataType) -> IndexDetails {
        let value = Settings::parse(params).map(|settings| settings.details()).unwrap_or_default();
        IndexDetails { type_url: TYPE_URL.to_owned(), value }
    }

    fn builder(&self, spec: BuildSpec) -> Result<Box<dyn SegmentBuilder>> {
        if !(0..=FORMAT as i32).contains(&spec.index_version) {
            return Err(Error::invalid(format!("INVERTED is written in format version {FORMAT}, not {}", spec.index_version)));
        }
        Ok(Box::new(build::Builder::new(&spec)?))
    }

    async fn check_beside(&self, segment: &SegmentFiles, params: &Params) -> Result<Option<Bytes>> {
        let differs = |what: String| {
            let uuid = segment.entry().uuid.to_string();
            let text = format!(
                "segment {uuid} of index {} stays and was built with {what}: a full text index has one configuration, so build \
                 all of it anew (absorb) or leave the parameters as they are. Nothing was built",
                segment.entry().name
            );
            Err(Error::new(ErrorCode::DetailsDiffer, text).with("segment", uuid))
        };
        let settings = Settings::parse(params)?;
        let there = segment.entry().details.as_ref().map(|d| d.value.clone()).unwrap_or_default();
        if !same_details(&there, &settings.details()) {
            return differs("other settings".to_owned());
        }
        // Custom stop words are in no details, but searches take them from the first segment.
        let recorded = read::recover_params(segment).await?;
        let written = settings.params();
        match written.iter().find(|(key, value)| recorded.get(*key).is_some_and(|old| old != *value)) {
            Some((key, _)) => differs(format!("another {key}")),
            None => Ok(Some(there)),
        }
    }

    fn same_details(&self, a: &[u8], b: &[u8]) -> bool {
        same_details(a, b)
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
    async fn check(&self, segment: &SegmentFiles, _data_type: &DataType) -> Result<Option<Check>> {
        let head = read::head(segment).await?;
        // Not every kind of postings is decoded, and of others nothing is said.
        let Ok(settings) = Settings::parse(&head.params) else { return Ok(None) };
        let known = head.tail().is_some_and(|tail| tail == Tail::Varint || !settings.with_position);
        Ok(known.then(|| Check::Keys(Box::new(check::Documents(settings)))))
    }

    #[cfg(feature = "full")]
    fn operators(&self) -> &'static [Op] {
        &[Op::Match, Op::MatchAll, Op::Phrase, Op::Boolean]
    }

    #[cfg(feature = "full")]
    async fn probe(&self, segment: &SegmentFiles, _data_type: &DataType, query: &Query) -> Result<Matches> {
        probe::probe(segment, query).await
    }

    #[cfg(feature = "full")]
    async fn faults(&self, segment: &SegmentFiles, _data_type: &DataType) -> Result<Vec<String>> {
        faults::faults(segment).await
    }

    #[cfg(feature = "full")]
    async fn inspect(&self, segment: &SegmentFiles) -> Result<Value> {
        read::inspect(segment).await
    }

    #[cfg(feature = "full")]
    async fn parts(&self, segment: &SegmentFiles, wanted: Range<u64>) -> Result<Parts> {
        listing::parts(segment, &wanted).await
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
