//! Lance column files 2.0 to 2.3: reading columns of scalars and of lists of them, writing index and data files.
//!
//! `container` finds the columns and their pages, `layout` decodes a page of each kind with the compressions of
//! `encodings`, `levels` tells nulls and lists, `scan` streams a range of rows, `take` reads scattered rows, `writer`
//! writes. What is read is listed in `docs/encodings.md`; the rest (legacy 0.1, blobs, lists of structs) is refused by name.

mod container;
mod encodings;
#[cfg(test)]
mod encodings_page;
mod fault;
pub mod gather;
mod layout;
mod levels;
pub mod messages;
mod nesting;
mod page;
mod reader;
mod scan;
mod take;
#[cfg(test)]
mod tests;
mod values;
mod writer;

pub use container::FileVersion;
pub use reader::LanceFile;
pub use scan::ColumnScan;
pub(crate) use values::decoded_type;
pub use writer::{EncodedFile, FileWriter, WriterField};
