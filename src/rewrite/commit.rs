//! Committing a compaction: ids are reserved in one version, as Lance does, and the fragments exchanged in the next. Both go
//! through the one commit loop; every attempt takes its facts from the version it would replace.

use std::cell::RefCell;
use std::collections::BTreeMap;

use async_trait::async_trait;
use prost::Message;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::basis::{Basis, check_compaction};
use super::data_file::NewFragment;
use super::history;
use super::lineage::encode_row_ids;
use super::moves::{MovedTask, Moves};
use super::remap::{Remapped, remap};
use super::report::{CompactionReport, SegmentOutcome};
use super::task::{BuiltRewrite, REWRITE, file_name};
use crate::compaction::borders::Gaps;
use crate::compaction::{Effects, Fate, Layout, Plan, effects};
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::flags::check_write;
use crate::format::fragment_change::FragmentChange;
use crate::format::index_metadata::IndexMetadata;
use crate::format::{proto, wire};
use crate::maintain::forecast::compaction::CompactionPlan;
use crate::maintain::forecast::snapshot;
use crate::refresh::build::withdraw;
use crate::refresh::plan::FORMAT;
use crate::table::Table;
use crate::table::publish::{Attempt, DataChange, Decision, IndexChange, OnCommitting, Proposal, publish};

/// Numbers of the operations in a transaction (table-format §8.2).
const REWRITE_OPERATION: u32 = 104;
const RESERVE_OPERATION: u32 = 107;

/// Commits what was written for a plan. The table returned is at the version committed.
///
/// # Errors
/// `STALE_PLAN` when a source, the schema or the coverage changed meanwhile: then nothing but reserved ids was committed. Those of
/// preparing, remapping and of [`publish`]. Files of this compaction are removed unless its commit may still arrive; what is left
/// is in the detail `staged`.
pub async fn commit_compaction(
    table: &Table,
    plan: &CompactionPlan,
    built: &[BuiltRewrite],
    committing: &OnCommitting<'_>,
) -> Result<(CompactionReport, Table)> {
    let env = table.store().env().clone();
    let start = env.now_ms();
    check_documents(plan, built)?;
    if plan.tasks.is_empty() {
        return Ok((CompactionReport::nothing(table), table.clone()));
    }
    let staged = RefCell::new(built.iter().flat_map(files_of).collect::<Vec<String>>());
    match run(table, plan, built, committing, &staged).await {
        Ok((mut report, table)) => {
            report.ms = u64::try_from(env.now_ms().saturating_sub(start)).unwrap_or(0);
            report.requests = table.store().requests();
            Ok((report, table))
        }
        Err(error) if matches!(error.changed(), Changed::Unknown | Changed::Committed) => Err(error),
        Err(error) => Err(withdraw(table.store(), error, &staged.take()).await),
    }
}

/// The objects a document says it wrote, by the names that its uuid gives them: nothing else is deleted on its word.
fn files_of(built: &BuiltRewrite) -> impl Iterator<Item = String> {
    let uuid = built.uuid;
    (0..built.files.len()).map(move |n| format!("data/{}", file_name(uuid, n)))
}

fn check_documents(plan: &CompactionPlan, built: &[BuiltRewrite]) -> Result<()> {
    check_compaction(plan)?;
    let fits = built.len() == plan.tasks.len()
        && built.iter().zip(&plan.tasks).all(|(built, task)| {
            let named = built.files.iter().enumerate().all(|(n, file)| file.path == file_name(built.uuid, n));
            built.format == FORMAT
                && built.kind == REWRITE
                && named
                && built.fragments == task.fragments
                && built.files.iter().map(|file| file.rows).eq(task.outputs.iter().map(|output| output.rows))
        });
    if !fits {
        return Err(Error::invalid("what was written is not what the plan to compact asks for; nothing was changed"));
    }
    Ok(())
}

