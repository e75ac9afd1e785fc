//! What an audit found.

use std::collections::BTreeMap;

use serde::Serialize;
use uuid::Uuid;

/// Findings of one code and segment that are listed one by one; the others are only counted.
const LISTED: u64 = 10;

/// One disagreement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind it is.
    pub code: &'static str,
    /// The segment; null for what concerns several.
    pub segment: Option<String>,
    /// The fragment.
    pub fragment: Option<u32>,
    /// The row: address or stable id, whichever the segment stores, as a decimal.
    pub row: Option<String>,
    /// What is wrong, in words.
    pub text: String,
}

/// Findings, counted by kind and listed up to a limit.
#[derive(Debug, Default)]
pub struct Findings {
    /// The segment being looked at.
    pub segment: Option<Uuid>,
    listed: Vec<Finding>,
    counts: BTreeMap<(&'static str, Option<Uuid>), u64>,
}

impl Findings {
    /// Adds a finding; `text` is only asked for when it is listed.
    pub fn push(&mut self, code: &'static str, fragment: Option<u32>, row: Option<u64>, text: impl FnOnce() -> String) {
        let count = self.counts.entry((code, self.segment)).or_default();
        *count += 1;
        if *count <= LISTED {
            self.listed.push(Finding {
                code,
                segment: self.segment.map(|uuid| uuid.to_string()),
                fragment,
                row: row.map(|row| row.to_string()),
                text: text(),
            });
        }
    }

    /// How many of a kind there are in the segment being looked at.
    pub fn count(&self, code: &'static str) -> u64 {
        self.counts.get(&(code, self.segment)).copied().unwrap_or(0)
    }

    /// The listed ones, and how many there are of each kind.
    pub fn finish(self) -> (Vec<Finding>, BTreeMap<String, u64>) {
        let mut counts = BTreeMap::new();
        for ((code, _), count) in self.counts {
            *counts.entry(code.to_owned()).or_default() += count;
        }
        (self.listed, counts)
    }
}
