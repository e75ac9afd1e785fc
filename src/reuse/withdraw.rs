//! What an in-place rewrite of a column takes away from the segments of its indexes (spec fragment-reuse §10).
//!
//! A segment holds the values its column had when it was built. Where they were rewritten, everything of the segment whose rows
//! may have come there has to go, or a reader carries stale values to live rows.

use roaring::RoaringBitmap;

use super::ledger::Ledger;

/// A segment's bitmap without what was rewritten in these fragments. `ledger` = `None` when the history cannot be walked.
pub fn withdraw(
    ledger: Option<&Ledger>,
    live: &RoaringBitmap,
    stored: &RoaringBitmap,
    rewritten: &RoaringBitmap,
) -> RoaringBitmap {
    let ledger = ledger.filter(|ledger| ledger.supported);
    let retired = stored - live;
    let mut gone = stored & rewritten;
    match ledger {
        Some(ledger) => {
            for fragment in rewritten {
                gone |= ledger.ancestors(fragment) & &retired;
            }
        }
        None if !rewritten.is_empty() => gone |= &retired,
        None => {}
    }
    let left = stored - &gone;
    // What is left would be read without translation, and show rows of fragments that are gone as live ones.
    let raw = left.is_subset(live) && ledger.is_some_and(|ledger| !left.iter().any(|f| ledger.mentions(f)));
    if !gone.is_disjoint(&retired) && raw { RoaringBitmap::new() } else { left }
}

/// What becomes of the segments of one index whose bitmaps are now these (`None` = not recorded): false = its entry goes,
/// because it was emptied and a sibling still covers something.
pub fn settle(before: &[Option<RoaringBitmap>], after: &[Option<RoaringBitmap>]) -> Vec<bool> {
    let holds = |b: &Option<RoaringBitmap>| b.as_ref().is_none_or(|b| !b.is_empty());
    let sibling = after.iter().any(holds);
    let stays = |(before, after): (&Option<RoaringBitmap>, &Option<RoaringBitmap>)| holds(after) || !sibling || !holds(before);
    before.iter().zip(after).map(stays).collect()
}
