//! Moving a layout on, as refreshes, merges, appends and compactions would: to compare orders of them before one is run.
//!
//! What depends on the content of files is left out: a refresh may have to absorb a segment because of stale rows
//! (refresh-and-compaction §2.5), which only its plan tells.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use super::borders::Positions;
use super::effects::{Effects, Size, effects};
use super::kinds::Kind;
use super::layout::{Cover, Layout, Piece};
use super::options::{CompactionOptions, Resolved};
use super::plan::{Plan, plan};
use crate::coverage::batching::batch;
use crate::coverage::cuts::batch_gap_aware;
use crate::error::{Error, ErrorCode, Result};
use crate::lists::sorted_by_key;

/// One thing done to a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// What an index does not cover is built.
    Refresh {
        /// The index; all when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<String>,
        /// Most segments to build, at least 1. Default 1.
        #[serde(default = "one")]
        segments: u64,
        /// How the work is cut into segments.
        #[serde(default)]
        cut: Cut,
        /// Which existing segments are built anew with it.
        #[serde(default)]
        absorb: Absorbing,
    },
    /// All segments of an index become a few contiguous ones.
    Merge {
        /// The index; all when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<String>,
        /// Segments to make, at least 1. Default 1.
        #[serde(default = "one")]
        segments: u64,
    },
    /// Fragments are compacted.
    Compact {
        /// Options over those of the forecast.
        #[serde(default)]
        options: CompactionOptions,
    },
    /// Fragments are added.
    Append {
        /// How many.
        #[serde(default = "one")]
        fragments: u64,
        /// Rows of each.
        rows: u64,
    },
}

fn one() -> u64 {
    1
}

/// How a refresh cuts its work into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Contiguous runs whose heaviest is as light as can be: what a refresh does.
    #[default]
    Balanced,
    /// The same maximum, cut where no compaction could have joined the fragments anyway.
    GapAware,
    /// The fragments are dealt out like cards.
    Interleaved,
    /// A segment for every fragment, as refreshes after every append make.
    PerFragment,
}

/// Which existing segments a refresh builds anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Absorbing {
    /// None.
    #[default]
    None,
    /// The trailing ones that are no larger than twice what is built behind them.
    Tiered,
    /// All.
    All,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Took {
    /// Segments that came.
    pub segments_added: u64,
    /// Segments that went.
    pub segments_removed: u64,
    /// Rows that were read to build segments, once per index.
    pub rows_indexed: u64,
    /// Fragments that were rewritten.
    pub fragments_rewritten: u64,
    /// Fragments that took their place, or were appended.
    pub fragments_written: u64,
    /// Rows that were rewritten.
    pub rows_rewritten: u64,
}

/// The layout after a step.
///
/// # Errors
/// `INVALID_ARGUMENT` for options that mean nothing, `INDEX_NOT_FOUND`, and those of [`plan`].
pub fn take(
    layout: &Layout,
    step: &Step,
    forecast: &CompactionOptions,
    config: &BTreeMap<String, String>,
) -> Result<(Layout, Took)> {
    let mut took = Took::default();
    let after = match step {
        Step::Refresh { index, segments, cut, absorb } => {
            let mut after = layout.clone();
            let ground = Ground::of(layout);
            for index in chosen(layout, index.as_deref())? {
                refresh(&mut after, &ground, index, *segments, *cut, *absorb, &mut took)?;
            }
            after
        }
        Step::Merge { index, segments } => {
            let mut after = layout.clone();
            let ground = Ground::of(layout);
            for index in chosen(layout, index.as_deref())? {
                merge(&mut after, &ground, index, *segments, &mut took)?;
            }
            after
        }
        Step::Append { fragments, rows } => {
            let mut after = layout.clone();
            append(&mut after, *fragments, *rows)?;
            took.fragments_written = *fragments;
            after
        }
        Step::Compact { options } => {
            let resolved = Resolved::new(&options.over(forecast), config, layout.stable_row_ids)?;
            let plan = plan(layout, &resolved)?;
            let effects = effects(layout, &plan, &resolved)?;
            took = rewritten(layout, &plan, &effects);
            effects.after
        }
    };
    Ok((after, took))
}

