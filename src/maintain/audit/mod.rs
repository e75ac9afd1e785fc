//! Does an index say what its column says? Reads the column of the covered fragments and the segments, and reports every
//! disagreement; changes nothing.
//!
//! `files` looks at what needs no rows: folders, coverage, the files in themselves. `rows` holds exact methods against rows,
//! `zones` those of zones; `origins` is where rows came from that a tagged reuse history moved.

mod files;
mod origins;
mod rows;
mod zones;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::reading::{Moves, Served};
use crate::error::{Error, Result};
use crate::format::fragment::Fragment;
use crate::format::index_metadata::IndexMetadata;
use crate::format::row::RowDomain;
use crate::index::check::{Check, Finding, Findings};
use crate::index::hash::xxh64;
use crate::index::{IndexMethod, SegmentFiles};
use crate::refresh::files::segment_files;
use crate::refresh::resolve::resolve;
use crate::table::Table;
use crate::table::column::field_type;
use crate::table::scan::ScanContext;

/// What to look at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditOptions {
    /// Only so many of the covered fragments, drawn by chance; all when absent.
    pub sample: Option<u32>,
}

/// What an audit found.
#[derive(Clone, Debug, Serialize)]
pub struct AuditReport {
    /// Index.
    pub index: String,
    /// Method.
    pub method: String,
    /// Version that was looked at.
    pub version: u64,
    /// Whether every covered fragment was looked at.
    pub exact: bool,
    /// Fragments whose rows were looked at, and all that are covered.
    pub fragments: Vec<u32>,
    /// Covered live fragments.
    pub covered_fragments: u64,
    /// Rows that were looked at.
    pub rows: u64,
    /// Segments.
    pub segments: usize,
    /// Of a sample that found nothing: with 95 % confidence fewer than this share of the covered fragments has faults.
    pub error_bound: Option<f64>,
    /// Disagreements, the first ten of each kind and segment.
    pub findings: Vec<Finding>,
    /// How many of each kind there are.
    pub counts: BTreeMap<String, u64>,
    /// What was not looked at, and what is odd and harmless.
    pub notes: Vec<String>,
}

/// A segment under audit.
struct Audited {
    entry: IndexMetadata,
    files: SegmentFiles,
    /// Live fragments it covers, through a reuse history if there is one.
    fragments: RoaringBitmap,
    /// Those of them it covers through a tagged history only, perhaps with siblings that hold other rows of the same fragment.
    shared: RoaringBitmap,
}

/// Everything the parts need.
struct Audit<'a> {
    table: &'a Table,
    method: &'static dyn IndexMethod,
    context: ScanContext,
    data_type: arrow::datatypes::DataType,
    segments: Vec<Audited>,
    /// Fragments to look at.
    chosen: Vec<&'a Fragment>,
    findings: Findings,
    notes: Vec<String>,
    rows: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

