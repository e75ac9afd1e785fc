//! The one loop that publishes built segments (refresh-and-compaction §8.3, design §8).

use std::collections::BTreeSet;

use futures::future::LocalBoxFuture;
use serde::Serialize;

use super::build::{check_sizes, discard};
use super::check::check_plan;
use super::plan::{FORMAT, RefreshPlan};
use super::report::{Attempt, RefreshReport};
use super::task::BuiltSegment;
use super::verify::{Verdict, Verified, verify};
use crate::coverage::prune::LeftOut;
use crate::coverage::sets::{declared, established};
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::next_manifest::NextManifest;
use crate::format::transaction::Transaction;
use crate::table::commit::{CommitOutcome, NextVersion};
use crate::table::{At, Table};

/// Attempts before giving up, as many as Lance makes.
const ATTEMPTS: u32 = 20;
/// Times in a row that the store may take no manifest although nobody else's is there.
const REFUSALS: u32 = 3;
/// Width of one back-off slot before it is known how long an attempt takes, in milliseconds.
const SLOT_MS: u64 = 50;
/// Most slots an attempt waits.
const MOST_SLOTS: u32 = 128;

/// Publishes what was built for a plan in one CreateIndex transaction, or says truthfully why not. The table returned is at
/// the version committed (or found current when there was nothing to do).
///
/// # Errors
/// Those of [`verify`]; `INVALID_ARGUMENT` for documents that do not fit together; `COMMIT_CONFLICT` after 20 lost
/// attempts; `COMMIT_UNKNOWN` when it cannot be found out whether the commit landed, and then nothing is deleted. Built
/// files stay, listed in the detail `staged` with `changed: staged`, so that the caller can commit again or remove them.
pub async fn commit_segments(table: &Table, plan: &RefreshPlan, built: &[BuiltSegment]) -> Result<(RefreshReport, Table)> {
    commit_segments_telling(table, plan, built, &|_| Box::pin(std::future::ready(Ok(())))).await
}

/// What is about to be committed: enough to find out later what became of it, whoever is still there to ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Committing {
    /// Address of the table or of its branch's root; no keys.
    pub uri: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Index name.
    pub index_name: String,
    /// Uuid of the transaction, the same for every attempt.
    pub transaction: uuid::Uuid,
    /// Version this attempt tries to become.
    pub version: u64,
}

