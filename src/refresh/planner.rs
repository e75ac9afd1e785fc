//! Deciding what a refresh does: the work, its runs, and what becomes of every existing segment.

mod advice;
mod derived;

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::costs::{TaskCost, estimate, read_bytes};
use super::files::{Segments, live_rows};
use super::freshness::Freshness;
use super::lineage::{Lineage, is_foreign};
use super::options::{Absorb, RefreshOptions};
use super::params::{Inherited, from_defaults, inherit};
use super::plan::{Advice, Basis, Creation, FORMAT, Job, PlannedIndex, PlannedRun, PlannedSets, RefreshPlan};
use super::resolve::{Resolved, resolve};
use super::sources::{Candidate, Judge, Sources};
use super::task::{BuildTask, CopyOf, IndexTarget};
use crate::coverage::batching::batch;
use crate::coverage::fate::{Derivation, ExistingSegment, Fate, NewSegment, Proposal, SegmentFate, decide, decide_derived};
use crate::coverage::prune::FragmentKey;
use crate::coverage::sets::{IndexSets, effective};
use crate::error::{Error, ErrorCode, Result};
use crate::format::flags::check_write_tagged;
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::Manifest;
use crate::format::row::RowDomain;
use crate::lists::sorted_by_key;
use crate::table::Table;
use crate::table::column::field_type;

/// Plans a refresh of `index` on the version of `table`. Nothing is written.
///
/// # Errors
/// Those of resolving the name (`INDEX_NOT_FOUND`, `INDEX_AMBIGUOUS`, `UNSUPPORTED_METHOD`, `UNSUPPORTED_TYPE`, …),
/// `INVALID_ARGUMENT` for the options, `HISTORY_UNSUPPORTED` under a reuse history that may not be interpreted, `UNSUPPORTED_FEATURE`
/// for a table that must not be written, the commit rules' own codes when no plan can satisfy them, and those of reading.
pub async fn plan_refresh(table: &Table, index: &str, options: RefreshOptions) -> Result<RefreshPlan> {
    let segments = options.segments()?;
    let file = table.manifest().clone();
    let manifest = &file.manifest;
    let name = super::resolve::exact_name(&file.indices, index)?;
    let lineage = Lineage::of(table, &name).await?;
    let indices = table.indices().await?;
    // Segments nobody knows stay where they are, as long as there are others to go by.
    let known = |e: &&IndexMetadata| e.name != name || !is_foreign(e);
    let known: Option<Vec<IndexMetadata>> = lineage
        .as_ref()
        .filter(|lineage| !lineage.foreign().is_empty() && indices.iter().any(|e| e.name == name && !is_foreign(e)))
        .map(|_| indices.iter().filter(known).cloned().collect());
    let resolved = resolve(known.as_deref().unwrap_or(indices), &manifest.schema, index)?;
    check_write_tagged(manifest, &file.indices)?;
    let inside = Segments::default();
    let inherited = inherit(table, &resolved, &inside, &options.params).await?;
    let mut planner = Planner::new(table, &resolved, inherited)?;
    planner.inside = inside;
    planner.lineage = lineage;
    planner.find_work();
    if !planner.work.is_empty() {
        planner.apply_policy(options.absorb);
        planner.part_shared();
        planner.cure_stale().await?;
    }
    planner.finish(indices, segments, &options).await
}

/// Plans the segments of an index that is not there: all live fragments in runs, or (`train` false, or an empty table) one
/// segment that covers nothing. `replaced` are the segments that have its name now.
pub(crate) async fn plan_new(
    table: &Table,
    resolved: &Resolved<'_>,
    creation: Creation,
    replaced: &[&IndexMetadata],
    options: &RefreshOptions,
) -> Result<RefreshPlan> {
    let segments = options.segments()?;
    let mut planner = Planner::new(table, resolved, from_defaults(resolved, &options.params)?)?;
    planner.lineage = Lineage::of(table, &resolved.name).await?.map(Lineage::alone);
    planner.job = Job::Create;
    planner.creation = Some(creation);
    planner.replaced = replaced.iter().map(|s| s.uuid).collect();
    if creation.train {
        planner.work = planner.live.clone();
    }
    planner.finish(table.indices().await?, segments, options).await
}

