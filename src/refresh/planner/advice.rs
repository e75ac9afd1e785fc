//! What a plan says beside its decisions: warnings with a way out, why segments are written again, what compaction can group.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::{Planner, ids};
use crate::compaction::{self, CompactionOptions, Cover, Kind, Layout, Resolved as Compaction};
use crate::coverage::fate::{Fate, SegmentFate};
use crate::format::index_metadata::IndexMetadata;
use crate::index::option_name;
use crate::refresh::options::RefreshOptions;
use crate::refresh::plan::{Absorbed, Advice, Cure, Groups};
use crate::refresh::task::BuildTask;
use crate::table::show::{js_text, refresh_command};

/// Segments from which on the plan mentions that there could be fewer.
const MANY_SEGMENTS: usize = 4;

impl Planner<'_> {
    /// A segment without a bitmap can only be replaced as a whole.
    pub(super) fn warn_of_unknown_coverage(&mut self) {
        let unknown: Vec<String> =
            self.resolved.segments.iter().filter(|s| s.fragment_bitmap.is_none()).map(|s| s.uuid.to_string()).collect();
        self.warnings.push(Advice::warning(
            "unknown_coverage",
            format!(
                "{} of index {} records no coverage, so it can only be replaced as a whole: all {} live fragments are built",
                list("segment", &unknown),
                self.resolved.name,
                self.live.len()
            ),
        ));
    }

    /// Says what the tiered policy would do where nobody asked for it.
    pub(super) fn advise_absorbing(&mut self) {
        let taken = self.trailing();
        let (covering, name) =
            (self.resolved.segments.iter().filter(|s| !self.effective(s).is_empty()).count(), &self.target.name);
        if taken.is_empty() || covering < MANY_SEGMENTS {
            return;
        }
        let more: Option<u64> = taken.iter().try_fold(0u64, |sum, s| sum.checked_add(self.rows_of(&self.effective(s))?));
        let Some(more) = more else { return };
        let (table, branch) = (self.table.store().uri(), self.manifest.branch.as_deref());
        let text = format!(
            "{covering} segments cover index {name} already; building the {} smallest at the end anew with this work costs {more} rows more \
             and leaves {} of them",
            taken.len(),
            covering - taken.len()
        );
        self.warnings.push(Advice::info("absorb_trailing", text).act(
            refresh_command(&table, branch, name, "--absorb-trailing"),
            format!("table.refresh({}, {{ absorb: \"tiered\" }})", js_text(name)),
        ));
    }

    pub(super) fn warn_about_memory(&mut self, needed: Option<u64>, options: &RefreshOptions) {
        let (Some(limit), Some(needed)) = (options.max_bytes, needed) else { return };
        if needed <= limit {
            return;
        }
        let more = needed.div_ceil(limit.max(1)).saturating_mul(options.segments.unwrap_or(1));
        let (name, table) = (&self.target.name, self.table.store().uri());
        let branch = self.table.manifest().manifest.branch.as_deref();
        self.warnings.push(
            Advice::warning(
                "memory_estimate",
                format!(
                    "the heaviest task may need up to {needed} bytes, more than the {limit} allowed: it reads the column several times \
                     then, or stops with MEMORY_LIMIT where the files alone take more"
                ),
            )
            .act(
                refresh_command(&table, branch, name, &format!("--num-segments {more}")),
                format!("table.refresh({}, {{ segments: {more} }})", js_text(name)),
            ),
        );
    }

    pub(super) fn absorbed_list(&self) -> Vec<Absorbed> {
        let absorbed = self.absorbed.iter().map(|(uuid, (stale, why))| Absorbed {
            uuid: *uuid,
            how: Cure::Absorb,
            stale: stale.iter().collect(),
            why: why.clone(),
        });
        let copied = self.copies.iter().map(|(uuid, copying)| Absorbed {
            uuid: *uuid,
            how: Cure::Copy,
            stale: copying.without.iter().collect(),
            why: format!(
                "{} (fragments {}): it is written again without them, which is cheaper than building its fragments anew",
                copying.evidence,
                ids(&copying.without)
            ),
        });
        absorbed.chain(copied).collect()
    }

    /// What a compaction without options could merge before and after; unknown where counts are not recorded.
    pub(super) fn groups(&self, indices: &[IndexMetadata], fates: &[SegmentFate], tasks: &[BuildTask]) -> Groups {
        let stored = &self.table.manifest().indices;
        let options = Compaction::new(&CompactionOptions::default(), &self.manifest.config, self.manifest.has_stable_row_ids());
        // Under a tagged history Lance groups by what segments name, not by what they cover through it (fragment-reuse §9.6).
        let counting = if self.lineage.is_some() { stored } else { indices };
        let layout = Layout::of(self.manifest, stored, counting, &BTreeMap::new(), option_name);
        let (Ok(options), Ok(mut layout)) = (options, layout) else { return Groups::default() };
        let mergeable = |layout: &Layout| compaction::plan(layout, &options).ok().map(|plan| plan.mergeable());
        let before = mergeable(&layout);
        let removed = |uuid: Option<Uuid>| fates.iter().any(|f| Some(f.uuid) == uuid && f.fate == Fate::Removed);
        layout.covers.retain(|cover| !removed(cover.uuid));
        let kind = Kind::of(Some(self.resolved.method.name()), self.target.index_version);
        layout.covers.extend(tasks.iter().map(|task| Cover {
            // Which index a segment belongs to makes no difference to what can be merged.
            index: usize::MAX,
            uuid: None,
            kind,
            bitmap: task.fragments.iter().copied().collect(),
            known: true,
            carried: RoaringBitmap::new(),
        }));
        Groups { before, after: mergeable(&layout) }
    }
}

fn list(noun: &str, items: &[String]) -> String {
    match items {
        [one] => format!("{noun} {one}"),
        several => format!("each of the {noun}s {}", several.join(", ")),
    }
}