async fn run(
    table: &Table,
    plan: &CompactionPlan,
    built: &[BuiltRewrite],
    committing: &OnCommitting<'_>,
    staged: &RefCell<Vec<String>>,
) -> Result<(CompactionReport, Table)> {
    let basis = Basis::of(table, plan).await?;
    let count = built.iter().fold(0usize, |sum, built| sum.saturating_add(built.files.len()));
    let mut at = table.clone();
    let mut attempts = Vec::new();
    let mut first = 0u32;
    if count > 0 {
        let wanted = u32::try_from(count).map_err(|_| Error::invalid("a compaction cannot write so many fragments"))?;
        let reserved = publish(table, &Reserve { basis: &basis, count: wanted }, committing).await?;
        let last = reserved.table.manifest().manifest.max_fragment_id;
        first = last
            .and_then(|last| last.checked_sub(wanted - 1))
            .ok_or_else(|| Error::internal("ids were reserved, and the version does not say so"))?;
        attempts = reserved.attempts;
        at = reserved.table;
    }
    let tasks = moved(&basis, built, first);
    let exchange = Exchange {
        plan,
        basis: &basis,
        first,
        fragments: written(&basis, built, &tasks),
        moves: Moves::new(&tasks)?,
        tasks,
        remapped: RefCell::default(),
        outcomes: RefCell::default(),
        staged,
    };
    let published = publish(&at, &exchange, committing).await?;
    attempts.extend(published.attempts);
    let version = published.table.version();
    let outcomes = exchange.outcomes.take();
    Ok((report(plan, &exchange.tasks, outcomes, attempts, version, published.transaction), published.table))
}

fn moved(basis: &Basis, built: &[BuiltRewrite], first: u32) -> Vec<MovedTask> {
    let mut next = first;
    let mut tasks = Vec::with_capacity(built.len());
    for (basis, built) in basis.tasks.iter().zip(built) {
        let mut outputs = Vec::with_capacity(built.files.len());
        for file in &built.files {
            outputs.push((next, file.rows));
            next = next.saturating_add(1);
        }
        tasks.push(MovedTask { sources: basis.sources.clone(), outputs });
    }
    tasks
}

/// The new fragments of every task.
fn written(basis: &Basis, built: &[BuiltRewrite], tasks: &[MovedTask]) -> Vec<Vec<NewFragment>> {
    let mut all = Vec::with_capacity(tasks.len());
    for ((of, built), task) in basis.tasks.iter().zip(built).zip(tasks) {
        let mut first = 0u64;
        let mut fragments = Vec::with_capacity(task.outputs.len());
        for (file, (id, rows)) in built.files.iter().zip(&task.outputs) {
            let range = (first as usize)..(first.saturating_add(*rows) as usize);
            let ids = of.row_ids.as_ref().map(|ids| encode_row_ids(ids.get(range).unwrap_or_default()));
            fragments.push(NewFragment {
                id: *id,
                files: vec![basis.layout.entry(file.path.clone(), file.size)],
                rows: *rows,
                deletion_file: None,
                row_ids: ids,
                last_updated_at: of.last_updated_at.as_ref().map(|versions| versions.encode(first, *rows)),
                created_at: of.created_at.as_ref().map(|versions| versions.encode(first, *rows)),
            });
            first = first.saturating_add(*rows);
        }
        all.push(fragments);
    }
    all
}

/// Takes ids for the new fragments, so that index files can name them before they are there.
struct Reserve<'a> {
    basis: &'a Basis,
    count: u32,
}

#[async_trait(?Send)]
impl Proposal for Reserve<'_> {
    fn index_name(&self) -> &str {
        "compaction"
    }

    fn subject(&self) -> String {
        "the compaction".to_owned()
    }

    async fn decide(&self, latest: &Table) -> Result<Decision> {
        let file = latest.manifest();
        check_write(&file.manifest, &file.indices)?;
        self.basis.check_current(&file.manifest)?;
        let highest = file.manifest.max_fragment_id.max(file.manifest.fragments.last().map(|fragment| fragment.id));
        let last = highest.map_or(self.count.checked_sub(1), |highest| highest.checked_add(self.count));
        let last = last.filter(|last| *last != u32::MAX).ok_or_else(|| Error::invalid("the table has no fragment ids left"))?;
        let mut body = Vec::new();
        wire::put_varint_field(&mut body, 1, u64::from(self.count));
        let fragments = FragmentChange { reserved: Some(last), ..FragmentChange::default() };
        let data = DataChange { operation: RESERVE_OPERATION, body: body.into(), fragments };
        Ok(Decision::Publish(IndexChange { data: Some(Box::new(data)), ..IndexChange::default() }))
    }
}

/// Exchanges the sources for what was written.
struct Exchange<'a> {
    plan: &'a CompactionPlan,
    basis: &'a Basis,
    /// Id of the first new fragment.
    first: u32,
    fragments: Vec<Vec<NewFragment>>,
    moves: Moves,
    tasks: Vec<MovedTask>,
    /// Segments written again so far, by the uuid of the old one; `None` = its layout does not allow that.
    remapped: RefCell<BTreeMap<Uuid, Option<IndexMetadata>>>,
    /// What the last attempt made of the segments.
    outcomes: RefCell<Vec<SegmentOutcome>>,
    staged: &'a RefCell<Vec<String>>,
}

