//! Recomputing everything a commit does from the manifest of one attempt (refresh-and-compaction §8.3).
//!
//! Nothing is taken over from the attempt before: a drop, a compaction or another refresh that landed in between is seen
//! because the facts are read again, never because a conflict was guessed.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::files::{deletions, live_row_ids, planned_deletions};
use super::freshness::Freshness;
use super::lineage::{Incoming, Lineage, Rewritten, check_merge, is_foreign};
use super::plan::{Job, RefreshPlan};
use super::planner::existing_of;
use super::resolve::{check_creatable, never_gone};
use super::task::{BuiltSegment, IndexTarget};
use crate::coverage::fate::{Derivation, Fate, NewSegment, Proposal, SegmentFate, decide, decide_derived, uuid_in_use};
use crate::coverage::prune::{Change, FragmentKey, LeftOut, change_of, needs_deletions};
use crate::coverage::sets::effective;
use crate::error::{Error, ErrorCode, Result};
use crate::format::flags::check_write_tagged;
use crate::format::index_metadata::{IndexFile, IndexMetadata};
use crate::format::manifest::Manifest;
use crate::format::row::RowDomain;
use crate::index::{IndexMethod, method_by_name};
use crate::lists::set_of;
use crate::reuse::explain;
use crate::reuse::withdraw::withdraw;
use crate::table::Table;
use crate::table::publish::IndexChange;

/// Outcome of verifying.
pub enum Verdict {
    /// Publish this.
    Publish(IndexChange),
    /// Everything that was built is covered by others meanwhile.
    NothingToDo(Vec<LeftOut>),
}

/// Verifies against the version of `table`.
///
/// # Errors
/// `INDEX_DROPPED`, `INDEX_CHANGED`, `INDEX_EXISTS`, `STALE_PLAN`, `UUID_IN_USE`, `DETAILS_DIFFER`, `NOTHING_LEFT`, `HISTORY_UNSUPPORTED`,
/// `UNSUPPORTED_FEATURE`, the commit rules' codes, and those of reading.
pub async fn verify(table: &Table, plan: &RefreshPlan, built: &[BuiltSegment]) -> Result<Verdict> {
    let file = table.manifest().clone();
    if plan.job() == Some(Job::Merge) {
        check_merge(table, &plan.index.target.name)?;
    }
    let lineage = Lineage::of(table, &plan.index.target.name).await?;
    let indices = table.indices().await?;
    // What nobody here knows is left alone, but an index that is created anew takes its place.
    let foreign = |e: &IndexMetadata| lineage.is_some() && plan.creation().is_none() && is_foreign(e);
    let named: Vec<&IndexMetadata> = indices.iter().filter(|e| e.name == plan.index.target.name && !foreign(e)).collect();
    check_version(&file.manifest, plan)?;
    match plan.creation() {
        None => check_identity(table, plan, &named).await?,
        Some(creation) => check_creatable(&plan.index.target.name, plan.index.target.field_id, creation, &named)?,
    }
    check_column(&file.manifest, &plan.index.target)?;
    check_write_tagged(&file.manifest, &file.indices)?;
    if let Some(uuid) = uuid_in_use(built.iter().map(|b| b.uuid), file.indices.iter().map(|e| e.uuid)) {
        let text = format!("segment {uuid} is in the table's version {} already; nothing was committed", file.manifest.version);
        return Err(Error::new(ErrorCode::UuidInUse, text).with("segment", uuid.to_string()));
    }
    // A creation stands beside nothing: what had the name before goes, whatever it covers.
    let replaced: Vec<Uuid> = plan.creation().iter().flat_map(|_| &named).map(|e| e.uuid).collect();
    let mut attempt = Attempt {
        table,
        plan,
        method: method_by_name(&plan.index.target.method)?,
        live: file.manifest.live(),
        named: if plan.creation().is_some() { Vec::new() } else { named },
        lineage: if plan.creation().is_some() { lineage.map(Lineage::alone) } else { lineage },
        keys: plan.keys(),
        left_out: BTreeMap::new(),
        changes: BTreeMap::new(),
        withdrawn: false,
    };
    let mut claims = attempt.claims(built).await?;
    let mut defined = plan.creation().is_some() && built.iter().all(|b| b.fragments.is_empty());
    if !defined {
        attempt.leave_what_covers_nothing(built, &mut claims);
    }
    let claimed = |b: &BuiltSegment| claims.get(&b.uuid).is_some_and(|c| !c.is_empty());
    let mut kept_built: Vec<&BuiltSegment> = built.iter().filter(|b| defined || claimed(b)).collect();
    if kept_built.is_empty() && plan.creation().is_some() && attempt.withdrawn {
        // The values were rewritten while it was built: what stays is the record of what to build, as Lance leaves it.
        kept_built.extend(built.first());
        defined = true;
    }
    if kept_built.is_empty() {
        return attempt.nothing();
    }
    if defined {
        claims.values_mut().for_each(RoaringBitmap::clear);
    }
    let covers = attempt.covers(&kept_built, &claims);
    let fates = attempt.decide(&kept_built, &claims, &covers)?;
    attempt.check_kept(&fates, &kept_built, &covers).await?;
    let goes =
        |e: &&IndexMetadata| replaced.contains(&e.uuid) || fates.iter().any(|f| f.uuid == e.uuid && f.fate == Fate::Removed);
    Ok(Verdict::Publish(IndexChange {
        data: None,
        new: kept_built.iter().map(|b| attempt.entry(b, claims.get(&b.uuid).cloned().unwrap_or_default())).collect(),
        removed: file.indices.iter().filter(goes).cloned().collect(),
        left_out: attempt.left_out(),
        properties: &[],
    }))
}

