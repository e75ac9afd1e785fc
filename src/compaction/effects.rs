//! What tasks make of fragments and segments (refresh-and-compaction §5.4–5.6).

use std::ops::Range;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::borders::Positions;
use super::kinds::Eager;
use super::layout::{Cover, Layout, Piece};
use super::options::Resolved;
use super::plan::Plan;
use crate::error::{Error, ErrorCode, Result};

/// What a compaction does to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Fate {
    /// It covers no source: nothing changes.
    Kept,
    /// Its files are written again with the new row addresses, under a new uuid.
    Remapped,
    /// Its coverage goes to the new fragments; files and uuid stay, because stable row ids do not change.
    Followed,
    /// The sources leave its coverage and their successors do not join it: they are unindexed.
    Stripped,
    /// It stays as it is and names fragments that are gone: their successors are unindexed.
    Retired,
    /// Its stored coverage stays, and a reuse history carries it to the new fragments when it is read.
    Deferred,
}

/// One segment afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// What happened to it.
    pub fate: Fate,
    /// The coverage its manifest entry states; only of a deferred compaction it differs from what counts.
    pub stored: RoaringBitmap,
    /// Rows of its sources that Lance's own remap would lose: they are covered through a reuse history only, and the type
    /// answers nothing for them afterwards (§5.6).
    pub lost_in_lance: bool,
}

/// Everything a compaction changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Effects {
    /// The layout afterwards; segments in the same order, a remapped one without a uuid.
    pub after: Layout,
    /// Per segment.
    pub segments: Vec<Effect>,
    /// Per task the ids of its outputs.
    pub outputs: Vec<Range<u32>>,
    /// Whether a deferred compaction writes a reuse history: only when an index covers a source.
    pub writes_history: bool,
}

/// The rows of each file a task with `surviving` rows writes.
pub fn output_rows(surviving: u64, target: u64) -> impl Iterator<Item = u64> {
    let files = if surviving == 0 { 0 } else { surviving.checked_div(target).unwrap_or(surviving).max(1) };
    let (rows, more) = (surviving.checked_div(files).unwrap_or(0), surviving.checked_rem(files).unwrap_or(0));
    (0..files).map(move |file| rows + u64::from(file < more))
}

/// What running `plan` on `layout` makes of it, tasks finishing in the order of the plan. Bytes of the outputs are a guess from
/// those of their sources.
///
/// # Errors
/// `INVALID_ARGUMENT` when fragment ids are used up.
pub fn effects(layout: &Layout, plan: &Plan, options: &Resolved) -> Result<Effects> {
    let (pieces, outputs) = fragments(layout, plan, options)?;
    let max_fragment_id = pieces.last().map(|piece| piece.id).max(layout.max_fragment_id).max(outputs.last().and_then(last));
    let positions = Positions::new(&layout.pieces);
    let mut writes_history = false;
    let mut segments = Vec::with_capacity(layout.covers.len());
    let mut covers = Vec::with_capacity(layout.covers.len());
    for cover in &layout.covers {
        let mut bitmap = cover.bitmap.clone();
        let touched = follow(layout, plan, &positions, &outputs, &mut bitmap);
        let fate = match (touched, options.defer_index_remap) {
            (false, _) => Fate::Kept,
            (true, true) => Fate::Deferred,
            (true, false) => match cover.kind.eager(layout.stable_row_ids) {
                Eager::Rewritten => Fate::Remapped,
                Eager::Followed => Fate::Followed,
                Eager::Stripped => Fate::Stripped,
                Eager::Retired => Fate::Retired,
            },
        };
        writes_history |= fate == Fate::Deferred;
        let gone = &cover.bitmap - &bitmap;
        let now = match fate {
            Fate::Kept | Fate::Retired => cover.bitmap.clone(),
            Fate::Stripped => &cover.bitmap - &gone,
            Fate::Remapped | Fate::Followed | Fate::Deferred => bitmap,
        };
        let carried = match fate {
            Fate::Deferred => &(&cover.carried & &now) | &(&now - &cover.bitmap),
            _ => &cover.carried & &now,
        };
        let over_history = fate == Fate::Remapped && !gone.is_disjoint(&cover.carried);
        let stored = if fate == Fate::Deferred { cover.bitmap.clone() } else { now.clone() };
        segments.push(Effect { fate, stored, lost_in_lance: over_history && cover.kind.lost_over_history() });
        let uuid = cover.uuid.filter(|_| fate != Fate::Remapped);
        // A segment that is written again records what it covers.
        let known = cover.known || fate == Fate::Remapped;
        covers.push(Cover { index: cover.index, uuid, kind: cover.kind, bitmap: now, known, carried });
    }
    let after =
        Layout { pieces, covers, indexes: layout.indexes.clone(), stable_row_ids: layout.stable_row_ids, max_fragment_id };
    Ok(Effects { after, segments, outputs, writes_history })
}

