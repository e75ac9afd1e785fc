//! How an index type lives through a compaction (refresh-and-compaction §5.6).

/// What matters about the type of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Names single rows, by address or stable id as the table does: BITMAP, LABEL_LIST, NGRAM, INVERTED, BTREE of format 0,
    /// MinHash, vector indexes.
    Rows {
        /// After an eager compaction over a deferred one it answers nothing, and nothing reports it.
        lost_over_history: bool,
    },
    /// BTREE of format 1: names single rows by address, also where the table has stable ids.
    AddressTree,
    /// Names stretches of fragments: ZONEMAP, BLOOMFILTER, FM.
    Zones,
    /// RTREE: names rows by stable id where there are such, and cannot be remapped where there are not.
    Boxes,
    /// A type or format version that Lance 14 does not read.
    Opaque,
}

impl Kind {
    /// The kind of a type by its name in options (`BTREE`, …) and format version; `None` = a type nobody knows.
    pub fn of(name: Option<&str>, index_version: i32) -> Kind {
        let most = match name {
            Some("BTREE" | "LABEL_LIST") => 1,
            Some("INVERTED") => 3,
            Some("FM") => 10,
            Some("BITMAP" | "ZONEMAP" | "BLOOMFILTER" | "NGRAM" | "RTREE" | "JSON" | "MINHASH") => 0,
            // Vector formats are numbered on their own, and Lance reads all that there are.
            Some("VECTOR") => i32::MAX,
            _ => return Kind::Opaque,
        };
        if index_version > most || index_version < 0 {
            return Kind::Opaque;
        }
        match name {
            Some("BTREE") if index_version >= 1 => Kind::AddressTree,
            Some("BTREE" | "NGRAM" | "INVERTED") => Kind::Rows { lost_over_history: true },
            Some("ZONEMAP" | "BLOOMFILTER" | "FM") => Kind::Zones,
            Some("RTREE") => Kind::Boxes,
            _ => Kind::Rows { lost_over_history: false },
        }
    }

    /// Whether Lance opens the segment.
    pub fn readable(self) -> bool {
        self != Kind::Opaque
    }

    /// Whether a remap by Lance over a reuse history loses the rows covered through it (refresh-and-compaction §5.6).
    pub(super) fn lost_over_history(self) -> bool {
        matches!(self, Kind::Rows { lost_over_history: true } | Kind::AddressTree)
    }

    /// What an eager compaction does to a segment that covers one of its sources.
    pub(super) fn eager(self, stable_row_ids: bool) -> Eager {
        match (self, stable_row_ids) {
            (Kind::Rows { .. } | Kind::AddressTree, false) | (Kind::AddressTree, true) => Eager::Rewritten,
            (Kind::Zones | Kind::Boxes | Kind::Opaque, false) => Eager::Retired,
            (Kind::Rows { .. } | Kind::Boxes | Kind::Opaque, true) => Eager::Followed,
            (Kind::Zones, true) => Eager::Stripped,
        }
    }
}

/// What an eager compaction does to a segment it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eager {
    /// Its files are written again with the new addresses, under a new uuid; its coverage goes to the new fragments.
    Rewritten,
    /// Its coverage goes to the new fragments; its files name rows by ids that do not change.
    Followed,
    /// The old fragments leave its coverage.
    Stripped,
    /// Nothing is changed: it goes on naming fragments that are gone.
    Retired,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_specification() {
        let eager = |name: &str, version: i32, stable: bool| Kind::of(Some(name), version).eager(stable);
        for name in ["BITMAP", "LABEL_LIST", "NGRAM", "INVERTED", "BTREE", "MINHASH", "VECTOR"] {
            assert_eq!((eager(name, 0, false), eager(name, 0, true)), (Eager::Rewritten, Eager::Followed), "{name}");
        }
        assert_eq!((eager("BTREE", 1, false), eager("BTREE", 1, true)), (Eager::Rewritten, Eager::Rewritten));
        for (name, version) in [("ZONEMAP", 0), ("BLOOMFILTER", 0), ("FM", 10)] {
            assert_eq!((eager(name, version, false), eager(name, version, true)), (Eager::Retired, Eager::Stripped), "{name}");
        }
        assert_eq!((eager("RTREE", 0, false), eager("RTREE", 0, true)), (Eager::Retired, Eager::Followed));
        assert!(
            !Kind::of(None, 0).readable() && !Kind::of(Some("BTREE"), 2).readable() && !Kind::of(Some("BITMAP"), -1).readable()
        );
    }
}
