//! Which rows a delete or an update is about.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::condition::{Part, parse};
use crate::error::{Error, Result};
use crate::format::fragment::Fragment;
use crate::format::row::{RowAddress, RowDomain};
use crate::refresh::files::deletions;
use crate::table::Table;
use crate::table::scan::{FragmentScan, ScanContext};

/// Rows, by everything that is given: all of it must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowChoice {
    /// Conditions joined by AND, e.g. `id < 10 AND note IS NOT NULL`; `true` is met by every row.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Only rows of these fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragments: Option<Vec<u32>>,
    /// Only live rows from the first up to, not including, the second position of the whole table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<(u64, u64)>,
    /// Of the rows chosen so far in a fragment, the first and every n-th after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u32>,
}

/// Rows of one fragment.
pub(super) struct Chosen {
    /// The fragment.
    pub(super) fragment: Fragment,
    /// Physical rows.
    pub(super) physical: u64,
    /// Rows that are deleted already.
    pub(super) deleted: RoaringBitmap,
    /// Live rows that were chosen; never empty.
    pub(super) rows: RoaringBitmap,
}

impl Chosen {
    /// Everything that will be deleted once the chosen rows are.
    pub(super) fn gone(&self) -> RoaringBitmap {
        &self.deleted | &self.rows
    }

    /// Whether no row is left then.
    pub(super) fn is_all(&self) -> bool {
        self.gone().len() == self.physical
    }
}

/// The chosen rows of every fragment that has some, in the order of fragments.
///
/// # Errors
/// `INVALID_ARGUMENT` for a choice of nothing at all or of a fragment that is not there, those of the condition and of reading.
pub(super) async fn choose(table: &Table, choice: &RowChoice) -> Result<Vec<Chosen>> {
    if *choice == RowChoice::default() {
        return Err(Error::invalid("say which rows: where, fragments, rows or every (all of them are where: \"true\")"));
    }
    if choice.every == Some(0) || choice.rows.is_some_and(|(from, to)| from > to) {
        return Err(Error::invalid("every is at least 1, and rows go from a position to one that is not before it"));
    }
    let file = table.manifest();
    let manifest = &file.manifest;
    if let Some(missing) = choice.fragments.iter().flatten().find(|id| manifest.fragment(**id).is_none()) {
        let text = format!("version {} has no fragment {missing}", manifest.version);
        return Err(Error::invalid(text).with("fragment", *missing));
    }
    let parts = choice.condition.as_ref().map(|text| parse(&manifest.schema, text)).transpose()?.unwrap_or_default();
    let mut found = Vec::new();
    let mut before = 0u64;
    for fragment in &manifest.fragments {
        let deleted = deletions(table.store(), manifest, fragment).await?;
        let object = format!("fragment {}", fragment.id);
        let physical = fragment.physical_rows.ok_or_else(|| Error::corrupt(&object, "records no row count"))?;
        let end = u32::try_from(physical).map_err(|_| Error::corrupt(&object, "has more rows than addresses reach"))?;
        let mut live = RoaringBitmap::new();
        live.insert_range(0..end);
        live -= &deleted;
        let first = before;
        before = before.saturating_add(live.len());
        if choice.fragments.as_ref().is_some_and(|ids| !ids.contains(&fragment.id)) {
            continue;
        }
        let mut rows = live;
        if let Some((from, to)) = choice.rows {
            let place = |(at, _): &(usize, u32)| (from..to).contains(&first.saturating_add(*at as u64));
            rows = rows.iter().enumerate().filter(place).map(|(_, row)| row).collect();
        }
        for part in &parts {
            if rows.is_empty() {
                break;
            }
            rows &= matching(table, fragment, part).await?;
        }
        if let Some(every) = choice.every.and_then(|every| usize::try_from(every).ok()).filter(|every| *every > 1) {
            rows = rows.iter().step_by(every).collect();
        }
        if !rows.is_empty() {
            found.push(Chosen { fragment: fragment.clone(), physical, deleted, rows });
        }
    }
    Ok(found)
}

async fn matching(table: &Table, fragment: &Fragment, part: &Part) -> Result<RoaringBitmap> {
    let context = ScanContext::new(table.store().clone(), table.manifest().clone(), part.field, RowDomain::Address);
    let mut scan = FragmentScan::open(&context, fragment).await?;
    let mut rows = RoaringBitmap::new();
    while let Some(batch) = scan.next().await? {
        for (at, _) in part.test(&batch.values).into_iter().enumerate().filter(|(_, met)| *met) {
            if let Some(address) = batch.rows.get(at) {
                rows.insert(RowAddress(address).offset());
            }
        }
    }
    Ok(rows)
}
