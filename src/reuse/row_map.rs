//! The counts matrix of a stable partition's row map: how many rows of each label lie before each block (spec fragment-reuse §5).

use std::ops::Range;

use bytes::Bytes;

use super::transition::Transition;
use crate::error::{Error, Result};

/// Key of the schema metadata that names the global buffer with the matrix.
pub const COUNTS_KEY: &str = "lance:stable_partition:counts_buffer_index";
/// The only column.
pub const COLUMN: &str = "label";
/// Name of the file in `_fri/{map_id}/`.
pub const FILE_NAME: &str = "stable_partition.lance";

const HEADER: usize = 28;
/// Destinations a reader accepts.
const MOST_DESTINATIONS: u32 = 65_535;

/// A checked counts matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    destinations: u32,
    block_rows: u32,
    total_rows: u64,
    /// The matrix as stored: blocks × destinations little-endian u32, each row counting up to the end of its block.
    matrix: Bytes,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

impl Counts {
    /// Reads the buffer and checks everything it can contradict by itself.
    ///
    /// # Errors
    /// `CORRUPT_FILE`.
    pub fn parse(object: &str, buffer: &Bytes) -> Result<Counts> {
        let fault = |what: &str| Error::corrupt(object, format!("row map counts: {what}"));
        if buffer.get(..4) != Some(b"LSPC") {
            return Err(fault("the magic is not LSPC"));
        }
        let word = |at| u32_at(buffer, at).ok_or_else(|| fault("the header is cut off"));
        if word(4)? != 1 || word(8)? != 0 {
            return Err(fault("another version or representation than 1 and 0"));
        }
        let (destinations, block_rows) = (word(12)?, word(16)?);
        let total_rows = u64::from(word(20)?) | u64::from(word(24)?) << 32;
        if destinations == 0 || destinations > MOST_DESTINATIONS || block_rows == 0 {
            return Err(fault("no destinations, too many of them, or blocks without rows"));
        }
        let matrix = buffer.slice(buffer.len().min(HEADER)..);
        let counts = Counts { destinations, block_rows, total_rows, matrix };
        let size = counts.blocks().checked_mul(u64::from(destinations)).and_then(|n| n.checked_mul(4));
        if size != Some(counts.matrix.len() as u64) {
            return Err(fault("its length does not follow from its header"));
        }
        for block in 0..counts.blocks() {
            let rows = counts.rows_of(block);
            let mut live = 0u64;
            for label in 0..destinations {
                let grown = counts.until(block, label).checked_sub(counts.before(block, label));
                live += grown.ok_or_else(|| fault("a count goes down from one block to the next"))?;
            }
            if live > rows.end - rows.start {
                return Err(fault("a block holds more rows than it is long"));
            }
        }
        Ok(counts)
    }

    /// Rows of all sources, deleted ones included.
    pub fn total_rows(&self) -> u64 {
        self.total_rows
    }

    /// Number of destinations.
    pub fn destinations(&self) -> u32 {
        self.destinations
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.total_rows.div_ceil(u64::from(self.block_rows))
    }

    /// The block a row is in.
    pub fn block_of(&self, row: u64) -> u64 {
        row / u64::from(self.block_rows)
    }

    /// The rows of a block.
    pub fn rows_of(&self, block: u64) -> Range<u64> {
        let start = block.saturating_mul(u64::from(self.block_rows)).min(self.total_rows);
        start..start.saturating_add(u64::from(self.block_rows)).min(self.total_rows)
    }

    /// Rows of a destination.
    pub fn total(&self, label: u32) -> u64 {
        self.blocks().checked_sub(1).map_or(0, |last| self.until(last, label))
    }

    fn until(&self, block: u64, label: u32) -> u64 {
        let at = block.checked_mul(u64::from(self.destinations)).and_then(|at| at.checked_add(u64::from(label)));
        let at = at.and_then(|at| usize::try_from(at.checked_mul(4)?).ok());
        at.and_then(|at| u32_at(&self.matrix, at)).map_or(0, u64::from)
    }

    fn before(&self, block: u64, label: u32) -> u64 {
        block.checked_sub(1).map_or(0, |previous| self.until(previous, label))
    }

    /// Holds the matrix against the transition it belongs to.
    ///
    /// # Errors
    /// `CORRUPT_FILE` when rows, number of destinations or their rows disagree.
    pub fn bind(&self, object: &str, transition: &Transition) -> Result<()> {
        let rows: u64 = transition.sources.iter().map(|s| u64::from(s.physical_rows)).sum();
        let fault = |what: String| Err(Error::corrupt(object, format!("row map counts: {what}")));
        if rows != self.total_rows {
            return fault(format!("{} rows, the sources have {rows}", self.total_rows));
        }
        if transition.destinations.len() as u64 != u64::from(self.destinations) {
            return fault(format!("{} destinations, the transition has {}", self.destinations, transition.destinations.len()));
        }
        for (label, destination) in (0u32..).zip(&transition.destinations) {
            if self.total(label) != u64::from(destination.physical_rows) {
                let text = format!(
                    "{} rows of destination {}, which has {}",
                    self.total(label),
                    destination.id,
                    destination.physical_rows
                );
                return fault(text);
            }
        }
        Ok(())
    }

    /// Starts at the first row of a block.
    pub fn enter(&self, block: u64) -> Block<'_> {
        let counters = (0..self.destinations).map(|label| self.before(block, label)).collect();
        Block { counts: self, block, counters, left: self.rows_of(block) }
    }
}

/// The labels of a block, row by row.
pub struct Block<'a> {
    counts: &'a Counts,
    block: u64,
    counters: Vec<u64>,
    left: Range<u64>,
}

impl Block<'_> {
    fn fault(&self, object: &str, what: impl std::fmt::Display) -> Error {
        Error::corrupt(object, format!("row map block {}: {what}", self.block))
    }

    /// Destination (by label) and offset of the next row; `None` = the row was deleted.
    ///
    /// # Errors
    /// `CORRUPT_FILE` for a label without a destination, or a row past the end of the block.
    pub fn next(&mut self, object: &str, label: Option<u16>) -> Result<Option<(u16, u32)>> {
        if self.left.next().is_none() {
            return Err(self.fault(object, "it has more labels than rows"));
        }
        let Some(label) = label else { return Ok(None) };
        let Some(counter) = self.counters.get_mut(usize::from(label)) else {
            return Err(self.fault(object, format_args!("label {label} of {} destinations", self.counts.destinations)));
        };
        let offset = *counter as u32;
        *counter += 1;
        Ok(Some((label, offset)))
    }

    /// Holds the labels against the counts.
    ///
    /// # Errors
    /// `CORRUPT_FILE` when they contradict each other: then no place that was handed out is to be trusted.
    pub fn finish(self, object: &str) -> Result<()> {
        let differs = (0..self.counts.destinations)
            .zip(&self.counters)
            .any(|(label, counter)| *counter != self.counts.until(self.block, label));
        if differs || !self.left.is_empty() {
            return Err(self.fault(object, "its labels contradict the counts"));
        }
        Ok(())
    }
}
