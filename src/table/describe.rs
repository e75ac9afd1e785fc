//! What an index is and covers, as plain data: `IndexInfo` and `SegmentInfo` of the public interface.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::handle::{Table, rfc3339};
use super::history::TaggedHistory;
use crate::coverage::numbers::{indexed_percent, size_bytes};
use crate::coverage::sets::{IndexSets, effective, retired};
use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::{IndexDetails, IndexMetadata};
use crate::format::manifest::Manifest;
use crate::format::schema::Schema;
use crate::lists::map_of;
use crate::reuse::coverage::Derived;
use crate::reuse::explain;
use crate::reuse::segment::Segment;

/// Lance's name of an index type from its details and its file names. Given by the layer above, which knows the methods.
pub type DisplayName = fn(Option<&IndexDetails>, &[&str]) -> String;

/// One file of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// Path relative to the segment folder.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
}

/// One physical segment of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentInfo {
    /// Segment id.
    pub uuid: String,
    /// Fragments it declares to cover, a version-0 reuse history applied; null = not recorded, which is not empty. On a table
    /// with a tagged history: the fragments it was built from.
    pub fragment_ids: Option<Vec<u32>>,
    /// Live fragments it covers; null when unknown.
    pub effective_fragment_ids: Option<Vec<u32>>,
    /// Those of `fragment_ids` that are gone; null when unknown.
    pub retired_fragment_ids: Option<Vec<u32>>,
    /// Live fragments it covers, derived through the tagged history. Absent on other tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_coverage: Option<Vec<u32>>,
    /// Version whose rows it reflects.
    pub dataset_version: u64,
    /// Format version; null = not recorded (reads as 0).
    pub index_version: Option<i32>,
    /// RFC 3339; null = not recorded.
    pub created_at: Option<String>,
    /// Bytes of all files; null when they are not recorded.
    pub size_bytes: Option<u64>,
    /// Files; null when they are not recorded.
    pub files: Option<Vec<FileInfo>>,
    /// Base path the files are in; null = the table's own root.
    pub base_id: Option<u32>,
    /// Columns it carries beside its key.
    pub covering_fields: Vec<i32>,
    /// `ok`, `partly_retired`, `retired`, `empty` or `unknown`; with a tagged history `direct` (as `ok`) or `translated`, or why it
    /// covers nothing: `withdrawn`, `superseded`, `contributors_missing`, `gone`, `dormant`, `unsupported`, `corrupt`.
    pub status: String,
    /// Why, in a sentence; null for `ok` and `direct`.
    pub status_reason: Option<String>,
}

/// One logical index: all segments of one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexInfo {
    /// Name; compared exactly.
    pub name: String,
    /// Lance's name of the method.
    #[serde(rename = "type")]
    pub kind: String,
    /// Type url of the details; null on very old entries.
    pub type_url: Option<String>,
    /// Field ids.
    pub fields: Vec<i32>,
    /// Paths of the fields.
    pub field_names: Vec<String>,
    /// Segments of the name.
    pub num_segments: usize,
    /// Live rows covered in percent, truncated to two decimals; null on an empty table or when counts are not recorded.
    pub indexed_percent: Option<f64>,
    /// False when some segment's coverage is not known: then what is covered is a lower bound.
    pub coverage_known: bool,
    /// Bytes of all files; null when some are not recorded.
    pub size_bytes: Option<u64>,
    /// Live rows in covered fragments; null when counts are not recorded.
    pub num_rows_indexed: Option<u64>,
    /// Live rows in other fragments; null when counts are not recorded.
    pub num_rows_unindexed: Option<u64>,
    /// Live fragments that are covered.
    pub covered_live_fragments: Vec<u32>,
    /// Live fragments that are not covered.
    pub unindexed_fragments: Vec<u32>,
    /// Segments in manifest order.
    pub segments: Vec<SegmentInfo>,
}

fn list(bitmap: &RoaringBitmap) -> Vec<u32> {
    bitmap.iter().collect()
}

