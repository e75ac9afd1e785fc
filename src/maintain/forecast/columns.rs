//! A layout fragment by fragment, as columns: a million fragments are no objects.

use serde::{Deserialize, Serialize};

use crate::compaction::borders::Positions;
use crate::compaction::{Layout, Plan};

/// A layout as columns over its fragments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayoutColumns {
    /// Fragment ids, ascending.
    pub ids: Vec<u32>,
    /// Rows including deleted ones.
    pub physical_rows: Vec<u64>,
    /// Deleted rows.
    pub deleted_rows: Vec<u64>,
    /// The group a compaction rewrites the fragment in; -1 = none.
    pub group: Vec<i32>,
    /// Whether the fragment is small and stays because other segments cover its neighbours.
    pub frozen: Vec<bool>,
    /// Per index which segment covers each fragment.
    pub coverage: Vec<CoverageColumn>,
}

/// Coverage of one index over the fragments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoverageColumn {
    /// Name.
    pub index: String,
    /// Its segments: uuids, and `new 1`, `new 2`, … for those that do not exist yet.
    pub uuids: Vec<String>,
    /// Per fragment the position of the first segment that covers it; -1 = none.
    pub segment: Vec<i32>,
}

/// The columns of a layout, with the groups of a plan of it.
pub fn columns(layout: &Layout, plan: &Plan) -> LayoutColumns {
    let count = layout.pieces.len();
    let mut group = vec![-1i32; count];
    for (number, task) in plan.tasks.iter().enumerate() {
        if let Some(part) = group.get_mut(task.clone()) {
            part.fill(i32::try_from(number).unwrap_or(i32::MAX));
        }
    }
    let mut taken = group.iter().map(|group| *group >= 0).collect::<Vec<_>>();
    for task in &plan.over_budget {
        if let Some(part) = taken.get_mut(task.clone()) {
            part.fill(true);
        }
    }
    let candidate = |at: usize| plan.standing.get(at).is_some_and(|standing| standing.candidate());
    let frozen = taken
        .iter()
        .enumerate()
        .map(|(at, taken)| !taken && candidate(at) && ((at > 0 && candidate(at - 1)) || candidate(at + 1)))
        .collect();
    let positions = Positions::new(&layout.pieces);
    let mut coverage: Vec<CoverageColumn> = layout
        .indexes
        .iter()
        .map(|index| CoverageColumn { index: index.name.clone(), uuids: Vec::new(), segment: vec![-1; count] })
        .collect();
    let mut made = 0;
    for cover in &layout.covers {
        let Some(column) = coverage.get_mut(cover.index) else { continue };
        let number = i32::try_from(column.uuids.len()).unwrap_or(i32::MAX);
        column.uuids.push(match cover.uuid {
            Some(uuid) => uuid.to_string(),
            None => {
                made += 1;
                format!("new {made}")
            }
        });
        let segment = &mut column.segment;
        positions.stretches(&cover.bitmap, |start, end| {
            for place in segment.get_mut(start..end).into_iter().flatten().filter(|place| **place < 0) {
                *place = number;
            }
        });
    }
    LayoutColumns {
        ids: layout.pieces.iter().map(|piece| piece.id).collect(),
        physical_rows: layout.pieces.iter().map(|piece| piece.physical_rows).collect(),
        deleted_rows: layout.pieces.iter().map(|piece| piece.deleted_rows).collect(),
        group,
        frozen,
        coverage,
    }
}
