//! Version-0 fragment reuse histories (refresh-and-compaction §1.1, fragment-reuse §2.3, §3): what deferred compactions
//! recorded about how rows and coverage moved. Tagged histories are recognised and refused by name.

use std::collections::BTreeMap;

use bytes::Bytes;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::index_metadata::{FRAG_REUSE_NAME, IndexMetadata};
use super::row::RowAddress;
use super::treemap::decode_roaring64;
use super::{proto, wire};
use crate::error::{Error, ErrorCode, Result};
use crate::lists::map_of;

const DETAILS_TYPE: &str = "lance.table.FragmentReuseIndexDetails";

/// Where the content of a reuse entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReuseContent {
    /// In the entry itself.
    Inline(Bytes),
    /// In a file of the entry's own segment folder.
    External {
        /// Path relative to `_indices/{uuid}/` (of the entry's base).
        path: String,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        size: u64,
    },
}

/// A version-0 history, oldest compaction first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReuseHistoryV0 {
    /// Recorded compactions.
    pub versions: Vec<ReuseVersion>,
}

/// One recorded compaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReuseVersion {
    /// Version it was built on.
    pub dataset_version: u64,
    /// Rewrite groups.
    pub groups: Vec<ReuseGroup>,
    /// By old fragment id: what mapping one address needs.
    places: BTreeMap<u32, Place>,
}

#[derive(Clone, Debug, PartialEq)]
struct Place {
    /// Position in `groups`.
    group: usize,
    physical_rows: u32,
    /// Surviving offsets of this fragment.
    survivors: RoaringBitmap,
    /// Survivors of the group's earlier fragments.
    before: u64,
}

/// Old fragments whose surviving rows, in order, became the rows of new ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReuseGroup {
    /// Surviving old addresses.
    pub survivors: RoaringTreemap,
    /// Before, in scan order.
    pub old: Vec<FragmentDigest>,
    /// After, in write order; empty when every row was deleted.
    pub new: Vec<FragmentDigest>,
}

/// A fragment at the time it was rewritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentDigest {
    /// Id.
    pub id: u32,
    /// Rows including deleted ones.
    pub physical_rows: u32,
}

/// What one compaction did to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The compaction did not touch it.
    Unchanged,
    /// The row was already deleted.
    Deleted,
    /// The row is there now.
    To(RowAddress),
}

/// The reuse entry of an index section.
pub fn reuse_entry(indices: &[IndexMetadata]) -> Option<&IndexMetadata> {
    indices.iter().find(|e| e.name == FRAG_REUSE_NAME)
}

/// Whether an entry is a tagged (not version 0) reuse history.
pub fn is_tagged(entry: &IndexMetadata) -> bool {
    entry.name == FRAG_REUSE_NAME && entry.index_version.unwrap_or(0) != 0
}

/// Refuses (`HISTORY_UNSUPPORTED`) an index section whose coverage would have to be derived through a tagged history: there
/// a stored bitmap says what a segment was built from, not what it covers.
pub fn check_derivable(indices: &[IndexMetadata]) -> Result<()> {
    match indices.iter().find(|e| is_tagged(e)) {
        Some(entry) => {
            let version = entry.index_version.unwrap_or(0);
            Err(unsupported_history(
                entry,
                format_args!("has version {version} (a tagged history); only version 0 is interpreted"),
            ))
        }
        None => Ok(()),
    }
}

/// `HISTORY_UNSUPPORTED` for this reuse entry.
pub fn unsupported_history(entry: &IndexMetadata, what: impl std::fmt::Display) -> Error {
    let text =
        format!("fragment reuse history {FRAG_REUSE_NAME} ({}) {what}; coverage cannot be derived by this build", entry.uuid);
    Error::new(ErrorCode::HistoryUnsupported, text)
        .with("index", FRAG_REUSE_NAME)
        .with("index_version", entry.index_version.unwrap_or(0))
}

