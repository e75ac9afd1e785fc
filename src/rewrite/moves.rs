//! Where rows go: the survivors of a task's sources, in order, onto the rows of its outputs (refresh-and-compaction §5.6).

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::format::row::RowAddress;

/// A source of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Its id.
    pub fragment: u32,
    /// Its rows, deleted ones included.
    pub physical_rows: u64,
    /// Deleted offsets.
    pub deleted: RoaringBitmap,
}

impl Source {
    /// Its rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.physical_rows.saturating_sub(self.deleted.len())
    }
}

/// One task: sources in order, and what it writes.
#[derive(Clone, Debug, PartialEq)]
pub struct MovedTask {
    /// Sources in id order.
    pub sources: Vec<Source>,
    /// Ids and rows of the outputs, in order.
    pub outputs: Vec<(u32, u64)>,
}

/// What a compaction does to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Its fragment is not rewritten.
    Stays,
    /// It was deleted before.
    Gone,
    /// It is there now.
    To(RowAddress),
}

/// The way of every row address through a compaction.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    tasks: Vec<Vec<(u32, u64)>>,
    /// Per source: its task, and the survivors of the sources before it.
    places: BTreeMap<u32, Place>,
}

#[derive(Clone, Debug)]
struct Place {
    task: usize,
    before: u64,
    physical_rows: u64,
    deleted: RoaringBitmap,
}

impl Moves {
    /// The moves of these tasks.
    ///
    /// # Errors
    /// `INTERNAL` when a task writes more or fewer rows than survive in its sources.
    pub fn new(tasks: &[MovedTask]) -> Result<Moves> {
        let mut moves = Moves::default();
        for (number, task) in tasks.iter().enumerate() {
            let mut before = 0u64;
            for source in &task.sources {
                let place = Place { task: number, before, physical_rows: source.physical_rows, deleted: source.deleted.clone() };
                before = before.saturating_add(source.live_rows());
                if moves.places.insert(source.fragment, place).is_some() {
                    return Err(Error::internal(format!("fragment {} is rewritten twice", source.fragment)));
                }
            }
            let written = task.outputs.iter().fold(0u64, |sum, (_, rows)| sum.saturating_add(*rows));
            if written != before {
                return Err(Error::internal(format!("{before} rows survive in task {number}, which writes {written}")));
            }
            moves.tasks.push(task.outputs.clone());
        }
        Ok(moves)
    }

    /// What happens to the row at an address.
    pub fn of(&self, address: RowAddress) -> Move {
        let Some(place) = self.places.get(&address.fragment()) else { return Move::Stays };
        let offset = address.offset();
        if u64::from(offset) >= place.physical_rows || place.deleted.contains(offset) {
            return Move::Gone;
        }
        let mut rank = place.before + u64::from(offset) - place.deleted.rank(offset);
        for (fragment, rows) in self.tasks.get(place.task).into_iter().flatten() {
            if rank < *rows {
                return u32::try_from(rank).map_or(Move::Gone, |offset| Move::To(RowAddress::new(*fragment, offset)));
            }
            rank -= rows;
        }
        Move::Gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(fragment: u32, physical_rows: u64, deleted: &[u32]) -> Source {
        Source { fragment, physical_rows, deleted: deleted.iter().copied().collect() }
    }

    fn to(fragment: u32, offset: u32) -> Move {
        Move::To(RowAddress::new(fragment, offset))
    }

    #[test]
    fn survivors_follow_each_other_into_the_outputs() {
        let tasks = [
            MovedTask { sources: vec![source(1, 4, &[0, 3]), source(3, 3, &[1])], outputs: vec![(10, 3), (11, 1)] },
            MovedTask { sources: vec![source(5, 2, &[0, 1])], outputs: vec![] },
        ];
        let moves = Moves::new(&tasks).unwrap();
        let of = |fragment, offset| moves.of(RowAddress::new(fragment, offset));
        assert_eq!([of(1, 0), of(1, 1), of(1, 2), of(1, 3)], [Move::Gone, to(10, 0), to(10, 1), Move::Gone]);
        assert_eq!([of(3, 0), of(3, 1), of(3, 2), of(3, 3)], [to(10, 2), Move::Gone, to(11, 0), Move::Gone]);
        assert_eq!([of(5, 0), of(2, 0), of(10, 0)], [Move::Gone, Move::Stays, Move::Stays]);
    }

    #[test]
    fn rows_that_do_not_add_up_are_seen() {
        let task = |outputs| MovedTask { sources: vec![source(1, 4, &[0])], outputs };
        assert!(Moves::new(&[task(vec![(9, 4)])]).is_err());
        assert!(Moves::new(&[task(vec![(9, 3)]), task(vec![(10, 3)])]).is_err());
    }
}
