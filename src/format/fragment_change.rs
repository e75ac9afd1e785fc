//! What a commit that changes data makes of the fragment list (table-format §4.3, §8.2): messages are copied or spliced, so that
//! what is not understood stays.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use roaring::RoaringBitmap;

use super::fragment::{DeletionFile, DeletionKind};
use super::manifest::Manifest;
use super::{proto, wire};
use crate::error::{Error, Result};

/// `DataFragment` field numbers.
const ID: u32 = 1;
const DELETION_FILE: u32 = 3;

/// Fragments that change, go and come in one commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FragmentChange {
    /// Messages of fragments that stay and changed, by id.
    pub updated: BTreeMap<u32, Bytes>,
    /// Ids of fragments that go.
    pub removed: RoaringBitmap,
    /// Messages of fragments that come. Those with the id 0 that every transaction gives to new fragments get the next ids.
    pub added: Vec<Bytes>,
    /// Highest id that counts as allocated from now on, where that is more than the fragments say.
    pub reserved: Option<u32>,
    /// Entries of the table metadata that are set.
    pub metadata: BTreeMap<String, String>,
}

/// The fragment list of the next manifest.
pub(super) struct FragmentList {
    /// `DataFragment` messages, ascending by id.
    pub(super) messages: Vec<Bytes>,
    /// Highest id ever allocated; `None` = none yet.
    pub(super) max_fragment_id: Option<u32>,
    /// Whether a fragment has a deletion vector.
    pub(super) deletions: bool,
}

impl FragmentChange {
    /// The ids that the added fragments get on top of `base`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when there are no ids left, `INTERNAL` for messages that are no fragments.
    pub fn added_ids(&self, base: &Manifest) -> Result<Vec<u32>> {
        let mut next = highest(base).map_or(0, |id| u64::from(id) + 1);
        let mut ids = Vec::with_capacity(self.added.len());
        for message in &self.added {
            let stated = id_of(message)?;
            let id = if stated == 0 { next } else { stated };
            next = next.max(id + 1);
            // The last one stands for no row (table-format §11.1).
            let id = u32::try_from(id).ok().filter(|id| *id != u32::MAX);
            ids.push(id.ok_or_else(|| Error::invalid("the table has no fragment ids left: they are 32-bit numbers"))?);
        }
        Ok(ids)
    }

    pub(super) fn apply(&self, base: &Manifest) -> Result<FragmentList> {
        let mut list: BTreeMap<u32, Bytes> = BTreeMap::new();
        for (id, message) in base.fragment_messages()? {
            if !self.removed.contains(id) {
                list.insert(id, self.updated.get(&id).cloned().unwrap_or(message));
            }
        }
        let ids = self.added_ids(base)?;
        for (id, message) in ids.iter().zip(&self.added) {
            if list.insert(*id, with_id(message, *id)?).is_some() {
                return Err(Error::internal(format!("fragment {id} is added and is there already")));
            }
        }
        let max_fragment_id = highest(base).into_iter().chain(ids).chain(self.reserved).max();
        let mut deletions = false;
        for message in list.values() {
            deletions |= wire::split("a fragment", message)?.iter().any(|field| field.number == DELETION_FILE);
        }
        Ok(FragmentList { messages: list.into_values().collect(), max_fragment_id, deletions })
    }

    /// Entries of the table metadata map, when some are set.
    pub(super) fn metadata_entries(&self, base: &Manifest) -> Vec<Vec<u8>> {
        if self.metadata.is_empty() {
            return Vec::new();
        }
        let mut all = base.table_metadata.clone();
        all.extend(self.metadata.clone());
        let entry = |(key, value): (&String, &String)| {
            let mut entry = Vec::new();
            wire::put_len_field(&mut entry, 1, key.as_bytes());
            wire::put_len_field(&mut entry, 2, value.as_bytes());
            entry
        };
        all.iter().map(entry).collect()
    }
}

fn highest(base: &Manifest) -> Option<u32> {
    base.max_fragment_id.max(base.fragments.last().map(|fragment| fragment.id))
}

fn id_of(message: &Bytes) -> Result<u64> {
    let fragment: proto::DataFragment = proto::decode("a new fragment", "the message", message.clone())?;
    Ok(fragment.id)
}

/// The message with another id, everything else as it is.
pub fn with_id(message: &Bytes, id: u32) -> Result<Bytes> {
    let mut out = Vec::with_capacity(message.len() + 6);
    if id != 0 {
        wire::put_varint_field(&mut out, ID, u64::from(id));
    }
    copy_without(message, ID, &mut out)?;
    Ok(out.into())
}

