//! Rows that a kept segment still holds for fragments outside its bitmap (refresh-and-compaction §2.5).
//!
//! A reader keeps every row a segment returns that lies in a fragment *some* segment of the name covers. Old values of a
//! fragment that left a bitmap are therefore served again as soon as a sibling covers that fragment.

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::format::row::{RowAddress, RowDomain};

/// What a retained older manifest that already lists the segment proves about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Version of that manifest.
    pub version: u64,
    /// Highest fragment id ever allocated there; `None` = no fragment yet.
    pub max_fragment_id: Option<u32>,
    /// Next unused stable row id there.
    pub next_row_id: u64,
}

/// One fragment a refresh wants to claim, seen from the stale rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Fragment id.
    pub fragment: u32,
    /// The version-0 reuse history names it as a destination, so older rows may have been carried into it.
    pub reuse_destination: bool,
    /// Smallest stable id of a live row; `None` = no live row, or not known (then only `Address` can clear it).
    pub smallest_row_id: Option<u64>,
    /// Whether the fragment certainly has no live row at all.
    pub without_rows: bool,
}

/// Whether the manifest alone proves that the segment holds no row of that fragment.
pub fn cleared_by_manifest(domain: RowDomain, witness: &Witness, claimed: &Claimed) -> bool {
    match domain {
        RowDomain::Address => {
            !claimed.reuse_destination && witness.max_fragment_id.is_none_or(|highest| claimed.fragment > highest)
        }
        RowDomain::StableId => {
            claimed.without_rows || claimed.smallest_row_id.is_some_and(|smallest| smallest >= witness.next_row_id)
        }
    }
}

/// Fragments among `suspects` that stored row addresses (already carried through a reuse history) fall into.
pub fn held_by_address(stored: &RoaringTreemap, suspects: &RoaringBitmap) -> RoaringBitmap {
    stored
        .bitmaps()
        .filter(|(fragment, rows)| suspects.contains(*fragment) && !rows.is_empty())
        .map(|(fragment, _)| fragment)
        .collect()
}

/// Whether any of the stable ids of a fragment's live rows is stored in the segment.
pub fn held_by_id(stored: &RoaringTreemap, live_ids: impl IntoIterator<Item = u64>) -> bool {
    live_ids.into_iter().any(|id| stored.contains(id))
}

/// Whether a stored row id has to be left out of a copy that must not hold rows of `stale` fragments.
pub fn in_fragments(address: u64, stale: &RoaringBitmap) -> bool {
    stale.contains(RowAddress(address).fragment())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(fragment: u32) -> Claimed {
        Claimed { fragment, reuse_destination: false, smallest_row_id: None, without_rows: false }
    }

    #[test]
    fn a_fragment_newer_than_the_witness_is_cleared_by_address() {
        let witness = Witness { version: 3, max_fragment_id: Some(4), next_row_id: 0 };
        assert!(cleared_by_manifest(RowDomain::Address, &witness, &claimed(5)));
        assert!(!cleared_by_manifest(RowDomain::Address, &witness, &claimed(4)));
        let destination = Claimed { reuse_destination: true, ..claimed(5) };
        assert!(!cleared_by_manifest(RowDomain::Address, &witness, &destination));
        let empty = Witness { max_fragment_id: None, ..witness };
        assert!(cleared_by_manifest(RowDomain::Address, &empty, &claimed(0)));
    }

    #[test]
    fn only_younger_row_ids_are_cleared_by_id() {
        let witness = Witness { version: 3, max_fragment_id: Some(4), next_row_id: 100 };
        let with = |smallest_row_id| Claimed { smallest_row_id, ..claimed(9) };
        assert!(cleared_by_manifest(RowDomain::StableId, &witness, &with(Some(100))));
        assert!(!cleared_by_manifest(RowDomain::StableId, &witness, &with(Some(99))), "a row that moved keeps its old id");
        assert!(!cleared_by_manifest(RowDomain::StableId, &witness, &with(None)), "unknown ids prove nothing");
        assert!(cleared_by_manifest(RowDomain::StableId, &witness, &Claimed { without_rows: true, ..claimed(9) }));
    }

    #[test]
    fn held_rows_are_found_by_their_high_half() {
        let stored: RoaringTreemap = [RowAddress::new(1, 7).0, RowAddress::new(3, 0).0].into_iter().collect();
        let suspects: RoaringBitmap = [0, 1, 2].into_iter().collect();
        assert_eq!(held_by_address(&stored, &suspects), [1].into_iter().collect::<RoaringBitmap>());
        assert!(held_by_id(&stored, [5, RowAddress::new(3, 0).0]));
        assert!(!held_by_id(&stored, [5]));
    }
}
