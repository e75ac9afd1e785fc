//! Which fragments a compaction rewrites together (refresh-and-compaction §5.2).

use std::ops::Range;

use super::borders::{Gaps, Positions, borders};
use super::layout::{Layout, Piece};
use super::options::Resolved;
use crate::error::{Error, Result};

/// What a fragment is to the planner, by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The caller keeps it out.
    Excluded,
    /// A segment that Lance cannot read covers it, so its rows must not move.
    HeldBack,
    /// As large as an output would be, and few rows deleted.
    Large,
    /// Small: worth merging with a neighbour, not worth rewriting alone.
    Small,
    /// So many rows are deleted, or only hidden lineage is left in a file, that it is rewritten even alone.
    Dirty,
}

impl Standing {
    /// Whether it is rewritten when the rest allows it.
    pub fn candidate(self) -> bool {
        matches!(self, Standing::Small | Standing::Dirty)
    }
}

/// What becomes of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is a source of the task with this number.
    Task(usize),
    /// It would be, but a budget ends the plan before.
    OverBudget,
    /// It is small and has a small neighbour, but other segments cover that one.
    Frozen,
    /// It is small, and no neighbour is.
    Alone,
    /// By itself it is nothing to rewrite; see its [`Standing`].
    Stays,
}

/// The tasks of a compaction; positions are those of [`Layout::pieces`].
pub struct Plan {
    /// Stretches of neighbours, ascending; a task each.
    pub tasks: Vec<Range<usize>>,
    /// Stretches that would be tasks if a budget allowed it.
    pub over_budget: Vec<Range<usize>>,
    /// Per fragment what it is by itself.
    pub standing: Vec<Standing>,
    /// The gaps between neighbours that different segments cover.
    pub borders: Gaps,
}

/// Plans as Lance 14 does.
///
/// # Errors
/// `INVALID_ARGUMENT` when bytes are limited and a fragment does not record its own.
pub fn plan(layout: &Layout, options: &Resolved) -> Result<Plan> {
    let positions = Positions::new(&layout.pieces);
    let borders = borders(layout, &positions);
    let standing = standings(layout, options, &positions);
    let mut tasks = Vec::new();
    let mut start = 0;
    for at in 1..=standing.len() {
        let joined = at < standing.len() && !borders.has(at) && candidate(&standing, at) && candidate(&standing, at - 1);
        if joined {
            continue;
        }
        let alone = at - start == 1 && standing.get(start) != Some(&Standing::Dirty);
        if candidate(&standing, start) && !alone {
            split(layout.pieces.get(start..at).unwrap_or_default(), start, options.target_rows_per_fragment, &mut tasks);
        }
        start = at;
    }
    let kept = within_budget(layout, options, &tasks)?;
    let over_budget = tasks.split_off(kept);
    Ok(Plan { tasks, over_budget, standing, borders })
}

fn candidate(standing: &[Standing], at: usize) -> bool {
    standing.get(at).is_some_and(|standing| standing.candidate())
}

fn standings(layout: &Layout, options: &Resolved, positions: &Positions<'_>) -> Vec<Standing> {
    let mut standing: Vec<Standing> = layout.pieces.iter().map(|piece| standing(piece, options)).collect();
    let mut set = |range: Range<usize>, what: Standing| {
        if let Some(part) = standing.get_mut(range) {
            part.fill(what);
        }
    };
    // A deferred compaction touches no segment, and stable ids need no remap: then nothing has to be readable.
    if !layout.stable_row_ids && !options.defer_index_remap {
        for cover in layout.covers.iter().filter(|cover| !cover.kind.readable()) {
            positions.stretches(&cover.bitmap, |start, end| set(start..end, Standing::HeldBack));
        }
    }
    if !options.excluded_fragment_ids.is_empty() {
        positions.stretches(&options.excluded(), |start, end| set(start..end, Standing::Excluded));
    }
    standing
}