fn check_version(manifest: &Manifest, plan: &RefreshPlan) -> Result<()> {
    if manifest.version < plan.v_plan {
        let text = format!(
            "the plan was made on version {}, the table is at version {}: it is another table, or it was made anew",
            plan.v_plan, manifest.version
        );
        return Err(Error::new(ErrorCode::StalePlan, text));
    }
    Ok(())
}

/// The column is known by its field id: a new name does no harm, another type does.
fn check_column(manifest: &Manifest, target: &IndexTarget) -> Result<()> {
    let field = manifest.schema.by_id(target.field_id);
    if field.is_some_and(|f| f.logical_type == target.logical_type) {
        return Ok(());
    }
    let name = &target.name;
    let text = match field {
        None => format!("column {} (field {}), which index {name} is on, is gone", target.column, target.field_id),
        Some(field) => {
            format!("column {} of index {name} is of type {} now, not {}", target.column, field.logical_type, target.logical_type)
        }
    };
    let error = Error::new(ErrorCode::IndexChanged, format!("{text}; plan again. Nothing was committed"));
    Err(error.with("index", name.as_str()).with("version", manifest.version))
}

/// §8.2: is this still the index that was planned on?
async fn check_identity(table: &Table, plan: &RefreshPlan, named: &[&IndexMetadata]) -> Result<()> {
    let manifest = &table.manifest().manifest;
    let target = &plan.index.target;
    let changed = |what: String| {
        Error::new(
            ErrorCode::IndexChanged,
            format!("index {} changed since it was planned: {what}; plan again. Nothing was committed", target.name),
        )
        .with("index", target.name.as_str())
        .with("version", manifest.version)
    };
    if named.is_empty() {
        let text =
            format!("index {} was dropped since version {}; nothing was committed, it stays dropped", target.name, plan.v_plan);
        return Err(Error::new(ErrorCode::IndexDropped, text).with("index", target.name.as_str()));
    }
    if let Some(other) = named.iter().find(|e| e.fields != [target.field_id]) {
        return Err(changed(format!("segment {} is on fields {:?}", other.uuid, other.fields)));
    }
    if let Some(other) = named.iter().find(|e| e.details.as_ref().is_none_or(|d| d.type_url != target.type_url)) {
        return Err(changed(format!("segment {} is of another type", other.uuid)));
    }
    let planned = set_of(plan.segments.iter().map(|s| s.uuid));
    if named.iter().any(|e| planned.contains(&e.uuid))
        || never_gone(table, plan.v_plan, &|e| e.name == target.name && e.fields == [target.field_id]).await?
    {
        return Ok(());
    }
    Err(changed("none of its planned segments is left and it cannot be proved that it was never dropped".to_owned()))
}