/// Live rows of the fragments; `None` as soon as one does not record its counts.
fn rows_of(manifest: &Manifest, fragments: &RoaringBitmap) -> Option<u64> {
    fragments.iter().try_fold(0u64, |sum, id| sum.checked_add(manifest.fragment(id)?.live_rows()?))
}

/// Field names as people write them: no quoting, since they are shown and not parsed.
fn field_name(schema: &Schema, id: i32) -> String {
    let mut parts = Vec::new();
    let mut at = schema.by_id(id);
    while let Some(field) = at {
        parts.push(field.name.as_str());
        if parts.len() > schema.fields.len() {
            break;
        }
        at = schema.by_id(field.parent_id);
    }
    parts.reverse();
    if parts.is_empty() { format!("field {id} (not in the schema)") } else { parts.join(".") }
}

fn sizes(entry: &IndexMetadata) -> Vec<u64> {
    entry.files.iter().map(|file| file.size_bytes).collect()
}

/// One segment as it is stored, and what it covers.
struct Seen<'a> {
    stored: &'a IndexMetadata,
    covering: &'a IndexMetadata,
    derived: Option<(&'a TaggedHistory, &'a Derived)>,
}

/// Status and reason of a segment of a table without a tagged history.
fn status(bitmap: Option<&RoaringBitmap>, live: &RoaringBitmap) -> (&'static str, Option<String>) {
    let Some(bitmap) = bitmap else {
        return ("unknown", Some("it records no coverage; only replacing it over all fragments makes it known".into()));
    };
    let gone = retired(bitmap, live);
    if bitmap.is_empty() {
        ("empty", Some("it was declared and covers nothing yet".into()))
    } else if gone.len() == bitmap.len() {
        ("retired", Some(format!("all {} fragments it covers are gone", gone.len())))
    } else if !gone.is_empty() {
        ("partly_retired", Some(format!("{} of the fragments it covers are gone", gone.len())))
    } else {
        ("ok", None)
    }
}

fn segment_info(seen: &Seen<'_>, live: &RoaringBitmap) -> SegmentInfo {
    let entry = seen.stored;
    let declared = if seen.derived.is_some() { entry } else { seen.covering }.fragment_bitmap.as_ref();
    let alive = seen.covering.fragment_bitmap.as_ref().map(|b| effective(b, live));
    let (status, reason) = match (seen.derived, Segment::of(entry)) {
        (Some((history, derived)), Some(segment)) => {
            (derived.state.name(), explain::state(&history.ledger, live, &segment, derived))
        }
        _ => status(declared, live),
    };
    let files: Vec<FileInfo> =
        entry.files.iter().map(|file| FileInfo { path: file.path.clone(), size: file.size_bytes }).collect();
    let sizes = sizes(entry);
    SegmentInfo {
        uuid: entry.uuid.to_string(),
        fragment_ids: declared.map(list),
        effective_fragment_ids: alive.as_ref().map(list),
        retired_fragment_ids: declared.map(|b| list(&retired(b, live))),
        derived_coverage: seen.derived.map(|(_, derived)| list(&derived.coverage)),
        dataset_version: entry.dataset_version,
        index_version: entry.index_version,
        created_at: entry.created_at_ms.and_then(|ms| rfc3339(i64::try_from(ms).ok()?)),
        size_bytes: size_bytes([sizes.as_slice()]),
        files: (!files.is_empty()).then_some(files),
        base_id: entry.base_id,
        covering_fields: entry.covering_fields.clone(),
        status: status.to_owned(),
        status_reason: reason,
    }
}

/// All indexes by name, system entries left out.
pub async fn indexes(table: &Table, display: DisplayName) -> Result<Vec<IndexInfo>> {
    let file = table.manifest();
    let history = table.history().await?;
    let mut names: BTreeMap<&str, Vec<Seen<'_>>> = BTreeMap::new();
    for (at, (stored, covering)) in file.indices.iter().zip(table.indices().await?).enumerate() {
        if !stored.is_system() {
            let derived = history.as_deref().and_then(|history| Some((history, history.of(at)?)));
            names.entry(&stored.name).or_default().push(Seen { stored, covering, derived });
        }
    }
    Ok(names.into_iter().map(|(name, seen)| index_info(&file.manifest, name, &seen, display)).collect())
}

