//! Removing segments that newer ones of the same index make needless (spec fragment-reuse §12).

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::trim::check_maintenance;
use crate::error::{Error, ErrorCode, Result};
use crate::format::flags::check_write_tagged;
use crate::format::index_metadata::{FRAG_REUSE_NAME, IndexMetadata};
use crate::refresh::plan::FORMAT;
use crate::reuse::coverage::{Derived, State};
use crate::reuse::explain;
use crate::reuse::retention::check_supported;
use crate::reuse::segment::Segment;
use crate::reuse::superseded::superseded;
use crate::store::RequestCounts;
use crate::table::Table;
use crate::table::publish::{Attempt, Decision, IndexChange, OnCommitting, Proposal, Published, publish};

/// The `kind` of a plan to prune.
pub const PRUNE: &str = "prune";
/// What marks the transaction for Lance: without it a removal is a user's drop, which nobody decides anew.
const PROPERTY: &[(&str, &str)] = &[("__lance.frag_reuse.superseded_prune", "true")];

/// A segment that goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedSegment {
    /// Its index.
    pub index: String,
    /// Its id.
    pub uuid: Uuid,
    /// Why it is not needed.
    pub why: String,
}

/// A plan to prune superseded segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrunePlan {
    /// Format of this document.
    pub format: u32,
    /// Always `prune`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version the plan was made on; every commit attempt decides anew.
    pub v_plan: u64,
    /// Segments that go.
    pub segments: Vec<PrunedSegment>,
}

/// What a prune did, read from what was committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PruneReport {
    /// Segments that went.
    pub segments_removed: Vec<PrunedSegment>,
    /// Version found at the start.
    pub version_before: u64,
    /// Version now.
    pub version: u64,
    /// Every attempt.
    pub attempts: Vec<Attempt>,
    /// Uuid of the transaction; null when nothing was committed.
    pub transaction: Option<Uuid>,
    /// Requests since the table was opened.
    pub requests: RequestCounts,
}

/// What is superseded at this version, with the places of the entries. A table without a tagged history has nothing of the kind.
async fn derived(table: &Table) -> Result<Vec<(usize, PrunedSegment)>> {
    let Some(history) = table.history().await? else { return Ok(Vec::new()) };
    check_supported(&history.object, &history.ledger)?;
    let file = table.manifest();
    let (places, segments): (Vec<usize>, Vec<Segment<'_>>) = Segment::all(&file.indices).into_iter().unzip();
    let coverage: Vec<Derived> = history.derived.iter().map(|(_, derived)| derived.clone()).collect();
    let mut gone = Vec::new();
    let live = file.manifest.live();
    for found in superseded(&live, &segments, &coverage) {
        let (Some(place), Some(segment)) = (places.get(found.segment), segments.get(found.segment)) else { continue };
        // What this build does not understand about an entry it leaves alone.
        if file.indices.get(*place).is_none_or(|entry| entry.check_touch().is_err()) {
            continue;
        }
        // What newer segments name themselves the older one does not even cover any more.
        let masked = coverage.get(found.segment).filter(|derived| derived.state == State::Superseded);
        let why = masked.and_then(|derived| explain::state(&history.ledger, &live, segment, derived));
        let why = why.unwrap_or_else(|| explain::pruned(&segments, &found));
        gone.push((*place, PrunedSegment { index: segment.index.to_owned(), uuid: segment.uuid, why }));
    }
    Ok(gone)
}

/// What a prune of this version would remove.
pub(super) async fn pruned_segments(table: &Table) -> Result<Vec<PrunedSegment>> {
    Ok(derived(table).await?.into_iter().map(|(_, segment)| segment).collect())
}

/// Plans to prune superseded segments. Nothing is written.
///
/// # Errors
/// `HISTORY_UNSUPPORTED` when there is something in the history that this build does not know, `CORRUPT_FILE`,
/// `UNSUPPORTED_FEATURE` for a table that must not be written.
pub async fn plan_prune(table: &Table) -> Result<PrunePlan> {
    let file = table.manifest();
    check_write_tagged(&file.manifest, &file.indices)?;
    Ok(PrunePlan {
        format: FORMAT,
        kind: PRUNE.to_owned(),
        table: table.store().uri(),
        branch: file.manifest.branch.clone(),
        v_plan: file.manifest.version,
        segments: pruned_segments(table).await?,
    })
}

/// Prunes. `committing` is told before anything that may commit is sent.
///
/// # Errors
/// Those of planning and of [`publish`].
pub async fn run_prune(table: &Table, plan: &PrunePlan, committing: &OnCommitting<'_>) -> Result<(PruneReport, Table)> {
    let latest = table.latest().await?;
    check_maintenance(&latest, PRUNE, &plan.kind, plan.format, plan.branch.as_deref(), plan.v_plan)?;
    let published = publish(&latest, &Prune { v_plan: plan.v_plan }, committing).await?;
    let report = PruneReport {
        segments_removed: published.removed(&latest).await?,
        version_before: latest.version(),
        version: published.table.version(),
        attempts: published.attempts,
        transaction: published.transaction,
        requests: table.store().requests(),
    };
    Ok((report, published.table))
}

impl Published {
    /// Segments that a prune removed, with the reasons at the version it was decided on.
    pub(super) async fn removed(&self, before: &Table) -> Result<Vec<PrunedSegment>> {
        let removed: Vec<&IndexMetadata> = self.change.iter().flat_map(|change| &change.removed).collect();
        if removed.is_empty() {
            return Ok(Vec::new());
        }
        let planned = pruned_segments(before).await?;
        let named = |entry: &IndexMetadata| match planned.iter().find(|p| p.uuid == entry.uuid) {
            Some(planned) => planned.clone(),
            None => PrunedSegment {
                index: entry.name.clone(),
                uuid: entry.uuid,
                why: "newer segments that another writer committed meanwhile name all it covers".to_owned(),
            },
        };
        Ok(removed.into_iter().map(named).collect())
    }
}

/// The removal, decided anew on every version it might follow.
pub(super) struct Prune {
    pub(super) v_plan: u64,
}

#[async_trait(?Send)]
impl Proposal for Prune {
    fn index_name(&self) -> &str {
        FRAG_REUSE_NAME
    }

    async fn decide(&self, latest: &Table) -> Result<Decision> {
        let file = latest.manifest();
        if file.manifest.version < self.v_plan {
            let text = format!("the plan was made on version {}, the table is at version {}", self.v_plan, file.manifest.version);
            return Err(Error::new(ErrorCode::StalePlan, text));
        }
        check_write_tagged(&file.manifest, &file.indices)?;
        let gone = derived(latest).await?;
        let removed: Vec<IndexMetadata> = gone.iter().filter_map(|(place, _)| file.indices.get(*place).cloned()).collect();
        if removed.is_empty() {
            return Ok(Decision::Nothing { why: "no segment is superseded".to_owned(), left_out: Vec::new() });
        }
        Ok(Decision::Publish(IndexChange { removed, properties: PROPERTY, ..IndexChange::default() }))
    }
}