struct Attempt<'a> {
    table: &'a Table,
    plan: &'a RefreshPlan,
    method: &'static dyn IndexMethod,
    live: RoaringBitmap,
    named: Vec<&'a IndexMetadata>,
    /// The tagged reuse history, where there is one.
    lineage: Option<Lineage<'a>>,
    /// Per fragment the files it was planned on.
    keys: BTreeMap<u32, &'a FragmentKey>,
    left_out: BTreeMap<u32, (String, bool)>,
    changes: BTreeMap<u32, Change>,
    /// Rows that were built moved through the history, and their values were rewritten.
    withdrawn: bool,
}

impl Attempt<'_> {
    fn leave_out(&mut self, fragment: u32, why: String, covered: bool) {
        self.left_out.entry(fragment).or_insert((why, covered));
    }

    fn left_out(&self) -> Vec<LeftOut> {
        self.left_out.iter().map(|(fragment, (why, _))| LeftOut { fragment: *fragment, why: why.clone() }).collect()
    }

    fn nothing(&self) -> Result<Verdict> {
        if self.left_out.values().any(|(_, covered)| *covered) {
            return Ok(Verdict::NothingToDo(self.left_out()));
        }
        let target = &self.plan.index.target;
        let reasons = set_of(self.left_out.values().map(|(why, _)| why.as_str()));
        let text = format!(
            "nothing of what was built for index {} can be used on version {}: {}; nothing was committed",
            target.name,
            self.table.version(),
            reasons.into_iter().collect::<Vec<_>>().join("; ")
        );
        let left = serde_json::to_value(self.left_out()).unwrap_or_default();
        Err(Error::new(ErrorCode::NothingLeft, text).with("left_out", left))
    }

    /// Existing segments that the plan does not take out: they are there to stay, whoever wrote them.
    fn staying(&self) -> Vec<(&IndexMetadata, RoaringBitmap)> {
        let leaving = set_of(self.plan.segments.iter().filter(|s| s.fate == Fate::Removed).map(|s| s.uuid));
        self.named
            .iter()
            .filter(|e| !leaving.contains(&e.uuid))
            .filter_map(|e| Some((*e, effective(e.fragment_bitmap.as_ref()?, &self.live))))
            .filter(|(_, covers)| !covers.is_empty())
            .collect()
    }

    /// What each built segment may claim.
    async fn claims(&mut self, built: &[BuiltSegment]) -> Result<BTreeMap<Uuid, RoaringBitmap>> {
        let mut claims = BTreeMap::new();
        for segment in built {
            let declared: RoaringBitmap = segment.fragments.iter().copied().collect();
            let claimed = match segment.copy_of {
                Some(source) => self.claim_of_copy(source, &declared),
                None if self.lineage.is_some() => self.carried(&declared).await?,
                None => self.pruned(&declared).await?,
            };
            claims.insert(segment.uuid, claimed);
        }
        self.yield_to_others(built, &mut claims);
        self.drop_outdated(built, &mut claims);
        self.yield_to_unknown(built, &mut claims);
        Ok(claims)
    }

    /// A copy is as true as its source is now.
    fn claim_of_copy(&mut self, source: Uuid, declared: &RoaringBitmap) -> RoaringBitmap {
        let now = self.named.iter().find(|e| e.uuid == source).and_then(|e| e.fragment_bitmap.as_ref());
        let claimed = now.map(|bitmap| declared & effective(bitmap, &self.live)).unwrap_or_default();
        for fragment in declared - &claimed {
            self.leave_out(fragment, format!("segment {source}, which was copied, no longer covers it"), false);
        }
        claimed
    }

    async fn pruned(&mut self, declared: &RoaringBitmap) -> Result<RoaringBitmap> {
        let manifest = &self.table.manifest().manifest;
        let mut claimed = RoaringBitmap::new();
        for id in declared {
            let planned = self.keys.get(&id).copied().ok_or_else(|| {
                Error::invalid(format!(
                    "a built segment covers fragment {id}, which the plan does not build; nothing was committed"
                ))
            })?;
            let now = manifest.fragment(id);
            let key = now.map(|f| FragmentKey::of(f, &manifest.schema, self.plan.index.target.field_id));
            let revived = match (now, &key) {
                (Some(fragment), Some(key)) if needs_deletions(planned, key) && planned.data == key.data => {
                    let before = planned_deletions(self.table.store(), manifest, planned).await?;
                    let after = deletions(self.table.store(), manifest, fragment).await?;
                    // A deletion file that is gone proves nothing: the fragment is left for the next refresh.
                    before.is_none_or(|before| !before.is_subset(&after))
                }
                _ => false,
            };
            match change_of(planned, now.zip(key.as_ref()), || revived) {
                Change::Unchanged => {
                    claimed.insert(id);
                }
                change => {
                    self.changes.insert(id, change);
                    self.leave_out(id, change.why().to_owned(), false);
                }
            }
        }
        Ok(claimed)
    }

    /// What stays of a segment under a tagged history: also fragments whose rows a recorded transition moved, unless values were
    /// rewritten in place on the way (spec fragment-reuse §10, §16.2).
    async fn carried(&mut self, declared: &RoaringBitmap) -> Result<RoaringBitmap> {
        let gone = declared - &self.live;
        let moved = self.lineage.as_ref().map(|lineage| lineage.moved(&gone)).unwrap_or_default();
        let there = self.pruned(&(declared - &moved)).await?;
        let Some(lineage) = self.lineage.as_ref().filter(|_| !moved.is_empty()) else { return Ok(there) };
        if self.method.name() == "NGRAM" {
            // Lance carries these in no commit; their files would be read as if nothing had moved once the history is trimmed.
            let why = "its rows moved, and an NGRAM segment is not committed across that: build it anew";
            self.leave_all(declared, why);
            return Ok(RoaringBitmap::new());
        }
        let field = self.plan.index.target.field_id;
        let (rewritten, why) = match lineage.rewritten(self.plan.v_plan, field, &moved, &self.keys).await? {
            Rewritten::Fragments(rewritten) => (rewritten, "its rows moved to fragments where the column was rewritten in place"),
            Rewritten::Unknown => {
                (moved.clone(), "its rows moved, and versions since were cleaned up that could tell whether they were rewritten")
            }
        };
        let changed = &(&(declared & &self.live) - &there) | &rewritten;
        let left = withdraw(Some(lineage.ledger()), &self.live, &(&(declared & &self.live) | &moved), &changed);
        let withdrawn = &(&there | &moved) - &left;
        self.withdrawn |= !withdrawn.is_empty();
        self.leave_all(&withdrawn, why);
        Ok(left)
    }

    fn leave_all(&mut self, fragments: &RoaringBitmap, why: &str) {
        for fragment in fragments {
            self.leave_out(fragment, why.to_owned(), false);
        }
    }

    /// What segments name that nobody here knows is not named again.
    fn yield_to_unknown(&mut self, built: &[BuiltSegment], claims: &mut BTreeMap<Uuid, RoaringBitmap>) {
        let held = self.lineage.as_ref().map(Lineage::held).unwrap_or_default();
        for segment in built {
            let Some(claim) = claims.get_mut(&segment.uuid).filter(|claim| !claim.is_disjoint(&held)) else { continue };
            // Without the fragments that moved, the rows in its files would be taken for others.
            let gone = if (&*claim & &held).is_subset(&self.live) { &*claim & &held } else { claim.clone() };
            *claim -= &gone;
            for fragment in gone {
                let why = "a segment of a type or format version that is not known names it, or fragments built with it";
                self.left_out.entry(fragment).or_insert((why.to_owned(), false));
            }
        }
    }

    /// Takes back segments that would be committed without covering anything, and those that cannot stand beside others.
    fn leave_what_covers_nothing(&mut self, built: &[BuiltSegment], claims: &mut BTreeMap<Uuid, RoaringBitmap>) {
        let leaving = set_of(self.plan.segments.iter().filter(|s| s.fate == Fate::Removed).map(|s| s.uuid));
        loop {
            let Some(lineage) = &self.lineage else { return };
            let new = incoming(built, claims);
            let landing = lineage.land(&new);
            let idle = new.iter().zip(&landing.covers).find(|(_, covers)| covers.is_empty()).map(|((uuid, ..), _)| *uuid);
            let beside = lineage.loser(&landing).filter(|uuid| !leaving.contains(uuid));
            let beside = beside.map(|uuid| (uuid, lineage.names(uuid)));
            let (uuid, why, covered) = match (idle, beside) {
                (Some(uuid), _) => {
                    let claim = claims.get(&uuid).cloned().unwrap_or_default();
                    let went = &lineage.ledger().reach(&claim) & &self.live;
                    let others = self.staying().into_iter().fold(RoaringBitmap::new(), |all, (_, covers)| all | covers);
                    let covered = !went.is_empty() && went.is_subset(&others);
                    let what = if covered { "others cover by now" } else { "hold rows of fragments that nobody built, too" };
                    (uuid, format!("its rows moved to fragments ({}) that {what}", explain::list(&went)), covered)
                }
                (None, Some((other, names))) => {
                    let sharing = new.iter().find(|(_, claim, _)| !names.is_disjoint(claim)).map(|(uuid, ..)| *uuid);
                    let Some(uuid) = sharing else { return };
                    (uuid, format!("segment {other} names fragments that were built with it, and stays"), false)
                }
                (None, None) => return,
            };
            for fragment in claims.insert(uuid, RoaringBitmap::new()).unwrap_or_default() {
                self.leave_out(fragment, why.clone(), covered);
            }
        }
    }

    /// The live fragments each segment will cover.
    fn covers(&self, built: &[&BuiltSegment], claims: &BTreeMap<Uuid, RoaringBitmap>) -> BTreeMap<Uuid, RoaringBitmap> {
        let Some(lineage) = &self.lineage else { return claims.clone() };
        let new: Vec<Incoming<'_>> =
            built.iter().filter_map(|b| Some((b.uuid, claims.get(&b.uuid)?, b.dataset_version))).collect();
        let landing = lineage.land(&new);
        crate::lists::map_of(new.iter().map(|(uuid, ..)| *uuid).zip(landing.covers))
    }

    /// Fragments that others cover by now are theirs: two refreshes never claim the same fragment.
    fn yield_to_others(&mut self, built: &[BuiltSegment], claims: &mut BTreeMap<Uuid, RoaringBitmap>) {
        let all = claims.values().fold(RoaringBitmap::new(), |all, claim| all | claim);
        // Beside a segment of unknown coverage only all or nothing is accepted, so what is covered whole is superseded.
        let unknown = self.named.iter().any(|e| e.fragment_bitmap.is_none());
        let theirs: Vec<(Uuid, RoaringBitmap)> = self
            .staying()
            .into_iter()
            .filter(|(_, covers)| !(unknown && covers.is_subset(&all)))
            .map(|(segment, covers)| (segment.uuid, covers))
            .collect();
        for segment in built {
            let Some(claim) = claims.get_mut(&segment.uuid) else { continue };
            for (uuid, covers) in &theirs {
                let shared = &*claim & covers;
                *claim -= &shared;
                for fragment in shared {
                    self.leave_out(fragment, format!("segment {uuid} covers it already"), true);
                }
            }
        }
    }

    /// Fragments that were built from other values than they have now.
    fn outdated(&self) -> RoaringBitmap {
        let other = |change: &Change| matches!(change, Change::Rewritten | Change::Overlaid);
        self.changes.iter().filter(|(_, change)| other(change)).map(|(fragment, _)| *fragment).collect()
    }

    /// A segment whose file holds other values than a fragment has now must not stand beside one that covers that fragment.
    fn drop_outdated(&mut self, built: &[BuiltSegment], claims: &mut BTreeMap<Uuid, RoaringBitmap>) {
        let outdated = self.outdated();
        let others: Vec<(Uuid, RoaringBitmap)> =
            self.staying().into_iter().map(|(s, covers)| (s.uuid, covers & &outdated)).filter(|(_, o)| !o.is_empty()).collect();
        for segment in built {
            let declared: RoaringBitmap = segment.fragments.iter().copied().collect();
            let Some((uuid, _)) = others.iter().find(|(_, covers)| !covers.is_disjoint(&declared)) else { continue };
            let claim = claims.insert(segment.uuid, RoaringBitmap::new()).unwrap_or_default();
            for fragment in claim {
                self.leave_out(
                    fragment,
                    format!("its segment holds older values of a fragment that segment {uuid} covers"),
                    false,
                );
            }
        }
    }

    fn decide(
        &self,
        built: &[&BuiltSegment],
        claims: &BTreeMap<Uuid, RoaringBitmap>,
        covers: &BTreeMap<Uuid, RoaringBitmap>,
    ) -> Result<Vec<SegmentFate>> {
        let target = &self.plan.index.target;
        let existing: Vec<_> = self.named.iter().map(|e| existing_of(e)).collect();
        let new: Vec<NewSegment> = built
            .iter()
            .map(|b| NewSegment {
                uuid: b.uuid,
                fields: vec![b.field_id],
                covering_fields: Vec::new(),
                type_url: b.details.0.type_url.clone(),
                declared: b.fragments.iter().copied().collect(),
                claimed: covers.get(&b.uuid).cloned().unwrap_or_default(),
                dataset_version: b.dataset_version,
            })
            .collect();
        let proposal = Proposal {
            name: &target.name,
            live: &self.live,
            version: self.table.version(),
            field: target.field_id,
            existing: &existing,
            new: &new,
        };
        let Some(lineage) = &self.lineage else { return decide(&proposal).map_err(Error::from) };
        let new: Vec<Incoming<'_>> =
            built.iter().filter_map(|b| Some((b.uuid, claims.get(&b.uuid)?, b.dataset_version))).collect();
        let landing = lineage.land(&new);
        let derivation = Derivation { remaining: &landing.remaining, lost: &landing.lost, loser: lineage.loser(&landing) };
        decide_derived(&proposal, Some(&derivation)).map_err(Error::from)
    }

    /// What the commit rules do not look at: details, row identity and stale rows of the segments that stay.
    async fn check_kept(
        &self,
        fates: &[SegmentFate],
        built: &[&BuiltSegment],
        covers: &BTreeMap<Uuid, RoaringBitmap>,
    ) -> Result<()> {
        let stays = |e: &&IndexMetadata| fates.iter().any(|f| f.uuid == e.uuid && f.fate == Fate::Kept);
        let kept: Vec<&IndexMetadata> = self.named.iter().copied().filter(stays).collect();
        let target = &self.plan.index.target;
        if target.type_url.ends_with("InvertedIndexDetails") {
            check_details(self.method, &target.name, &kept, built)?;
        }
        let incoming = covers.values().fold(RoaringBitmap::new(), |all, covers| all | covers);
        // Ids come back with a restored version: a segment that was to go may stay after all, for a fragment that was built as another.
        let built_otherwise =
            &self.outdated() & built.iter().flat_map(|b| b.fragments.iter().copied()).collect::<RoaringBitmap>();
        let cleared = set_of(self.plan.segments.iter().filter(|s| s.fate == Fate::Kept).map(|s| s.uuid));
        let mut freshness = Freshness::new(self.table, self.method).await?;
        let mut named = self.lineage.as_ref().map(Lineage::held).unwrap_or_default();
        for segment in kept {
            if let Some(names) = self.lineage.as_ref().map(|lineage| lineage.names(segment.uuid)) {
                if !names.is_disjoint(&named) {
                    return Err(self.plan_again(segment, "it names fragments that another segment names as well"));
                }
                named |= names;
            }
            if freshness.domain(segment) != target.row_domain {
                return Err(self.plan_again(segment, "it stores another kind of row identity than what was built"));
            }
            let bitmap = segment.fragment_bitmap.clone().unwrap_or_default();
            if !(&effective(&bitmap, &self.live) & &built_otherwise).is_empty() {
                return Err(self.plan_again(segment, "it covers fragments that had other values when they were built"));
            }
            if cleared.contains(&segment.uuid) {
                continue;
            }
            if !freshness.check(segment, &(&incoming - &bitmap)).await?.stale.is_empty() {
                return Err(self.plan_again(segment, "it holds old rows of fragments that were built and has to be absorbed"));
            }
            self.check_moved_rows(segment, &bitmap).await?;
        }
        Ok(())
    }

    /// The other way round: rows we read at `v_plan` that an update has moved, by their stable ids, into fragments which a
    /// segment that came since covers.
    async fn check_moved_rows(&self, segment: &IndexMetadata, bitmap: &RoaringBitmap) -> Result<()> {
        if self.plan.index.target.row_domain != RowDomain::StableId {
            return Ok(());
        }
        let manifest = &self.table.manifest().manifest;
        let basis = &self.plan.basis;
        for id in effective(bitmap, &self.live) {
            let newer = basis.max_fragment_id.is_none_or(|highest| id > highest);
            let Some(fragment) = manifest.fragment(id).filter(|_| newer) else { continue };
            let ids = live_row_ids(self.table.store(), manifest, fragment).await?;
            if ids.is_none_or(|ids| ids.iter().any(|id| *id < basis.next_row_id)) {
                return Err(self.plan_again(segment, "rows that were read for the plan have moved into a fragment it covers"));
            }
        }
        Ok(())
    }

    fn plan_again(&self, segment: &IndexMetadata, what: &str) -> Error {
        let name = &self.plan.index.target.name;
        let text = format!(
            "segment {} of index {name} stays otherwise than it was planned, and {what}; plan again. Nothing was committed",
            segment.uuid
        );
        Error::new(ErrorCode::IndexChanged, text).with("index", name.as_str()).with("segment", segment.uuid.to_string())
    }

    fn entry(&self, built: &BuiltSegment, claimed: RoaringBitmap) -> IndexMetadata {
        IndexMetadata {
            uuid: built.uuid,
            fields: vec![built.field_id],
            name: self.plan.index.target.name.clone(),
            dataset_version: built.dataset_version,
            fragment_bitmap: Some(claimed),
            details: Some(built.details.0.clone()),
            index_version: Some(built.index_version),
            created_at_ms: None,
            base_id: None,
            files: built.files.iter().map(|f| IndexFile { path: f.path.clone(), size_bytes: f.size }).collect(),
            covering_fields: Vec::new(),
            metadata: BTreeMap::new(),
            raw: bytes::Bytes::new(),
        }
    }
}

fn incoming<'a>(built: &[BuiltSegment], claims: &'a BTreeMap<Uuid, RoaringBitmap>) -> Vec<Incoming<'a>> {
    let claimed = |b: &BuiltSegment| Some((b.uuid, claims.get(&b.uuid).filter(|c| !c.is_empty())?, b.dataset_version));
    built.iter().filter_map(claimed).collect()
}

/// A full text index is read with one configuration for all of its segments; the details of other methods say nothing of it.
fn check_details(method: &'static dyn IndexMethod, name: &str, kept: &[&IndexMetadata], built: &[&BuiltSegment]) -> Result<()> {
    for segment in built {
        let own = &segment.details.0.value;
        let differs = |e: &&&IndexMetadata| e.details.as_ref().is_none_or(|d| !method.same_details(&d.value, own));
        if let Some(other) = kept.iter().find(differs) {
            let text = format!(
                "segment {} of index {name} was built with other settings than segment {}, which stays; nothing was committed",
                segment.uuid, other.uuid
            );
            return Err(Error::new(ErrorCode::DetailsDiffer, text).with("index", name).with("segment", other.uuid.to_string()));
        }
    }
    Ok(())
}
