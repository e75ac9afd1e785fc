//! Carrying row addresses through the history until they are in live fragments (spec fragment-reuse §6).
//!
//! Compactions are mapped here; for a stable partition the walk stops and asks, since its labels are in a file. All rows of one
//! partition are asked for at once, and the walk goes on with the earliest transition, so each row map is opened once.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::ledger::Ledger;
use super::transition::Mapping;
use crate::error::{Error, Result};
use crate::format::row::RowAddress;

/// Rows on their way.
pub struct Walk<'a> {
    ledger: &'a Ledger,
    live: &'a RoaringBitmap,
    excluded: &'a RoaringBitmap,
    waiting: BTreeMap<usize, Vec<(usize, RowAddress)>>,
    places: Vec<Option<RowAddress>>,
}

/// A stable partition some rows have to pass now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Position of the transition.
    pub position: usize,
    /// Rows of its sources.
    pub addresses: Vec<RowAddress>,
    slots: Vec<usize>,
}

impl<'a> Walk<'a> {
    /// Sets off. Rows that come to a fragment of `excluded` on the way are dropped, starting there they are not.
    pub fn new(ledger: &'a Ledger, live: &'a RoaringBitmap, excluded: &'a RoaringBitmap, from: &[RowAddress]) -> Walk<'a> {
        let mut walk = Walk { ledger, live, excluded, waiting: BTreeMap::new(), places: vec![None; from.len()] };
        for (slot, address) in from.iter().enumerate() {
            walk.arrive(slot, *address);
        }
        walk
    }

    fn arrive(&mut self, slot: usize, address: RowAddress) {
        if self.live.contains(address.fragment()) {
            if let Some(place) = self.places.get_mut(slot) {
                *place = Some(address);
            }
        } else if let Some(next) = self.ledger.consumer(address.fragment()) {
            self.waiting.entry(next).or_default().push((slot, address));
        } // else nobody knows where the row went: it is dropped, never passed through
    }

    fn step(&mut self, slot: usize, to: Option<RowAddress>) {
        if let Some(to) = to.filter(|to| !self.excluded.contains(to.fragment())) {
            self.arrive(slot, to);
        }
    }

    /// The next partition to be asked; `None` when every row has arrived or is dropped.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an address past the end of its fragment.
    pub fn ask(&mut self) -> Result<Option<Question>> {
        while let Some((position, rows)) = self.waiting.pop_first() {
            let ledger = self.ledger;
            let transition = ledger.transitions.get(position).ok_or_else(|| Error::internal("a transition is not there"))?;
            if let Mapping::StablePartition(_) = transition.mapping {
                let (slots, addresses) = rows.into_iter().unzip();
                return Ok(Some(Question { position, addresses, slots }));
            }
            for (slot, address) in rows {
                let to = transition.map(address)?;
                self.step(slot, to);
            }
        }
        Ok(None)
    }

    /// Where the rows of a question went, in their order; `None` = deleted.
    pub fn answer(&mut self, question: &Question, places: &[Option<RowAddress>]) {
        for (slot, to) in question.slots.iter().zip(places) {
            self.step(*slot, *to);
        }
    }

    /// Where every row is now, in the order it was given; `None` = nowhere.
    pub fn finish(self) -> Vec<Option<RowAddress>> {
        self.places
    }
}
