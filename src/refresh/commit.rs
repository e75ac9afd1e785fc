//! Publishing what was built for a plan: the refresh half of the one commit loop (`table::publish`).

use std::cell::Cell;

use async_trait::async_trait;
use uuid::Uuid;

use super::build::{check_sizes, discard};
use super::check::check_plan;
use super::plan::{FORMAT, RefreshPlan};
use super::report::RefreshReport;
use super::task::BuiltSegment;
use super::verify::{Verdict, verify};
use crate::coverage::sets::{declared, established};
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::store::Store;
use crate::table::Table;
use crate::table::publish::{Decision, OnCommitting, Proposal, Published, publish, tell_nobody};

/// How long files that were seen whole are taken to be there, in milliseconds.
const CHECKED_FOR_MS: i64 = 3_600_000;
/// Files that no version names are not removed by us (`orphans`) before they are this old, in milliseconds.
pub const UNNAMED_FOR_MS: i64 = 24 * 3_600_000;
/// And none is named for the first time once it is this old: whoever found it abandoned may be about to delete it. The two hours
/// between are for requests on their way and for clocks that differ.
const NAMED_WITHIN_MS: i64 = UNNAMED_FOR_MS - 2 * 3_600_000;

/// Publishes what was built for a plan in one CreateIndex transaction, or says truthfully why not. The table returned is at
/// the version committed (or found current when there was nothing to do).
///
/// # Errors
/// Those of [`verify`] and of [`publish`]; `INVALID_ARGUMENT` for documents that do not fit together. Built files stay, listed
/// in the detail `staged` with `changed: staged`, so that the caller can commit again or remove them.
pub async fn commit_segments(table: &Table, plan: &RefreshPlan, built: &[BuiltSegment]) -> Result<(RefreshReport, Table)> {
    commit_segments_telling(table, plan, built, &tell_nobody).await
}

/// [`commit_segments`], telling `committing` before anything that may commit is sent. An error of `committing` ends the commit.
pub async fn commit_segments_telling(
    table: &Table,
    plan: &RefreshPlan,
    built: &[BuiltSegment],
    committing: &OnCommitting<'_>,
) -> Result<(RefreshReport, Table)> {
    let env = table.store().env().clone();
    let start = env.now_ms();
    check_documents(table, plan, built)?;
    let staged = staged_of(built);
    let result = run(table, plan, built, committing).await;
    let (mut report, table) = result.map_err(|error| with_staged(error, &staged))?;
    report.ms = u64::try_from(env.now_ms().saturating_sub(start)).unwrap_or(0);
    report.requests = table.store().requests();
    Ok((report, table))
}

async fn run(
    table: &Table,
    plan: &RefreshPlan,
    built: &[BuiltSegment],
    committing: &OnCommitting<'_>,
) -> Result<(RefreshReport, Table)> {
    if built.is_empty() {
        let nothing =
            Published { table: table.clone(), change: None, left_out: Vec::new(), attempts: Vec::new(), transaction: None };
        return Ok((report(plan, built, &nothing).await, nothing.table));
    }
    let mut published = publish(table, &Built { plan, built, checked_ms: Cell::new(None) }, committing).await?;
    if published.change.is_none() {
        // Certain: nothing of it was committed, and nothing of it is on its way.
        let left = discard(published.table.store(), &staged_of(built)).await;
        if let (false, Some(last)) = (left.is_empty(), published.attempts.last_mut()) {
            let why = last.why.take().unwrap_or_default();
            last.why = Some(format!("{why}; still on the store, named by no manifest: {}", left.join(", ")));
        }
    }
    Ok((report(plan, built, &published).await, published.table))
}

/// Segments that were built for a plan.
struct Built<'a> {
    plan: &'a RefreshPlan,
    built: &'a [BuiltSegment],
    /// When their files were last seen to be whole.
    checked_ms: Cell<Option<i64>>,
}

impl Built<'_> {
    /// Whether the files are there, and young enough: what no manifest names is removed after some days by Lance, after one by
    /// `orphans` if it is told so, and a machine may sleep that long.
    async fn check_files(&self, store: &Store) -> Result<()> {
        let now = store.env().now_ms();
        let fresh = |then: i64| (0..CHECKED_FOR_MS).contains(&now.saturating_sub(then));
        if self.checked_ms.get().is_some_and(fresh) {
            return Ok(());
        }
        // What was built a moment ago was looked at then.
        for segment in self.built.iter().filter(|segment| !segment.seen_ms.is_some_and(fresh)) {
            let listed = check_sizes(store, &format!("_indices/{}", segment.uuid), &segment.files).await?;
            if let Some(written) = listed.or(segment.seen_ms)
                && now.saturating_sub(written) > NAMED_WITHIN_MS
            {
                return Err(too_old(&self.plan.index.target.name, segment.uuid, now.saturating_sub(written)));
            }
        }
        self.checked_ms.set(Some(now));
        Ok(())
    }
}