/// Plans `segments` runs over what the `chosen` segments cover, which go in the same commit. They are taken from their files
/// where these allow it, unless `from_column`.
pub(crate) async fn plan_merge_of(
    table: &Table,
    resolved: &Resolved<'_>,
    chosen: &[Uuid],
    from_column: bool,
    options: &RefreshOptions,
) -> Result<RefreshPlan> {
    let segments = options.segments()?;
    let inside = Segments::default();
    let inherited = inherit(table, resolved, &inside, &options.params).await?;
    let mut planner = Planner::new(table, resolved, inherited)?;
    planner.inside = inside;
    planner.job = Job::Merge;
    planner.from_column = from_column;
    let chosen: Vec<&IndexMetadata> = resolved.segments.iter().copied().filter(|s| chosen.contains(&s.uuid)).collect();
    let covering = chosen.iter().filter(|s| !planner.effective(s).is_empty()).count();
    if covering > segments {
        for segment in chosen {
            planner.absorb(segment, RoaringBitmap::new(), "it is merged with others".to_owned());
        }
        planner.cure_stale().await?;
    }
    planner.finish(table.indices().await?, segments, options).await
}

/// A segment of known coverage that is written again without its stale rows.
struct Copying {
    without: RoaringBitmap,
    evidence: String,
}

struct Planner<'a> {
    table: &'a Table,
    manifest: &'a Manifest,
    resolved: &'a Resolved<'a>,
    /// The segments that were looked into.
    inside: Segments,
    target: IndexTarget,
    params_from: String,
    data_type: DataType,
    live: RoaringBitmap,
    sets: IndexSets,
    /// The tagged reuse history, where there is one.
    lineage: Option<Lineage<'a>>,
    /// Fragments to build.
    work: RoaringBitmap,
    absorbed: BTreeMap<Uuid, (RoaringBitmap, String)>,
    copies: BTreeMap<Uuid, Copying>,
    warnings: Vec<Advice>,
    job: Job,
    /// A merge reads the column again whatever the files allow.
    from_column: bool,
    /// How the index is created; a refresh has none.
    creation: Option<Creation>,
    /// Segments that go because their index is created anew.
    replaced: Vec<Uuid>,
}