/// What a compaction did.
pub(crate) fn rewritten(layout: &Layout, plan: &Plan, effects: &Effects) -> Took {
    let sources = plan.tasks.iter().flat_map(|task| layout.pieces.get(task.clone()).unwrap_or_default());
    Took {
        fragments_rewritten: plan.sources(),
        fragments_written: effects.outputs.iter().map(|ids| u64::from(ids.end - ids.start)).sum(),
        rows_rewritten: sources.fold(0, |sum, piece| sum.saturating_add(piece.live_rows())),
        ..Took::default()
    }
}

/// The indexes a step is about, by their places.
///
/// # Errors
/// `INDEX_NOT_FOUND`.
pub(crate) fn chosen(layout: &Layout, index: Option<&str>) -> Result<Vec<usize>> {
    match index {
        None => Ok((0..layout.indexes.len()).collect()),
        Some(name) => {
            match layout.indexes.iter().position(|index| index.name == name) {
                Some(at) => Ok(vec![at]),
                None => Err(Error::new(ErrorCode::IndexNotFound, format!("there is no index {name:?} to forecast for"))
                    .with("index", name)),
            }
        }
    }
}

/// Most fragments a step may add.
const MOST_APPENDED: u64 = 1_000_000;

fn append(layout: &mut Layout, fragments: u64, rows: u64) -> Result<()> {
    if fragments > MOST_APPENDED {
        return Err(Error::invalid(format!("a step appends at most {MOST_APPENDED} fragments, not {fragments}")));
    }
    let bytes = Size::of(&layout.pieces).of_rows(rows);
    for _ in 0..fragments {
        let id = layout.next_id().ok_or_else(|| Error::invalid("the table has used up its fragment ids"))?;
        layout.pieces.push(Piece { id, physical_rows: rows, bytes, ..Piece::default() });
    }
    Ok(())
}

/// The fragments, which building segments does not change.
pub(crate) struct Ground<'a> {
    pieces: &'a [Piece],
    positions: Positions<'a>,
    /// Ids of the fragments.
    pub(crate) live: RoaringBitmap,
    /// Rows before each position, so that those of a stretch are a difference.
    rows: Vec<u64>,
}

