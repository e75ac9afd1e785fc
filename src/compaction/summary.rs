//! A layout in numbers: what a query has to open, what a compaction could join, and what keeps the rest apart.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::borders::{Gaps, Positions};
use super::layout::Layout;
use super::plan::{Outcome, Plan, Standing};
use crate::coverage::numbers::indexed_percent;

/// One index of a layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexSummary {
    /// Name.
    pub name: String,
    /// Type by its name in options; null for one nobody knows.
    pub method: Option<String>,
    /// Segments, those that cover nothing included.
    pub segments: u64,
    /// Segments that cover no live fragment.
    pub dead_segments: u64,
    /// Whether every segment records what it covers.
    pub coverage_known: bool,
    /// Live fragments it covers.
    pub covered_fragments: u64,
    /// Live fragments it does not.
    pub unindexed_fragments: u64,
    /// Live rows it covers.
    pub rows_indexed: u64,
    /// The same in percent, truncated to two decimals; null on an empty table.
    pub indexed_percent: Option<f64>,
    /// Gaps between small neighbours that its segments, alone or with others, keep from being joined.
    pub freezes: u64,
}

/// A layout in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Fragments.
    pub fragments: u64,
    /// Live rows.
    pub rows: u64,
    /// Deleted rows.
    pub deleted_rows: u64,
    /// Segments of all indexes.
    pub segments: u64,
    /// Groups that a compaction would rewrite.
    pub groups: u64,
    /// Fragments in them.
    pub grouped: u64,
    /// Small fragments that stay because other segments cover their small neighbours.
    pub frozen: u64,
    /// Small fragments that stay because no neighbour is small.
    pub alone: u64,
    /// Fragments that are as large as they should be.
    pub large: u64,
    /// Fragments that a segment of a type or format nobody reads holds back.
    pub held_back: u64,
    /// Fragments that are excluded.
    pub excluded: u64,
    /// Fragments that a budget leaves for another time.
    pub over_budget: u64,
    /// The indexes.
    pub indexes: Vec<IndexSummary>,
    /// The first of the frozen fragments.
    pub frozen_examples: Vec<u32>,
}

impl Summary {
    /// Takes what indexes cover from another summary of the same fragments and segments: where queries find more, or less, than a
    /// compaction groups by.
    pub fn cover_as(&mut self, served: Summary) {
        for (own, served) in self.indexes.iter_mut().zip(served.indexes) {
            *own = IndexSummary { freezes: own.freezes, ..served };
        }
    }
}

/// Frozen fragments that are named.
const EXAMPLES: usize = 20;

/// Counts a layout, under the plan of a compaction of it.
pub fn summarize(layout: &Layout, plan: &Plan) -> Summary {
    let positions = Positions::new(&layout.pieces);
    let mut summary = Summary {
        fragments: layout.pieces.len() as u64,
        rows: layout.pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.live_rows())),
        deleted_rows: layout.pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.deleted_rows)),
        segments: layout.covers.len() as u64,
        groups: plan.tasks.len() as u64,
        grouped: plan.sources(),
        frozen: 0,
        alone: 0,
        large: 0,
        held_back: 0,
        excluded: 0,
        over_budget: plan.over_budget.iter().map(|task| task.len() as u64).sum(),
        indexes: Vec::new(),
        frozen_examples: Vec::new(),
    };
    let candidate = |at: usize| plan.standing.get(at).is_some_and(|standing| standing.candidate());
    let mut frozen_gaps = Gaps::none(layout.pieces.len());
    let mut tasks = plan.tasks.iter().chain(&plan.over_budget).peekable();
    for (at, standing) in plan.standing.iter().enumerate() {
        while tasks.next_if(|task| task.end <= at).is_some() {}
        let count = match standing {
            Standing::Large => &mut summary.large,
            Standing::HeldBack => &mut summary.held_back,
            Standing::Excluded => &mut summary.excluded,
            Standing::Small | Standing::Dirty => {
                let before = at > 0 && candidate(at - 1);
                let after = candidate(at + 1);
                let inside = tasks.peek().is_some_and(|task| task.contains(&at));
                // The gap counts when it leaves at least one of its two sides out of every task.
                let frozen = !inside && (before || after);
                if frozen && before {
                    frozen_gaps.mark(at);
                }
                if frozen && after {
                    frozen_gaps.mark(at + 1);
                }
                match (inside, frozen) {
                    (true, _) => continue,
                    (_, true) => {
                        if summary.frozen_examples.len() < EXAMPLES {
                            summary.frozen_examples.extend(layout.piece(at).map(|piece| piece.id));
                        }
                        &mut summary.frozen
                    }
                    _ => &mut summary.alone,
                }
            }
        };
        *count += 1;
    }
    let mut sums = Vec::with_capacity(layout.pieces.len() + 1);
    let mut sum = 0u64;
    sums.push(sum);
    sums.extend(layout.pieces.iter().map(|piece| {
        sum = sum.saturating_add(piece.live_rows());
        sum
    }));
    let rows_between = |start: usize, end: usize| match (sums.get(start), sums.get(end)) {
        (Some(start), Some(end)) => end.saturating_sub(*start),
        _ => 0,
    };
    for (number, index) in layout.indexes.iter().enumerate() {
        let mut own = IndexSummary {
            name: index.name.clone(),
            method: index.method.map(str::to_owned),
            segments: 0,
            dead_segments: 0,
            coverage_known: true,
            covered_fragments: 0,
            unindexed_fragments: 0,
            rows_indexed: 0,
            indexed_percent: None,
            freezes: 0,
        };
        let mut covered = RoaringBitmap::new();
        let mut gaps = Gaps::none(layout.pieces.len());
        for cover in layout.covers.iter().filter(|cover| cover.index == number) {
            own.segments += 1;
            own.coverage_known &= cover.known;
            let mut dead = true;
            positions.stretches(&cover.bitmap, |start, end| {
                dead = false;
                gaps.mark(start);
                gaps.mark(end);
            });
            own.dead_segments += u64::from(dead && cover.known);
            if cover.known {
                covered |= &cover.bitmap;
            }
        }
        positions.stretches(&covered, |start, end| {
            own.covered_fragments += (end - start) as u64;
            own.rows_indexed = own.rows_indexed.saturating_add(rows_between(start, end));
        });
        own.unindexed_fragments = summary.fragments - own.covered_fragments;
        own.indexed_percent = indexed_percent(own.rows_indexed, summary.rows);
        own.freezes = gaps.common(&frozen_gaps);
        summary.indexes.push(own);
    }
    summary
}

/// Short name of what becomes of a fragment, as `summary` counts it.
pub fn outcome_name(plan: &Plan, at: usize) -> &'static str {
    match (plan.outcome(at), plan.standing.get(at)) {
        (Outcome::Task(_), _) => "grouped",
        (Outcome::OverBudget, _) => "over_budget",
        (Outcome::Frozen, _) => "frozen",
        (Outcome::Alone, _) => "alone",
        (Outcome::Stays, Some(Standing::Excluded)) => "excluded",
        (Outcome::Stays, Some(Standing::HeldBack)) => "held_back",
        (Outcome::Stays, _) => "large",
    }
}