impl ReuseContent {
    /// Where the content of this entry is, whatever its version. A tagged one has to spell its type exactly.
    pub fn locate(object: &str, entry: &IndexMetadata) -> Result<ReuseContent> {
        let details = entry.details.as_ref();
        let matches = |name: &str| name == DETAILS_TYPE || !is_tagged(entry) && name.eq_ignore_ascii_case(DETAILS_TYPE);
        if !entry.type_name().is_some_and(matches) {
            let url = details.map_or("none", |d| d.type_url.as_str());
            return Err(Error::corrupt(object, format!("the details of {FRAG_REUSE_NAME} are of type {url}")));
        }
        let mut found = None;
        for field in wire::split(object, &details.map(|d| d.value.clone()).unwrap_or_default())? {
            let content = match field.number {
                1 => ReuseContent::Inline(field.as_bytes(object)?.clone()),
                2 => {
                    let file: proto::ExternalFile =
                        proto::decode(object, "the reuse content's place", field.as_bytes(object)?.clone())?;
                    if file.offset.checked_add(file.size).is_none() {
                        return Err(Error::corrupt(object, "the place of the reuse content exceeds 64 bits"));
                    }
                    ReuseContent::External { path: file.path, offset: file.offset, size: file.size }
                }
                _ => continue,
            };
            if found.replace(content).is_some() {
                return Err(Error::corrupt(object, format!("{FRAG_REUSE_NAME} has its content twice")));
            }
        }
        found.ok_or_else(|| Error::corrupt(object, format!("{FRAG_REUSE_NAME} has no content")))
    }
}

impl ReuseHistoryV0 {
    /// Reads the content, inline or external. Everything the address mapping relies on is checked: a fault is
    /// `CORRUPT_FILE` naming version and group; a record kind of a newer writer is `HISTORY_UNSUPPORTED`.
    pub fn parse(object: &str, content: &Bytes) -> Result<ReuseHistoryV0> {
        let mut versions = Vec::new();
        for field in wire::split(object, content)? {
            match field.number {
                1 => {
                    let version: proto::ReuseVersion = proto::decode(object, "a reuse version", field.as_bytes(object)?.clone())?;
                    versions.push(ReuseVersion::build(object, versions.len(), version)?);
                }
                // Tagged records mean nothing under version 0; Lance's own readers of version 0 skip them.
                2 => {
                    field.as_bytes(object)?;
                }
                other => {
                    let text = format!("{object}: the fragment reuse history has records of the unknown kind {other}");
                    return Err(Error::new(ErrorCode::HistoryUnsupported, text).with("object", object));
                }
            }
        }
        Ok(ReuseHistoryV0 { versions })
    }

    /// Coverage carried through the history: a group whose old fragments were all covered hands it to its new ones.
    pub fn map_bitmap(&self, bitmap: &RoaringBitmap) -> RoaringBitmap {
        let mut mapped = bitmap.clone();
        for group in self.versions.iter().flat_map(|v| &v.groups) {
            let removed = group.old.iter().filter(|old| mapped.remove(old.id)).count();
            if removed > 0 && removed == group.old.len() {
                mapped.extend(group.new.iter().map(|new| new.id));
            }
        }
        mapped
    }

    /// Entries (the reuse entry's own included) with their stored coverage carried through; `raw` stays what it was, so that
    /// writing them back changes nothing.
    pub fn map_indices(&self, indices: &[IndexMetadata]) -> Vec<IndexMetadata> {
        let map = |e: &IndexMetadata| IndexMetadata {
            fragment_bitmap: e.fragment_bitmap.as_ref().map(|b| self.map_bitmap(b)),
            ..e.clone()
        };
        indices.iter().map(map).collect()
    }

    /// Every fragment some recorded compaction wrote.
    pub fn destinations(&self) -> RoaringBitmap {
        self.versions.iter().flat_map(|v| &v.groups).flat_map(|g| &g.new).map(|f| f.id).collect()
    }

    /// Where a row is after all recorded compactions; `None` = it was deleted.
    pub fn map_address(&self, address: RowAddress) -> Option<RowAddress> {
        let mut at = address;
        for version in &self.versions {
            match version.step(at) {
                Moved::Unchanged => {}
                Moved::Deleted => return None,
                Moved::To(next) => at = next,
            }
        }
        Some(at)
    }
}

