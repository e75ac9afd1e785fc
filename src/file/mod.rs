//! Lance column files 2.0, 2.1 and 2.2: reading scalar columns in ranges, writing 2.0 files.

pub mod messages;
mod writer;

pub use writer::{EncodedFile, FileWriter, WriterField};
