//! What a plan does and says where coverage is derived through a tagged reuse history (spec fragment-reuse §7.4, §8.1, §11).

use roaring::RoaringBitmap;

use super::{Planner, ids};
use crate::coverage::fate::{Fate, SegmentFate};
use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::refresh::costs::read_bytes;
use crate::refresh::plan::Advice;
use crate::refresh::task::BuildTask;
use crate::reuse::coverage::State;
use crate::reuse::explain;
use crate::reuse::retention::needs;
use crate::reuse::segment::{Capability, Segment};
use crate::table::show::{js_text, refresh_command};

impl Planner<'_> {
    /// Fragments that segments name which nobody here knows.
    pub(super) fn held(&self) -> RoaringBitmap {
        self.lineage.as_ref().map(|lineage| lineage.held()).unwrap_or_default()
    }

    /// Leaves out what cannot be built beside segments that nobody here knows.
    pub(super) fn leave_held(&mut self) {
        let held = &self.work & self.held();
        let Some(lineage) = self.lineage.as_ref().filter(|lineage| !lineage.foreign().is_empty()) else { return };
        let uuids: Vec<String> = lineage.foreign().iter().map(|e| e.uuid.to_string()).collect();
        let mut text = format!(
            "segments {} of index {} are of a type or format version that this build does not know; they are left alone",
            uuids.join(", "),
            self.resolved.name
        );
        if !held.is_empty() {
            text = format!("{text}, and fragments {} with them, which they name: queries of Lance 14 scan these", ids(&held));
        }
        self.warnings.push(Advice::warning("segment_unknown", text));
        self.work -= held;
    }

    /// Builds anew what segments cover that name a fragment in common, retired ones included: with such a pair Lance opens every
    /// segment at its next commit, and panics for some types.
    pub(super) fn part_shared(&mut self) {
        let Some(lineage) = &self.lineage else { return };
        let covering: Vec<&IndexMetadata> =
            self.resolved.segments.iter().copied().filter(|s| !self.effective(s).is_empty()).collect();
        let names: Vec<RoaringBitmap> = covering.iter().map(|s| lineage.names(s.uuid)).collect();
        let twice =
            |at: usize, own: &RoaringBitmap| names.iter().enumerate().any(|(o, names)| o != at && !names.is_disjoint(own));
        let shared: Vec<&IndexMetadata> =
            covering.iter().zip(&names).enumerate().filter(|(at, (_, own))| twice(*at, own)).map(|(_, (s, _))| *s).collect();
        for segment in shared {
            self.absorb(segment, RoaringBitmap::new(), "it names fragments that another segment names as well".to_owned());
        }
    }

    /// Two segments of a name never name the same fragment.
    pub(super) fn check_held(&self) -> Result<()> {
        let held = &self.work & self.held();
        if held.is_empty() {
            return Ok(());
        }
        let text = format!(
            "index {}: fragments {} have to be built anew, and segments of a type or format version that this build does not know name \
             them; drop the index and create it. Nothing was planned",
            self.resolved.name,
            ids(&held)
        );
        Err(Error::new(ErrorCode::UnsupportedFeature, text).with("index", self.resolved.name.as_str()))
    }

    /// Says what the history has to do with it: what is read through it and what that costs, and what it can do without.
    pub(super) fn tell_history(&mut self, fates: &mut [SegmentFate], tasks: &[BuildTask]) {
        let Some(lineage) = &self.lineage else { return };
        lineage.explain(fates);
        let stays = |uuid| fates.iter().any(|f| f.uuid == uuid && f.fate == Fate::Kept);
        let mut through = RoaringBitmap::new();
        let mut lossy = RoaringBitmap::new();
        let mut segments = 0;
        for segment in self.resolved.segments.iter().filter(|s| stays(s.uuid)) {
            let Some(derived) = lineage.derived(segment.uuid).filter(|d| d.state == State::Translated) else { continue };
            segments += 1;
            through |= &derived.coverage - lineage.names(segment.uuid);
            if lineage.names(segment.uuid).is_disjoint(&self.live) {
                lossy |= &derived.coverage;
            }
        }
        let mut notes = Vec::new();
        if segments > 0 && !tasks.is_empty() {
            let cost = read_bytes(self.manifest, through.iter(), self.target.field_id, &self.data_type);
            let cost = cost.map_or("an unknown number of bytes".to_owned(), |bytes| format!("{bytes} bytes"));
            let mut text = format!(
                "{segments} segments stay that are read through the reuse history (fragments {}): nothing is read for them now, their \
                 records stay and every query carries their rows. Building these fragments anew reads {cost} of the column",
                explain::list(&through)
            );
            if !lossy.is_empty() {
                text = format!(
                    "{text}. Lance's own commit of new segments would remove those that name no live fragment and leave {} to scans; \
                     its optimize_indices keeps them",
                    explain::list(&lossy)
                );
            }
            let (table, branch, name) = (self.table.store().uri(), self.manifest.branch.as_deref(), &self.target.name);
            notes.push(Advice::info("read_through_history", text).act(
                refresh_command(&table, branch, name, "--absorb"),
                format!("table.refresh({}, {{ absorb: \"all\" }})", js_text(name)),
            ));
        }
        notes.extend(self.released(fates, tasks));
        self.warnings.extend(notes);
    }

    /// Records of the history that nobody needs any more when the plan is carried out.
    fn released(&self, fates: &[SegmentFate], tasks: &[BuildTask]) -> Option<Advice> {
        let lineage = self.lineage.as_ref().filter(|_| !tasks.is_empty())?;
        let stored = &self.table.manifest().indices;
        let before: Vec<Segment<'_>> = stored.iter().filter_map(Segment::of).collect();
        let goes = |s: &Segment<'_>| fates.iter().any(|f| f.uuid == s.uuid && f.fate == Fate::Removed);
        let mut after: Vec<Segment<'_>> = before.iter().filter(|s| !goes(s)).cloned().collect();
        let built: Vec<RoaringBitmap> = tasks.iter().map(|task| task.fragments.iter().copied().collect()).collect();
        after.extend(built.iter().map(|fragments| Segment {
            index: &self.target.name,
            uuid: uuid::Uuid::nil(),
            dataset_version: self.manifest.version,
            stored: Some(fragments),
            usable: true,
            capability: Capability::Translates,
            described: true,
            vector: false,
        }));
        let count = |segments: &[Segment<'_>]| needs(lineage.ledger(), segments).iter().filter(|n| !n.is_empty()).count();
        let (before, after) = (count(&before), count(&after));
        (after < before).then(|| {
            let text = format!(
                "of the {before} records of the reuse history that segments still need, {after} are needed afterwards: a trim then \
                 removes the others"
            );
            Advice::info("history_released", text)
        })
    }
}
