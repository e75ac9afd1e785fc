//! DROP INDEX: every segment of a name leaves the manifest in one commit. Files stay until Lance cleans old versions up.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::coverage::fate::{Fate, SegmentFate};
use crate::error::{Error, ErrorCode, Result};
use crate::format::flags::check_write_tagged;
use crate::format::index_metadata::IndexMetadata;
use crate::lists::set_of;
use crate::refresh::RefreshReport;
use crate::refresh::plan::FORMAT;
use crate::refresh::resolve::{exact_name, never_gone};
use crate::table::Table;
use crate::table::publish::{Decision, IndexChange, OnCommitting, Proposal, publish};

/// The `kind` of a plan to drop an index.
pub const DROP: &str = "drop_index";

/// A plan to drop one index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropPlan {
    /// Format of this document.
    pub format: u32,
    /// Always `drop_index`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version the plan was made on.
    pub v_plan: u64,
    /// The index.
    pub index: DroppedIndex,
    /// Its segments at `v_plan`; the commit takes out all that have the name then.
    pub segments: Vec<SegmentFate>,
}

/// What is dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DroppedIndex {
    /// Exact name.
    pub name: String,
    /// Field ids of its first segment.
    pub fields: Vec<i32>,
    /// Bytes of the files of all segments; null when a size is not recorded.
    pub size_bytes: Option<u64>,
}

/// Plans to drop the index called `name`, of any method. Nothing is written.
///
/// # Errors
/// `INDEX_NOT_FOUND`, `INDEX_AMBIGUOUS`, `UNSUPPORTED_METHOD` for entries of Lance itself, `HISTORY_UNSUPPORTED` under a
/// reuse history that may not be interpreted, `UNSUPPORTED_FEATURE` for a table that must not be written.
pub async fn plan_drop_index(table: &Table, name: &str) -> Result<DropPlan> {
    let file = table.manifest();
    let name = exact_name(&file.indices, name)?;
    table.derivable().await?;
    check_write_tagged(&file.manifest, &file.indices)?;
    let segments: Vec<&IndexMetadata> = file.indices.iter().filter(|e| e.name == name).collect();
    let sizes: Option<u64> = segments.iter().try_fold(0u64, |sum, segment| {
        (!segment.files.is_empty()).then(|| segment.files.iter().fold(sum, |sum, file| sum.saturating_add(file.size_bytes)))
    });
    let why = "its index is dropped";
    Ok(DropPlan {
        format: FORMAT,
        kind: DROP.to_owned(),
        table: table.store().uri(),
        branch: file.manifest.branch.clone(),
        v_plan: file.manifest.version,
        index: DroppedIndex { fields: segments.first().map(|s| s.fields.clone()).unwrap_or_default(), size_bytes: sizes, name },
        segments: segments.iter().map(|s| SegmentFate { uuid: s.uuid, fate: Fate::Removed, why: why.to_owned() }).collect(),
    })
}

/// Whether the document is a plan to drop an index.
///
/// # Errors
/// `INVALID_ARGUMENT` when it is not.
pub fn check_drop(plan: &DropPlan) -> Result<()> {
    if plan.format != FORMAT || plan.kind != DROP {
        let text = format!("this is no plan of format {FORMAT} to drop an index (kind {:?}, format {})", plan.kind, plan.format);
        return Err(Error::invalid(text));
    }
    Ok(())
}

/// Commits a plan to drop an index, telling `committing` before anything that may commit is sent. When the index is gone
/// already there is nothing to do, and the report says so.
///
/// # Errors
/// `INDEX_CHANGED` when another index has the name now, `STALE_PLAN` for an older table, `INVALID_ARGUMENT` for another
/// document, and those of [`publish`].
pub async fn commit_drop(table: &Table, plan: &DropPlan, committing: &OnCommitting<'_>) -> Result<(RefreshReport, Table)> {
    check_drop(plan)?;
    if table.manifest().manifest.branch != plan.branch {
        return Err(Error::invalid("the plan to drop an index is for another branch than the table given; nothing was changed"));
    }
    let env = table.store().env().clone();
    let start = env.now_ms();
    let published = publish(table, &Drop { plan }, committing).await?;
    let removed: Vec<Uuid> = published.change.iter().flat_map(|change| &change.removed).map(|e| e.uuid).collect();
    let version = published.table.version();
    let report = RefreshReport {
        index_name: plan.index.name.clone(),
        fragments_indexed: 0,
        segments_added: 0,
        segments_removed: removed.len() as u64,
        added: Vec::new(),
        removed,
        declared: Vec::new(),
        established: Vec::new(),
        left_out: Vec::new(),
        version_before: version.saturating_sub(u64::from(published.change.is_some())),
        version,
        attempts: published.attempts,
        transaction: published.transaction,
        ms: u64::try_from(env.now_ms().saturating_sub(start)).unwrap_or(0),
        requests: table.store().requests(),
    };
    Ok((report, published.table))
}

struct Drop<'a> {
    plan: &'a DropPlan,
}

#[async_trait(?Send)]
impl Proposal for Drop<'_> {
    fn index_name(&self) -> &str {
        &self.plan.index.name
    }

    /// The uuids are looked up by name on every attempt: a compaction may have given the segments new ones (§8.1, hole 2).
    async fn decide(&self, latest: &Table) -> Result<Decision> {
        let file = latest.manifest();
        let (plan, name) = (self.plan, &self.plan.index.name);
        if file.manifest.version < plan.v_plan {
            let text = format!("the plan was made on version {}, the table is at version {}", plan.v_plan, file.manifest.version);
            return Err(Error::new(ErrorCode::StalePlan, text));
        }
        let removed: Vec<IndexMetadata> = file.indices.iter().filter(|e| e.name == *name).cloned().collect();
        if removed.is_empty() {
            return Ok(Decision::Nothing { why: "the index is gone already".to_owned(), left_out: Vec::new() });
        }
        latest.derivable().await?;
        check_write_tagged(&file.manifest, &file.indices)?;
        let planned = set_of(plan.segments.iter().map(|s| s.uuid));
        let same_fields = |e: &IndexMetadata| e.name == *name && e.fields == plan.index.fields;
        let seen = removed.iter().any(|e| planned.contains(&e.uuid));
        if !(seen || removed.iter().all(same_fields) && never_gone(latest, plan.v_plan, &same_fields).await?) {
            let text = format!(
                "index {name} was dropped and made again since version {}, as far as can be known; plan again. Nothing was committed",
                plan.v_plan
            );
            return Err(Error::new(ErrorCode::IndexChanged, text).with("index", name.as_str()));
        }
        Ok(Decision::Publish(IndexChange { removed, ..IndexChange::default() }))
    }
}
