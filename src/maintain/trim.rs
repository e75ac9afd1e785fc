//! Shortening a reuse history: prune what newer segments make needless, then drop the records nobody needs (spec fragment-reuse
//! §11, §12). Both are decided anew in every commit attempt, from the version it would replace; a version that leaves nothing to
//! do gets no successor.

use std::cell::RefCell;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::prune::{Prune, PrunedSegment, pruned_segments};
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::flags::check_write_tagged;
use crate::format::index_metadata::{FRAG_REUSE_NAME, IndexMetadata};
use crate::format::reuse_v0::{is_tagged, reuse_entry};
use crate::lists::set_of;
use crate::refresh::build::{may_be_ours, withdraw};
use crate::refresh::plan::FORMAT;
use crate::reuse::content::{INLINE_LIMIT, external_details, external_path, inline_details, records};
use crate::reuse::explain;
use crate::reuse::legacy::LegacyVersion;
use crate::reuse::retention::{self, Need, Trim, check_supported, needs, needs_of_legacy, trim_legacy};
use crate::reuse::segment::Segment;
use crate::store::RequestCounts;
use crate::table::Table;
use crate::table::history::content;
use crate::table::publish::{Attempt, Decision, IndexChange, OnCommitting, Proposal, Published, publish};

/// The `kind` of a plan to trim.
pub const TRIM: &str = "trim";

/// A plan to shorten the reuse history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrimPlan {
    /// Format of this document.
    pub format: u32,
    /// Always `trim`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version the plan was made on; every commit attempt decides anew.
    pub v_plan: u64,
    /// Version of the history; null = the table has none.
    pub index_version: Option<i32>,
    /// `nothing`, `replace` (some records go) or `delete` (all do, and the entry with them).
    pub outcome: String,
    /// Segments that are pruned first.
    pub prune: Vec<PrunedSegment>,
    /// Records in stored order.
    pub records: Vec<RecordPlan>,
}

/// What becomes of one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPlan {
    /// Its position in the stored history.
    pub record: usize,
    /// What it says, such as `0, 1 → 10, 11`: one for each group of a version-0 record.
    pub moves: Vec<String>,
    /// Whether it stays.
    pub kept: bool,
    /// Why it stays; empty when it does not.
    pub why: Vec<String>,
}

/// What a trim did, read from what was committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrimReport {
    /// Segments that were pruned.
    pub segments_removed: Vec<PrunedSegment>,
    /// Records before; null = there was no history.
    pub records_before: Option<u64>,
    /// Records after; null = there is no history.
    pub records_after: Option<u64>,
    /// Whether the entry went with its last record.
    pub entry_removed: bool,
    /// Version found at the start.
    pub version_before: u64,
    /// Version now.
    pub version: u64,
    /// Attempts of both commits.
    pub attempts: Vec<Attempt>,
    /// Uuids of the transactions that were committed: none, one or two.
    pub transactions: Vec<Uuid>,
    /// How long it took, milliseconds.
    pub ms: u64,
    /// Requests since the table was opened.
    pub requests: RequestCounts,
}

/// Plans to shorten the history. Nothing is written; a table without a history gets a plan that does nothing.
///
/// # Errors
/// `HISTORY_UNSUPPORTED` when there is something in it that this build does not know, `CORRUPT_FILE`, `UNSUPPORTED_FEATURE` for a
/// table that must not be written.
pub async fn plan_trim(table: &Table) -> Result<TrimPlan> {
    let file = table.manifest();
    check_write_tagged(&file.manifest, &file.indices)?;
    let prune = pruned_segments(table).await?;
    let gone = set_of(prune.iter().map(|p| p.uuid));
    let left: Vec<Segment<'_>> =
        Segment::all(&file.indices).into_iter().map(|(_, segment)| segment).filter(|s| !gone.contains(&s.uuid)).collect();
    let records = record_plans(table, &left).await?;
    let entry = reuse_entry(&file.indices);
    let outcome = if records.iter().all(|r| r.kept) {
        "nothing"
    } else if records.iter().any(|r| r.kept) || entry.is_some_and(|e| !is_tagged(e)) {
        "replace"
    } else {
        "delete"
    };
    Ok(TrimPlan {
        format: FORMAT,
        kind: TRIM.to_owned(),
        table: table.store().uri(),
        branch: file.manifest.branch.clone(),
        v_plan: file.manifest.version,
        index_version: entry.map(|e| e.index_version.unwrap_or(0)),
        outcome: outcome.to_owned(),
        prune,
        records,
    })
}