impl ReuseVersion {
    fn build(object: &str, position: usize, version: proto::ReuseVersion) -> Result<ReuseVersion> {
        let mut built = ReuseVersion { dataset_version: version.dataset_version, ..ReuseVersion::default() };
        for (number, group) in version.groups.into_iter().enumerate() {
            let fault = |what: String| {
                let at =
                    format!("fragment reuse version {position} (of table version {}), group {number}", version.dataset_version);
                Error::corrupt(object, format!("{at}: {what}"))
            };
            let digest = |d: &proto::FragmentDigest| {
                let narrow =
                    |n: u64| u32::try_from(n).map_err(|_| fault(format!("fragment id or row count {n} does not fit 32 bits")));
                Ok(FragmentDigest { id: narrow(d.id)?, physical_rows: narrow(d.physical_rows)? })
            };
            let old = group.old_fragments.iter().map(digest).collect::<Result<Vec<_>>>()?;
            let new = group.new_fragments.iter().map(digest).collect::<Result<Vec<_>>>()?;
            let survivors = decode_roaring64(object, &group.changed_row_addrs).map_err(|e| fault(e.message().to_owned()))?;
            let of_fragment = map_of(survivors.bitmaps().filter(|(_, b)| !b.is_empty()));
            let mut before = 0u64;
            let mut listed = 0usize;
            for fragment in &old {
                let rows = of_fragment.get(&fragment.id).map(|rows| RoaringBitmap::clone(rows)).unwrap_or_default();
                listed += usize::from(!rows.is_empty());
                if rows.max().is_some_and(|last| last >= fragment.physical_rows) {
                    return Err(fault(format!(
                        "a surviving row of fragment {} lies past its {} rows",
                        fragment.id, fragment.physical_rows
                    )));
                }
                let place = Place { group: number, physical_rows: fragment.physical_rows, before, survivors: rows };
                before += place.survivors.len();
                if built.places.insert(fragment.id, place).is_some() {
                    return Err(fault(format!("fragment {} was already rewritten in this version", fragment.id)));
                }
            }
            if listed != of_fragment.len() {
                return Err(fault("surviving rows of a fragment that is not listed".to_owned()));
            }
            let written: u64 = new.iter().map(|f| u64::from(f.physical_rows)).sum();
            if before != written {
                return Err(fault(format!("{before} rows survive and the new fragments hold {written}")));
            }
            built.groups.push(ReuseGroup { survivors, old, new });
        }
        Ok(built)
    }

