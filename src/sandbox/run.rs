//! A planned change is carried out: files first, then one commit.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use arrow::array::ArrayRef;
use async_trait::async_trait;
use futures::future::LocalBoxFuture;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::change::{CHANGE_KINDS, ChangePlan, Touched, check_changeable};
use super::choose::{Chosen, choose};
use super::columns::generator_of;
use super::generate::{Of, repeated};
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::bitmap::encode_roaring32;
use crate::format::fragment::{DeletionFile, DeletionKind};
use crate::format::fragment_change::{FragmentChange, with_deletions};
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::Manifest;
use crate::format::row::RowDomain;
use crate::format::wire;
use crate::lists::sorted_by_key;
use crate::refresh::build::{discard, may_be_ours, withdraw};
use crate::refresh::plan::FORMAT;
use crate::rewrite::data_file::{DataFileWriter, DataLayout, NewFragment};
use crate::store::{Payload, RequestCounts, Store};
use crate::table::publish::{Attempt, DataChange, Decision, IndexChange, OnCommitting, Proposal, publish};
use crate::table::scan::{FragmentScan, ScanContext};
use crate::table::{At, Table};

/// Keys of the table metadata: what generated values depend on, and the number of the row that comes next.
pub(super) const SEED: &str = "whetstone:seed";
pub(super) const NEXT_ROW: &str = "whetstone:next_row";
/// Rows that are made or moved at once.
const BATCH: u64 = 1 << 16;

/// Operations (table-format §8.2) and the fields of their messages.
const APPEND: u32 = 100;
const APPEND_FRAGMENTS: u32 = 1;
const DELETE: u32 = 101;
const DELETE_UPDATED: u32 = 1;
const DELETE_GONE: u32 = 2;
const DELETE_PREDICATE: u32 = 3;
const UPDATE: u32 = 108;
const UPDATE_GONE: u32 = 1;
const UPDATE_UPDATED: u32 = 2;
const UPDATE_NEW: u32 = 3;
const UPDATE_FIELDS: u32 = 6;

/// What a change did, read from what was committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeReport {
    /// `append`, `delete` or `update`.
    pub kind: String,
    /// Rows added, deleted or updated.
    pub rows: u64,
    /// Append: number of the first row. Behind that of the plan when somebody else appended meanwhile.
    pub first_row: Option<u64>,
    /// Fragments that came.
    pub fragments_added: Vec<u32>,
    /// Fragments that have another deletion vector.
    pub fragments_changed: Vec<u32>,
    /// Fragments that went with their last row.
    pub fragments_removed: Vec<u32>,
    /// Segments that went because nothing they cover is left.
    pub segments_removed: Vec<Uuid>,
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

/// Told how many rows are written so far, and waited for; an error ends the work while nothing is committed.
pub type OnRows<'a> = dyn Fn(u64) -> LocalBoxFuture<'static, Result<()>> + 'a;

/// For callers who do not want to know.
pub fn count_no_rows(_: u64) -> LocalBoxFuture<'static, Result<()>> {
    Box::pin(std::future::ready(Ok(())))
}

/// Files that no manifest names yet.
#[derive(Default)]
pub(super) struct Staged(Vec<String>);

/// The error after what was written is removed again; nothing is removed while it may have been committed.
pub(super) async fn give_up(store: &Store, error: Error, staged: &Staged) -> Error {
    if matches!(error.changed(), Changed::Unknown | Changed::Committed) {
        return error;
    }
    withdraw(store, error, &staged.0).await
}

/// Number of the row that a generator would make next.
pub(super) fn next_row(manifest: &Manifest) -> u64 {
    let kept = manifest.table_metadata.get(NEXT_ROW).and_then(|text| text.parse().ok());
    kept.unwrap_or_else(|| manifest.fragments.iter().filter_map(|f| f.physical_rows).fold(0, u64::saturating_add))
}