impl<'a> Planner<'a> {
    fn new(table: &'a Table, resolved: &'a Resolved<'a>, inherited: Inherited) -> Result<Planner<'a>> {
        let manifest = &table.manifest().manifest;
        let stable = manifest.has_stable_row_ids();
        let live = manifest.live();
        let sets = IndexSets::new(&live, resolved.segments.iter().map(|s| s.fragment_bitmap.as_ref()));
        let index_version = version_to_write(resolved, &live, stable);
        let target = IndexTarget {
            name: resolved.name.clone(),
            field_id: resolved.field.id,
            column: resolved.column.clone(),
            logical_type: resolved.field.logical_type.clone(),
            method: resolved.method.name().to_owned(),
            type_url: resolved.type_url.clone(),
            index_version,
            params: inherited.params,
            row_domain: resolved.method.row_domain(index_version, stable),
            details: None,
        };
        Ok(Planner {
            table,
            manifest,
            resolved,
            inside: Segments::default(),
            target,
            params_from: inherited.from,
            data_type: field_type(&manifest.schema, resolved.field)?,
            live,
            sets,
            lineage: None,
            work: RoaringBitmap::new(),
            absorbed: BTreeMap::new(),
            copies: BTreeMap::new(),
            warnings: inherited.notes,
            job: Job::Refresh,
            from_column: false,
            creation: None,
            replaced: Vec::new(),
        })
    }

    fn effective(&self, segment: &IndexMetadata) -> RoaringBitmap {
        segment.fragment_bitmap.as_ref().map(|b| effective(b, &self.live)).unwrap_or_default()
    }

    fn find_work(&mut self) {
        if self.sets.coverage_known() {
            self.work = self.sets.unindexed.clone();
            self.leave_held();
            return;
        }
        // A partial replacement of a segment of unknown coverage is refused at commit, for ever.
        self.work = self.live.clone();
        self.warn_of_unknown_coverage();
    }

    /// Live rows of some fragments; `None` where a count is not recorded.
    fn rows_of(&self, fragments: &RoaringBitmap) -> Option<u64> {
        fragments.iter().try_fold(0u64, |sum, id| sum.checked_add(self.manifest.fragment(id)?.live_rows()?))
    }

    /// The trailing segments that are no larger than twice what is built behind them: built anew with it, sizes fall by half at
    /// least from segment to segment, so that their number stays logarithmic. Nearest to the work first.
    fn trailing(&self) -> Vec<&'a IndexMetadata> {
        let order: Vec<(u32, &'a IndexMetadata)> =
            self.resolved.segments.iter().copied().filter_map(|s| Some((self.effective(s).max()?, s))).collect();
        let order = sorted_by_key(order, |(last, _)| std::cmp::Reverse(*last));
        let mut behind = self.work.clone();
        let mut taken = Vec::new();
        for (_, segment) in order {
            let covers = self.effective(segment);
            match (self.rows_of(&covers), self.rows_of(&behind)) {
                (Some(own), Some(rows)) if own <= rows.saturating_mul(2) => {
                    behind |= covers;
                    taken.push(segment);
                }
                _ => break,
            }
        }
        taken
    }

    /// Absorbs what the caller asked for, and what cannot stay beside the new segments at all.
    fn apply_policy(&mut self, policy: Absorb) {
        let stable = self.manifest.has_stable_row_ids();
        let trailing: Vec<Uuid> = self.trailing().iter().map(|s| s.uuid).collect();
        if policy == Absorb::None {
            self.advise_absorbing();
        }
        for segment in self.resolved.segments.clone() {
            let covers = self.effective(segment);
            if covers.is_empty() || covers.is_subset(&self.work) || !covers.is_disjoint(&self.held()) {
                continue;
            }
            if policy == Absorb::All {
                self.absorb(segment, RoaringBitmap::new(), "all segments are to be built anew (absorb)".to_owned());
                continue;
            }
            if policy == Absorb::Tiered && trailing.contains(&segment.uuid) {
                let why = "it is no larger than twice what is built behind it (absorb: tiered)".to_owned();
                self.absorb(segment, RoaringBitmap::new(), why);
                continue;
            }
            let domain = self.resolved.method.row_domain(segment.index_version.unwrap_or(0), stable);
            if domain != self.target.row_domain {
                let why = format!("it stores {}, the new segments {}", domain_name(domain), domain_name(self.target.row_domain));
                self.absorb(segment, RoaringBitmap::new(), why);
            }
        }
    }

    fn absorb(&mut self, segment: &IndexMetadata, stale: RoaringBitmap, why: String) {
        self.work |= self.effective(segment);
        self.copies.remove(&segment.uuid);
        self.absorbed.insert(segment.uuid, (stale, why));
    }

    /// Repeats until nothing changes: what is absorbed adds to the work, and more work may make another segment stale.
    async fn cure_stale(&mut self) -> Result<()> {
        let mut freshness = Freshness::new(self.table, self.resolved.method).await?.inside(&self.inside);
        let mut checked: BTreeMap<Uuid, RoaringBitmap> = BTreeMap::new();
        loop {
            let before = (self.work.clone(), self.copies.len());
            self.close_overlaps();
            // The newest first: an older manifest that lists it lists most others too, and proves them clean as well.
            let segments = sorted_by_key(self.resolved.segments.clone(), |s| std::cmp::Reverse(s.dataset_version));
            for segment in segments {
                let Some(bitmap) = &segment.fragment_bitmap else { continue };
                let covers = self.effective(segment);
                if covers.is_empty() || covers.is_subset(&self.work) {
                    continue;
                }
                let known = checked.entry(segment.uuid).or_default();
                let suspects = &(&self.work - bitmap) - &*known;
                *known |= &suspects;
                let verdict = freshness.check(segment, &suspects).await?;
                if verdict.stale.is_empty() {
                    continue;
                }
                self.cure(segment, verdict.stale, verdict.evidence, verdict.exact);
            }
            if before == (self.work.clone(), self.copies.len()) {
                return Ok(());
            }
        }
    }

    fn cure(&mut self, segment: &IndexMetadata, stale: RoaringBitmap, evidence: String, exact: bool) {
        let stale = match self.copies.get(&segment.uuid) {
            Some(copying) => &copying.without | &stale,
            None => stale,
        };
        if exact && self.copy_is_cheaper(segment) {
            self.copies.insert(segment.uuid, Copying { without: stale, evidence });
            return;
        }
        let why =
            format!("{evidence} (fragments {}): beside a segment that covers them the old values would be served", ids(&stale));
        self.absorb(segment, stale, why);
    }

    /// Copying reads and writes the segment's files; absorbing reads the column of its fragments.
    fn copy_is_cheaper(&self, segment: &IndexMetadata) -> bool {
        // Rows that moved would have to be told from old ones by their way through the history.
        if segment.files.is_empty() || self.lineage.is_some() {
            return false;
        }
        let size: u64 = segment.files.iter().map(|f| f.size_bytes).fold(0, u64::saturating_add);
        read_bytes(self.manifest, self.effective(segment), self.target.field_id, &self.data_type)
            .is_some_and(|column| size < column)
    }

    /// A segment that the work covers only in part would lose the rest: all of it joins the work.
    fn close_overlaps(&mut self) {
        loop {
            let partly = self.resolved.segments.iter().copied().find(|segment| {
                let covers = self.effective(segment);
                // Under a history a segment may cover a fragment that others name: only what it names itself it cannot share.
                let shares = match &self.lineage {
                    Some(lineage) => !lineage.names(segment.uuid).is_disjoint(&self.work),
                    None => !covers.is_disjoint(&self.work),
                };
                shares && !covers.is_subset(&self.work)
            });
            match partly {
                Some(segment) => {
                    let why = "it shares fragments with what is built anew".to_owned();
                    self.absorb(segment, RoaringBitmap::new(), why);
                }
                None => return,
            }
        }
    }

    async fn finish(mut self, indices: &[IndexMetadata], segments: usize, options: &RefreshOptions) -> Result<RefreshPlan> {
        let rows = self.row_counts().await?;
        let mut runs = Vec::new();
        let mut costs = Vec::new();
        let mut tasks = Vec::new();
        let mut sources = self.sources(options).await?;
        for run in batch(&rows, segments)? {
            let planned = PlannedRun {
                rows: whole(run.rows, "rows of a run")?,
                files: run.fragments.iter().filter_map(|id| self.key(*id)).collect(),
                fragments: run.fragments,
            };
            let merge_of = sources.of_run(&planned.fragments);
            let scanned = if merge_of.is_some() { sources.left(&planned.fragments) } else { planned.fragments.clone() };
            let column = read_bytes(self.manifest, scanned.iter().copied(), self.target.field_id, &self.data_type);
            costs.push(TaskCost {
                fragments: scanned.len() as u64 + merge_of.as_ref().map_or(0, |merge| merge.segments.len() as u64),
                rows: planned.rows,
                read: column.map(|column| column.saturating_add(merge_of.as_ref().map_or(0, |merge| merge.bytes))),
            });
            let task = self.task(tasks.len(), planned.fragments.clone(), planned.rows, None, options);
            tasks.push(BuildTask { merge_of, ..task });
            runs.push(planned);
        }
        for segment in self.resolved.segments.clone() {
            let Some(copying) = self.copies.get(&segment.uuid) else { continue };
            let covers = self.effective(segment);
            let mut rows = 0u64;
            for id in &covers {
                if let Some(fragment) = self.manifest.fragment(id) {
                    rows = rows.saturating_add(live_rows(self.table.store(), self.manifest, fragment).await?);
                }
            }
            let copy = CopyOf {
                uuid: segment.uuid,
                dataset_version: segment.dataset_version,
                without: copying.without.iter().collect(),
                files: covers.iter().filter_map(|id| self.key(id)).collect(),
            };
            let size = segment.files.iter().map(|f| f.size_bytes).fold(0, u64::saturating_add);
            costs.push(TaskCost { fragments: 1, rows: 0, read: Some(size) });
            tasks.push(self.task(tasks.len(), covers.iter().collect(), rows, Some(copy), options));
        }
        if self.creation.is_some() && tasks.is_empty() {
            // The definition of an index is a segment that covers nothing.
            costs.push(TaskCost { fragments: 0, rows: 0, read: Some(0) });
            tasks.push(self.task(0, Vec::new(), 0, None, options));
        }
        self.warnings.extend(sources.notes());
        self.check_held()?;
        let mut fates = if tasks.is_empty() { self.nothing_changes() } else { self.fates(&tasks)? };
        self.tell_history(&mut fates, &tasks);
        self.agree_with_kept(&fates, &mut tasks).await?;
        let groups = self.groups(indices, &fates, &tasks);
        let estimate = estimate(&costs);
        self.warn_about_memory(estimate.memory_bytes, options);
        Ok(RefreshPlan {
            format: FORMAT,
            kind: self.job.kind().to_owned(),
            create: self.creation,
            table: self.table.store().uri(),
            branch: self.manifest.branch.clone(),
            v_plan: self.manifest.version,
            sets: PlannedSets {
                live: self.sets.live.iter().collect(),
                covered: self.sets.covered.iter().collect(),
                unindexed: self.sets.unindexed.iter().collect(),
            },
            heaviest_run_rows: runs.iter().map(|run| run.rows).max().unwrap_or(0),
            runs,
            segments: fates,
            absorbed: self.absorbed_list(),
            groups,
            tasks,
            estimate,
            warnings: self.warnings,
            basis: Basis { max_fragment_id: self.manifest.max_fragment_id, next_row_id: self.manifest.next_row_id },
            index: PlannedIndex { target: self.target, params_from: self.params_from },
        })
    }

    /// The segments that are taken from their files: all that a merge takes together, and what the tiered policy absorbs where
    /// that reads less. What a caller wants built anew, or what is absorbed as it is stale, is read from the column.
    async fn sources(&self, options: &RefreshOptions) -> Result<Sources> {
        if self.from_column || !(self.job == Job::Merge || options.absorb == Absorb::Tiered) {
            return Ok(Sources::default());
        }
        let candidates = self.resolved.segments.iter().filter_map(|segment| {
            let (stale, _) = self.absorbed.get(&segment.uuid)?;
            Some(Candidate { segment, covers: self.effective(segment), stale })
        });
        let judge = Judge {
            table: self.table,
            resolved: self.resolved,
            target: &self.target,
            data_type: &self.data_type,
            cheaper: self.job == Job::Refresh,
            max_bytes: options.max_bytes,
        };
        judge.sources(candidates.collect()).await
    }

    fn key(&self, id: u32) -> Option<FragmentKey> {
        self.manifest.fragment(id).map(|fragment| FragmentKey::of(fragment, &self.manifest.schema, self.target.field_id))
    }

    async fn row_counts(&self) -> Result<Vec<(u32, u64)>> {
        let mut counts = Vec::with_capacity(usize::try_from(self.work.len()).unwrap_or(0));
        for id in &self.work {
            let fragment = self.manifest.fragment(id).ok_or_else(|| Error::internal(format!("fragment {id} is not live")))?;
            let legacy = fragment.files.iter().find(|file| file.major == 0 && file.fields.contains(&self.target.field_id));
            if let Some(file) = legacy {
                let text = format!(
                    "column {} of fragment {id} lies in {}, a file of the legacy format 0.1, which this build does not read. Nothing was changed",
                    self.target.column, file.path
                );
                return Err(Error::new(ErrorCode::UnsupportedEncoding, text).with("object", file.path.as_str()));
            }
            counts.push((id, live_rows(self.table.store(), self.manifest, fragment).await?));
        }
        Ok(counts)
    }

    fn task(&self, at: usize, fragments: Vec<u32>, rows: u64, copy_of: Option<CopyOf>, options: &RefreshOptions) -> BuildTask {
        BuildTask {
            format: FORMAT,
            kind: "build".to_owned(),
            table: self.table.store().uri(),
            branch: self.manifest.branch.clone(),
            v_plan: self.manifest.version,
            task: u32::try_from(at).unwrap_or(u32::MAX),
            index: self.target.clone(),
            fragments,
            rows,
            copy_of,
            merge_of: None,
            max_bytes: options.max_bytes,
        }
    }

    fn nothing_changes(&self) -> Vec<SegmentFate> {
        let why = |s: &IndexMetadata| match self.effective(s).len() {
            0 => "it covers no live fragment; a refresh with work to do would remove it".to_owned(),
            n => format!("it covers {n} live fragments and there is nothing to add"),
        };
        self.resolved.segments.iter().map(|s| SegmentFate { uuid: s.uuid, fate: Fate::Kept, why: why(s) }).collect()
    }

    /// The segments that stay have a say in how further ones are built: found out before anything is.
    async fn agree_with_kept(&mut self, fates: &[SegmentFate], tasks: &mut [BuildTask]) -> Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        for segment in self.resolved.segments.clone() {
            let stays = fates.iter().any(|f| f.uuid == segment.uuid && f.fate == Fate::Kept);
            if !stays && !self.copies.contains_key(&segment.uuid) {
                continue;
            }
            let files = self.inside.files(self.table.store(), self.manifest, segment)?;
            let details = self.resolved.method.check_beside(&files, &self.target.params).await?;
            if let (Some(details), None) = (details, &self.target.details) {
                self.target.repeat_details(&details);
            }
        }
        tasks.iter_mut().for_each(|task| task.index.details.clone_from(&self.target.details));
        Ok(())
    }

