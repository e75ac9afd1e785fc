//! Recomputing everything a commit does from the manifest of one attempt (refresh-and-compaction §8.3).
//!
//! Nothing is taken over from the attempt before: a drop, a compaction or another refresh that landed in between is seen
//! because the facts are read again, never because a conflict was guessed.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::files::{deletions, live_row_ids, planned_deletions};
use super::freshness::Freshness;
use super::plan::RefreshPlan;
use super::planner::existing_of;
use super::resolve::{check_creatable, never_gone};
use super::task::{BuiltSegment, IndexTarget};
use crate::coverage::fate::{Fate, NewSegment, Proposal, SegmentFate, decide, uuid_in_use};
use crate::coverage::prune::{Change, FragmentKey, LeftOut, change_of, needs_deletions};
use crate::coverage::sets::effective;
use crate::error::{Error, ErrorCode, Result};
use crate::format::flags::check_write;
use crate::format::index_metadata::{IndexFile, IndexMetadata};
use crate::format::manifest::Manifest;
use crate::format::reuse_v0::check_derivable;
use crate::format::row::RowDomain;
use crate::index::{IndexMethod, method_by_name};
use crate::lists::set_of;
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
    check_derivable(&file.indices)?;
    let indices = table.indices().await?;
    let named: Vec<&IndexMetadata> = indices.iter().filter(|e| e.name == plan.index.target.name).collect();
    check_version(&file.manifest, plan)?;
    match plan.creation() {
        None => check_identity(table, plan, &named).await?,
        Some(creation) => check_creatable(&plan.index.target.name, plan.index.target.field_id, creation, &named)?,
    }
    check_column(&file.manifest, &plan.index.target)?;
    check_write(&file.manifest, &file.indices)?;
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
        keys: plan.keys(),
        left_out: BTreeMap::new(),
        changes: BTreeMap::new(),
    };
    let claims = attempt.claims(built).await?;
    let claimed = |b: &BuiltSegment| claims.get(&b.uuid).is_some_and(|c| !c.is_empty());
    let defined = plan.creation().is_some() && built.iter().all(|b| b.fragments.is_empty());
    let kept_built: Vec<&BuiltSegment> = built.iter().filter(|b| defined || claimed(b)).collect();
    if kept_built.is_empty() {
        return attempt.nothing();
    }
    let fates = attempt.decide(&kept_built, &claims)?;
    attempt.check_kept(&fates, &kept_built, &claims).await?;
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
    /// Per fragment the files it was planned on.
    keys: BTreeMap<u32, &'a FragmentKey>,
    left_out: BTreeMap<u32, (String, bool)>,
    changes: BTreeMap<u32, Change>,
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
                None => self.pruned(&declared).await?,
            };
            claims.insert(segment.uuid, claimed);
        }
        self.yield_to_others(built, &mut claims);
        self.drop_outdated(built, &mut claims);
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

    /// A segment whose file holds other values than a fragment has now must not stand beside one that covers that fragment.
    fn drop_outdated(&mut self, built: &[BuiltSegment], claims: &mut BTreeMap<Uuid, RoaringBitmap>) {
        let outdated: RoaringBitmap = self
            .changes
            .iter()
            .filter(|(_, change)| matches!(change, Change::Rewritten | Change::Overlaid))
            .map(|(fragment, _)| *fragment)
            .collect();
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

    fn decide(&self, built: &[&BuiltSegment], claims: &BTreeMap<Uuid, RoaringBitmap>) -> Result<Vec<SegmentFate>> {
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
                claimed: claims.get(&b.uuid).cloned().unwrap_or_default(),
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
        decide(&proposal).map_err(Error::from)
    }

    /// What the commit rules do not look at: details, row identity and stale rows of the segments that stay.
    async fn check_kept(
        &self,
        fates: &[SegmentFate],
        built: &[&BuiltSegment],
        claims: &BTreeMap<Uuid, RoaringBitmap>,
    ) -> Result<()> {
        let stays = |e: &&IndexMetadata| fates.iter().any(|f| f.uuid == e.uuid && f.fate == Fate::Kept);
        let kept: Vec<&IndexMetadata> = self.named.iter().copied().filter(stays).collect();
        let target = &self.plan.index.target;
        if target.type_url.ends_with("InvertedIndexDetails") {
            check_details(self.method, &target.name, &kept, built)?;
        }
        let incoming = claims.values().fold(RoaringBitmap::new(), |all, claim| all | claim);
        let cleared = set_of(self.plan.segments.iter().filter(|s| s.fate == Fate::Kept).map(|s| s.uuid));
        let mut freshness = Freshness::new(self.table, self.method).await?;
        for segment in kept {
            if freshness.domain(segment) != target.row_domain {
                return Err(self.plan_again(segment, "it stores another kind of row identity than what was built"));
            }
            if cleared.contains(&segment.uuid) {
                continue;
            }
            let bitmap = segment.fragment_bitmap.clone().unwrap_or_default();
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
            "segment {} of index {name} is not among those planned with, and {what}; plan again. Nothing was committed",
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