fn seed(manifest: &Manifest) -> u64 {
    manifest.table_metadata.get(SEED).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Generates rows and stores them as fragments.
pub(super) async fn append_rows(
    table: &Table,
    layout: &DataLayout,
    rows: Range<u64>,
    per_fragment: u64,
    staged: &mut Staged,
    on_rows: &OnRows<'_>,
) -> Result<Vec<NewFragment>> {
    let manifest = &table.manifest().manifest;
    let mut generators = Vec::new();
    for field in manifest.schema.children(-1) {
        generators.push((field, generator_of(&manifest.schema, field)?));
    }
    let mut fragments = Vec::new();
    let mut at = rows.start;
    while at < rows.end {
        let end = at.saturating_add(per_fragment.max(1)).min(rows.end);
        let mut file = layout.writer();
        let share = Share { before: at.saturating_sub(rows.start), rows: end.saturating_sub(at), columns: generators.len() };
        for (position, ((field, generator), column)) in generators.iter().zip(layout.columns()).enumerate() {
            let of = Of { seed: seed(manifest), field: field.id, name: &field.name };
            let mut from = at;
            while from < end {
                let to = from.saturating_add(BATCH).min(end);
                file.push(position, &generator.values(of, &column.data_type, from..to)?)?;
                from = to;
                on_rows(share.done(position, to.saturating_sub(at))).await?;
            }
        }
        fragments.push(store_file(table.store(), file, staged).await?);
        at = end;
    }
    Ok(fragments)
}

/// Rows are written column after column: so much of a fragment is done.
struct Share {
    /// Rows of the fragments before.
    before: u64,
    /// Rows of this one.
    rows: u64,
    columns: usize,
}

impl Share {
    fn done(&self, column: usize, values: u64) -> u64 {
        let all = self.rows.saturating_mul(column as u64).saturating_add(values);
        self.before.saturating_add(all.checked_div(self.columns as u64).unwrap_or(self.rows))
    }
}

async fn store_file(store: &Store, file: DataFileWriter, staged: &mut Staged) -> Result<NewFragment> {
    let name = format!("{}.lance", store.env().uuid().simple());
    let written = file.finish(name)?;
    let path = format!("data/{}", written.entry.path);
    store_object(store, path, written.file.chunks, staged).await?;
    Ok(NewFragment { files: vec![written.entry], rows: written.rows, ..NewFragment::default() })
}

async fn store_object(store: &Store, path: String, content: Payload, staged: &mut Staged) -> Result<()> {
    let stored = store.put(&path, content).await.map_err(|error| error.of_writing(&path));
    if may_be_ours(&stored) {
        staged.0.push(path);
    }
    stored
}

/// Carries a plan out. `committing` is told before anything that may commit is sent, `on_rows` while rows are written. An append whose
/// row numbers somebody else took meanwhile takes those that come next: its rows are made again, however often that happens.
///
/// # Errors
/// `STALE_PLAN` when a fragment that loses rows changed since the plan was made, `INVALID_ARGUMENT` for a plan of another table, those
/// of reading, writing, `on_rows` and of [`publish`]. What was written is removed again, unless it may have been committed.
pub async fn run_change(
    table: &Table,
    plan: &ChangePlan,
    committing: &OnCommitting<'_>,
    on_rows: &OnRows<'_>,
) -> Result<(ChangeReport, Table)> {
    if plan.format != FORMAT || !CHANGE_KINDS.contains(&plan.kind.as_str()) {
        let text = format!("this is no plan of format {FORMAT} to change data (kind {:?}, format {})", plan.kind, plan.format);
        return Err(Error::invalid(text));
    }
    let latest = table.latest().await?;
    if latest.manifest().manifest.branch != plan.branch || latest.version() < plan.v_plan {
        return Err(Error::new(ErrorCode::StalePlan, "the plan is of another branch or table; nothing was changed"));
    }
    check_changeable(&latest)?;
    latest.store().may_commit()?;
    let mut report = ChangeReport {
        kind: plan.kind.clone(),
        rows: plan.rows,
        first_row: plan.first_row,
        fragments_added: Vec::new(),
        fragments_changed: Vec::new(),
        fragments_removed: Vec::new(),
        segments_removed: Vec::new(),
        version_before: latest.version(),
        version: latest.version(),
        attempts: Vec::new(),
        transaction: None,
        requests: RequestCounts::default(),
    };
    if plan.rows == 0 {
        report.requests = table.store().requests();
        return Ok((report, latest));
    }
    let store = latest.store().clone();
    let mut change = Change {
        plan,
        on_rows,
        first: Cell::new(plan.first_row),
        added: RefCell::default(),
        staged: RefCell::default(),
        superseded: RefCell::default(),
        vectors: Vec::new(),
        gone: RoaringBitmap::new(),
    };
    let published = match change.write(&latest).await {
        Ok(()) => publish(&latest, &change, committing).await,
        Err(error) => Err(error),
    };
    let mut staged = change.staged.take();
    let superseded = change.superseded.take();
    let published = match published {
        Ok(published) => published,
        Err(error) => {
            staged.0.extend(superseded.0);
            return Err(give_up(&store, error, &staged).await);
        }
    };
    // What cannot be removed is named by no version, and found among the orphans.
    discard(&store, &superseded.0).await;
    let manifest = &published.table.manifest().manifest;
    let added = change.added.take();
    let names: Vec<&str> = added.iter().flat_map(|f| &f.files).map(|file| file.path.as_str()).collect();
    let ours = |files: &[crate::format::fragment::DataFile]| files.iter().any(|file| names.contains(&file.path.as_str()));
    report.first_row = change.first.get();
    report.fragments_added = manifest.fragments.iter().filter(|f| ours(&f.files)).map(|f| f.id).collect();
    for touched in &plan.touched {
        if touched.left == 0 { &mut report.fragments_removed } else { &mut report.fragments_changed }.push(touched.fragment);
    }
    report.segments_removed = published.change.iter().flat_map(|change| &change.removed).map(|entry| entry.uuid).collect();
    report.version_before = published.table.version().saturating_sub(1);
    report.version = published.table.version();
    report.attempts = published.attempts;
    report.transaction = published.transaction;
    report.requests = table.store().requests();
    Ok((report, published.table))
}

/// Everything but the manifest: files that are there, and what is to be said of them.
struct Change<'a> {
    plan: &'a ChangePlan,
    on_rows: &'a OnRows<'a>,
    /// Number of the first appended row.
    first: Cell<Option<u64>>,
    added: RefCell<Vec<NewFragment>>,
    staged: RefCell<Staged>,
    /// Files of rows whose numbers somebody else took. They stay until it is known which attempt was committed.
    superseded: RefCell<Staged>,
    vectors: Vec<(u32, DeletionFile)>,
    gone: RoaringBitmap,
}