#[async_trait(?Send)]
impl Proposal for Exchange<'_> {
    fn index_name(&self) -> &str {
        "compaction"
    }

    fn subject(&self) -> String {
        "the compaction".to_owned()
    }

    async fn decide(&self, latest: &Table) -> Result<Decision> {
        let file = latest.manifest();
        check_write(&file.manifest, &file.indices)?;
        self.basis.check_current(&file.manifest)?;
        self.check_ids(latest)?;
        let layout = snapshot(latest).await?.layout;
        let plan = self.positions(&layout)?;
        check_whole(&layout, &plan)?;
        let effects = effects(&layout, &plan, &self.plan.options)?;
        let mut change = IndexChange::default();
        let mut outcomes = Vec::new();
        let mut rewritten = Vec::new();
        for ((before, after), effect) in layout.covers.iter().zip(&effects.after.covers).zip(&effects.segments) {
            let Some(entry) = file.indices.iter().find(|entry| Some(entry.uuid) == before.uuid) else { continue };
            let mut outcome = SegmentOutcome::new(entry, effect.fate);
            let coverage = self.shifted(&effects, &after.bitmap);
            let new = match effect.fate {
                Fate::Kept | Fate::Retired | Fate::Deferred => None,
                Fate::Followed | Fate::Stripped => Some(entry.with_bitmap(Some(coverage))?),
                Fate::Remapped => match self.remapped(latest, entry, &before.bitmap).await? {
                    Some(new) => {
                        rewritten.push((entry.uuid, new.clone()));
                        outcome.new_uuid = Some(new.uuid);
                        Some(IndexMetadata { fragment_bitmap: Some(coverage), ..new })
                    }
                    None => {
                        outcome.fate = Fate::Retired;
                        None
                    }
                },
            };
            outcomes.push(outcome);
            if let Some(new) = new {
                change.removed.push(entry.clone());
                change.new.push(new);
            }
        }
        if self.plan.options.defer_index_remap
            && let Some((entry, staged)) = history::next(latest, &self.tasks, effects.writes_history).await?
        {
            self.staged.borrow_mut().extend(staged);
            change.removed.extend(file.indices.iter().filter(|e| e.name == entry.name).cloned());
            change.new.push(entry);
        }
        self.outcomes.replace(outcomes);
        change.data = Some(Box::new(DataChange {
            operation: REWRITE_OPERATION,
            body: self.body(&rewritten).into(),
            fragments: FragmentChange {
                removed: self.basis.sources(),
                added: self.fragments.iter().flatten().map(NewFragment::encode).collect(),
                ..FragmentChange::default()
            },
        }));
        Ok(Decision::Publish(change))
    }
}

