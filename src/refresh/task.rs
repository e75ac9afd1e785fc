//! One unit of building and what it answers: pure data, without a segment uuid and without credentials.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::coverage::prune::FragmentKey;
use crate::error::{Error, Result};
use crate::format::index_metadata::IndexDetails;
use crate::format::row::RowDomain;

/// The index a task builds for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexTarget {
    /// Exact name.
    pub name: String,
    /// Field id of the indexed column.
    pub field_id: i32,
    /// Dotted path of the column.
    pub column: String,
    /// Logical type of the column, e.g. `int64`.
    pub logical_type: String,
    /// Method, e.g. `BTREE`.
    pub method: String,
    /// Type url of the details, spelled as the existing segments spell it.
    pub type_url: String,
    /// Format version the segments get.
    pub index_version: i32,
    /// Complete build parameters.
    pub params: Map<String, Value>,
    /// What the segments store about a row.
    pub row_domain: RowDomain,
    /// Details bytes, base64, that the segments repeat because one that stays has them; null = what the method writes.
    #[serde(default)]
    pub details: Option<String>,
}

impl IndexTarget {
    /// The details bytes to repeat.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they are not base64.
    pub fn details(&self) -> Result<Option<Bytes>> {
        let decode = |text: &String| STANDARD.decode(text).map(Bytes::from);
        let decoded = self.details.as_ref().map(decode).transpose();
        decoded.map_err(|e| Error::invalid(format!("the details of index {} are not base64: {e}", self.name)))
    }

    /// Sets the details bytes to repeat.
    pub fn repeat_details(&mut self, bytes: &[u8]) {
        self.details = Some(STANDARD.encode(bytes));
    }
}

/// One unit of building. The attempt that runs it draws the segment's uuid, so a task delivered twice overwrites nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildTask {
    /// Format of this document.
    pub format: u32,
    /// Always `build`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version to read.
    pub v_plan: u64,
    /// Position in the plan.
    pub task: u32,
    /// The index.
    pub index: IndexTarget,
    /// Fragments the segment will cover, ascending.
    pub fragments: Vec<u32>,
    /// Their live rows.
    pub rows: u64,
    /// Write this existing segment again without some rows, instead of reading the column; null = build from the column.
    pub copy_of: Option<CopyOf>,
    /// Take what existing segments hold from their files, and only the rest from the column; null = build from the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_of: Option<MergeOf>,
    /// Most bytes the build may hold; null = no limit.
    pub max_bytes: Option<u64>,
}

/// The source of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyOf {
    /// The existing segment.
    pub uuid: Uuid,
    /// Version its rows reflect; the copy keeps it.
    pub dataset_version: u64,
    /// Fragments whose rows must not be in the copy.
    pub without: Vec<u32>,
    /// Per covered fragment the files it was planned on, for the case that the column is read after all.
    pub files: Vec<FragmentKey>,
}

/// The sources of a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeOf {
    /// The existing segments. What they hold of other fragments and of deleted rows is left out.
    pub segments: Vec<Uuid>,
    /// Bytes of their files.
    pub bytes: u64,
}

/// A segment that was built and uploaded, which no manifest names yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuiltSegment {
    /// Format of this document.
    pub format: u32,
    /// The segment.
    pub uuid: Uuid,
    /// Index name.
    pub name: String,
    /// Field id of the column.
    pub field_id: i32,
    /// Method.
    pub method: String,
    /// What it stores about a row.
    pub row_domain: RowDomain,
    /// Parameters it was built with.
    pub params: Map<String, Value>,
    /// Fragments it covers, ascending.
    pub fragments: Vec<u32>,
    /// Rows that went in.
    pub rows: u64,
    /// Version whose rows it reflects.
    pub dataset_version: u64,
    /// Format version.
    pub index_version: i32,
    /// Details for the manifest entry.
    pub details: Details,
    /// Its files with exact sizes in bytes.
    pub files: Vec<BuiltFile>,
    /// What the method counted.
    pub stats: Map<String, Value>,
    /// Objects this build wrote, relative to the table.
    pub staged: Vec<String>,
    /// When the first of its files was sent, Unix milliseconds of whoever built it; they were seen whole on the store after that.
    /// Absent = nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_ms: Option<i64>,
    /// The segment it is a copy of; null when it was built from the column.
    pub copy_of: Option<Uuid>,
    /// The segments whose files it was made of; empty when all was read from the column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged_from: Vec<Uuid>,
}

/// One file of a built segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltFile {
    /// Name in the segment folder.
    pub path: String,
    /// Bytes.
    pub size: u64,
}

/// [`IndexDetails`] as JSON; the bytes are base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details(pub IndexDetails);

#[derive(Serialize, Deserialize)]
struct DetailsJson {
    type_url: String,
    value: String,
}

impl Serialize for Details {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        DetailsJson { type_url: self.0.type_url.clone(), value: STANDARD.encode(&self.0.value) }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Details {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Details, D::Error> {
        let json = DetailsJson::deserialize(deserializer)?;
        let value = STANDARD.decode(json.value).map_err(|e| D::Error::custom(format!("details.value is not base64: {e}")))?;
        Ok(Details(IndexDetails { type_url: json.type_url, value: value.into() }))
    }
}