fn index_info(manifest: &Manifest, name: &str, seen: &[Seen<'_>], display: DisplayName) -> IndexInfo {
    let live = manifest.live();
    let sets = IndexSets::new(&live, seen.iter().map(|seen| seen.covering.fragment_bitmap.as_ref()));
    let entries: Vec<&IndexMetadata> = seen.iter().map(|seen| seen.stored).collect();
    let indexed = rows_of(manifest, &sets.covered);
    let unindexed = rows_of(manifest, &sets.unindexed);
    // Under a history nobody can interpret, and for segments without a bitmap, queries scan; what is there is not known.
    let interpreted = seen.iter().all(|seen| seen.derived.is_none_or(|(history, _)| history.ledger.supported));
    let recorded = entries.iter().all(|entry| entry.fragment_bitmap.is_some());
    let total = manifest.live_rows();
    let described = entries.iter().find(|entry| entry.details.is_some()).or(entries.first());
    let files: Vec<&str> = entries.iter().flat_map(|entry| entry.files.iter().map(|file| file.path.as_str())).collect();
    let sizes: Vec<Vec<u64>> = entries.iter().map(|entry| sizes(entry)).collect();
    let fields = entries.first().map(|entry| entry.fields.clone()).unwrap_or_default();
    IndexInfo {
        name: name.to_owned(),
        kind: display(described.and_then(|entry| entry.details.as_ref()), &files),
        type_url: described.and_then(|entry| entry.details.as_ref()).map(|details| details.type_url.clone()),
        field_names: fields.iter().map(|id| field_name(&manifest.schema, *id)).collect(),
        fields,
        num_segments: entries.len(),
        indexed_percent: indexed.zip(total).and_then(|(indexed, total)| indexed_percent(indexed, total)),
        coverage_known: interpreted && recorded,
        size_bytes: size_bytes(sizes.iter().map(Vec::as_slice)),
        num_rows_indexed: indexed,
        num_rows_unindexed: unindexed,
        covered_live_fragments: list(&sets.covered),
        unindexed_fragments: list(&sets.unindexed),
        segments: seen.iter().map(|seen| segment_info(seen, &live)).collect(),
    }
}

/// The segments of one index (name as resolved: exactly, else case-insensitively when unique) or of all.
pub async fn segments(table: &Table, index: Option<&str>, display: DisplayName) -> Result<BTreeMap<String, Vec<SegmentInfo>>> {
    let infos = indexes(table, display).await?;
    let names: Vec<String> = infos.iter().map(|info| info.name.clone()).collect();
    let wanted = index.map(|index| resolve_index_name(&names, index)).transpose()?;
    let chosen = infos.into_iter().filter(|info| wanted.as_ref().is_none_or(|wanted| *wanted == info.name));
    Ok(map_of(chosen.map(|info| (info.name, info.segments))))
}

/// The index that `asked` means: the one of exactly that name, else the only one that differs in case.
pub fn resolve_index_name(names: &[String], asked: &str) -> Result<String> {
    if names.iter().any(|name| name == asked) {
        return Ok(asked.to_owned());
    }
    let folded = asked.to_lowercase();
    let close: Vec<&String> = names.iter().filter(|name| name.to_lowercase() == folded).collect();
    match close.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(Error::new(ErrorCode::IndexNotFound, format!("there is no index {asked:?}; there are: {}", names.join(", ")))
            .with("candidates", names.to_vec())),
        many => {
            let many: Vec<String> = many.iter().map(|name| (*name).clone()).collect();
            let text = format!("{asked:?} may be any of: {}", many.join(", "));
            Err(Error::new(ErrorCode::IndexAmbiguous, text).with("candidates", many))
        }
    }
}
