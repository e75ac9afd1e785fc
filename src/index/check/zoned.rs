//! Rows against zones: which zones a row lies in, and what the stored null rows say of it.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::Array;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::format::row::RowAddress;
use crate::index::bytes::ValueBytes;
use crate::index::check::{Findings, ZoneCheck};
use crate::index::zones::{Places, addresses};
use crate::table::scan::ColumnBatch;

/// What a method keeps of its zones.
pub trait Admits {
    /// Why a reader that looks for this value (`None`: null) would pass over the zone; `None` when it does not.
    fn refuses(&self, zone: usize, value: Option<&[u8]>) -> Option<&'static str>;
}

/// The zones of a segment.
pub struct ZoneRows<A> {
    content: A,
    /// Addresses and number of the zones of a fragment, ascending, with the largest end so far.
    zones: BTreeMap<u32, Vec<(Range<u64>, usize, u64)>>,
    nulls: Option<RoaringTreemap>,
}

impl<A: Admits> ZoneRows<A> {
    /// Zones at `places`.
    pub fn new(places: &Places, nulls: Option<RoaringTreemap>, content: A) -> ZoneRows<A> {
        let mut zones: BTreeMap<u32, Vec<(Range<u64>, usize, u64)>> = BTreeMap::new();
        for (number, (fragment, start, length)) in places.iter().enumerate() {
            if let (Some(range), Ok(fragment)) = (addresses(fragment, start, length), u32::try_from(fragment)) {
                zones.entry(fragment).or_default().push((range, number, 0));
            }
        }
        for zones in zones.values_mut() {
            zones.sort_unstable_by_key(|(range, _, _)| range.start);
            let mut furthest = 0;
            for (range, _, end) in zones {
                furthest = range.end.max(furthest);
                *end = furthest;
            }
        }
        ZoneRows { content, zones, nulls }
    }

    /// The first reason why no zone with this row lets it through.
    fn refused(&self, fragment: u32, address: u64, value: Option<&[u8]>) -> Option<&'static str> {
        let zones = self.zones.get(&fragment).map(Vec::as_slice).unwrap_or_default();
        let before = zones.partition_point(|(range, _, _)| range.start <= address);
        let mut reason = "it lies in no zone";
        for (range, number, furthest) in zones.get(..before).unwrap_or_default().iter().rev() {
            if *furthest <= address {
                break;
            }
            if range.contains(&address) {
                reason = self.content.refuses(*number, value)?;
            }
        }
        Some(reason)
    }
}

impl<A: Admits> ZoneCheck for ZoneRows<A> {
    fn rows(&mut self, batch: &ColumnBatch, covered: bool, findings: &mut Findings) -> Result<()> {
        let bytes = ValueBytes::new(&batch.values).ok_or_else(|| Error::internal("an array has no readable values"))?;
        let fragment = Some(batch.fragment);
        for slot in 0..batch.values.len() {
            let Some(address) = batch.rows.get(slot) else { break };
            let null = batch.values.is_null(slot);
            let stored = self.nulls.as_ref().is_some_and(|nulls| nulls.contains(address));
            let at = || format!("row {} of fragment {}", RowAddress(address).offset(), batch.fragment);
            if stored && !null {
                let code = if covered { "NULL_SURPLUS" } else { "ROW_STALE" };
                findings.push(code, fragment, Some(address), || format!("{} is stored as null and has a value", at()));
            }
            if !covered {
                continue;
            }
            if null && !stored && self.nulls.is_some() {
                findings.push("NULL_MISSING", fragment, Some(address), || format!("{} is null and not stored as null", at()));
            }
            if let Some(why) = self.refused(batch.fragment, address, (!null).then(|| bytes.get(slot))) {
                findings.push("ZONE_TOO_TIGHT", fragment, Some(address), || format!("{} would not be found: {why}", at()));
            }
        }
        Ok(())
    }

    fn has_zones(&self, fragment: u32) -> bool {
        self.zones.contains_key(&fragment)
    }

    fn null_rows(&self) -> Option<&RoaringTreemap> {
        self.nulls.as_ref()
    }
}
