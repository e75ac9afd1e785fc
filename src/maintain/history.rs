//! The document `history`: what a reuse history says, what every segment covers through it, and why each part is still there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::prune::pruned_segments;
use super::trim::{RecordPlan, record_plans};
use crate::error::{ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::format::reuse_v0::reuse_entry;
use crate::lists::{map_of, set_of};
use crate::reuse::content::records;
use crate::reuse::explain;
use crate::reuse::legacy::LegacyVersion;
use crate::reuse::segment::Segment;
use crate::reuse::transition::{Digest, Mapping};
use crate::table::Table;
use crate::table::history::{TaggedHistory, content};
use crate::table::row_map::folder;

/// The document `history`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Version of the table.
    pub version: u64,
    /// Version of the history: 0, 1 or a newer one; null = the table has none.
    pub index_version: Option<i32>,
    /// Whether everything in it is understood. If not, nothing is derived from it and nobody here changes it.
    pub supported: bool,
    /// Live fragments.
    pub live: Vec<u32>,
    /// Transitions, each after those that made its sources.
    pub transitions: Vec<TransitionInfo>,
    /// Segments of user indexes in manifest order.
    pub segments: Vec<HistorySegment>,
    /// Row maps that the history names.
    pub row_maps: Vec<RowMapInfo>,
}

/// One transition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransitionInfo {
    /// Its place in the lineage.
    pub position: usize,
    /// Position of its record in the stored history.
    pub record: usize,
    /// `ordered_compaction`, `stable_partition` or `legacy_version`.
    pub kind: String,
    /// Fragments before, in scan order.
    pub sources: Vec<DigestInfo>,
    /// Fragments after, in write order or by label.
    pub destinations: Vec<DigestInfo>,
    /// Names the row map of a partition; null for others.
    pub map_id: Option<Uuid>,
    /// Whether a trim keeps it.
    pub kept: bool,
    /// Why, a sentence each; empty when a trim removes it.
    pub why: Vec<String>,
}

/// A fragment when it was rewritten; counts are null where only ids are read (version 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestInfo {
    /// Id.
    pub id: u32,
    /// Rows including deleted ones.
    pub physical_rows: Option<u32>,
    /// Deleted rows.
    pub deleted_rows: Option<u32>,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistorySegment {
    /// Its index.
    pub index: String,
    /// Its id.
    pub uuid: Uuid,
    /// Fragments it was built from; null = not recorded, which is not empty.
    pub stored: Option<Vec<u32>>,
    /// Live fragments it covers.
    pub derived: Vec<u32>,
    /// Whether queries see it.
    pub listed: bool,
    /// As `status` of a segment in `segments`.
    pub state: String,
    /// Why it covers what it covers; null when it is simply what is stored.
    pub reason: Option<String>,
    /// Transitions its rows pass, by position.
    pub path: Vec<usize>,
    /// Whether a prune keeps it.
    pub kept: bool,
    /// Why, in a sentence.
    pub why: String,
}

/// A row map that the history names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowMapInfo {
    /// Its id.
    pub map_id: Uuid,
    /// `referenced`: this version names it. `whetstone gc` tells of those that nobody names.
    pub state: String,
    /// Milliseconds since it was written; null, since nobody looked.
    pub age: Option<u64>,
    /// Positions of the transitions that name it.
    pub referenced_by: Vec<usize>,
    /// Folder below the root it belongs to.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Base path of that root; null = the table's own.
    pub base_id: Option<u32>,
}

/// What the reuse history of this version says and why each part of it is there.
///
/// # Errors
/// `CORRUPT_FILE`, and those of reading content that is kept in a file.
pub async fn history(table: &Table) -> Result<History> {
    let file = table.manifest();
    let tagged = table.history().await?;
    let entry = reuse_entry(&file.indices);
    let mut supported = tagged.as_deref().is_none_or(|history| history.ledger.supported);
    let segments: Vec<Segment<'_>> = Segment::all(&file.indices).into_iter().map(|(_, segment)| segment).collect();
    // What may not be interpreted is not explained either: everything stays.
    let (pruned, records) = if supported {
        let pruned = pruned_segments(table).await?;
        let gone = set_of(pruned.iter().map(|p| p.uuid));
        let left: Vec<Segment<'_>> = segments.iter().filter(|s| !gone.contains(&s.uuid)).cloned().collect();
        match record_plans(table, &left).await {
            Err(error) if error.code() == ErrorCode::HistoryUnsupported => {
                supported = false;
                (pruned, Vec::new())
            }
            records => (pruned, records?),
        }
    } else {
        (Vec::new(), Vec::new())
    };
    let transitions = match (&tagged, entry) {
        (Some(history), _) => tagged_transitions(history, &records),
        (None, Some(entry)) => {
            let (object, content) = content(table.store(), &file.manifest, entry).await?;
            legacy_transitions(&object, &content, &records)?
        }
        (None, None) => Vec::new(),
    };
    let reasons = map_of(pruned.into_iter().map(|p| (p.uuid, p.why)));
    let live = file.manifest.live();
    let mut described = Vec::new();
    for (at, covering) in table.indices().await?.iter().enumerate() {
        let (Some(stored), false) = (file.indices.get(at), covering.is_system()) else { continue };
        let derived = tagged.as_deref().and_then(|history| Some((history, history.of(at)?)));
        let pruned = reasons.get(&stored.uuid);
        described.push(segment_info(stored, covering, derived, &live, pruned));
    }
    Ok(History {
        version: file.manifest.version,
        index_version: entry.map(|e| e.index_version.unwrap_or(0)),
        supported,
        live: live.iter().collect(),
        transitions,
        segments: described,
        row_maps: tagged.as_deref().map(row_maps).unwrap_or_default(),
    })
}