/// Holds an index against its column. `progress` hears rows done and rows in all.
///
/// # Errors
/// Those of finding the index and of reading what cannot be judged then; a segment that cannot be read is a finding.
pub async fn audit(table: &Table, index: &str, options: AuditOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<AuditReport> {
    let manifest = &table.manifest().manifest;
    if options.sample == Some(0) {
        return Err(Error::invalid("a sample has at least one fragment"));
    }
    let served = Served::of(table, index).await?;
    // An index of which queries read nothing is found, and nothing is held against it.
    let section = if served.entries.is_empty() { table.indices().await? } else { served.entries.as_slice() };
    let resolved = resolve(section, &manifest.schema, index)?;
    let mut notes = Vec::new();
    for omitted in &served.omitted {
        notes.push(format!("queries leave segment {} out, so its rows were not looked at: {}", omitted.uuid, omitted.why));
    }
    let data_type = field_type(&manifest.schema, resolved.field)?;
    let live = manifest.live();
    let mut segments = Vec::new();
    for entry in resolved.segments.iter().filter(|_| !served.entries.is_empty()) {
        let fragments = entry.fragment_bitmap.as_ref().map(|bitmap| bitmap & &live).unwrap_or_default();
        let stored = table.manifest().indices.iter().find(|stored| stored.uuid == entry.uuid);
        let named = stored.and_then(|stored| stored.fragment_bitmap.as_ref()).filter(|_| served.history.is_some());
        segments.push(Audited {
            files: segment_files(table.store(), manifest, entry)?,
            shared: named.map(|named| &fragments - named).unwrap_or_default(),
            fragments,
            entry: (*entry).clone(),
        });
    }
    let version = resolved.segments.first().and_then(|segment| segment.index_version).unwrap_or(0);
    let domain = resolved.method.row_domain(version, manifest.has_stable_row_ids());
    let moves = Moves::new(table, served.history.as_deref(), domain).await?;
    let covered = segments.iter().fold(RoaringBitmap::new(), |all, segment| all | &segment.fragments);
    let chosen: Vec<&Fragment> =
        choose(&covered, options.sample, table.version()).iter().filter_map(|id| manifest.fragment(id)).collect();
    let total = chosen.iter().map(|fragment| fragment.live_rows().unwrap_or(0)).sum();
    let mut audit = Audit {
        table,
        method: resolved.method,
        context: ScanContext::new(table.store().clone(), table.manifest().clone(), resolved.field.id, domain),
        data_type,
        segments,
        chosen,
        findings: Findings::default(),
        notes,
        rows: 0,
        total,
        progress,
    };
    audit.check_files().await?;
    audit.check_rows(&moves, domain).await?;
    let Audit { chosen, segments, findings, notes, rows, .. } = audit;
    let (findings, counts) = findings.finish();
    let exact = chosen.len() as u64 == covered.len();
    let error_bound = (!exact && findings.is_empty()).then(|| 1.0 - 0.05f64.powf(1.0 / chosen.len().max(1) as f64));
    Ok(AuditReport {
        index: resolved.name.clone(),
        method: resolved.method.name().to_owned(),
        version: table.version(),
        exact,
        fragments: chosen.iter().map(|fragment| fragment.id).collect(),
        covered_fragments: covered.len(),
        rows,
        segments: segments.len(),
        error_bound,
        findings,
        counts,
        notes,
    })
}

impl Audit<'_> {
    async fn check_rows(&mut self, moves: &Moves<'_>, domain: RowDomain) -> Result<()> {
        let mut zoned = Vec::new();
        let mut exact = None;
        for (at, segment) in self.segments.iter().enumerate() {
            self.findings.segment = Some(segment.entry.uuid);
            match self.method.check(&segment.files, &self.data_type).await {
                Ok(Some(Check::Keys(check))) => exact = Some(check),
                Ok(Some(Check::Zones(check))) => zoned.push((at, check)),
                Ok(None) => {
                    self.notes
                        .push(format!("rows of {} indexes are not held against their column by this build", self.method.name()));
                    return Ok(());
                }
                Err(error) => self.findings.push("UNREADABLE", None, None, || error.message().to_owned()),
            }
        }
        if let Some(check) = exact {
            self.check_keys(&*check, moves, domain).await?;
        }
        if !zoned.is_empty() {
            self.check_zones(zoned, moves.legacy()).await?;
        }
        Ok(())
    }
}

/// The fragments to look at: all, or those with the smallest hashes.
fn choose(covered: &RoaringBitmap, sample: Option<u32>, version: u64) -> RoaringBitmap {
    let Some(sample) = sample.filter(|sample| u64::from(*sample) < covered.len()) else { return covered.clone() };
    let mut drawn: Vec<(u64, u32)> =
        covered.iter().map(|id| (xxh64(&(u64::from(id) << 32 ^ version).to_le_bytes()), id)).collect();
    drawn.sort_unstable();
    drawn.into_iter().take(sample as usize).map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_drawn_from_the_covered_fragments() {
        let covered: RoaringBitmap = (10..60).collect();
        let drawn = choose(&covered, Some(7), 3);
        assert!(drawn.len() == 7 && drawn.is_subset(&covered));
        assert_ne!(drawn, choose(&covered, Some(7), 4));
        assert_eq!(choose(&covered, Some(50), 3), covered);
        assert_eq!(choose(&covered, None, 3), covered);
    }
}
