//! Which rows of a segment stay when it is written again, and where they are then.

use std::ops::Range;

use roaring::RoaringTreemap;

use crate::index::Placing;
use crate::index::zones::count_in;

/// Rows that are kept.
#[derive(Clone, Copy)]
pub enum Keep<'a> {
    /// Those of a set of all rows there are.
    Only(&'a RoaringTreemap),
    /// Those that this has a place for, at that place.
    At(Placing<'a>),
}

impl Keep<'_> {
    /// The kept ones of some rows, at their places.
    pub fn of(self, rows: &RoaringTreemap) -> RoaringTreemap {
        match self {
            Keep::Only(kept) => rows & kept,
            Keep::At(place) => {
                // Moved rows come in any order, but mostly in stretches of theirs.
                let mut placed: Vec<u64> = rows.iter().filter_map(place).collect();
                placed.sort_unstable();
                placed.into_iter().collect()
            }
        }
    }

    /// Rows of a zone that are kept, `None` when it goes. Where nobody knows which rows there are, its whole span counts. Zones
    /// stay where they are: only what is dropped matters.
    pub fn in_zone(self, addresses: &Range<u64>) -> Option<u64> {
        let span = addresses.end.saturating_sub(addresses.start);
        match self {
            Keep::Only(kept) => Some(count_in(kept, addresses)).filter(|rows| *rows > 0),
            Keep::At(place) => (span == 0 || addresses.clone().any(|row| place(row).is_some())).then_some(span),
        }
    }
}
