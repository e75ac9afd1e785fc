//! Moving a layout on, as refreshes, merges, appends and compactions would: to compare orders of them before one is run.
//!
//! What depends on the content of files is left out: a refresh may have to absorb a segment because of stale rows
//! (refresh-and-compaction §2.5), which only its plan tells.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use super::borders::Positions;
use super::effects::effects;
use super::kinds::Kind;
use super::layout::{Cover, Layout, Piece};
use super::options::{CompactionOptions, Resolved};
use super::plan::plan;
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
            for index in chosen(layout, index.as_deref())? {
                refresh(&mut after, index, *segments, *cut, *absorb, &mut took)?;
            }
            after
        }
        Step::Merge { index, segments } => {
            let mut after = layout.clone();
            for index in chosen(layout, index.as_deref())? {
                merge(&mut after, index, *segments, &mut took)?;
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
            took.fragments_rewritten = plan.sources();
            took.fragments_written = effects.outputs.iter().map(|ids| u64::from(ids.end - ids.start)).sum();
            let sources = plan.tasks.iter().flat_map(|task| layout.pieces.get(task.clone()).unwrap_or_default());
            took.rows_rewritten = sources.fold(0, |sum, piece| sum.saturating_add(piece.live_rows()));
            effects.after
        }
    };
    Ok((after, took))
}

fn chosen(layout: &Layout, index: Option<&str>) -> Result<Vec<usize>> {
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
    for _ in 0..fragments {
        let id = layout.next_id().ok_or_else(|| Error::invalid("the table has used up its fragment ids"))?;
        layout.pieces.push(Piece { id, physical_rows: rows, ..Piece::default() });
    }
    Ok(())
}

/// Rows of fragments by their position, so that those of a stretch are a difference.
struct Rows(Vec<u64>);

impl Rows {
    fn new(pieces: &[Piece]) -> Rows {
        let mut sum = 0u64;
        let mut sums = Vec::with_capacity(pieces.len() + 1);
        sums.push(0);
        sums.extend(pieces.iter().map(|piece| {
            sum = sum.saturating_add(piece.live_rows());
            sum
        }));
        Rows(sums)
    }

    fn between(&self, start: usize, end: usize) -> u64 {
        let at = |at: usize| self.0.get(at).copied().unwrap_or(0);
        at(end).saturating_sub(at(start))
    }

    fn of(&self, positions: &Positions<'_>, fragments: &RoaringBitmap) -> u64 {
        let mut rows = 0u64;
        positions.stretches(fragments, |start, end| rows = rows.saturating_add(self.between(start, end)));
        rows
    }
}

fn refresh(layout: &mut Layout, index: usize, segments: u64, cut: Cut, absorb: Absorbing, took: &mut Took) -> Result<()> {
    let live = layout.live();
    let positions = Positions::new(&layout.pieces);
    let own = |cover: &&Cover| cover.index == index;
    // A type that nobody reads cannot be refreshed.
    let Some(kind) = layout.covers.iter().filter(own).map(|cover| cover.kind).find(|kind| kind.readable()) else { return Ok(()) };
    let unknown = layout.covers.iter().filter(own).any(|cover| !cover.known);
    let covered =
        layout.covers.iter().filter(own).filter(|cover| cover.known).fold(RoaringBitmap::new(), |all, c| all | &c.bitmap);
    // What records no coverage can only be replaced as a whole.
    let mut work = if unknown { live.clone() } else { &live - covered };
    if work.is_empty() {
        return Ok(());
    }
    let effective = |cover: &Cover| &cover.bitmap & &live;
    match absorb {
        Absorbing::None => {}
        Absorbing::All => work = live.clone(),
        Absorbing::Tiered => {
            let rows = Rows::new(&layout.pieces);
            let trailing = layout.covers.iter().filter(own).filter_map(|cover| Some((effective(cover).max()?, cover))).collect();
            for (_, cover) in sorted_by_key(trailing, |(last, _)| std::cmp::Reverse(*last)) {
                let covers = effective(cover);
                if rows.of(&positions, &covers) > rows.of(&positions, &work).saturating_mul(2) {
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
    let runs = cut_into(layout, index, &work, segments, cut)?;
    replace(layout, index, kind, &live, &work, runs, took);
    Ok(())
}

fn merge(layout: &mut Layout, index: usize, segments: u64, took: &mut Took) -> Result<()> {
    let live = layout.live();
    let own = || layout.covers.iter().filter(|cover| cover.index == index);
    let Some(kind) = own().map(|cover| cover.kind).find(|kind| kind.readable()) else { return Ok(()) };
    let covering = own().filter(|cover| !cover.bitmap.is_disjoint(&live)).count() as u64;
    // A merge leaves what records no coverage alone; a refresh replaces it.
    if own().any(|cover| !cover.known) || covering <= segments {
        return Ok(());
    }
    let work = own().fold(RoaringBitmap::new(), |all, cover| all | &cover.bitmap) & &live;
    let runs = cut_into(layout, index, &work, segments, Cut::Balanced)?;
    replace(layout, index, kind, &live, &work, runs, took);
    Ok(())
}

fn cut_into(layout: &Layout, index: usize, work: &RoaringBitmap, segments: u64, cut: Cut) -> Result<Vec<RoaringBitmap>> {
    let positions = Positions::new(&layout.pieces);
    let mut list = Vec::with_capacity(usize::try_from(work.len()).unwrap_or(0));
    positions.stretches(work, |start, end| {
        list.extend(layout.pieces.get(start..end).unwrap_or_default().iter().map(|piece| (piece.id, piece.live_rows())));
    });
    let n = usize::try_from(segments).unwrap_or(usize::MAX);
    let runs = match cut {
        Cut::Balanced => batch(&list, n)?,
        Cut::GapAware => {
            // A cut costs nothing where the fragments are no neighbours, or another index already separates them.
            let others =
                Layout { covers: layout.covers.iter().filter(|c| c.index != index).cloned().collect(), ..layout.clone() };
            let borders = super::borders::borders(&others, &positions);
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
    index: usize,
    kind: Kind,
    live: &RoaringBitmap,
    work: &RoaringBitmap,
    runs: Vec<RoaringBitmap>,
    took: &mut Took,
) {
    let before = layout.covers.len();
    layout.covers.retain(|cover| cover.index != index || (cover.known && !(&cover.bitmap & live).is_subset(work)));
    took.segments_removed += (before - layout.covers.len()) as u64;
    took.segments_added += runs.len() as u64;
    let rows = Rows::new(&layout.pieces).of(&Positions::new(&layout.pieces), work);
    took.rows_indexed = took.rows_indexed.saturating_add(rows);
    layout.covers.extend(runs.into_iter().map(|bitmap| Cover {
        index,
        uuid: None,
        kind,
        bitmap,
        known: true,
        carried: RoaringBitmap::new(),
    }));
}
