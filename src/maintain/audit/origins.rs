//! Where the rows of some fragments came from, as a segment under a tagged reuse history names them (spec fragment-reuse §6).
//!
//! Entries of files are handed out one by one and nothing can be read from the store in between, so all addresses that lead to
//! the rows at hand are gathered before.

use roaring::RoaringBitmap;
use uuid::Uuid;

use crate::error::Result;
use crate::format::row::RowAddress;
use crate::maintain::reading::Tagged;
use crate::reuse::coverage::State;

/// Addresses that are translated at once.
const PART: u32 = 1 << 18;

/// From addresses in files to addresses in the table.
pub(super) struct Origins {
    /// Pairs of both, ascending.
    pairs: Vec<(u64, u64)>,
    /// Fragments in which the segment's rows stay where they are.
    still: RoaringBitmap,
}

impl Origins {
    /// Every way into `fragments` for rows of a segment; `None` = nothing of the segment has moved.
    ///
    /// # Errors
    /// Those of reading row maps.
    pub async fn of(moves: &Tagged<'_>, segment: Uuid, fragments: &RoaringBitmap) -> Result<Option<Origins>> {
        let derived = moves.derived(segment)?;
        if derived.state == State::Direct {
            return Ok(None);
        }
        let still = fragments & &derived.coverage;
        let mut before = RoaringBitmap::new();
        for fragment in &still {
            before |= moves.history().ledger.ancestors(fragment);
        }
        let mut pairs = Vec::new();
        for fragment in before {
            let rows = moves.rows_before(fragment).unwrap_or(0);
            let mut start = 0;
            while start < rows {
                let end = start.saturating_add(PART).min(rows);
                let part: Vec<RowAddress> = (start..end).map(|offset| RowAddress::new(fragment, offset)).collect();
                let places = moves.places(segment, &part).await?;
                let here = part.iter().zip(places).filter_map(|(from, to)| Some((from.0, to?)));
                pairs.extend(here.filter(|(_, to)| still.contains(to.fragment())).map(|(from, to)| (from, to.0)));
                start = end;
            }
        }
        // Fragments and their rows were taken in ascending order.
        Ok(Some(Origins { pairs, still }))
    }

    /// Where a row is now; `None` = not in the fragments at hand, or not the segment's to answer for.
    pub fn now(&self, stored: u64) -> Option<u64> {
        if self.still.contains(RowAddress(stored).fragment()) {
            return Some(stored);
        }
        let at = self.pairs.binary_search_by_key(&stored, |(from, _)| *from).ok()?;
        self.pairs.get(at).map(|(_, to)| *to)
    }
}