impl<'a> Ground<'a> {
    pub(crate) fn of(layout: &'a Layout) -> Ground<'a> {
        let mut sum = 0u64;
        let mut rows = Vec::with_capacity(layout.pieces.len() + 1);
        rows.push(0);
        rows.extend(layout.pieces.iter().map(|piece| {
            sum = sum.saturating_add(piece.live_rows());
            sum
        }));
        Ground { pieces: &layout.pieces, positions: Positions::new(&layout.pieces), live: layout.live(), rows }
    }

    /// Live rows of some fragments.
    pub(crate) fn rows_of(&self, fragments: &RoaringBitmap) -> u64 {
        let before = |at: usize| self.rows.get(at).copied().unwrap_or(0);
        let mut rows = 0u64;
        self.positions.stretches(fragments, |start, end| rows = rows.saturating_add(before(end).saturating_sub(before(start))));
        rows
    }
}

fn refresh(
    layout: &mut Layout,
    ground: &Ground<'_>,
    index: usize,
    segments: u64,
    cut: Cut,
    absorb: Absorbing,
    took: &mut Took,
) -> Result<()> {
    let live = &ground.live;
    let own = |cover: &&Cover| cover.index == index;
    // A type that nobody reads cannot be refreshed.
    let Some(kind) = layout.covers.iter().filter(own).map(|cover| cover.kind).find(|kind| kind.readable()) else { return Ok(()) };
    let unknown = layout.covers.iter().filter(own).any(|cover| !cover.known);
    let covered =
        layout.covers.iter().filter(own).filter(|cover| cover.known).fold(RoaringBitmap::new(), |all, c| all | &c.bitmap);
    // What records no coverage can only be replaced as a whole.
    let mut work = if unknown { live.clone() } else { live - covered };
    if work.is_empty() {
        return Ok(());
    }
    let effective = |cover: &Cover| &cover.bitmap & live;
    match absorb {
        Absorbing::None => {}
        Absorbing::All => work = live.clone(),
        Absorbing::Tiered => {
            let trailing = layout.covers.iter().filter(own).filter_map(|cover| Some((effective(cover).max()?, cover))).collect();
            for (_, cover) in sorted_by_key(trailing, |(last, _)| std::cmp::Reverse(*last)) {
                let covers = effective(cover);
                if ground.rows_of(&covers) > ground.rows_of(&work).saturating_mul(2) {
                    break;
                }
                work |= covers;
            }
        }
    }
    // A segment that would lose only a part joins the work whole.
    loop {
        let partly = layout.covers.iter().filter(own).map(effective).find(|c| !c.is_disjoint(&work) && !c.is_subset(&work));
        match partly {
            Some(covers) => work |= covers,
            None => break,
        }
    }
    let runs = cut_into(layout, ground, index, &work, segments, cut)?;
    replace(layout, ground, index, kind, &work, runs, took);
    Ok(())
}

fn merge(layout: &mut Layout, ground: &Ground<'_>, index: usize, segments: u64, took: &mut Took) -> Result<()> {
    let live = &ground.live;
    let own = || layout.covers.iter().filter(|cover| cover.index == index);
    let Some(kind) = own().map(|cover| cover.kind).find(|kind| kind.readable()) else { return Ok(()) };
    let covering = own().filter(|cover| !cover.bitmap.is_disjoint(live)).count() as u64;
    // A merge leaves what records no coverage alone; a refresh replaces it.
    if own().any(|cover| !cover.known) || covering <= segments {
        return Ok(());
    }
    let work = own().fold(RoaringBitmap::new(), |all, cover| all | &cover.bitmap) & live;
    let runs = cut_into(layout, ground, index, &work, segments, Cut::Balanced)?;
    replace(layout, ground, index, kind, &work, runs, took);
    Ok(())
}

/// Segments a step may make of one index: each is a set of its own in memory.
const MOST_SEGMENTS: u64 = 50_000;

/// Cuts the work of a refresh into what its segments cover.
///
/// # Errors
/// `MEMORY_LIMIT` for more segments than are held.
pub(crate) fn cut_into(
    layout: &Layout,
    ground: &Ground<'_>,
    index: usize,
    work: &RoaringBitmap,
    segments: u64,
    cut: Cut,
) -> Result<Vec<RoaringBitmap>> {
    let positions = &ground.positions;
    let made = if cut == Cut::PerFragment { work.len() } else { segments.min(work.len()) };
    if made > MOST_SEGMENTS {
        let text = format!("a step that makes {made} segments of one index is not forecast; at most {MOST_SEGMENTS} are");
        return Err(Error::new(ErrorCode::MemoryLimit, text));
    }
    let mut list = Vec::with_capacity(usize::try_from(work.len()).unwrap_or(0));
    positions.stretches(work, |start, end| {
        list.extend(ground.pieces.get(start..end).unwrap_or_default().iter().map(|piece| (piece.id, piece.live_rows())));
    });
    let n = usize::try_from(segments).unwrap_or(usize::MAX);
    let runs = match cut {
        Cut::Balanced => batch(&list, n)?,
        Cut::GapAware => {
            // A cut costs nothing where the fragments are no neighbours, or another index already separates them.
            let others =
                Layout { covers: layout.covers.iter().filter(|c| c.index != index).cloned().collect(), ..layout.clone() };
            let borders = super::borders::borders(&others, positions);
            let place = |id: u32| layout.position(id);
            batch_gap_aware(&list, n, &|a, b| match (place(a), place(b)) {
                (Some(a), Some(b)) => a + 1 == b && !borders.has(b),
                _ => false,
            })?
        }
        Cut::PerFragment => return Ok(list.iter().map(|(id, _)| RoaringBitmap::from([*id])).collect()),
        Cut::Interleaved => {
            let n = n.clamp(1, list.len().max(1));
            let hand = |first: usize| ids_of(list.iter().skip(first).step_by(n).map(|(id, _)| *id));
            return Ok((0..n).map(hand).collect());
        }
    };
    Ok(runs.into_iter().map(|run| ids_of(run.fragments.into_iter())).collect())
}

/// The set of ascending ids.
fn ids_of(ids: impl Iterator<Item = u32>) -> RoaringBitmap {
    RoaringBitmap::from_sorted_iter(ids).unwrap_or_default()
}

/// What the commit rules do when segments over `work` are added: what covers nothing or lies inside goes.
fn replace(
    layout: &mut Layout,
    ground: &Ground<'_>,
    index: usize,
    kind: Kind,
    work: &RoaringBitmap,
    runs: Vec<RoaringBitmap>,
    took: &mut Took,
) {
    let before = layout.covers.len();
    layout.covers.retain(|cover| cover.index != index || (cover.known && !(&cover.bitmap & &ground.live).is_subset(work)));
    took.segments_removed += (before - layout.covers.len()) as u64;
    took.segments_added += runs.len() as u64;
    took.rows_indexed = took.rows_indexed.saturating_add(ground.rows_of(work));
    layout.covers.extend(runs.into_iter().map(|bitmap| Cover {
        index,
        uuid: None,
        kind,
        bitmap,
        known: true,
        carried: RoaringBitmap::new(),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::layout::Index;
    use crate::compaction::{Fate, summarize};

    /// `count` fragments of 100 rows; an index per entry, a segment per list of fragments.
    fn layout(count: u32, indexes: &[(&'static str, &[&[u32]])]) -> Layout {
        let pieces = (0..count).map(|id| Piece { id, physical_rows: 100, ..Piece::default() }).collect();
        let mut layout = Layout { pieces, max_fragment_id: count.checked_sub(1), ..Layout::default() };
        for (number, (method, segments)) in indexes.iter().enumerate() {
            layout.indexes.push(Index { name: format!("i{number}"), method: Some(*method) });
            layout.covers.extend(segments.iter().enumerate().map(|(at, ids)| Cover {
                index: number,
                uuid: Some(uuid::Uuid::from_u128((number * 100 + at) as u128)),
                kind: Kind::of(Some(*method), 0),
                bitmap: ids.iter().copied().collect(),
                known: true,
                carried: RoaringBitmap::new(),
            }));
        }
        layout
    }

    fn options() -> CompactionOptions {
        CompactionOptions { target_rows_per_fragment: Some(1000), ..CompactionOptions::default() }
    }

    fn run(layout: &Layout, steps: &[Step]) -> Layout {
        steps.iter().fold(layout.clone(), |layout, step| take(&layout, step, &options(), &BTreeMap::new()).unwrap().0)
    }

    fn refresh(segments: u64, cut: Cut, absorb: Absorbing) -> Step {
        Step::Refresh { index: None, segments, cut, absorb }
    }

    fn compact() -> Step {
        Step::Compact { options: CompactionOptions::default() }
    }

    fn sets(layout: &Layout) -> Vec<Vec<u32>> {
        layout.covers.iter().map(|cover| cover.bitmap.iter().collect()).collect()
    }

    #[test]
    fn four_appends_become_what_the_coverage_lets_them() {
        let fragments =
            |n: u64, cut: Cut| run(&layout(4, &[("BTREE", &[&[]])]), &[refresh(n, cut, Absorbing::None), compact()]).pieces.len();
        assert_eq!(run(&layout(4, &[]), &[compact()]).pieces.len(), 1);
        assert_eq!((fragments(1, Cut::Balanced), fragments(2, Cut::Balanced)), (1, 2));
        assert_eq!((fragments(2, Cut::Interleaved), fragments(1, Cut::PerFragment)), (4, 4));
        let frozen = run(&layout(4, &[("BTREE", &[&[]])]), &[refresh(2, Cut::Interleaved, Absorbing::None)]);
        let plan = plan(&frozen, &Resolved::new(&options(), &BTreeMap::new(), false).unwrap()).unwrap();
        let summary = summarize(&frozen, &plan);
        assert_eq!((summary.frozen, summary.grouped, summary.indexes[0].freezes), (4, 0, 3));
        assert_eq!(run(&frozen, &[Step::Merge { index: None, segments: 1 }, compact()]).pieces.len(), 1);
    }

    #[test]
    fn a_refresh_removes_what_is_dead_and_absorbs_what_it_is_told_to() {
        let table = layout(6, &[("BTREE", &[&[0, 1], &[2], &[90]])]);
        assert_eq!(sets(&run(&table, &[refresh(1, Cut::Balanced, Absorbing::None)])), [vec![0, 1], vec![2], vec![3, 4, 5]]);
        assert_eq!(sets(&run(&table, &[refresh(2, Cut::Balanced, Absorbing::Tiered)])), [vec![0, 1, 2], vec![3, 4, 5]]);
        assert_eq!(sets(&run(&table, &[refresh(1, Cut::Balanced, Absorbing::All)])), [vec![0, 1, 2, 3, 4, 5]]);
        let covered = layout(2, &[("BTREE", &[&[0, 1], &[90]])]);
        assert_eq!(run(&covered, &[refresh(3, Cut::Balanced, Absorbing::All)]), covered, "nothing to do changes nothing");
        let mut unknown = table;
        unknown.covers[1].known = false;
        assert_eq!(sets(&run(&unknown, &[refresh(1, Cut::Balanced, Absorbing::None)])), [vec![0, 1, 2, 3, 4, 5]]);
    }

    #[test]
    fn zones_fall_out_of_an_eager_compaction_and_not_out_of_a_deferred_one() {
        let table = layout(4, &[("ZONEMAP", &[&[0, 1, 2, 3]]), ("BITMAP", &[&[0, 1, 2, 3]])]);
        assert_eq!(sets(&run(&table, &[compact()])), [vec![0, 1, 2, 3], vec![4]]);
        let deferred = Step::Compact { options: CompactionOptions { defer_index_remap: Some(true), ..options() } };
        assert_eq!(sets(&run(&table, &[deferred])), [vec![4], vec![4]]);
        assert_eq!(sets(&run(&table, &[compact(), refresh(1, Cut::Balanced, Absorbing::None)])), [vec![4], vec![4]]);
    }

    #[test]
    fn an_eager_compaction_over_a_deferred_one_is_warned_of() {
        let table = layout(4, &[("BTREE", &[&[0, 1, 2, 3]]), ("BITMAP", &[&[0, 1, 2, 3]])]);
        let deferred = Step::Compact { options: CompactionOptions { defer_index_remap: Some(true), ..options() } };
        let after = run(&table, &[deferred, Step::Append { fragments: 1, rows: 5 }]);
        assert_eq!(after.covers[0].carried, [4].into());
        let rebuilt = run(&after, &[refresh(1, Cut::Balanced, Absorbing::All)]);
        for (layout, lost) in [(after, true), (rebuilt, false)] {
            let all = Resolved { target_rows_per_fragment: 1000, materialize_deletions_threshold: -1.0, ..Resolved::default() };
            let effects = effects(&layout, &plan(&layout, &all).unwrap(), &all).unwrap();
            let fates: Vec<(Fate, bool)> = effects.segments.iter().map(|effect| (effect.fate, effect.lost_in_lance)).collect();
            assert_eq!(fates, [(Fate::Remapped, lost), (Fate::Remapped, false)]);
        }
    }

    #[test]
    fn outputs_have_the_rows_lance_gives_them() {
        use crate::compaction::effects::output_rows;
        let rows = |surviving, target| output_rows(surviving, target).collect::<Vec<_>>();
        assert!(rows(0, 10).is_empty());
        assert_eq!(rows(9, 10), [9]);
        assert_eq!(rows(29, 10), [15, 14]);
        assert_eq!(rows(32, 10), [11, 11, 10]);
        assert_eq!(rows(5, 0), [1, 1, 1, 1, 1], "a target of nothing is never planned for");
    }
}