impl Change<'_> {
    async fn write(&mut self, latest: &Table) -> Result<()> {
        let plan = self.plan;
        let manifest = &latest.manifest().manifest;
        if plan.first_row.is_some() {
            return self.append(latest).await;
        }
        self.check(manifest)?;
        // The rows are those of the version that was planned on; the fragments they are in have not changed since.
        let planned = if latest.version() == plan.v_plan { latest.clone() } else { latest.at(At::Version(plan.v_plan)).await? };
        let chosen = choose(&planned, &plan.choice.clone().unwrap_or_default()).await?;
        let counts = chosen.iter().map(|chosen| (chosen.fragment.id, chosen.rows.len()));
        if !counts.eq(plan.touched.iter().map(|touched| (touched.fragment, touched.rows))) {
            return Err(Error::new(ErrorCode::StalePlan, "the rows chosen are not those of the plan; nothing was changed"));
        }
        let staged = self.staged.get_mut();
        if plan.kind == "update" {
            let layout = DataLayout::of(&manifest.schema, &manifest.data_storage_version)?;
            *self.added.get_mut() = move_rows(&planned, &layout, &chosen, plan, staged, self.on_rows).await?;
        }
        let store = latest.store();
        for chosen in &chosen {
            let gone = chosen.gone();
            if chosen.is_all() {
                self.gone.insert(chosen.fragment.id);
                continue;
            }
            let (id, _) = store.env().uuid().as_u64_pair();
            let file = DeletionFile {
                kind: DeletionKind::Bitmap,
                read_version: plan.v_plan,
                id,
                num_deleted_rows: Some(gone.len()),
                base_id: None,
            };
            let path = file.path(chosen.fragment.id);
            store_object(store, path, vec![encode_roaring32(&gone).into()], staged).await?;
            self.vectors.push((chosen.fragment.id, file));
        }
        Ok(())
    }

    /// Makes the rows that come next in `latest`, unless they are made already.
    async fn append(&self, latest: &Table) -> Result<()> {
        let Some(planned) = self.first.get() else { return Ok(()) };
        let manifest = &latest.manifest().manifest;
        let first = planned.max(next_row(manifest));
        if first == planned && !self.added.borrow().is_empty() {
            return Ok(());
        }
        self.superseded.borrow_mut().0.extend(self.staged.take().0);
        self.first.set(Some(first));
        let layout = DataLayout::of(&manifest.schema, &manifest.data_storage_version)?;
        let rows = first..first.saturating_add(self.plan.rows);
        let mut staged = Staged::default();
        let added = append_rows(latest, &layout, rows, self.plan.rows_per_fragment, &mut staged, self.on_rows).await;
        self.staged.replace(staged);
        self.added.replace(added?);
        Ok(())
    }
}