/// What becomes of every record, if these are the segments.
///
/// # Errors
/// As [`plan_trim`].
pub(super) async fn record_plans(table: &Table, segments: &[Segment<'_>]) -> Result<Vec<RecordPlan>> {
    let file = table.manifest();
    let Some(entry) = reuse_entry(&file.indices) else { return Ok(Vec::new()) };
    let plan = |record: usize, moves: Vec<String>, why: Vec<String>| RecordPlan { record, moves, kept: !why.is_empty(), why };
    if let Some(history) = table.history().await? {
        let ledger = &history.ledger;
        check_supported(&history.object, ledger)?;
        let sentences = |needs: &[Need]| needs.iter().map(|need| explain::need(ledger, need)).collect();
        let all = needs(ledger, segments);
        let mut moves: Vec<Vec<String>> = all.iter().map(|_| Vec::new()).collect();
        for transition in &ledger.transitions {
            if let Some(moves) = moves.get_mut(transition.record) {
                moves.push(explain::arrow(transition));
            }
        }
        let plans = all.iter().zip(moves).enumerate().map(|(at, (needs, moves))| plan(at, moves, sentences(needs)));
        return Ok(plans.collect());
    }
    let (object, content) = content(table.store(), &file.manifest, entry).await?;
    let records = records(&object, &content)?;
    let versions = LegacyVersion::of(&object, &records)?;
    let all = needs_of_legacy(records.len(), &versions, segments);
    let empty = Default::default();
    let of = |(version, needs): (&LegacyVersion, &Vec<Need>)| {
        let moves = version.groups.iter().map(|(old, new)| explain::arrow_of(&old.iter().collect(), &new.iter().collect()));
        plan(version.record, moves.collect(), needs.iter().map(|need| explain::need(&empty, need)).collect())
    };
    Ok(versions.iter().zip(&all).map(of).collect())
}

/// Refuses what is no plan of this kind, or one for another table.
pub(super) fn check_maintenance(
    table: &Table,
    kind: &str,
    found: &str,
    format: u32,
    branch: Option<&str>,
    v_plan: u64,
) -> Result<()> {
    if format != FORMAT || kind != found {
        return Err(Error::invalid(format!("this is no plan of format {FORMAT} to {kind} (kind {found:?}, format {format})")));
    }
    if table.manifest().manifest.branch.as_deref() != branch {
        return Err(Error::invalid(format!(
            "the plan to {kind} is for another branch than the table given; nothing was changed"
        )));
    }
    check_newer(table, v_plan)
}

fn check_newer(table: &Table, v_plan: u64) -> Result<()> {
    if table.version() < v_plan {
        let text =
            format!("the plan was made on version {v_plan}, the table is at version {}; nothing was changed", table.version());
        return Err(Error::new(ErrorCode::StalePlan, text));
    }
    Ok(())
}

/// Prunes and trims. `committing` is told before anything that may commit is sent.
///
/// # Errors
/// Those of planning and of [`publish`]; an error after the prune was committed says so.
pub async fn run_trim(table: &Table, plan: &TrimPlan, committing: &OnCommitting<'_>) -> Result<(TrimReport, Table)> {
    let latest = table.latest().await?;
    check_maintenance(&latest, TRIM, &plan.kind, plan.format, plan.branch.as_deref(), plan.v_plan)?;
    let env = table.store().env().clone();
    let start = env.now_ms();
    let (records_before, version_before) = (record_count(&latest).await?, latest.version());
    let pruned = publish(&latest, &Prune { v_plan: plan.v_plan }, committing).await?;
    let segments_removed = pruned.removed(&latest).await?;
    let trimmed = match trim_alone(&pruned.table, plan.v_plan, committing).await {
        Err(error) if pruned.change.is_some() => {
            let text = format!("{} (superseded segments were pruned in version {})", error.message(), pruned.table.version());
            return Err(Error::new(error.code(), text).with_changed(Changed::Committed));
        }
        trimmed => trimmed?,
    };
    let report = TrimReport {
        segments_removed,
        records_before,
        records_after: record_count(&trimmed.table).await?,
        entry_removed: records_before.is_some() && reuse_entry(&trimmed.table.manifest().indices).is_none(),
        version_before,
        version: trimmed.table.version(),
        attempts: pruned.attempts.into_iter().chain(trimmed.attempts).collect(),
        transactions: pruned.transaction.into_iter().chain(trimmed.transaction).collect(),
        ms: u64::try_from(env.now_ms().saturating_sub(start)).unwrap_or(0),
        requests: table.store().requests(),
    };
    Ok((report, trimmed.table))
}

async fn record_count(table: &Table) -> Result<Option<u64>> {
    let file = table.manifest();
    let Some(entry) = reuse_entry(&file.indices) else { return Ok(None) };
    if let Some(history) = table.history().await? {
        return Ok(Some(history.ledger.records.len() as u64));
    }
    let (object, content) = content(table.store(), &file.manifest, entry).await?;
    Ok(Some(records(&object, &content)?.len() as u64))
}

async fn trim_alone(table: &Table, v_plan: u64, committing: &OnCommitting<'_>) -> Result<Published> {
    let trim = TrimHistory { v_plan, drawn: RefCell::default() };
    let published = match publish(table, &trim, committing).await {
        Ok(published) => published,
        Err(error) if error.changed() == Changed::Unknown => return Err(error),
        Err(error) => {
            let drawn: Vec<String> = trim.drawn.take().into_iter().map(external_path).collect();
            return Err(withdraw(table.store(), error, &drawn).await);
        }
    };
    // Content written for attempts that were lost belongs to nobody.
    let committed = published.change.iter().flat_map(|change| &change.new).map(|e| e.uuid);
    let committed = set_of(committed);
    for uuid in trim.drawn.into_inner().into_iter().filter(|uuid| !committed.contains(uuid)) {
        let _ = table.store().delete(&external_path(uuid)).await;
    }
    Ok(published)
}

struct TrimHistory {
    v_plan: u64,
    /// Ids of entries whose content was written to a file.
    drawn: RefCell<Vec<Uuid>>,
}

#[async_trait(?Send)]
impl Proposal for TrimHistory {
    fn index_name(&self) -> &str {
        FRAG_REUSE_NAME
    }

    async fn decide(&self, latest: &Table) -> Result<Decision> {
        let nothing = |why: &str| Ok(Decision::Nothing { why: why.to_owned(), left_out: Vec::new() });
        let file = latest.manifest();
        check_newer(latest, self.v_plan)?;
        check_write_tagged(&file.manifest, &file.indices)?;
        let Some(entry) = reuse_entry(&file.indices) else { return nothing("there is no reuse history") };
        entry.check_touch()?;
        let segments: Vec<Segment<'_>> = Segment::all(&file.indices).into_iter().map(|(_, segment)| segment).collect();
        let trim = match latest.history().await? {
            Some(history) => retention::trim(&history.object, &history.ledger, &segments)?,
            None => {
                let (object, content) = content(latest.store(), &file.manifest, entry).await?;
                trim_legacy(&object, &content, &segments)?
            }
        };
        let removed = vec![entry.clone()];
        let (content, ids) = match trim {
            Trim::Nothing => return nothing("every record is still needed"),
            Trim::Delete => return Ok(Decision::Publish(IndexChange { removed, ..IndexChange::default() })),
            Trim::Replace { content, ids } => (content, ids),
        };
        let uuid = latest.store().env().uuid();
        let details = if content.len() <= INLINE_LIMIT {
            inline_details(&content)
        } else {
            let (size, path) = (content.len() as u64, external_path(uuid));
            let stored = latest.store().put(&path, vec![content]).await.map_err(|error| error.of_writing(&path));
            if may_be_ours(&stored) {
                self.drawn.borrow_mut().push(uuid);
            }
            stored?;
            external_details(size)
        };
        let new = IndexMetadata {
            uuid,
            fields: Vec::new(),
            name: FRAG_REUSE_NAME.to_owned(),
            dataset_version: file.manifest.version,
            fragment_bitmap: Some(ids),
            details: Some(details),
            index_version: Some(entry.index_version.unwrap_or(0)),
            created_at_ms: None,
            base_id: None,
            files: Vec::new(),
            covering_fields: Vec::new(),
            metadata: Default::default(),
            raw: Default::default(),
        };
        Ok(Decision::Publish(IndexChange { new: vec![new], removed, ..IndexChange::default() }))
    }
}
