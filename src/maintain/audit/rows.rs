//! Exact methods: every row of a covered fragment is in its segment under the keys of its value, and under no others in any.
//!
//! Sets of keys are compared through sums of 64-bit hashes, so a disagreement could hide with a chance of about 2^-64.

use roaring::RoaringBitmap;

use super::origins::Origins;
use crate::error::{Error, Result};
use crate::format::row::{RowAddress, RowDomain};
use crate::index::check::{Findings, KeyCheck};
use crate::maintain::audit::{Audit, Audited};
use crate::maintain::reading::Moves;
use crate::table::scan::FragmentScan;

/// Sums of rows held in memory at a time; the segments are read once for each such group of rows.
const GROUP: usize = 1 << 20;

/// A row of the table.
#[derive(Clone, Copy)]
struct Row {
    id: u64,
    fragment: u32,
    /// Its place among the rows as they were read, which is where its sums are.
    at: u32,
}

/// Rows in the order of their ids.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    /// Sums of a row: of its keys, then of every aspect.
    sums: Vec<u64>,
}

impl Rows {
    fn fragments(&self) -> RoaringBitmap {
        self.rows.iter().map(|row| row.fragment).collect()
    }

    fn sums<'a>(&self, of: &'a [u64], row: &Row, each: usize) -> &'a [u64] {
        let start = row.at as usize * each;
        of.get(start..start + each).unwrap_or_default()
    }
}