/// Writes the chosen rows anew, with what is set in them.
async fn move_rows(
    table: &Table,
    layout: &DataLayout,
    chosen: &[Chosen],
    plan: &ChangePlan,
    staged: &mut Staged,
    on_rows: &OnRows<'_>,
) -> Result<Vec<NewFragment>> {
    let schema = &table.manifest().manifest.schema;
    let mut set = Vec::new();
    for (path, value) in plan.set.iter().flatten() {
        set.push((schema.resolve(path)?.id, value));
    }
    // Rows by fragment, cut where a new fragment begins.
    let mut parts: Vec<Vec<(&Chosen, Vec<u32>)>> = vec![Vec::new()];
    let mut room = plan.rows_per_fragment;
    for chosen in chosen {
        let rows: Vec<u32> = chosen.rows.iter().collect();
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            if room == 0 {
                parts.push(Vec::new());
                room = plan.rows_per_fragment;
            }
            let take = usize::try_from(room).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at(take);
            if let Some(part) = parts.last_mut() {
                part.push((chosen, now.to_vec()));
            }
            room -= take as u64;
            rest = later;
        }
    }
    let mut fragments = Vec::new();
    let mut before = 0u64;
    for part in parts {
        let mut file = layout.writer();
        let share = Share { before, rows: part.iter().map(|(_, rows)| rows.len() as u64).sum(), columns: layout.columns().len() };
        for (position, column) in layout.columns().iter().enumerate() {
            let value = set.iter().find(|(field, _)| *field == column.field).map(|(_, value)| *value);
            let mut values_done = 0u64;
            for (chosen, rows) in &part {
                for batch in rows.chunks(BATCH as usize) {
                    let values: ArrayRef = match value {
                        Some(value) => repeated(value, &column.data_type, batch.len())?,
                        None => {
                            let (store, file) = (table.store().clone(), table.manifest().clone());
                            let context = ScanContext::new(store, file, column.field, RowDomain::Address);
                            FragmentScan::open(&context, &chosen.fragment).await?.take(batch).await?
                        }
                    };
                    file.push(position, &values)?;
                    values_done = values_done.saturating_add(batch.len() as u64);
                    on_rows(share.done(position, values_done)).await?;
                }
            }
        }
        before = before.saturating_add(share.rows);
        fragments.push(store_file(table.store(), file, staged).await?);
    }
    Ok(fragments)
}