/// The message of a fragment with another deletion vector, everything else as it is.
///
/// # Errors
/// `CORRUPT_FILE` when it is no message.
pub fn with_deletions(message: &Bytes, file: &DeletionFile) -> Result<Bytes> {
    let mut out = Vec::with_capacity(message.len() + 32);
    copy_without(message, DELETION_FILE, &mut out)?;
    let file_type = match file.kind {
        DeletionKind::Arrow => 0,
        DeletionKind::Bitmap => 1,
    };
    let deletion = proto::DeletionFile {
        file_type,
        read_version: file.read_version,
        id: file.id,
        num_deleted_rows: file.num_deleted_rows.unwrap_or(0),
        base_id: file.base_id,
    };
    wire::put_len_field(&mut out, DELETION_FILE, &deletion.encode_to_vec());
    Ok(out.into())
}

fn copy_without(message: &Bytes, number: u32, out: &mut Vec<u8>) -> Result<()> {
    for field in wire::split("a fragment", message)? {
        if field.number != number {
            out.extend_from_slice(&field.raw);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(id: u32, rows: u64) -> Bytes {
        let mut raw = proto::DataFragment { id: u64::from(id), physical_rows: rows, ..Default::default() }.encode_to_vec();
        wire::put_len_field(&mut raw, 99, b"kept");
        raw.into()
    }

    fn base() -> Manifest {
        let mut raw = proto::Manifest {
            version: 7,
            data_format: Some(proto::DataFormat { file_format: "lance".into(), version: "2.0".into() }),
            max_fragment_id: Some(9),
            ..Default::default()
        }
        .encode_to_vec();
        for (id, rows) in [(0, 10), (4, 20), (5, 30)] {
            wire::put_len_field(&mut raw, 2, &fragment(id, rows));
        }
        Manifest::parse("m", raw.into()).unwrap()
    }

    #[test]
    fn fragments_change_go_and_come() {
        let base = base();
        let vector =
            DeletionFile { kind: DeletionKind::Bitmap, read_version: 7, id: u64::MAX, num_deleted_rows: Some(3), base_id: None };
        let change = FragmentChange {
            updated: [(4, with_deletions(&fragment(4, 20), &vector).unwrap())].into(),
            removed: [0].into(),
            added: vec![fragment(0, 1), fragment(20, 2), fragment(0, 3)],
            ..FragmentChange::default()
        };
        let list = change.apply(&base).unwrap();
        assert!(list.deletions);
        assert_eq!(list.max_fragment_id, Some(21));
        let read: Vec<proto::DataFragment> =
            list.messages.iter().map(|m| proto::DataFragment::decode(m.clone()).unwrap()).collect();
        assert_eq!(
            read.iter().map(|f| (f.id, f.physical_rows)).collect::<Vec<_>>(),
            [(4, 20), (5, 30), (10, 1), (20, 2), (21, 3)]
        );
        assert_eq!(read[0].deletion_file.as_ref().map(|d| (d.id, d.num_deleted_rows)), Some((u64::MAX, 3)));
        // What a newer writer said of a fragment is still said.
        assert!(list.messages.iter().all(|m| wire::split("f", m).unwrap().iter().any(|f| f.value == "kept")));
        let again = with_deletions(&list.messages[0], &DeletionFile { id: 1, ..vector }).unwrap();
        assert_eq!(wire::split("f", &again).unwrap().iter().filter(|f| f.number == DELETION_FILE).count(), 1);
    }

    #[test]
    fn ids_never_come_back() {
        let empty = Manifest { fragments: Vec::new(), ..base() };
        let change = FragmentChange { added: vec![fragment(0, 1)], ..FragmentChange::default() };
        assert_eq!(change.added_ids(&empty).unwrap(), [10]);
        assert_eq!(change.added_ids(&Manifest { max_fragment_id: None, ..empty.clone() }).unwrap(), [0]);
        let full = Manifest { max_fragment_id: Some(u32::MAX - 1), ..empty };
        assert!(change.added_ids(&full).unwrap_err().message().contains("no fragment ids left"));
        let twice = FragmentChange { added: vec![fragment(5, 1)], ..FragmentChange::default() };
        assert!(twice.apply(&base()).is_err());
        let reserved = FragmentChange { reserved: Some(12), ..FragmentChange::default() };
        assert_eq!(reserved.apply(&base()).unwrap().max_fragment_id, Some(12));
    }
}