impl Exchange<'_> {
    /// The reserved ids are ours as long as no fragment has one of them and the table remembers that they were given away.
    fn check_ids(&self, latest: &Table) -> Result<()> {
        let manifest = &latest.manifest().manifest;
        let Some(last) = self.fragments.iter().flatten().map(|fragment| fragment.id).max() else { return Ok(()) };
        let taken = manifest.fragments.iter().any(|fragment| (self.first..=last).contains(&fragment.id));
        if taken || manifest.max_fragment_id.is_none_or(|highest| highest < last) {
            let text = "the fragment ids that were reserved for the compaction are not reserved any more; it was not committed. Plan again";
            return Err(Error::new(ErrorCode::StalePlan, text));
        }
        Ok(())
    }

    /// The tasks as positions of a layout.
    fn positions(&self, layout: &Layout) -> Result<Plan> {
        let mut tasks = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            let first = task.sources.first().and_then(|source| layout.position(source.fragment));
            let range = first.map(|first| first..first.saturating_add(task.sources.len()));
            let pieces = range.clone().and_then(|range| layout.pieces.get(range)).unwrap_or_default();
            let neighbours = pieces.iter().map(|piece| piece.id).eq(task.sources.iter().map(|source| source.fragment));
            match range {
                Some(range) if neighbours => tasks.push(range),
                _ => {
                    let text = "fragments that were to be joined are no neighbours any more; the compaction was not committed. Plan again";
                    return Err(Error::new(ErrorCode::StalePlan, text));
                }
            }
        }
        if tasks.windows(2).any(|pair| matches!(pair, [a, b] if a.end > b.start)) {
            return Err(Error::invalid("the groups of a plan to compact are not in the order of their fragments"));
        }
        Ok(Plan { tasks, over_budget: Vec::new(), standing: Vec::new(), borders: Gaps::none(0) })
    }

    /// Coverage with the ids that were reserved in place of those that the planner would give out now.
    fn shifted(&self, effects: &Effects, bitmap: &RoaringBitmap) -> RoaringBitmap {
        let Some(from) = effects.outputs.iter().filter(|ids| !ids.is_empty()).map(|ids| ids.start).min() else {
            return bitmap.clone();
        };
        bitmap.iter().map(|id| id.checked_sub(from).map_or(id, |n| self.first.saturating_add(n))).collect()
    }

    /// The segment with the new addresses, written once whatever the number of attempts.
    async fn remapped(&self, latest: &Table, entry: &IndexMetadata, bitmap: &RoaringBitmap) -> Result<Option<IndexMetadata>> {
        if let Some(known) = self.remapped.borrow().get(&entry.uuid) {
            return Ok(known.clone());
        }
        let covered = bitmap & self.basis.sources();
        let uuid = latest.store().env().uuid();
        let remapped = remap(latest, entry, &covered, &self.moves, uuid).await?;
        let entry_now = remapped.map(|Remapped { entry, staged }| {
            self.staged.borrow_mut().extend(staged);
            entry
        });
        self.remapped.borrow_mut().insert(entry.uuid, entry_now.clone());
        Ok(entry_now)
    }

    /// The Rewrite operation (table-format §8.2).
    fn body(&self, rewritten: &[(Uuid, IndexMetadata)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (basis, fragments) in self.basis.tasks.iter().zip(&self.fragments) {
            let mut group = Vec::new();
            for message in &basis.messages {
                wire::put_len_field(&mut group, 1, message);
            }
            for fragment in fragments {
                wire::put_len_field(&mut group, 2, &fragment.encode());
            }
            wire::put_len_field(&mut body, 3, &group);
        }
        for (old, new) in rewritten {
            let uuid = |uuid: &Uuid| proto::Uuid { uuid: bytes::Bytes::copy_from_slice(uuid.as_bytes()) }.encode_to_vec();
            let mut index = Vec::new();
            wire::put_len_field(&mut index, 1, &uuid(old));
            wire::put_len_field(&mut index, 2, &uuid(&new.uuid));
            if let Some(details) = &new.details {
                let any = proto::Any { type_url: details.type_url.clone(), value: details.value.clone() };
                wire::put_len_field(&mut index, 3, &any.encode_to_vec());
            }
            let version = u64::try_from(new.index_version.unwrap_or(0)).unwrap_or(0);
            if version != 0 {
                wire::put_varint_field(&mut index, 4, version);
            }
            for file in &new.files {
                let file = proto::IndexFile { path: file.path.clone(), size_bytes: file.size_bytes };
                wire::put_len_field(&mut index, 5, &file.encode_to_vec());
            }
            wire::put_len_field(&mut body, 4, &index);
        }
        body
    }
}

/// A segment that covers a part of a group came meanwhile: rows it does not cover would be taken for covered, or the other way.
fn check_whole(layout: &Layout, plan: &Plan) -> Result<()> {
    for cover in &layout.covers {
        for task in &plan.tasks {
            let pieces = layout.pieces.get(task.clone()).unwrap_or_default();
            let covered = pieces.iter().filter(|piece| cover.bitmap.contains(piece.id)).count();
            if covered > 0 && covered < pieces.len() {
                let text = format!(
                    "a segment of index {} covers {covered} of {} fragments that were to be joined; the compaction was not committed. Plan again",
                    layout.index_of(cover),
                    pieces.len()
                );
                return Err(Error::new(ErrorCode::StalePlan, text).with("index", layout.index_of(cover)));
            }
        }
    }
    Ok(())
}

fn report(
    plan: &CompactionPlan,
    tasks: &[MovedTask],
    segments: Vec<SegmentOutcome>,
    attempts: Vec<Attempt>,
    version: u64,
    transaction: Option<Uuid>,
) -> CompactionReport {
    let sources = tasks.iter().flat_map(|task| &task.sources);
    CompactionReport {
        fragments_removed: sources.clone().map(|source| source.fragment).collect(),
        fragments_added: tasks.iter().flat_map(|task| &task.outputs).map(|(id, _)| *id).collect(),
        rows: plan.tasks.iter().fold(0, |sum, task| sum.saturating_add(task.rows)),
        deleted_rows: sources.fold(0, |sum, source| sum.saturating_add(source.deleted.len())),
        segments_remapped: segments.iter().filter(|segment| segment.new_uuid.is_some()).count() as u64,
        segments,
        version_before: plan.v_plan,
        version,
        attempts,
        transaction,
        ms: 0,
        requests: Default::default(),
    }
}