    /// What this compaction alone did to an address.
    pub fn step(&self, address: RowAddress) -> Moved {
        let Some(place) = self.places.get(&address.fragment()) else { return Moved::Unchanged };
        let Some(group) = self.groups.get(place.group) else { return Moved::Unchanged };
        if address.offset() >= place.physical_rows {
            return Moved::Unchanged;
        }
        if !place.survivors.contains(address.offset()) {
            return Moved::Deleted;
        }
        let mut left = place.before + place.survivors.rank(address.offset()) - 1; // `rank` counts the row itself
        for fragment in &group.new {
            if left < u64::from(fragment.physical_rows) {
                return Moved::To(RowAddress::new(fragment.id, left as u32));
            }
            left -= u64::from(fragment.physical_rows);
        }
        Moved::Deleted // unreachable after `build`: the counts agree
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::format::treemap::encode_roaring64;

    fn group(old: &[(u64, u64)], survivors: &[(u32, u32)], new: &[(u64, u64)]) -> proto::ReuseGroup {
        let digest = |(id, rows): &(u64, u64)| proto::FragmentDigest { id: *id, physical_rows: *rows, num_deleted_rows: 0 };
        let map: RoaringTreemap = survivors.iter().map(|(f, o)| RowAddress::new(*f, *o).0).collect();
        proto::ReuseGroup {
            changed_row_addrs: encode_roaring64(&map).into(),
            old_fragments: old.iter().map(digest).collect(),
            new_fragments: new.iter().map(digest).collect(),
        }
    }

    fn content(versions: Vec<(u64, Vec<proto::ReuseGroup>)>) -> Bytes {
        let mut out = Vec::new();
        for (dataset_version, groups) in versions {
            wire::put_len_field(&mut out, 1, &proto::ReuseVersion { dataset_version, groups }.encode_to_vec());
        }
        out.into()
    }

    #[test]
    fn addresses_through_two_rounds() {
        let history = ReuseHistoryV0::parse(
            "h",
            &content(vec![
                (5, vec![group(&[(1, 4)], &[(1, 0), (1, 2), (1, 3)], &[(10, 1), (11, 2)]), group(&[(3, 2)], &[], &[])]),
                (6, vec![group(&[(10, 1), (11, 2)], &[(10, 0), (11, 1)], &[(20, 2)])]),
            ]),
        )
        .unwrap();
        let map = |f, o| history.map_address(RowAddress::new(f, o)).map(|a| (a.fragment(), a.offset()));
        assert_eq!(map(1, 0), Some((20, 0)));
        assert_eq!(map(1, 1), None);
        assert_eq!(map(1, 2), None);
        assert_eq!(map(1, 3), Some((20, 1)));
        assert_eq!(map(3, 0), None);
        assert_eq!(map(2, 0), Some((2, 0)));
        assert_eq!(map(1, 4), Some((1, 4)));
        assert_eq!(history.versions[0].step(RowAddress::new(1, 2)), Moved::To(RowAddress::new(11, 0)));
        assert_eq!(history.destinations(), [10, 11, 20].into());
    }

    #[test]
    fn bitmaps_wholly_partly_and_not_covered() {
        let one = |old: &[u64], new: &[u64]| {
            let zero = |ids: &[u64]| ids.iter().map(|id| (*id, 0)).collect::<Vec<_>>();
            group(&zero(old), &[], &zero(new))
        };
        let history = ReuseHistoryV0::parse("h", &content(vec![(3, vec![one(&[2, 3], &[20])])])).unwrap();
        assert_eq!(history.map_bitmap(&[0, 1, 2, 3].into()), [0, 1, 20].into());
        assert_eq!(history.map_bitmap(&[0, 2].into()), [0].into());
        assert_eq!(history.map_bitmap(&[0].into()), [0].into());
        let rounds =
            vec![(7, vec![one(&[0, 1, 2], &[7]), one(&[3, 4, 5], &[8])]), (10, vec![one(&[6], &[9]), one(&[7, 8], &[10])])];
        let history = ReuseHistoryV0::parse("h", &content(rounds)).unwrap();
        assert_eq!(history.map_bitmap(&[7, 8, 9, 10].into()), [9, 10].into());
        assert_eq!(history.map_bitmap(&(0..7).collect()), [9, 10].into());
    }

    #[test]
    fn faults_name_version_and_group() {
        let bad = |groups| ReuseHistoryV0::parse("obj", &content(vec![(4, groups)])).unwrap_err().message().to_owned();
        let mut undecodable = group(&[(1, 1)], &[], &[]);
        undecodable.changed_row_addrs = Bytes::from_static(&[1, 2, 3]);
        for (groups, part) in [
            (vec![undecodable], "cut off"),
            (vec![group(&[(1, 1)], &[], &[]), group(&[(1, 1)], &[], &[])], "already rewritten"),
            (vec![group(&[(1, 1)], &[(1, 1)], &[(2, 1)])], "past its 1 rows"),
            (vec![group(&[(1, 1)], &[(5, 0)], &[(2, 1)])], "not listed"),
            (vec![group(&[(1, 2)], &[(1, 0)], &[(2, 2)])], "1 rows survive"),
            (vec![group(&[(1 << 40, 2)], &[], &[])], "32 bits"),
        ] {
            let message = bad(groups);
            assert!(message.starts_with("obj: fragment reuse version 0 (of table version 4), group "), "{message}");
            assert!(message.contains(part), "{message}");
        }
        let unknown = ReuseHistoryV0::parse("obj", &Bytes::from_static(&[0x1a, 0])).unwrap_err();
        assert_eq!(unknown.code(), ErrorCode::HistoryUnsupported);
    }
}
