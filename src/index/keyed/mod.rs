//! Files with one row per key and the bitmap of its rows: what BITMAP, LABEL_LIST and NGRAM segments are (index-formats §6).

mod check;
mod groups;
mod merge;
mod read;
mod summary;
mod write;

pub use check::{entries, probed};
pub use groups::Groups;
pub use merge::{KeyInput, merge_keys};
pub use read::Keys;
pub use summary::{Top, key_parts, summarise};
pub use write::KeyWriter;

use crate::error::Result;
use crate::file::FileWriter;

use crate::index::postings::Layout;

/// How a method calls the two columns.
#[derive(Clone, Copy)]
pub struct Names {
    /// Column of the keys.
    pub key: &'static str,
    /// Column of the bitmaps.
    pub bitmap: &'static str,
    /// Whether the schema lets a bitmap be null; none ever is.
    pub nullable: bool,
    /// Encoding of the bitmaps.
    pub layout: Layout,
}

/// The names of BITMAP and LABEL_LIST.
pub const KEYS_AND_BITMAPS: Names = Names { key: "keys", bitmap: "bitmaps", nullable: true, layout: Layout::RowTreemap };

/// Metadata key of BITMAP and LABEL_LIST files: `{"num_bitmaps":N}`.
const INDEX_STATS: &str = "lance:index_stats";

/// The file of all keys with their count in its metadata.
///
/// # Errors
/// Those of [`KeyWriter::push`].
pub fn counted(writer: KeyWriter) -> Result<FileWriter> {
    let stats = format!("{{\"num_bitmaps\":{}}}", writer.count());
    let mut file = writer.finish()?;
    file.metadata(INDEX_STATS, &stats);
    Ok(file)
}
