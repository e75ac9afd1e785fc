//! A compaction on a table with a tagged reuse history (spec fragment-reuse §9.6).
//!
//! Lance groups fragments by what is stored, and a stored bitmap says what a segment was built from. Fragments reached only
//! through the history so look unindexed, are joined with others, and what was derived for them is lost. What each segment
//! covers afterwards follows from the history with the compaction recorded in it.

use std::ops::Range;

use roaring::RoaringBitmap;

use crate::compaction::{Effects, Fate, Layout, Piece, Plan, Resolved};
use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::reuse::coverage::derive;
use crate::reuse::ledger::Ledger;
use crate::reuse::segment::Segment;
use crate::reuse::transition::Digest;
use crate::table::history::TaggedHistory;

/// Refuses what Lance refuses: a compaction that remaps, where a history is kept in `object`.
///
/// # Errors
/// `UNSUPPORTED_FEATURE`.
pub(super) fn check_compactable(object: &str, options: &Resolved) -> Result<()> {
    if options.defer_index_remap {
        return Ok(());
    }
    let text = format!(
        "{object}: a table with a tagged reuse history is compacted only with defer_index_remap, which leaves its indexes alone; Lance refuses it \
         otherwise, even with nothing to compact. Nothing was changed"
    );
    Err(Error::new(ErrorCode::UnsupportedFeature, text).with("option", "defer_index_remap"))
}

/// The history with a compaction of `layout` recorded in it.
///
/// # Errors
/// `INVALID_ARGUMENT` for a fragment of more rows than one can have, `CORRUPT_FILE` when it contradicts the history.
pub(super) fn with_compaction(object: &str, ledger: &Ledger, layout: &Layout, plan: &Plan, effects: &Effects) -> Result<Ledger> {
    let mut groups = Vec::with_capacity(plan.tasks.len());
    for (task, ids) in plan.tasks.iter().zip(&effects.outputs) {
        groups.push((digests(sources(layout, task))?, digests(&outputs(effects, ids))?));
    }
    ledger.compacted(object, groups)
}

fn sources<'a>(layout: &'a Layout, task: &Range<usize>) -> &'a [Piece] {
    layout.pieces.get(task.clone()).unwrap_or_default()
}

fn outputs(effects: &Effects, ids: &Range<u32>) -> Vec<Piece> {
    let after = &effects.after;
    ids.clone().filter_map(|id| after.piece(after.position(id)?)).copied().collect()
}

/// What becomes of coverage.
pub(super) struct Carried {
    /// Whether the history grows.
    pub writes_history: bool,
    /// Per segment, in the order of the layout: live fragments it covers before and after.
    segments: Vec<(RoaringBitmap, RoaringBitmap)>,
    /// Per task: what is rewritten, and into what.
    tasks: Vec<(RoaringBitmap, RoaringBitmap)>,
}

impl Carried {
    /// Coverage under `history`, before and after a compaction of `layout`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a fragment of more rows than one can have, `CORRUPT_FILE` when it contradicts the history.
    pub fn of(
        history: &TaggedHistory,
        indices: &[IndexMetadata],
        layout: &Layout,
        plan: &Plan,
        effects: &Effects,
    ) -> Result<Carried> {
        let tasks: Vec<(RoaringBitmap, RoaringBitmap)> = plan
            .tasks
            .iter()
            .zip(&effects.outputs)
            .map(|(task, ids)| (ids_of(sources(layout, task)), ids_of(&outputs(effects, ids))))
            .collect();
        // What no bitmap names, the history's own included, is rewritten without a record.
        let named = layout.covers.iter().fold(history.lineage.clone(), |all, cover| all | &cover.bitmap);
        let writes_history = tasks.iter().any(|(sources, _)| !sources.is_disjoint(&named));
        let ledger = with_compaction(&history.object, &history.ledger, layout, plan, effects)?;
        let segments: Vec<Segment<'_>> = Segment::all(indices).into_iter().map(|(_, segment)| segment).collect();
        let after = derive(&ledger, &effects.after.live(), &segments);
        let before = history.derived.iter().map(|(_, derived)| derived.coverage.clone());
        let segments = before.zip(after.into_iter().map(|derived| derived.coverage)).collect();
        Ok(Carried { writes_history, segments, tasks })
    }

    /// What happens to a segment, what it covers afterwards, and why.
    pub fn segment(&self, at: usize) -> Option<(Fate, &RoaringBitmap, &'static str)> {
        let (before, after) = self.segments.get(at)?;
        Some(if before == after {
            (Fate::Kept, after, "it covers none of the rewritten fragments")
        } else if self.missed(before, after).is_empty() {
            (Fate::Deferred, after, "nothing of it is touched: the fragment reuse history carries its coverage over")
        } else {
            let why = "it covers fragments through the history that Lance joins with others: nothing is derived for the result, so it is unindexed";
            (Fate::Stripped, after, why)
        })
    }

    /// Fragments whose rows an index covers now and does not afterwards.
    pub fn lost(&self, layout: &Layout, index: usize) -> RoaringBitmap {
        let (mut before, mut after) = (RoaringBitmap::new(), RoaringBitmap::new());
        for (_, (was, is)) in layout.covers.iter().zip(&self.segments).filter(|(cover, _)| cover.index == index) {
            before |= was;
            after |= is;
        }
        self.missed(&before, &after)
    }

    fn missed(&self, before: &RoaringBitmap, after: &RoaringBitmap) -> RoaringBitmap {
        let mut missed = RoaringBitmap::new();
        for (sources, _) in self.tasks.iter().filter(|(_, outputs)| !outputs.is_subset(after)) {
            missed |= sources & before;
        }
        missed
    }
}

fn ids_of(pieces: &[Piece]) -> RoaringBitmap {
    pieces.iter().map(|piece| piece.id).collect()
}

fn digests(pieces: &[Piece]) -> Result<Vec<Digest>> {
    let rows = |rows: u64| u32::try_from(rows).map_err(|_| Error::invalid(format!("a fragment of {rows} rows")));
    let digest = |piece: &Piece| {
        Ok(Digest { id: piece.id, physical_rows: rows(piece.physical_rows)?, deleted_rows: rows(piece.deleted_rows)? })
    };
    pieces.iter().map(digest).collect()
}
