//! Jobs that write data files: rewriting fragments of a table (refresh-and-compaction §5).
//!
//! `data_file` is what they share: which columns can be written, rows → one data file → the fragment that names it.

pub mod data_file;
