//! Lance column files 2.0, 2.1 and 2.2: reading scalar columns in ranges, writing 2.0 files.
//!
//! `container` finds the columns and their pages, `layout` decodes a page of each kind with the compressions of
//! `encodings`, `scan` streams a range of rows, `writer` writes. Not read: lists, 2.3 pages, legacy 0.1 files; they are
//! refused by name.

mod container;
mod encodings;
mod fault;
pub mod gather;
mod layout;
mod levels;
pub mod messages;
mod page;
mod reader;
mod scan;
#[cfg(test)]
mod tests;
mod values;
mod writer;

pub use container::FileVersion;
pub use reader::LanceFile;
pub use scan::ColumnScan;
pub use writer::{EncodedFile, FileWriter, WriterField};