fn segment_info(
    stored: &IndexMetadata,
    covering: &IndexMetadata,
    derived: Option<(&TaggedHistory, &crate::reuse::coverage::Derived)>,
    live: &roaring::RoaringBitmap,
    pruned: Option<&String>,
) -> HistorySegment {
    let covered = covering.fragment_bitmap.as_ref().map(|b| b & live).unwrap_or_default();
    let segment = Segment::of(stored);
    let (state, listed, path, reason) = match (derived, &segment) {
        (Some((history, d)), Some(segment)) => {
            (d.state.name(), d.listed, d.path.clone(), explain::state(&history.ledger, live, segment, d))
        }
        _ => ("direct", !covered.is_empty(), Vec::new(), None),
    };
    let why = match pruned {
        Some(why) => why.clone(),
        None if listed => format!("queries read it for fragments {}", explain::list(&covered)),
        None => "nothing says that it can go: it is not usable, or no newer segment of its index stays".to_owned(),
    };
    HistorySegment {
        index: stored.name.clone(),
        uuid: stored.uuid,
        stored: stored.fragment_bitmap.as_ref().map(|b| b.iter().collect()),
        derived: covered.iter().collect(),
        listed,
        state: state.to_owned(),
        reason,
        path,
        kept: pruned.is_none(),
        why,
    }
}

fn digests(list: &[Digest]) -> Vec<DigestInfo> {
    let info = |d: &Digest| DigestInfo { id: d.id, physical_rows: Some(d.physical_rows), deleted_rows: Some(d.deleted_rows) };
    list.iter().map(info).collect()
}

fn fate(records: &[RecordPlan], record: usize) -> (bool, Vec<String>) {
    match records.get(record) {
        Some(plan) => (plan.kept, plan.why.clone()),
        None => (true, vec!["a history with unknown records stays as it is".to_owned()]),
    }
}

fn tagged_transitions(history: &TaggedHistory, records: &[RecordPlan]) -> Vec<TransitionInfo> {
    let info = |(position, t): (usize, &crate::reuse::transition::Transition)| {
        let (kept, why) = fate(records, t.record);
        TransitionInfo {
            position,
            record: t.record,
            kind: t.kind().to_owned(),
            sources: digests(&t.sources),
            destinations: digests(&t.destinations),
            map_id: match &t.mapping {
                Mapping::StablePartition(map) => Some(map.map_id),
                Mapping::OrderedCompaction(_) => None,
            },
            kept,
            why,
        }
    };
    history.ledger.transitions.iter().enumerate().map(info).collect()
}

fn legacy_transitions(object: &str, content: &bytes::Bytes, plans: &[RecordPlan]) -> Result<Vec<TransitionInfo>> {
    let versions = match LegacyVersion::of(object, &records(object, content)?) {
        Err(error) if error.code() == ErrorCode::HistoryUnsupported => return Ok(Vec::new()),
        versions => versions?,
    };
    let ids = |list: &[u32]| -> Vec<DigestInfo> {
        list.iter().map(|id| DigestInfo { id: *id, physical_rows: None, deleted_rows: None }).collect()
    };
    let mut all = Vec::new();
    for version in &versions {
        for (old, new) in &version.groups {
            let (kept, why) = fate(plans, version.record);
            let (position, kind) = (all.len(), "legacy_version".to_owned());
            let (sources, destinations) = (ids(old), ids(new));
            all.push(TransitionInfo { position, record: version.record, kind, sources, destinations, map_id: None, kept, why });
        }
    }
    Ok(all)
}

fn row_maps(history: &TaggedHistory) -> Vec<RowMapInfo> {
    let mut all: BTreeMap<Uuid, RowMapInfo> = BTreeMap::new();
    for (position, transition) in history.ledger.transitions.iter().enumerate() {
        let Mapping::StablePartition(map) = &transition.mapping else { continue };
        let info = all.entry(map.map_id).or_insert_with(|| RowMapInfo {
            map_id: map.map_id,
            state: "referenced".to_owned(),
            age: None,
            referenced_by: Vec::new(),
            path: folder(map),
            size: map.size,
            base_id: map.base_id,
        });
        info.referenced_by.push(position);
    }
    all.into_values().collect()
}
