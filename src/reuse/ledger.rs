//! A decoded history: its records, and its transitions in the order rows passed through them (spec fragment-reuse §4).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use roaring::RoaringBitmap;

use super::content::{self, LEGACY, Record, TRANSITION};
use super::transition::{Decoded, Digest, Transition};
use crate::error::{Error, Result};
use crate::format::proto;

/// A history that may be interpreted, as far as it may.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Records as stored.
    pub records: Vec<Record>,
    /// Transitions, each after those that produced its sources. Their place in here is what the documents call position.
    pub transitions: Vec<Transition>,
    /// False when there is something in it that this build does not know: then nobody may conclude anything from it.
    pub supported: bool,
    producer: BTreeMap<u32, usize>,
    consumer: BTreeMap<u32, usize>,
}

impl Ledger {
    /// Reads the content of a tagged entry (index_version 1), version-0 records lifted.
    ///
    /// # Errors
    /// `CORRUPT_FILE` naming `object` and the record.
    pub fn decode(object: &str, content: &Bytes) -> Result<Ledger> {
        let records = content::records(object, content)?;
        let mut transitions = Vec::new();
        let mut supported = true;
        for (at, record) in records.iter().enumerate() {
            match record.field {
                LEGACY => {
                    let version: proto::ReuseVersion = proto::decode(object, "a reuse version", record.value.clone())?;
                    for group in &version.groups {
                        transitions.push(Transition::lift(object, at, version.dataset_version, group)?);
                    }
                }
                TRANSITION => match Transition::decode(object, at, &record.value)? {
                    Decoded::Known(transition) => transitions.push(*transition),
                    Decoded::Unknown => supported = false,
                },
                _ => supported = false,
            }
        }
        let mut ledger = Ledger { records, transitions, supported, ..Ledger::default() };
        ledger.connect(object)?;
        ledger.sort(object)?;
        Ok(ledger)
    }

    /// The history as it would be with these compactions recorded too: for coverage alone, since nothing is known of their rows.
    ///
    /// # Errors
    /// `CORRUPT_FILE` when they contradict what is recorded.
    pub fn compacted(&self, object: &str, groups: impl IntoIterator<Item = (Vec<Digest>, Vec<Digest>)>) -> Result<Ledger> {
        let (records, transitions) = (self.records.clone(), self.transitions.clone());
        let mut after = Ledger { records, transitions, supported: self.supported, ..Ledger::default() };
        let next = after.records.len();
        let planned = groups.into_iter().map(|(sources, destinations)| Transition::planned(next, sources, destinations));
        after.transitions.extend(planned);
        after.connect(object)?;
        after.sort(object)?;
        Ok(after)
    }

    /// Which transition took a fragment away, by position.
    pub fn consumer(&self, fragment: u32) -> Option<usize> {
        self.consumer.get(&fragment).copied()
    }

    /// Which transition made a fragment, by position.
    pub fn producer(&self, fragment: u32) -> Option<usize> {
        self.producer.get(&fragment).copied()
    }

    /// Whether the history names a fragment.
    pub fn mentions(&self, fragment: u32) -> bool {
        self.consumer.contains_key(&fragment) || self.producer.contains_key(&fragment)
    }

    /// Every fragment some transition wrote.
    pub fn destinations(&self) -> RoaringBitmap {
        self.transitions.iter().flat_map(Transition::destination_ids).collect()
    }

    /// Every fragment the rows of some fragments went to later, those that are gone again included.
    pub fn reach(&self, from: &RoaringBitmap) -> RoaringBitmap {
        let next =
            |at| self.consumer(at).and_then(|at| self.transitions.get(at)).into_iter().flat_map(Transition::destination_ids);
        let mut reached = RoaringBitmap::new();
        let mut open: Vec<u32> = from.iter().collect();
        while let Some(at) = open.pop() {
            open.extend(next(at).filter(|to| reached.insert(*to)));
        }
        reached
    }

    /// Every fragment whose rows, or some of them, are in `fragment` now or were on their way.
    pub fn ancestors(&self, fragment: u32) -> RoaringBitmap {
        let before = |at| self.producer(at).and_then(|at| self.transitions.get(at)).into_iter().flat_map(Transition::source_ids);
        let mut found = RoaringBitmap::new();
        let mut open = vec![fragment];
        while let Some(at) = open.pop() {
            open.extend(before(at).filter(|from| found.insert(*from)));
        }
        found
    }

    /// Sources and destinations of the transitions of some records.
    pub fn ids_of(&self, kept: &[bool]) -> RoaringBitmap {
        let of_kept = self.transitions.iter().filter(|t| kept.get(t.record).copied().unwrap_or(false));
        of_kept.flat_map(|t| t.source_ids().chain(t.destination_ids())).collect()
    }

    /// Fills the two maps from the transitions as they stand.
    fn connect(&mut self, object: &str) -> Result<()> {
        for (at, transition) in self.transitions.iter().enumerate() {
            for (ids, map, what) in
                [(&transition.sources, &mut self.consumer, "consume"), (&transition.destinations, &mut self.producer, "produce")]
            {
                for digest in ids {
                    if map.insert(digest.id, at).is_some() {
                        return Err(Error::corrupt(object, format!("two transitions {what} fragment {}", digest.id)));
                    }
                }
            }
        }
        for transition in &self.transitions {
            for source in &transition.sources {
                let made = self.producer.get(&source.id).and_then(|at| self.transitions.get(*at));
                let made = made.and_then(|t| t.destinations.iter().find(|d| d.id == source.id));
                if let Some(made) = made.filter(|made| made.physical_rows != source.physical_rows) {
                    let text = format!(
                        "fragment {} was written with {} rows and read with {}",
                        source.id, made.physical_rows, source.physical_rows
                    );
                    return Err(Error::corrupt(object, text));
                }
            }
        }
        Ok(())
    }

    /// Puts producers before consumers; what does not depend on each other keeps its order.
    fn sort(&mut self, object: &str) -> Result<()> {
        let count = self.transitions.len();
        let mut waits: Vec<usize> = Vec::with_capacity(count);
        for transition in &self.transitions {
            waits.push(transition.source_ids().filter(|id| self.producer.contains_key(id)).count());
        }
        let mut ready: VecDeque<usize> = (0..count).filter(|at| waits.get(*at) == Some(&0)).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(at) = ready.pop_front() {
            order.push(at);
            for to in self.transitions.get(at).into_iter().flat_map(Transition::destination_ids) {
                let Some(next) = self.consumer.get(&to) else { continue };
                let Some(left) = waits.get_mut(*next) else { continue };
                *left = left.saturating_sub(1);
                if *left == 0 {
                    ready.push_back(*next);
                }
            }
        }
        if order.len() != count {
            return Err(Error::corrupt(object, "transitions follow each other in a circle"));
        }
        let mut place = vec![0; count];
        for (to, from) in order.iter().enumerate() {
            if let Some(slot) = place.get_mut(*from) {
                *slot = to;
            }
        }
        for at in self.producer.values_mut().chain(self.consumer.values_mut()) {
            *at = place.get(*at).copied().unwrap_or(*at);
        }
        let mut slots: Vec<Option<Transition>> = std::mem::take(&mut self.transitions).into_iter().map(Some).collect();
        self.transitions = order.into_iter().filter_map(|from| slots.get_mut(from).and_then(Option::take)).collect();
        Ok(())
    }
}
