//! Which rows of a segment stay when it is written again.

use std::ops::Range;

use roaring::RoaringTreemap;

use crate::index::zones::count_in;

/// Rows that are kept.
#[derive(Clone, Copy)]
pub enum Keep<'a> {
    /// Those of a set of all rows there are.
    Only(&'a RoaringTreemap),
    /// Those for which this is false.
    Without(&'a dyn Fn(u64) -> bool),
}

impl Keep<'_> {
    /// The kept ones of some rows.
    pub fn of(self, rows: &RoaringTreemap) -> RoaringTreemap {
        match self {
            Keep::Only(kept) => rows & kept,
            Keep::Without(drop) => rows.iter().filter(|row| !drop(*row)).collect(),
        }
    }

    /// Rows of a zone that are kept, `None` when it goes. Where nobody knows which rows there are, its whole span counts.
    pub fn in_zone(self, addresses: &Range<u64>) -> Option<u64> {
        let span = addresses.end.saturating_sub(addresses.start);
        match self {
            Keep::Only(kept) => Some(count_in(kept, addresses)).filter(|rows| *rows > 0),
            Keep::Without(drop) => (span == 0 || !addresses.clone().all(drop)).then_some(span),
        }
    }
}
