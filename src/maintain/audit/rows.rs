//! Exact methods: every row of a covered fragment is in its segment under the keys of its value, and under no others in any.
//!
//! Sets of keys are compared through sums of 64-bit hashes, so a disagreement could hide with a chance of about 2^-64.

use roaring::RoaringBitmap;

use crate::error::Result;
use crate::format::reuse_v0::ReuseHistoryV0;
use crate::format::row::{RowAddress, RowDomain};
use crate::index::check::{Findings, KeyCheck};
use crate::maintain::audit::{Audit, Audited};
use crate::table::scan::FragmentScan;

/// Rows held in memory at a time; the segments are read once for each such group.
const GROUP: usize = 1 << 20;

/// A row of the table.
#[derive(Clone, Copy)]
struct Row {
    id: u64,
    /// Sum of its keys.
    keys: u64,
    fragment: u32,
}

impl Audit<'_> {
    pub(super) async fn check_keys(
        &mut self,
        check: &dyn KeyCheck,
        history: Option<&ReuseHistoryV0>,
        domain: RowDomain,
    ) -> Result<()> {
        let mut rows: Vec<Row> = Vec::new();
        let mut first = true;
        let chosen = std::mem::take(&mut self.chosen);
        for (at, fragment) in chosen.iter().enumerate() {
            let mut scan = FragmentScan::open(&self.context, fragment).await?;
            while let Some(batch) = scan.next().await? {
                let mut slot = 0;
                check.keys(&batch.values, &mut |keys| {
                    if let Some(id) = batch.rows.get(slot) {
                        rows.push(Row { id, keys, fragment: batch.fragment });
                    }
                    slot += 1;
                })?;
                self.rows += batch.values.len() as u64;
                (self.progress)(self.rows, self.total);
            }
            if rows.len() >= GROUP || at + 1 == chosen.len() {
                rows.sort_unstable_by_key(|row| row.id);
                for at in 0..self.segments.len() {
                    self.group(check, at, &rows, history, domain, first).await?;
                }
                rows.clear();
                first = false;
            }
        }
        self.chosen = chosen;
        Ok(())
    }

    async fn group(
        &mut self,
        check: &dyn KeyCheck,
        at: usize,
        rows: &[Row],
        history: Option<&ReuseHistoryV0>,
        domain: RowDomain,
        first: bool,
    ) -> Result<()> {
        let Some(segment) = self.segments.get(at) else { return Ok(()) };
        self.findings.segment = Some(segment.entry.uuid);
        let mut found = vec![0u64; rows.len()];
        let mut strays = Strays { audit: (self.table, &segment.fragments), domain, history: history.is_some(), first };
        let findings = &mut self.findings;
        let read = check
            .entries(&segment.files, &mut |key, stored| {
                let id = match (domain, history) {
                    (RowDomain::Address, Some(history)) => match history.map_address(RowAddress(stored)) {
                        Some(address) => address.0,
                        None => return,
                    },
                    _ => stored,
                };
                match rows.binary_search_by_key(&id, |row| row.id) {
                    Ok(at) => {
                        if let Some(sum) = found.get_mut(at) {
                            *sum = sum.wrapping_add(key);
                        }
                    }
                    Err(_) => strays.judge(id, findings),
                }
            })
            .await;
        if read.is_err() {
            // That it cannot be read was found before.
            if self.findings.count("UNREADABLE") == 0 {
                self.findings.push("UNREADABLE", None, None, || "its entries cannot be read".to_owned());
            }
            return Ok(());
        }
        compare(segment, rows, &found, check.exact(), &mut self.findings);
        if domain == RowDomain::StableId || self.table.manifest().manifest.has_stable_row_ids() {
            let covered = rows.iter().filter(|row| segment.fragments.contains(row.fragment)).count() as u64;
            let lost = self.findings.count("ROW_MISSING") + self.findings.count("ROW_OTHER_VALUE");
            if covered > 0 && 2 * lost > covered && self.findings.count("WRONG_ROW_DOMAIN") == 0 {
                let text = || {
                    "most rows are not where they should be: it seems to name rows by addresses where ids are meant, or the other way round".to_owned()
                };
                self.findings.push("WRONG_ROW_DOMAIN", None, None, text);
            }
        }
        Ok(())
    }
}

/// Entries whose row is none of those looked at.
struct Strays<'a> {
    audit: (&'a crate::table::Table, &'a RoaringBitmap),
    domain: RowDomain,
    history: bool,
    first: bool,
}

impl Strays<'_> {
    /// Rows that were deleted or moved since, or are of other fragments, do no harm; rows that never were do.
    fn judge(&mut self, id: u64, findings: &mut Findings) {
        if !self.first {
            return;
        }
        let (table, fragments) = self.audit;
        let manifest = &table.manifest().manifest;
        match self.domain {
            RowDomain::StableId => {
                if id >= manifest.next_row_id {
                    let next = manifest.next_row_id;
                    findings
                        .push("ROW_NOT_THERE", None, Some(id), || format!("row id {id} was never given; the next one is {next}"));
                }
            }
            RowDomain::Address => {
                let address = RowAddress(id);
                let (fragment, offset) = (address.fragment(), address.offset());
                let physical = manifest.fragment(fragment).and_then(|fragment| fragment.physical_rows);
                if let Some(rows) = physical.filter(|rows| fragments.contains(fragment) && u64::from(offset) >= *rows) {
                    findings.push("ROW_NOT_THERE", Some(fragment), Some(id), || {
                        format!("row {offset} of fragment {fragment}, which has {rows} rows")
                    });
                } else if fragment > manifest.max_fragment_id.unwrap_or(u32::MAX) && !self.history {
                    findings.push("ROW_NOT_THERE", Some(fragment), Some(id), || format!("fragment {fragment} never was"));
                }
            }
        }
    }
}

fn compare(segment: &Audited, rows: &[Row], found: &[u64], exact: bool, findings: &mut Findings) {
    for (row, found) in rows.iter().zip(found).filter(|(row, found)| row.keys != **found) {
        let (fragment, id) = (row.fragment, row.id);
        let mut say = |code, text: &str| {
            findings.push(code, Some(fragment), Some(id), || format!("row {id} of fragment {fragment} {text}"))
        };
        if !segment.fragments.contains(fragment) {
            if *found != 0 && exact {
                say("ROW_STALE", "is held with another value, though another segment covers it: both answer");
            }
        } else if *found == 0 {
            say("ROW_MISSING", "is not in the segment that covers it");
        } else if row.keys == 0 {
            say("ROW_SURPLUS", "has no key and is found under one");
        } else if *found == row.keys.wrapping_mul(2) {
            say("ROW_TWICE", "is held twice");
        } else {
            say("ROW_OTHER_VALUE", "is found under other keys than those of its value");
        }
    }
}