/// Told before the manifest of each attempt is sent, and waited for.
pub type OnCommitting<'a> = dyn Fn(Committing) -> LocalBoxFuture<'static, Result<()>> + 'a;

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
        return Ok((nothing(plan, built, table.version(), Vec::new(), Vec::new()), table.clone()));
    }
    for segment in built {
        check_sizes(table.store(), &format!("_indices/{}", segment.uuid), &segment.files).await?;
    }
    let env = table.store().env().clone();
    let uuid = env.uuid();
    let mut attempts = Vec::new();
    let mut slot = SLOT_MS;
    let mut refused = 0;
    let mut pending: Option<(u64, Verified)> = None;
    for attempt in 0..ATTEMPTS {
        let started = env.now_ms();
        let latest = table.latest().await?;
        if let Some((version, verified)) = pending.take_if(|_| names_any(&latest, built)) {
            return landed_late(&latest, plan, built, version, verified, attempts, uuid).await;
        }
        let next = latest.version().saturating_add(1);
        let mut verified = match verify(&latest, plan, built).await? {
            Verdict::Publish(verified) => verified,
            Verdict::NothingToDo(left_out) => {
                let left = discard(latest.store(), &staged_of(built)).await;
                let mut why = "other segments cover everything that was built".to_owned();
                if !left.is_empty() {
                    why = format!("{why}; still on the store, named by no manifest: {}", left.join(", "));
                }
                attempts.push(Attempt { version: next, outcome: "nothing_to_do".to_owned(), why: Some(why) });
                return Ok((nothing(plan, built, latest.version(), attempts, left_out), latest));
            }
        };
        let created = u64::try_from(env.now_ms()).ok();
        for entry in &mut verified.new {
            entry.created_at_ms = created;
        }
        let removed: BTreeSet<_> = verified.removed.iter().map(|e| e.uuid).collect();
        let section: Vec<_> =
            latest.manifest().indices.iter().filter(|e| !removed.contains(&e.uuid)).chain(&verified.new).cloned().collect();
        let transaction = Transaction::create_index(latest.version(), uuid, verified.new.clone(), verified.removed.clone());
        let manifest = NextManifest {
            base: latest.manifest(),
            indices: section,
            transaction: &transaction,
            transaction_file: transaction.file_name(),
            now_ms: env.now_ms(),
        }
        .encode()?;
        let told = committing(Committing {
            uri: latest.store().uri(),
            branch: plan.branch.clone(),
            index_name: plan.index.target.name.clone(),
            transaction: uuid,
            version: next,
        });
        if let Err(error) = told.await {
            // An earlier attempt may still be on its way: then this is no certain end.
            return Err(pending.map_or(error, |(version, _)| {
                let cause = Error::new(ErrorCode::CommitUnknown, "an attempt that seemed lost was not followed any further");
                unknown(plan, version, &transaction.uuid, &cause)
            }));
        }
        match latest.put_next(NextVersion { version: next, manifest, transaction: &transaction }).await? {
            CommitOutcome::Landed(landed) => {
                attempts.push(Attempt { version: next, outcome: "committed".to_owned(), why: None });
                let report = report(plan, built, &landed, verified, attempts, uuid);
                return Ok((report, landed));
            }
            CommitOutcome::Lost { taken: Some(_), why } => {
                refused = 0;
                attempts.push(Attempt { version: next, outcome: "lost".to_owned(), why: Some(why) });
            }
            CommitOutcome::Lost { taken: None, why } => {
                refused += 1;
                if refused == REFUSALS {
                    let cause =
                        Error::new(ErrorCode::CommitUnknown, format!("the store took no manifest {REFUSALS} times ({why})"));
                    return Err(unknown(plan, next, &transaction.uuid, &cause));
                }
                attempts.push(Attempt { version: next, outcome: "lost".to_owned(), why: Some(why) });
                // A request that seemed lost may still arrive: remembered, so that it is recognised as ours.
                pending = Some((next, verified));
            }
            CommitOutcome::Unknown(error) => return Err(unknown(plan, next, &transaction.uuid, &error)),
        }
        if attempt == 0 {
            let took = u64::try_from(env.now_ms().saturating_sub(started)).unwrap_or(0);
            slot = (took + took / 10).max(1);
        }
        let slots = 2u32.saturating_pow(attempt.saturating_add(2)).min(MOST_SLOTS);
        env.sleep(slot.saturating_mul((env.random() * f64::from(slots)) as u64)).await;
    }
    let text = format!(
        "index {}: none of {} attempts to commit succeeded, the last because {}; nothing was committed",
        plan.index.target.name,
        attempts.len(),
        attempts.last().and_then(|a| a.why.as_deref()).unwrap_or("of nothing known")
    );
    Err(Error::new(ErrorCode::CommitConflict, text).with("attempts", serde_json::to_value(&attempts).unwrap_or_default()))
}

/// Files of the built segments, each in its own segment's folder: nothing else is ever deleted on a document's word.
fn staged_of(built: &[BuiltSegment]) -> Vec<String> {
    let inside =
        |segment: &BuiltSegment, path: &str| path.starts_with(&format!("_indices/{}/", segment.uuid)) && !path.contains("..");
    built.iter().flat_map(|b| b.staged.iter().filter(|path| inside(b, path)).cloned()).collect()
}

fn names_any(table: &Table, built: &[BuiltSegment]) -> bool {
    table.manifest().indices.iter().any(|e| built.iter().any(|b| b.uuid == e.uuid))
}