#[async_trait(?Send)]
impl Proposal for Built<'_> {
    fn index_name(&self) -> &str {
        &self.plan.index.target.name
    }

    async fn still(&self, latest: &Table) -> Result<()> {
        self.check_files(latest.store()).await
    }

    async fn decide(&self, latest: &Table) -> Result<Decision> {
        self.check_files(latest.store()).await?;
        Ok(match verify(latest, self.plan, self.built).await? {
            Verdict::Publish(change) => Decision::Publish(change),
            Verdict::NothingToDo(left_out) => {
                Decision::Nothing { why: "other segments cover everything that was built".to_owned(), left_out }
            }
        })
    }
}

fn too_old(index: &str, uuid: Uuid, age_ms: i64) -> Error {
    let text = format!(
        "segment {uuid} of index {index} was built {} hours ago; after {} hours without a version that names them its files may be removed as \
         abandoned at any moment: build it again. Nothing was committed",
        age_ms / 3_600_000,
        UNNAMED_FOR_MS / 3_600_000
    );
    Error::new(ErrorCode::StalePlan, text).with("index", index).with("segment", uuid.to_string())
}

/// Files of the built segments, each in its own segment's folder: nothing else is ever deleted on a document's word.
fn staged_of(built: &[BuiltSegment]) -> Vec<String> {
    let inside =
        |segment: &BuiltSegment, path: &str| path.starts_with(&format!("_indices/{}/", segment.uuid)) && !path.contains("..");
    built.iter().flat_map(|b| b.staged.iter().filter(|path| inside(b, path)).cloned()).collect()
}

fn check_documents(table: &Table, plan: &RefreshPlan, built: &[BuiltSegment]) -> Result<()> {
    check_plan(plan)?;
    let branch = &table.manifest().manifest.branch;
    if *branch != plan.branch {
        let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "main".to_owned());
        let text = format!("the plan is for branch {}, the table given is branch {}", name(&plan.branch), name(branch));
        return Err(Error::invalid(text));
    }
    if built.is_empty() && !plan.is_empty() {
        let text = format!(
            "index {}: there are no built segments to commit; the plan has {} tasks",
            plan.index.target.name,
            plan.tasks.len()
        );
        return Err(Error::invalid(text));
    }
    let target = &plan.index.target;
    for segment in built {
        let fits = segment.format == FORMAT
            && segment.name == target.name
            && segment.field_id == target.field_id
            && segment.method == target.method
            && segment.row_domain == target.row_domain
            && segment.details.0.type_url == target.type_url
            && (segment.copy_of.is_some() || segment.dataset_version == plan.v_plan);
        if !fits {
            let text = format!(
                "segment {} (index {}, method {}, version {}) was not built for this plan of index {} at version {}",
                segment.uuid, segment.name, segment.method, segment.dataset_version, target.name, plan.v_plan
            );
            return Err(Error::invalid(text).with("segment", segment.uuid.to_string()));
        }
    }
    Ok(())
}

/// The error, saying which files lie on the store that no manifest names.
fn with_staged(error: Error, staged: &[String]) -> Error {
    if staged.is_empty() {
        return error;
    }
    let unknown = error.changed() == Changed::Unknown;
    let all = staged.iter().cloned().chain(error.staged().map(str::to_owned)).collect();
    let error = error.with_staged(all);
    if unknown { error.with_changed(Changed::Unknown) } else { error }
}

/// What became of it, read from the version that was written.
async fn report(plan: &RefreshPlan, built: &[BuiltSegment], published: &Published) -> RefreshReport {
    let file = published.table.manifest();
    // Only a tagged history makes a difference between what new segments name and what they cover. It was read for the commit;
    // what is committed is no failure any more.
    let covering = match published.table.indices().await {
        Ok(indices) if published.table.has_tagged_history() => indices,
        _ => &file.indices,
    };
    let committed = published.change.as_ref();
    let ours = |uuid| committed.is_some() && built.iter().any(|b| b.uuid == uuid);
    let added: Vec<_> = covering.iter().filter(|e| ours(e.uuid)).collect();
    let established = established(added.iter().filter_map(|e| e.fragment_bitmap.as_ref()), &file.manifest.live());
    let removed: Vec<_> = committed.iter().flat_map(|change| &change.removed).map(|e| e.uuid).collect();
    RefreshReport {
        index_name: plan.index.target.name.clone(),
        fragments_indexed: established.len(),
        segments_added: added.len() as u64,
        segments_removed: removed.len() as u64,
        added: added.iter().map(|e| e.uuid).collect(),
        removed,
        declared: declared_fragments(built),
        established: established.iter().collect(),
        left_out: committed.map_or_else(|| published.left_out.clone(), |change| change.left_out.clone()),
        version_before: file.manifest.version.saturating_sub(u64::from(committed.is_some())),
        version: file.manifest.version,
        attempts: published.attempts.clone(),
        transaction: published.transaction,
        ms: 0,
        requests: Default::default(),
    }
}

fn declared_fragments(built: &[BuiltSegment]) -> Vec<u32> {
    let bitmaps: Vec<roaring::RoaringBitmap> = built.iter().map(|b| b.fragments.iter().copied().collect()).collect();
    declared(&bitmaps).iter().collect()
}