fn standing(piece: &Piece, options: &Resolved) -> Standing {
    let share = if piece.physical_rows == 0 { 0.0 } else { piece.deleted_rows as f32 / piece.physical_rows as f32 };
    // At a threshold of 1 no share is greater, and one that is no number is never exceeded.
    if piece.lineage_only || (options.materialize_deletions && share > options.materialize_deletions_threshold) {
        Standing::Dirty
    } else if piece.physical_rows < options.target_rows_per_fragment {
        Standing::Small
    } else {
        Standing::Large
    }
}

/// Ends a task once it is large enough and enough is left for another one.
fn split(run: &[Piece], first: usize, target: u64, tasks: &mut Vec<Range<usize>>) {
    let target = u128::from(target);
    let mut left: u128 = run.iter().map(|piece| u128::from(piece.live_rows())).sum();
    let mut rows = 0u128;
    let mut start = first;
    for (at, piece) in run.iter().enumerate() {
        let live = u128::from(piece.live_rows());
        rows += live;
        left -= live;
        if rows >= target && left > 0 && left >= target {
            tasks.push(start..first + at + 1);
            start = first + at + 1;
            rows = 0;
        }
    }
    // A task only ends while as much as another one is left, so the rest is never empty.
    tasks.push(start..first + run.len());
}

/// How many tasks from the front stay within every budget.
fn within_budget(layout: &Layout, options: &Resolved, tasks: &[Range<usize>]) -> Result<usize> {
    let limits = (options.max_source_fragments, options.max_source_rows, options.max_source_bytes);
    if limits == (None, None, None) {
        return Ok(tasks.len());
    }
    let over = |limit: Option<u64>, total: u128| limit.is_some_and(|limit| total > u128::from(limit));
    let (mut fragments, mut rows, mut bytes) = (0u128, 0u128, 0u128);
    for (number, task) in tasks.iter().enumerate() {
        for piece in layout.pieces.get(task.clone()).unwrap_or_default() {
            fragments += 1;
            rows += u128::from(piece.live_rows());
            if limits.2.is_some() {
                let size = piece.bytes.ok_or_else(|| {
                    let text = format!(
                        "max_source_bytes cannot be kept: fragment {} does not record the size of its files; nothing was planned",
                        piece.id
                    );
                    Error::invalid(text).with("fragment", piece.id)
                })?;
                bytes += u128::from(size);
            }
        }
        if over(limits.0, fragments) || over(limits.1, rows) || over(limits.2, bytes) {
            return Ok(number);
        }
    }
    Ok(tasks.len())
}

impl Plan {
    /// The task a position is in.
    pub fn task_of(&self, at: usize) -> Option<usize> {
        number_of(&self.tasks, at)
    }

    /// What becomes of the fragment at a position.
    pub fn outcome(&self, at: usize) -> Outcome {
        if let Some(task) = self.task_of(at) {
            return Outcome::Task(task);
        }
        if !candidate(&self.standing, at) {
            return Outcome::Stays;
        }
        if number_of(&self.over_budget, at).is_some() {
            return Outcome::OverBudget;
        }
        let before = at.checked_sub(1).is_some_and(|before| candidate(&self.standing, before));
        if before || candidate(&self.standing, at + 1) { Outcome::Frozen } else { Outcome::Alone }
    }

    /// Fragments that become part of a larger one.
    pub fn mergeable(&self) -> u64 {
        self.tasks.iter().filter(|task| task.len() > 1).map(|task| task.len() as u64).sum()
    }

    /// Fragments that are rewritten.
    pub fn sources(&self) -> u64 {
        self.tasks.iter().map(|task| task.len() as u64).sum()
    }
}

fn number_of(tasks: &[Range<usize>], at: usize) -> Option<usize> {
    let number = tasks.partition_point(|task| task.end <= at);
    tasks.get(number).filter(|task| task.contains(&at)).map(|_| number)
}