/// The latest version names our segments although no attempt was seen to succeed: which attempt was it?
async fn landed_late(
    latest: &Table,
    plan: &RefreshPlan,
    built: &[BuiltSegment],
    version: u64,
    verified: Verified,
    mut attempts: Vec<Attempt>,
    uuid: uuid::Uuid,
) -> Result<(RefreshReport, Table)> {
    let text = uuid.to_string();
    match latest.transaction(version).await? {
        Some(transaction) if transaction.uuid.eq_ignore_ascii_case(&text) => {
            let landed = if latest.version() == version { latest.clone() } else { latest.at(At::Version(version)).await? };
            if let Some(last) = attempts.iter_mut().rfind(|a| a.version == version) {
                last.outcome = "committed".to_owned();
                last.why = Some("the store's answer was lost, the commit was not".to_owned());
            }
            Ok((report(plan, built, &landed, verified, attempts, uuid), landed))
        }
        _ => {
            let cause = Error::new(ErrorCode::CommitUnknown, format!("version {} names its segments", latest.version()));
            Err(unknown(plan, version, &text, &cause))
        }
    }
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
    if staged.is_empty() || error.changed() == Changed::Unknown {
        return error;
    }
    error.with("staged", staged.to_vec()).with_changed(Changed::Staged)
}

fn unknown(plan: &RefreshPlan, version: u64, transaction: &str, cause: &Error) -> Error {
    let text = format!(
        "it could not be found out whether index {} was committed as version {version}: {}. It was if that version carries \
         transaction {transaction}; nothing was deleted",
        plan.index.target.name,
        cause.message()
    );
    Error::new(ErrorCode::CommitUnknown, text)
        .with("version", version)
        .with("transaction", transaction)
        .with_changed(Changed::Unknown)
}

fn nothing(
    plan: &RefreshPlan,
    built: &[BuiltSegment],
    version: u64,
    attempts: Vec<Attempt>,
    left_out: Vec<LeftOut>,
) -> RefreshReport {
    RefreshReport {
        index_name: plan.index.target.name.clone(),
        fragments_indexed: 0,
        segments_added: 0,
        segments_removed: 0,
        added: Vec::new(),
        removed: Vec::new(),
        declared: declared_fragments(built),
        established: Vec::new(),
        left_out,
        version_before: version,
        version,
        attempts,
        transaction: None,
        ms: 0,
        requests: Default::default(),
    }
}

/// Read from the manifest that was written, not from what was meant.
fn report(
    plan: &RefreshPlan,
    built: &[BuiltSegment],
    landed: &Table,
    verified: Verified,
    attempts: Vec<Attempt>,
    transaction: uuid::Uuid,
) -> RefreshReport {
    let file = landed.manifest();
    let ours: Vec<_> = file.indices.iter().filter(|e| built.iter().any(|b| b.uuid == e.uuid)).collect();
    let established = established(ours.iter().filter_map(|e| e.fragment_bitmap.as_ref()), &file.manifest.live());
    RefreshReport {
        index_name: plan.index.target.name.clone(),
        fragments_indexed: established.len(),
        segments_added: ours.len() as u64,
        segments_removed: verified.removed.len() as u64,
        added: ours.iter().map(|e| e.uuid).collect(),
        removed: verified.removed.iter().map(|e| e.uuid).collect(),
        declared: declared_fragments(built),
        established: established.iter().collect(),
        left_out: verified.left_out,
        version_before: landed.version().saturating_sub(1),
        version: landed.version(),
        attempts,
        transaction: Some(transaction),
        ms: 0,
        requests: Default::default(),
    }
}

fn declared_fragments(built: &[BuiltSegment]) -> Vec<u32> {
    let bitmaps: Vec<roaring::RoaringBitmap> = built.iter().map(|b| b.fragments.iter().copied().collect()).collect();
    declared(&bitmaps).iter().collect()
}