impl Change<'_> {
    /// Refuses when a fragment that loses rows is no longer what it was.
    fn check(&self, manifest: &Manifest) -> Result<()> {
        let changed = |touched: &&Touched| !manifest.fragment(touched.fragment).is_some_and(|fragment| touched.is(fragment));
        match self.plan.touched.iter().find(changed) {
            None => Ok(()),
            Some(touched) => {
                let text = format!(
                    "fragment {} was changed by another writer since version {}: plan again; nothing was changed",
                    touched.fragment, self.plan.v_plan
                );
                Err(Error::new(ErrorCode::StalePlan, text).with("fragment", touched.fragment))
            }
        }
    }

    fn operation(&self, manifest: &Manifest, change: &FragmentChange) -> Result<(u32, Vec<u8>)> {
        let mut body = Vec::new();
        let gone: Vec<u8> = self.gone.iter().fold(Vec::new(), |mut packed, id| {
            wire::put_varint(&mut packed, u64::from(id));
            packed
        });
        let put_gone = |body: &mut Vec<u8>, number: u32| {
            if !gone.is_empty() {
                wire::put_len_field(body, number, &gone);
            }
        };
        let operation = match self.plan.kind.as_str() {
            "append" => {
                for message in &change.added {
                    wire::put_len_field(&mut body, APPEND_FRAGMENTS, message);
                }
                APPEND
            }
            "delete" => {
                for message in change.updated.values() {
                    wire::put_len_field(&mut body, DELETE_UPDATED, message);
                }
                put_gone(&mut body, DELETE_GONE);
                let condition = self.plan.choice.as_ref().and_then(|choice| choice.condition.as_deref());
                wire::put_len_field(&mut body, DELETE_PREDICATE, condition.unwrap_or("chosen by position").as_bytes());
                DELETE
            }
            _ => {
                put_gone(&mut body, UPDATE_GONE);
                for message in change.updated.values() {
                    wire::put_len_field(&mut body, UPDATE_UPDATED, message);
                }
                for message in &change.added {
                    wire::put_len_field(&mut body, UPDATE_NEW, message);
                }
                let mut fields = Vec::new();
                for path in self.plan.set.iter().flatten().map(|(path, _)| path) {
                    wire::put_varint(&mut fields, u64::try_from(manifest.schema.resolve(path)?.id).unwrap_or(0));
                }
                wire::put_len_field(&mut body, UPDATE_FIELDS, &fields);
                UPDATE
            }
        };
        Ok((operation, body))
    }
}

#[async_trait(?Send)]
impl Proposal for Change<'_> {
    fn index_name(&self) -> &str {
        &self.plan.kind
    }

    fn subject(&self) -> String {
        format!("{} of {} rows", self.plan.kind, self.plan.rows)
    }

    async fn decide(&self, latest: &Table) -> Result<Decision> {
        check_changeable(latest)?;
        let file = latest.manifest();
        let manifest = &file.manifest;
        self.check(manifest)?;
        self.append(latest).await?;
        let mut change = FragmentChange {
            removed: self.gone.clone(),
            added: self.added.borrow().iter().map(NewFragment::encode).collect(),
            ..FragmentChange::default()
        };
        for (id, message) in manifest.fragment_messages()? {
            if let Some((_, vector)) = self.vectors.iter().find(|(fragment, _)| *fragment == id) {
                change.updated.insert(id, with_deletions(&message, vector)?);
            }
        }
        if let Some(first) = self.first.get() {
            change.metadata.insert(NEXT_ROW.to_owned(), first.saturating_add(self.plan.rows).to_string());
        }
        let (operation, body) = self.operation(manifest, &change)?;
        let removed = emptied(latest, &self.gone).await?;
        let data = DataChange { operation, body: body.into(), fragments: change };
        Ok(Decision::Publish(IndexChange { data: Some(Box::new(data)), removed, ..IndexChange::default() }))
    }
}

/// Segments that Lance drops when fragments go (table-format §6.4): of an index with several, those that cover nothing live any more;
/// if that is all of them, the oldest stays. An only segment stays.
async fn emptied(latest: &Table, gone: &RoaringBitmap) -> Result<Vec<IndexMetadata>> {
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let file = latest.manifest();
    let live = file.manifest.live() - gone;
    let mapped = latest.indices().await?;
    let mut removed: Vec<IndexMetadata> = Vec::new();
    for entry in mapped.iter().filter(|entry| !entry.name.starts_with("__lance")) {
        let measured = || mapped.iter().filter(|other| other.name == entry.name && other.fragment_bitmap.is_some());
        let empty = |other: &IndexMetadata| other.fragment_bitmap.as_ref().is_some_and(|bitmap| bitmap.is_disjoint(&live));
        if measured().count() < 2 || !empty(entry) {
            continue;
        }
        let oldest =
            sorted_by_key(measured().collect(), |other: &&IndexMetadata| other.created_at_ms).first().map(|other| other.uuid);
        if measured().all(empty) && oldest == Some(entry.uuid) {
            continue;
        }
        removed.extend(file.indices.iter().find(|stored| stored.uuid == entry.uuid).cloned());
    }
    Ok(removed)
}