    /// What the commit rules say, with stand-in uuids for segments that do not exist yet.
    fn fates(&self, tasks: &[BuildTask]) -> Result<Vec<SegmentFate>> {
        let existing: Vec<ExistingSegment> = self.resolved.segments.iter().map(|s| existing_of(s)).collect();
        let new: Vec<NewSegment> = tasks
            .iter()
            .map(|task| {
                let declared: RoaringBitmap = task.fragments.iter().copied().collect();
                NewSegment {
                    uuid: Uuid::from_u128(u128::from(task.task) + 1),
                    fields: vec![self.target.field_id],
                    covering_fields: Vec::new(),
                    type_url: self.target.type_url.clone(),
                    claimed: declared.clone(),
                    declared,
                    dataset_version: self.manifest.version,
                }
            })
            .collect();
        let proposal = Proposal {
            name: &self.target.name,
            live: &self.live,
            version: self.manifest.version,
            field: self.target.field_id,
            existing: &existing,
            new: &new,
        };
        let mut fates = match &self.lineage {
            Some(lineage) => {
                let incoming: Vec<_> = new.iter().map(|s| (s.uuid, &s.declared, s.dataset_version)).collect();
                let landing = lineage.land(&incoming);
                let derivation =
                    Derivation { remaining: &landing.remaining, lost: &landing.lost, loser: lineage.loser(&landing) };
                decide_derived(&proposal, Some(&derivation)).map_err(Error::from)?
            }
            None => decide(&proposal).map_err(Error::from)?,
        };
        let why = "the index is created anew";
        fates.extend(self.replaced.iter().map(|uuid| SegmentFate { uuid: *uuid, fate: Fate::Removed, why: why.to_owned() }));
        Ok(fates)
    }
}

