//! Zones: runs of so many live rows of one fragment, what ZONEMAP and BLOOMFILTER segments are made of (index-formats §7.2).
//!
//! `cut` makes them from a scan in address order, `read` finds them in a file again.

mod cut;
mod read;

pub use cut::{ZoneContent, ZoneCutter, valid_slots};
pub use read::{NULL_BITMAP, ZoneFile, count_in};

use std::ops::Range;

use crate::format::row::RowAddress;
use crate::lists::sorted_by_key;

/// Where zones lie: parallel columns, one entry a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Fragment ids.
    pub fragments: Vec<u64>,
    /// Physical offset of the first live row.
    pub starts: Vec<u64>,
    /// Physical rows from the first live row to the last.
    pub lengths: Vec<u64>,
}

impl Places {
    /// Zones.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Appends a zone.
    pub fn push(&mut self, (fragment, start, length): (u64, u64, u64)) {
        self.fragments.push(fragment);
        self.starts.push(start);
        self.lengths.push(length);
    }

    /// Fragment, start and length of every zone.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.fragments.iter().zip(&self.starts).zip(&self.lengths).map(|((fragment, start), length)| (*fragment, *start, *length))
    }

    /// Where to take the zones from so that they ascend; `None` when they do.
    pub fn order(&self) -> Option<Vec<usize>> {
        let places = || self.iter().map(|(fragment, start, _)| (fragment, start));
        if places().is_sorted() {
            return None;
        }
        let order: Vec<((u64, u64), usize)> = places().zip(0..).collect();
        Some(sorted_by_key(order, |(place, _)| *place).into_iter().map(|(_, at)| at).collect())
    }

    /// The fragments, each once, ascending.
    pub fn fragments(&self) -> Vec<u64> {
        let mut fragments = self.fragments.clone();
        fragments.sort_unstable();
        fragments.dedup();
        fragments
    }

    /// Zones that cannot be, in words.
    pub fn problems(&self) -> Vec<String> {
        let beyond = |(_, (fragment, start, length)): &(usize, (u64, u64, u64))| addresses(*fragment, *start, *length).is_none();
        let text = |(at, (fragment, _, _))| format!("zone {at} of fragment {fragment} reaches past the rows a fragment can have");
        self.iter().enumerate().filter(beyond).map(text).collect()
    }

    /// What is odd about how the zones lie, in words. Harmless: a row is looked for in every zone that has it.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let mut last: Option<(u64, u64)> = None;
        for (fragment, start, length) in self.iter() {
            if let Some((before, end)) = last
                && (before > fragment || (before == fragment && end > start))
            {
                remarks.push(format!(
                    "the zone of fragment {fragment} from row {start} on comes after the one of fragment {before} that ends at \
                     row {end}"
                ));
            }
            last = Some((fragment, start.saturating_add(length)));
        }
        remarks
    }
}

/// The row addresses of a zone; `None` when no fragment can have them.
pub fn addresses(fragment: u64, start: u64, length: u64) -> Option<Range<u64>> {
    let fragment = u32::try_from(fragment).ok()?;
    let end = start.checked_add(length).filter(|end| *end <= 1 << 32)?;
    let base = RowAddress::new(fragment, 0).0;
    // The very last address of the last fragment would need one more bit for its end.
    Some(base.checked_add(start)?..base.checked_add(end)?)
}
