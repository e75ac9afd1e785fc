//! Where the rows that index files name are now, carried through a reuse history of either kind (spec fragment-reuse §3.2, §6).

use roaring::{RoaringBitmap, RoaringTreemap};
use uuid::Uuid;

use crate::error::{Error, ErrorCode, Result};
use crate::format::reuse_v0::ReuseHistoryV0;
use crate::format::row::{RowAddress, RowDomain};
use crate::refresh::files::reuse_history;
use crate::reuse::coverage::{Derived, State};
use crate::table::Table;
use crate::table::history::TaggedHistory;
use crate::table::row_map::RowMaps;

/// Rows that are carried along at once.
const PART: usize = 1 << 18;

/// The way from what files say to rows of the table.
pub enum Moves<'a> {
    /// Files name rows where they are, or by stable ids.
    Still,
    /// A version-0 history: addresses it does not name are passed on.
    Legacy(ReuseHistoryV0),
    /// A tagged one: what it does not lead to a live fragment is dropped.
    Tagged(Tagged<'a>),
}

/// Rows under a tagged history.
pub struct Tagged<'a> {
    table: &'a Table,
    history: &'a TaggedHistory,
    maps: RowMaps<'a>,
    live: RoaringBitmap,
}

impl<'a> Moves<'a> {
    /// Of a table whose tagged history, if there is one, is this. `domain` is that of the index.
    ///
    /// # Errors
    /// Those of reading a version-0 history.
    pub async fn new(table: &'a Table, history: Option<&'a TaggedHistory>, domain: RowDomain) -> Result<Moves<'a>> {
        let file = table.manifest();
        if domain != RowDomain::Address {
            return Ok(Moves::Still);
        }
        let Some(history) = history else {
            let legacy = reuse_history(table.store(), &file.manifest, &file.indices).await?;
            return Ok(legacy.map_or(Moves::Still, Moves::Legacy));
        };
        let maps = RowMaps::new(table.store(), &file.manifest, &history.ledger);
        Ok(Moves::Tagged(Tagged { table, history, maps, live: file.manifest.live() }))
    }

    /// The version-0 history.
    pub fn legacy(&self) -> Option<&ReuseHistoryV0> {
        match self {
            Moves::Legacy(history) => Some(history),
            _ => None,
        }
    }

    /// The rows that a segment names by `rows`: none that are gone, none that its siblings answer for.
    ///
    /// # Errors
    /// Those of reading row maps.
    pub async fn of_segment(&self, segment: Uuid, rows: RoaringTreemap) -> Result<RoaringTreemap> {
        match self {
            Moves::Still => Ok(rows),
            Moves::Legacy(history) => {
                Ok(rows.iter().filter_map(|row| history.map_address(RowAddress(row))).map(|address| address.0).collect())
            }
            Moves::Tagged(tagged) => tagged.rows(segment, &rows).await,
        }
    }
}

impl Tagged<'_> {
    /// What the reader makes of a segment.
    ///
    /// # Errors
    /// `INTERNAL` for one that is not of this table.
    pub fn derived(&self, segment: Uuid) -> Result<&Derived> {
        let derived = self.history.of_segment(&self.table.manifest().indices, segment);
        derived.ok_or_else(|| Error::internal("a segment is not in the manifest it was read from"))
    }

    /// The history.
    pub fn history(&self) -> &TaggedHistory {
        self.history
    }

    /// Rows, deleted ones included, that a fragment had when it was rewritten; `None` = the history does not say that it was.
    pub fn rows_before(&self, fragment: u32) -> Option<u32> {
        let ledger = &self.history.ledger;
        let transition = ledger.transitions.get(ledger.consumer(fragment)?)?;
        transition.sources.iter().find(|source| source.id == fragment).map(|source| source.physical_rows)
    }

    /// Where rows that a segment names are now, in their order; `None` = nowhere that the segment answers for.
    ///
    /// # Errors
    /// Those of reading row maps.
    pub async fn places(&self, segment: Uuid, rows: &[RowAddress]) -> Result<Vec<Option<RowAddress>>> {
        let derived = self.derived(segment)?;
        if derived.state == State::Direct {
            return Ok(rows.iter().map(|row| Some(*row)).collect());
        }
        let places = self.maps.translate(&self.live, &derived.excluded, rows).await.map_err(|error| match error.code() {
            // Nobody but the file named these rows.
            ErrorCode::InvalidArgument => Error::corrupt(&format!("_indices/{segment}"), error.message()),
            _ => error,
        })?;
        Ok(places.into_iter().map(|place| place.filter(|place| derived.coverage.contains(place.fragment()))).collect())
    }

    /// The rows that a segment names by `rows`, as a set.
    ///
    /// # Errors
    /// Those of reading row maps.
    pub async fn rows(&self, segment: Uuid, rows: &RoaringTreemap) -> Result<RoaringTreemap> {
        let mut found = RoaringTreemap::new();
        let mut left = rows.iter().map(RowAddress).peekable();
        while left.peek().is_some() {
            let part: Vec<RowAddress> = left.by_ref().take(PART).collect();
            found.extend(self.places(segment, &part).await?.into_iter().flatten().map(|address| address.0));
        }
        Ok(found)
    }
}