fn last(ids: &Range<u32>) -> Option<u32> {
    ids.end.checked_sub(1)
}

/// The fragments that stay and the outputs, which get ids after every id ever used.
fn fragments(layout: &Layout, plan: &Plan, options: &Resolved) -> Result<(Vec<Piece>, Vec<Range<u32>>)> {
    let mut pieces = Vec::with_capacity(layout.pieces.len());
    let mut written = Vec::new();
    let mut outputs = Vec::with_capacity(plan.tasks.len());
    let mut next = layout.next_id();
    let mut from = 0;
    for task in &plan.tasks {
        pieces.extend_from_slice(layout.pieces.get(from..task.start).unwrap_or_default());
        from = task.end;
        let sources = layout.pieces.get(task.clone()).unwrap_or_default();
        let surviving = sources.iter().fold(0u64, |sum, piece| sum.saturating_add(piece.live_rows()));
        let files = output_rows(surviving, options.target_rows_per_fragment);
        let first = next;
        let size = Size::of(sources);
        for rows in files {
            let id = next.ok_or_else(used_up)?;
            let bytes = size.of_rows(rows);
            written.push(Piece { id, physical_rows: rows, deleted_rows: 0, bytes, lineage_only: false });
            next = id.checked_add(1);
        }
        // The very last id has no successor to end a range with; no table comes near it.
        outputs.push(match (first, next) {
            (Some(first), Some(next)) => first..next,
            (None, None) => 0..0,
            _ => return Err(used_up()),
        });
    }
    pieces.extend_from_slice(layout.pieces.get(from..).unwrap_or_default());
    pieces.append(&mut written);
    Ok((pieces, outputs))
}

/// What rows weigh, as far as fragments record it: only a guess of what others will.
pub(super) struct Size {
    rows: u64,
    bytes: Option<u64>,
}

impl Size {
    pub(super) fn of(pieces: &[Piece]) -> Size {
        Size {
            rows: pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.physical_rows)),
            bytes: pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.bytes?)),
        }
    }

    pub(super) fn of_rows(&self, rows: u64) -> Option<u64> {
        let weighed = u128::from(self.bytes?) * u128::from(rows) / u128::from(self.rows.max(1));
        u64::try_from(weighed).ok()
    }
}

fn used_up() -> Error {
    Error::new(ErrorCode::InvalidArgument, "the table has used up its fragment ids; nothing was planned")
}

/// Replaces, in a segment's coverage, the sources of every task it covers by its outputs; answers whether there was one.
fn follow(layout: &Layout, plan: &Plan, positions: &Positions<'_>, outputs: &[Range<u32>], bitmap: &mut RoaringBitmap) -> bool {
    if plan.tasks.is_empty() {
        return false;
    }
    // Neighbouring tasks are taken as one: their sources without a gap, and their outputs always.
    let mut touched: Vec<Range<usize>> = Vec::new();
    positions.stretches(bitmap, |start, end| {
        // A task is covered whole or not at all, so one that begins inside lies inside.
        let first = plan.tasks.partition_point(|task| task.start < start);
        let past = first + plan.tasks.get(first..).unwrap_or_default().partition_point(|task| task.start < end);
        match touched.last_mut() {
            Some(last) if last.end == first => last.end = past,
            _ if first < past => touched.push(first..past),
            _ => {}
        }
    });
    for numbers in &touched {
        for task in plan.tasks.get(numbers.clone()).unwrap_or_default() {
            let sources = layout.pieces.get(task.clone()).unwrap_or_default();
            if let (Some(first), Some(last)) = (sources.first(), sources.last()) {
                // Ids between two sources that are gone stay named, as Lance leaves them.
                if (last.id - first.id) as usize + 1 == sources.len() {
                    bitmap.remove_range(first.id..=last.id);
                } else {
                    for piece in sources {
                        bitmap.remove(piece.id);
                    }
                }
            }
        }
        let (first, last) = (outputs.get(numbers.start), outputs.get(numbers.end.saturating_sub(1)));
        if let (Some(first), Some(last)) = (first, last) {
            bitmap.insert_range(first.start..last.end);
        }
    }
    !touched.is_empty()
}