/// Format version of the new segments: that of the existing ones while they stay useful, else what the method writes today.
fn version_to_write(resolved: &Resolved<'_>, live: &RoaringBitmap, stable: bool) -> i32 {
    let mut versions = resolved
        .segments
        .iter()
        .filter(|s| s.fragment_bitmap.as_ref().is_some_and(|b| !b.is_disjoint(live)))
        .map(|s| s.index_version.unwrap_or(0));
    match versions.next() {
        Some(one) if versions.all(|version| version == one) => one,
        _ => resolved.method.index_version(stable),
    }
}

/// A segment as the commit rules see it.
pub fn existing_of(segment: &IndexMetadata) -> ExistingSegment {
    ExistingSegment {
        uuid: segment.uuid,
        fields: segment.fields.clone(),
        covering_fields: segment.covering_fields.clone(),
        type_url: segment.details.as_ref().map(|d| d.type_url.clone()),
        coverage: segment.fragment_bitmap.clone(),
    }
}

fn domain_name(domain: RowDomain) -> &'static str {
    match domain {
        RowDomain::Address => "row addresses",
        RowDomain::StableId => "stable row ids",
    }
}

fn whole(rows: u128, what: &str) -> Result<u64> {
    u64::try_from(rows).map_err(|_| Error::new(ErrorCode::NumberTooLarge, format!("{what}: {rows} does not fit 64 bits")))
}

fn ids(set: &RoaringBitmap) -> String {
    const SHOWN: usize = 8;
    let mut text: Vec<String> = set.iter().take(SHOWN).map(|id| id.to_string()).collect();
    if set.len() > SHOWN as u64 {
        text.push(format!("… {} in all", set.len()));
    }
    text.join(", ")
}
