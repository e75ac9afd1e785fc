//! Index methods: what a segment of each kind holds, how it is built, copied and looked into (index-formats).
//!
//! Every maintained method is one implementation of [`IndexMethod`]; nothing above this layer knows a method by name.

mod bitmap;
mod bloomfilter;
mod btree;
mod bytes;
pub mod check;
mod columns;
mod distinct;
pub(crate) mod hash;
mod inverted;
pub mod json;
mod keep;
mod keyed;
mod labellist;
pub mod literal;
#[cfg(test)]
mod merge_tests;
mod ngram;
pub(crate) mod order;
mod params;
pub mod parts;
#[cfg(test)]
mod passes_tests;
mod postings;
pub mod probe;
mod registry;
mod segment;
mod sort;
#[cfg(test)]
mod testing;
mod times;
mod zonemap;
mod zones;

use std::ops::Range;

use ::bytes::Bytes;
use arrow::datatypes::DataType;
use async_trait::async_trait;
use roaring::RoaringTreemap;
use serde_json::{Map, Value};

use crate::error::Result;
use crate::file::EncodedFile;
use crate::format::index_metadata::IndexDetails;
use crate::format::row::RowDomain;
use crate::table::scan::ColumnBatch;

use check::Check;
use parts::Parts;
use probe::{Matches, Op, Query};

pub use registry::{display_name, method_by_name, method_by_url, methods, option_name};
pub use segment::SegmentFiles;

/// Build parameters of a method, e.g. `{"zone_size": 4096}`; the keys are pylance's (index-formats §15).
pub type Params = Map<String, Value>;

/// Where a row that a segment stores is to be in a copy of it; `None` = nowhere.
pub type Placing<'a> = &'a dyn Fn(u64) -> Option<u64>;

/// What a builder has to know before the first row.
#[derive(Clone, Debug)]
pub struct BuildSpec {
    /// Arrow type of the indexed column.
    pub data_type: DataType,
    /// Logical type text of the column, written into the index files.
    pub logical_type: String,
    /// Complete parameters (defaults merged with what was inherited and given).
    pub params: Params,
    /// Format version to write.
    pub index_version: i32,
    /// Rows expected, if known; only a hint for allocations.
    pub rows_hint: Option<u64>,
}

/// The files of a finished segment, not yet stored anywhere.
pub struct BuiltIndex {
    /// File name in the segment folder and its bytes.
    pub files: Vec<(String, EncodedFile)>,
    /// Details for the manifest entry.
    pub details: IndexDetails,
    /// Format version for the manifest entry.
    pub index_version: i32,
    /// Rows that went in.
    pub rows: u64,
    /// What the method counted on the way (pages, zones, nulls); for reports only.
    pub stats: Params,
}

/// A segment whose rows go into another one.
pub struct Source<'a> {
    /// Its files.
    pub files: &'a SegmentFiles,
    /// Those of its rows that go into the other, in the segments' row domain; it may hold further ones.
    pub rows: &'a RoaringTreemap,
}

/// Collects the rows of one segment.
///
/// A builder that is to stay below a limit is [narrowed](SegmentBuilder::narrow) whenever it passes it: it keeps the lower part
/// of its key order and leaves the rest to a later pass over the column. The files are the same to the byte, except those of
/// INVERTED, which go into partitions instead.
pub trait SegmentBuilder {
    /// Takes the next live rows: the batches of a fragment one after the other, in physical order. In further passes the same
    /// rows come again.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the values are not of the type announced, `MEMORY_LIMIT` when a size cannot be addressed.
    fn push(&mut self, batch: ColumnBatch) -> Result<()>;

    /// Bytes this builder will hold at its peak if no further row comes: what it holds now plus what
    /// [`finish`](SegmentBuilder::finish) will allocate before anything can be freed.
    fn memory_bytes(&self) -> u64;

    /// Lets go of part of what is held, to bring it back in a later pass; `false` when nothing more can go.
    ///
    /// # Errors
    /// Those of [`finish`](SegmentBuilder::finish).
    fn narrow(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Of builders that are never narrowed: why not, and what takes less memory instead.
    fn indivisible(&self) -> Option<&'static str> {
        None
    }

    /// Ends a pass over the column: `true` when all its rows have to be pushed once more.
    ///
    /// # Errors
    /// Those of [`finish`](SegmentBuilder::finish).
    fn again(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Bytes that the files will have, about and not below, once all rows were pushed; they are held until they are stored.
    fn file_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    /// Encodes the files.
    ///
    /// # Errors
    /// `MEMORY_LIMIT` when a size cannot be addressed; otherwise only `INTERNAL`.
    fn finish(self: Box<Self>) -> Result<BuiltIndex>;
}

/// One scalar index method.
#[async_trait(?Send)]
pub trait IndexMethod: Sync {
    /// Name in options and documents, e.g. `BTREE`.
    fn name(&self) -> &'static str;

    /// `type_url` that a first segment gets; further segments copy the spelling of the existing ones (index-formats §2).
    fn type_url(&self) -> &'static str;

