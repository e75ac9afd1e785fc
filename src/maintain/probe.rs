//! Which rows, pages and fragments a condition has to look at, as the segments of an index tell.

use std::collections::BTreeMap;

use roaring::{RoaringBitmap, RoaringTreemap};
use serde::Serialize;

use super::reading::{Moves, Omitted, Served, Tagged};
use crate::error::{Error, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::format::reuse_v0::ReuseHistoryV0;
use crate::format::row::{RowAddress, RowDomain};
use crate::index::literal::plain;
use crate::index::probe::{Matches, Op, Query};
use crate::refresh::files::{live_row_ids, segment_files};
use crate::refresh::resolve::resolve;
use crate::table::Table;
use crate::table::column::field_type;

/// Rows listed one by one.
const LISTED: usize = 1000;

/// What one segment says.
#[derive(Clone, Debug, Serialize)]
pub struct SegmentProbe {
    /// Segment.
    pub uuid: String,
    /// Live fragments it covers.
    pub fragments: Vec<u32>,
    /// Pages that are read, by number; null for methods without pages.
    pub pages: Option<Vec<u64>>,
    /// Zones that are kept in covered fragments; null for methods without zones.
    pub zones: Option<Vec<ZonePlace>>,
    /// Rows in covered fragments; null when the segment tells nothing of single rows.
    pub rows: Option<u64>,
}

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ZonePlace {
    /// Fragment.
    pub fragment: u64,
    /// Physical offset of its first row.
    pub start: u64,
    /// Physical rows.
    pub length: u64,
}

/// What all segments together say.
#[derive(Clone, Debug, Serialize)]
pub struct Probe {
    /// Index.
    pub index: String,
    /// Method.
    pub method: String,
    /// Version.
    pub version: u64,
    /// Operator.
    pub op: String,
    /// Value as it was given; null for `is-null`.
    pub value: Option<String>,
    /// Whether the rows named are the answer in covered fragments; else they and the zones have to be looked at.
    pub exact: bool,
    /// What every segment says that queries read.
    pub segments: Vec<SegmentProbe>,
    /// Segments that queries leave out under a tagged reuse history, and why.
    pub omitted: Vec<Omitted>,
    /// Covered live fragments that can match.
    pub fragments: Vec<u32>,
    /// Covered live fragments that cannot.
    pub pruned: Vec<u32>,
    /// Live fragments no segment covers: they have to be read whole.
    pub unindexed: Vec<u32>,
    /// Rows named in covered fragments, deleted ones among them; null when none are named.
    pub rows: Option<u64>,
    /// The first thousand of them: addresses or stable ids, decimal.
    pub first_rows: Vec<String>,
    /// What the rows are: `address` or `stable_id`.
    pub row_domain: RowDomain,
}

/// Asks an index about a condition. Coverage gates what the segments say: a fragment that none covers is always looked at, and
/// what a file holds of fragments outside the united coverage counts for nothing (refresh-and-compaction §8.5). Under a tagged
/// reuse history rows are carried to where they are, and only segments that queries read are asked (fragment-reuse §7).
///
/// # Errors
/// `UNSUPPORTED_FEATURE` when queries read no segment of the index, `HISTORY_UNSUPPORTED`, `INVALID_ARGUMENT` for an operator the method does not serve or a value that is none of the column's; those of finding
/// the index and reading its files.
pub async fn probe(table: &Table, index: &str, op: &str, value: Option<&str>) -> Result<Probe> {
    let manifest = &table.manifest().manifest;
    let served = Served::of(table, index).await?;
    served.check_read(index)?;
    let resolved = resolve(&served.entries, &manifest.schema, index)?;
    let op = Op::parse(op)?;
    if !resolved.method.operators().contains(&op) {
        let known: Vec<&str> = resolved.method.operators().iter().map(|op| op.name()).collect();
        let text = format!("{} indexes do not answer {}; they answer {}", resolved.method.name(), op.name(), known.join(", "));
        return Err(Error::invalid(text).with("operator", op.name()));
    }
    let data_type = field_type(&manifest.schema, resolved.field)?;
    let asked = match &data_type {
        arrow::datatypes::DataType::List(item) | arrow::datatypes::DataType::LargeList(item) => item.data_type().clone(),
        other => other.clone(),
    };
    let bytes = match (op, value) {
        (Op::IsNull, _) => Vec::new(),
        (_, Some(value)) => plain(value, &asked)?,
        (_, None) => return Err(Error::invalid(format!("{} needs a value", op.name()))),
    };
    let query = Query::new(op, bytes, &asked)?;
    let version = resolved.segments.first().and_then(|segment| segment.index_version).unwrap_or(0);
    let domain = resolved.method.row_domain(version, manifest.has_stable_row_ids());
    let moves = Moves::new(table, served.history.as_deref(), domain).await?;
    let live = manifest.live();
    let coverage: Vec<RoaringBitmap> = resolved
        .segments
        .iter()
        .map(|segment| segment.fragment_bitmap.as_ref().map(|bitmap| bitmap & &live).unwrap_or_default())
        .collect();
    let covered = coverage.iter().fold(RoaringBitmap::new(), |all, one| all | one);
    let places = Places::new(table, domain, &covered).await?;
    let (mut segments, mut hit, mut rows) = (Vec::new(), RoaringBitmap::new(), None::<RoaringTreemap>);
    let mut exact = true;
    for (entry, fragments) in resolved.segments.iter().zip(&coverage) {
        let files = segment_files(table.store(), manifest, entry)?;
        let found = resolved.method.probe(&files, &data_type, &query).await?;
        exact &= found.exact;
        let tells = found.rows.is_some() || found.zones.is_some();
        if !tells {
            // Nothing is known: every covered row has to be looked at.
            hit |= fragments;
        }
        let Matches { rows: named, pages, zones, .. } = found;
        let named = match named {
            Some(rows) => Some(places.inside(&moves.of_segment(entry.uuid, rows).await?)),
            None => None,
        };
        if let Some((named, fragments)) = &named {
            hit |= fragments;
            rows = Some(rows.unwrap_or_default() | named);
        }
        let zones = match zones.filter(|_| named.is_none()) {
            Some(zones) => match &moves {
                Moves::Tagged(tagged) => Some(carried(zones, entry, tagged, fragments, &mut hit).await?),
                _ => Some(kept(zones, &covered, &mut hit, moves.legacy())),
            },
            None => None,
        };
        segments.push(SegmentProbe {
            uuid: entry.uuid.to_string(),
            fragments: fragments.iter().collect(),
            pages,
            zones,
            rows: named.map(|(rows, _)| rows.len()),
        });
    }
    hit &= &covered;
    Ok(Probe {
        index: resolved.name.clone(),
        method: resolved.method.name().to_owned(),
        version: table.version(),
        op: op.name().to_owned(),
        value: value.filter(|_| op != Op::IsNull).map(str::to_owned),
        exact,
        segments,
        omitted: served.omitted.clone(),
        pruned: (&covered - &hit).iter().collect(),
        fragments: hit.iter().collect(),
        unindexed: (&live - &covered).iter().collect(),
        rows: rows.as_ref().map(RoaringTreemap::len),
        first_rows: rows.iter().flat_map(RoaringTreemap::iter).take(LISTED).map(|row| row.to_string()).collect(),
        row_domain: domain,
    })
}

/// Zones in covered fragments. With a reuse history their rows have moved, nobody knows where to without looking at each.
fn kept(
    zones: Vec<(u64, u64, u64)>,
    covered: &RoaringBitmap,
    hit: &mut RoaringBitmap,
    history: Option<&ReuseHistoryV0>,
) -> Vec<ZonePlace> {
    let mut places = Vec::new();
    for (fragment, start, length) in zones {
        match u32::try_from(fragment) {
            Ok(id) if covered.contains(id) => {
                hit.insert(id);
                places.push(ZonePlace { fragment, start, length });
            }
            _ => {
                if let Some(history) = history {
                    *hit |= history.destinations();
                }
            }
        }
    }
    places
}

/// Zones in fragments that a segment covers; where the rows of the others went is looked up, one by one.
async fn carried(
    zones: Vec<(u64, u64, u64)>,
    entry: &IndexMetadata,
    moves: &Tagged<'_>,
    fragments: &RoaringBitmap,
    hit: &mut RoaringBitmap,
) -> Result<Vec<ZonePlace>> {
    let (mut places, mut moved) = (Vec::new(), RoaringTreemap::new());
    for (fragment, start, length) in zones {
        let Ok(id) = u32::try_from(fragment) else { continue };
        if fragments.contains(id) {
            hit.insert(id);
            places.push(ZonePlace { fragment, start, length });
        } else if let Some(rows) = moves.rows_before(id) {
            let end = start.saturating_add(length).min(u64::from(rows)) as u32;
            moved.extend((u32::try_from(start).unwrap_or(end)..end).map(|offset| RowAddress::new(id, offset).0));
        }
    }
    *hit |= fragments_of(&moves.rows(entry.uuid, &moved).await?);
    Ok(places)
}

fn fragments_of(rows: &RoaringTreemap) -> RoaringBitmap {
    rows.bitmaps().filter(|(_, rows)| !rows.is_empty()).map(|(id, _)| id).collect()
}

/// Which rows lie in covered fragments.
struct Places {
    covered: RoaringBitmap,
    /// Ids of the live rows of each covered fragment; `None` when rows are named by address.
    ids: Option<BTreeMap<u32, RoaringTreemap>>,
}

impl Places {
    async fn new(table: &Table, domain: RowDomain, covered: &RoaringBitmap) -> Result<Places> {
        if domain == RowDomain::Address {
            return Ok(Places { covered: covered.clone(), ids: None });
        }
        let manifest = &table.manifest().manifest;
        let mut ids = BTreeMap::new();
        for fragment in covered.iter().filter_map(|id| manifest.fragment(id)) {
            if let Some(rows) = live_row_ids(table.store(), manifest, fragment).await? {
                ids.insert(fragment.id, rows.into_iter().collect());
            }
        }
        Ok(Places { covered: covered.clone(), ids: Some(ids) })
    }

    /// The rows that lie in covered fragments, and these fragments.
    fn inside(&self, rows: &RoaringTreemap) -> (RoaringTreemap, RoaringBitmap) {
        match &self.ids {
            None => {
                let of = rows.bitmaps().filter(|(fragment, rows)| self.covered.contains(*fragment) && !rows.is_empty());
                let kept: Vec<(u32, RoaringBitmap)> = of.map(|(fragment, rows)| (fragment, rows.clone())).collect();
                let fragments = kept.iter().map(|(fragment, _)| *fragment).collect();
                (RoaringTreemap::from_bitmaps(kept), fragments)
            }
            Some(ids) => {
                let (mut inside, mut fragments) = (RoaringTreemap::new(), RoaringBitmap::new());
                for (fragment, ids) in ids {
                    let found = ids & rows;
                    if !found.is_empty() {
                        fragments.insert(*fragment);
                        inside |= found;
                    }
                }
                (inside, fragments)
            }
        }
    }
}