impl Audit<'_> {
    pub(super) async fn check_keys(&mut self, check: &dyn KeyCheck, moves: &Moves<'_>, domain: RowDomain) -> Result<()> {
        let most = self.group_size(moves);
        let each = 1 + check.aspects().len();
        let mut rows = Rows::default();
        let mut first = true;
        let chosen = std::mem::take(&mut self.chosen);
        for (at, fragment) in chosen.iter().enumerate() {
            let mut scan = FragmentScan::open(&self.context, fragment).await?;
            while let Some(batch) = scan.next().await? {
                check.keys(&batch.values, &mut |sum| rows.sums.push(sum))?;
                for id in (0..batch.values.len()).filter_map(|slot| batch.rows.get(slot)) {
                    rows.rows.push(Row { id, fragment: batch.fragment, at: rows.rows.len() as u32 });
                }
                self.rows += batch.values.len() as u64;
                (self.progress)(self.rows, self.total);
            }
            if rows.sums.len() >= most || at + 1 == chosen.len() {
                if rows.sums.len() != rows.rows.len() * each {
                    return Err(Error::internal("not every row has its sums"));
                }
                rows.rows.sort_unstable_by_key(|row| row.id);
                let shared = self.segments.iter().any(|segment| !segment.shared.is_empty());
                let mut together = vec![0u64; if shared { rows.sums.len() } else { 0 }];
                for at in 0..self.segments.len() {
                    self.group(check, at, &rows, moves, domain, first, &mut together).await?;
                }
                self.compare_shared(&rows, &together, check);
                rows = Rows::default();
                first = false;
            }
        }
        self.chosen = chosen;
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    async fn group(
        &mut self,
        check: &dyn KeyCheck,
        at: usize,
        rows: &Rows,
        moves: &Moves<'_>,
        domain: RowDomain,
        first: bool,
        together: &mut [u64],
    ) -> Result<()> {
        let Some(segment) = self.segments.get(at) else { return Ok(()) };
        self.findings.segment = Some(segment.entry.uuid);
        let origins = match moves {
            Moves::Tagged(tagged) => Origins::of(tagged, segment.entry.uuid, &rows.fragments()).await?,
            _ => None,
        };
        let history = moves.legacy();
        let each = 1 + check.aspects().len();
        let mut found = vec![0u64; rows.sums.len()];
        let mut strays = Strays { audit: (self.table, &segment.fragments), domain, history: history.is_some(), first };
        let findings = &mut self.findings;
        let read = check
            .entries(&segment.files, &mut |sum, key, stored| {
                let id = match (domain, history, &origins) {
                    (RowDomain::Address, Some(history), _) => match history.map_address(RowAddress(stored)) {
                        Some(address) => address.0,
                        None => return,
                    },
                    // Rows that are gone, or that others answer for, a reader drops.
                    (_, _, Some(origins)) => match origins.now(stored) {
                        Some(now) => now,
                        None => return,
                    },
                    _ => stored,
                };
                match rows.rows.binary_search_by_key(&id, |row| row.id) {
                    Ok(at) => {
                        let place = rows.rows.get(at).map(|row| row.at as usize * each + sum);
                        if let Some(sum) = place.and_then(|place| found.get_mut(place)) {
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
        for row in rows.rows.iter().filter(|row| segment.shared.contains(row.fragment)) {
            let place = row.at as usize * each..(row.at as usize + 1) * each;
            let both = together.get_mut(place.clone()).zip(found.get(place));
            for (sum, found) in both.into_iter().flat_map(|(sums, found)| sums.iter_mut().zip(found)) {
                *sum = sum.wrapping_add(*found);
            }
        }
        let judged = |row: &&Row| {
            !segment.shared.contains(row.fragment) && (origins.is_none() || segment.fragments.contains(row.fragment))
        };
        compare(Some(segment), rows, judged, &found, check, &mut self.findings);
        if domain == RowDomain::StableId || self.table.manifest().manifest.has_stable_row_ids() {
            let covered = rows.rows.iter().filter(|row| segment.fragments.contains(row.fragment)).count() as u64;
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

impl Audit<'_> {
    /// Under a long history a row has had many addresses, all of which are looked up.
    fn group_size(&self, moves: &Moves<'_>) -> usize {
        let Moves::Tagged(tagged) = moves else { return GROUP };
        let hops = |segment: &Audited| tagged.derived(segment.entry.uuid).map_or(0, |derived| derived.path.len());
        GROUP / (1 + self.segments.iter().map(hops).max().unwrap_or(0))
    }

    /// Rows that several segments may hold: one of them does, under the keys of the row's value.
    fn compare_shared(&mut self, rows: &Rows, together: &[u64], check: &dyn KeyCheck) {
        let shared = self.segments.iter().fold(RoaringBitmap::new(), |all, segment| all | &segment.shared);
        self.findings.segment = None;
        compare(None, rows, |row: &&Row| shared.contains(row.fragment), together, check, &mut self.findings);
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

/// `segment`: the one that should hold what is `judged`; `None` = any of the index.
fn compare(
    segment: Option<&Audited>,
    rows: &Rows,
    judged: impl Fn(&&Row) -> bool,
    found: &[u64],
    check: &dyn KeyCheck,
    findings: &mut Findings,
) {
    let each = 1 + check.aspects().len();
    for row in rows.rows.iter().filter(judged) {
        let (wanted, found) = (rows.sums(&rows.sums, row, each), rows.sums(found, row, each));
        let (Some((keys, wanted_aspects)), Some((stored, found_aspects))) = (wanted.split_first(), found.split_first()) else {
            continue;
        };
        if wanted == found {
            continue;
        }
        let (fragment, id) = (row.fragment, row.id);
        let mut say = |code, text: &str| {
            findings.push(code, Some(fragment), Some(id), || format!("row {id} of fragment {fragment} {text}"))
        };
        if segment.is_some_and(|segment| !segment.fragments.contains(fragment)) {
            if found.iter().any(|sum| *sum != 0) && check.exact() {
                say("ROW_STALE", "is held with another value, though another segment covers it: both answer");
            }
        } else if keys == stored {
            let aspects = check.aspects().iter().zip(wanted_aspects.iter().zip(found_aspects));
            for (aspect, _) in aspects.filter(|(_, (wanted, found))| wanted != found) {
                say(aspect.code, aspect.text);
            }
        } else if *stored == 0 {
            say("ROW_MISSING", "is not in the segment that covers it");
        } else if *keys == 0 {
            say("ROW_SURPLUS", "has no key and is found under one");
        } else if *stored == keys.wrapping_mul(2) {
            say("ROW_TWICE", "is held twice");
        } else {
            say("ROW_OTHER_VALUE", "is found under other keys than those of its value");
        }
    }
}