    /// Format version to write into a new index of a table with or without stable row ids.
    fn index_version(&self, _stable_row_ids: bool) -> i32 {
        self.max_index_version()
    }

    /// Highest format version that is read.
    fn max_index_version(&self) -> i32 {
        0
    }

    /// What a segment of that version stores about a row (index-formats §1.2): the table's own ids, unless the method says
    /// otherwise.
    fn row_domain(&self, _index_version: i32, stable_row_ids: bool) -> RowDomain {
        if stable_row_ids { RowDomain::StableId } else { RowDomain::Address }
    }

    /// Whether a column of this type can be indexed.
    fn accepts(&self, data_type: &DataType) -> bool;

    /// Parameters when nothing was said.
    fn default_params(&self) -> Params;

    /// Names of all parameters.
    fn param_names(&self) -> Vec<String> {
        self.default_params().keys().cloned().collect()
    }

    /// `base` with the caller's keys put over it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming an unknown key or a value outside its limits.
    fn merge_params(&self, base: Params, given: &Params) -> Result<Params>;

    /// The parameters an existing segment was built with, as far as its files tell.
    ///
    /// # Errors
    /// Those of opening the files; `CORRUPT_FILE` when a parameter is not a number.
    async fn recover_params(&self, segment: &SegmentFiles) -> Result<Params>;

    /// Details for the manifest entry of a segment built with `params`.
    fn details(&self, params: &Params, data_type: &DataType) -> IndexDetails;

    /// Whether a segment built with `params` may stand beside this one, which stays. Only full text search reads all segments
    /// of an index with one configuration; then the answer is also the details bytes that the new segment has to repeat.
    ///
    /// # Errors
    /// `DETAILS_DIFFER` when it may not, and those of opening the files.
    async fn check_beside(&self, _segment: &SegmentFiles, _params: &Params) -> Result<Option<Bytes>> {
        Ok(None)
    }

    /// Whether two details bytes mean the same configuration.
    fn same_details(&self, a: &[u8], b: &[u8]) -> bool {
        a == b
    }

    /// Starts a segment.
    ///
    /// # Errors
    /// `UNSUPPORTED_TYPE` for a column type the method does not take, `INVALID_ARGUMENT` for parameters or versions.
    fn builder(&self, spec: BuildSpec) -> Result<Box<dyn SegmentBuilder>>;

    /// Every row the segment's files can answer for without a recheck, whatever its bitmap says: `stored` of
    /// refresh-and-compaction §2.5, in the segment's row domain.
    ///
    /// # Errors
    /// Those of opening and decoding the files.
    async fn stored_rows(&self, segment: &SegmentFiles) -> Result<RoaringTreemap>;

    /// Writes the segment again with its rows at other places, without those that have none; no table data is read. `None` when
    /// this method (or this layout of it) cannot be copied so. Methods of zones can leave rows out, and move none.
    ///
    /// # Errors
    /// Those of opening and decoding the files.
    async fn copy_placed(&self, segment: &SegmentFiles, data_type: &DataType, place: Placing<'_>) -> Result<Option<BuiltIndex>>;

    /// Writes the rows of several segments into one from their files alone; no table data is read. `None` when this method, or
    /// the layout or the parameters of one of them, does not allow that. A method that cannot tell how many rows it was given
    /// says that they are those expected.
    ///
    /// # Errors
    /// Those of opening and decoding the files.
    async fn merge(&self, _sources: &[Source<'_>], _spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
        Ok(None)
    }

    /// How segments are held against rows of their column; `None` for methods that have no such check.
    ///
    /// # Errors
    /// Those of opening and decoding the files.
    #[cfg(feature = "full")]
    async fn check(&self, _segment: &SegmentFiles, _data_type: &DataType) -> Result<Option<Check>> {
        Ok(None)
    }

    /// The operators a probe can ask segments of this method about.
    #[cfg(feature = "full")]
    fn operators(&self) -> &'static [Op] {
        &[]
    }

    /// What of a segment can match; only asked for an operator among [`IndexMethod::operators`].
    ///
    /// # Errors
    /// Those of opening and decoding the files.
    #[cfg(feature = "full")]
    async fn probe(&self, _segment: &SegmentFiles, _data_type: &DataType, _query: &Query) -> Result<Matches> {
        Ok(Matches::default())
    }

    /// What in the files themselves would lead a reader astray and is not among the problems of [`IndexMethod::inspect`],
    /// as all of them has to be read to see it.
    ///
    /// # Errors
    /// Those of opening and decoding the files.
    #[cfg(feature = "full")]
    async fn faults(&self, _segment: &SegmentFiles, _data_type: &DataType) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// What is in the segment's files, for people (index-formats §16).
    ///
    /// # Errors
    /// Those of opening and decoding the files.
    #[cfg(feature = "full")]
    async fn inspect(&self, segment: &SegmentFiles) -> Result<Value>;

    /// The pages, zones, keys or tokens of a segment with these numbers; only they are read.
    ///
    /// # Errors
    /// Those of opening and decoding the files.
    #[cfg(feature = "full")]
    async fn parts(&self, segment: &SegmentFiles, wanted: Range<u64>) -> Result<Parts>;
}
