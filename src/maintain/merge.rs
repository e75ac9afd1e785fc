//! MERGE: few segments of many, which lets a compaction group the fragments of refreshes made apart.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, ErrorCode, Result};
use crate::format::flags::check_write;
use crate::refresh::lineage::check_merge;
use crate::refresh::resolve::{exact_name, resolve};
use crate::refresh::{Absorb, RefreshOptions, RefreshPlan, plan_merge_of};
use crate::table::Table;

/// Options of `planMerge`; every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MergeOptions {
    /// Segments to make, at least 1. Default 1.
    pub segments: Option<u64>,
    /// Segments to merge; all when absent.
    pub only: Option<Vec<Uuid>>,
    /// Read the column again even where the files of the segments would do. Default false.
    pub reread: bool,
    /// Most bytes one build task may hold in memory.
    pub max_bytes: Option<u64>,
}

/// Plans to replace chosen segments of an index by `segments` contiguous ones. Nothing is written. With no more segments than
/// asked for there is nothing to do. Segments are taken from their files, without reading the column, where their method and
/// their state allow it; the plan's notes say which, why not, and what it costs.
///
/// # Errors
/// Those of resolving the name; `INVALID_ARGUMENT` for a uuid that is no segment of it; `BITMAP_UNKNOWN` when a segment records no
/// coverage (a refresh replaces it); `HISTORY_UNSUPPORTED` under a tagged reuse history, `UNSUPPORTED_FEATURE` as for a refresh.
pub async fn plan_merge(table: &Table, index: &str, options: MergeOptions) -> Result<RefreshPlan> {
    let file = table.manifest().clone();
    check_merge(table, &exact_name(&file.indices, index)?)?;
    let resolved = resolve(table.indices().await?, &file.manifest.schema, index)?;
    check_write(&file.manifest, &file.indices)?;
    let all: Vec<Uuid> = resolved.segments.iter().map(|s| s.uuid).collect();
    let MergeOptions { segments, only, reread, max_bytes } = options;
    let chosen = only.unwrap_or_else(|| all.clone());
    if let Some(other) = chosen.iter().find(|uuid| !all.contains(uuid)) {
        let text = format!("index {} has no segment {other}; nothing was planned", resolved.name);
        return Err(Error::invalid(text).with("segment", other.to_string()));
    }
    if let Some(unknown) = resolved.segments.iter().find(|s| s.fragment_bitmap.is_none()) {
        let text = format!(
            "segment {} of index {} records no coverage: a refresh replaces it, a merge cannot. Nothing was planned",
            unknown.uuid, resolved.name
        );
        return Err(Error::new(ErrorCode::BitmapUnknown, text).with("segment", unknown.uuid.to_string()));
    }
    let options = RefreshOptions { segments, absorb: Absorb::None, max_bytes, params: Default::default() };
    plan_merge_of(table, &resolved, &chosen, reread, &options).await
}
