//! Holding a segment against the rows of its column: what a method has to tell so that an audit can (issue: audit).
//!
//! A method that answers exactly gives the keys of a row and the entries of its files ([`KeyCheck`]): a row must be under just
//! the keys of its value. A method of zones looks at rows itself ([`ZoneCheck`]): a zone must let all its rows through.

mod findings;
mod zoned;

pub use findings::{Finding, Findings};
pub use zoned::{Admits, ZoneRows};

use arrow::array::{Array, ArrayRef};
use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::bytes::ValueBytes;
use crate::index::hash::xxh64;
use crate::table::scan::ColumnBatch;

/// The key of a null value.
pub const NULL_KEY: u64 = 0x6a09_e667_f3bc_c909;

/// How a method's segments are held against rows.
pub enum Check {
    /// Files of keys with the rows of each.
    Keys(Box<dyn KeyCheck>),
    /// Files of zones, one check for each segment.
    Zones(Box<dyn ZoneCheck>),
}

/// Something a segment records of a row beside the keys it is under.
pub struct Aspect {
    /// Code of the finding when it is another than that of the row's value.
    pub code: &'static str,
    /// What is wrong then, after "row n of fragment m".
    pub text: &'static str,
}

/// An exact method.
#[async_trait(?Send)]
pub trait KeyCheck {
    /// Hands the sum of the hashes of the distinct keys of every slot to `each`, in order; 0 for a row that has none. The sums
    /// of the [`KeyCheck::aspects`] of a slot follow its own.
    ///
    /// # Errors
    /// `INTERNAL` for an array of another type.
    fn keys(&self, values: &ArrayRef, each: &mut dyn FnMut(u64)) -> Result<()>;

    /// What is compared of a row whose keys are right.
    fn aspects(&self) -> &'static [Aspect] {
        &[]
    }

    /// Whether what a segment holds is answered without looking at the row again. Otherwise an entry too many does no harm.
    fn exact(&self) -> bool {
        true
    }

    /// Hands the hash of the key and the row id of every entry of a segment to `each`; first of all which sum it belongs to: 0
    /// for that of the keys, n for that of the nth aspect.
    ///
    /// # Errors
    /// Those of reading the files.
    async fn entries(&self, segment: &SegmentFiles, each: &mut dyn FnMut(usize, u64, u64)) -> Result<()>;
}

/// One segment of a method of zones.
pub trait ZoneCheck {
    /// Looks at rows of a fragment in the order of their addresses. `covered`: the segment's own, which it must let through;
    /// else those of a sibling, of which it must only not claim nulls that are none.
    ///
    /// # Errors
    /// `INTERNAL` for an array of another type.
    fn rows(&mut self, batch: &ColumnBatch, covered: bool, findings: &mut Findings) -> Result<()>;

    /// Whether the segment has zones of a fragment. It may cover one without, through a reuse history.
    fn has_zones(&self, fragment: u32) -> bool;

    /// Addresses of rows that are null according to the segment.
    fn null_rows(&self) -> Option<&roaring::RoaringTreemap>;
}

/// A hash of one key given as plain bytes; sums of them stand for sets of keys.
pub fn key(bytes: &[u8]) -> u64 {
    // The plain hash of an integer is not far from linear; a sum must not be.
    let hash = xxh64(bytes).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1
}

/// [`KeyCheck::keys`] of methods whose key is the value itself.
///
/// # Errors
/// `INTERNAL` for values without plain bytes.
pub fn value_keys(values: &ArrayRef, each: &mut dyn FnMut(u64)) -> Result<()> {
    let bytes = ValueBytes::new(values).ok_or_else(|| Error::internal("an array has no readable values"))?;
    (0..values.len()).for_each(|slot| each(if values.is_null(slot) { NULL_KEY } else { key(bytes.get(slot)) }));
    Ok(())
}
