//! How queries read an index under a reuse history: which segments they see (`served`), and where the rows that files name are
//! now (`moves`). What a segment holds of rows that are gone, or that another segment answers for, counts for nothing.

mod moves;
mod served;

pub(super) use moves::{Moves, Tagged};
pub use served::Omitted;
pub(super) use served::Served;
