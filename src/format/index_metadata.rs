//! One entry of the index section = one segment (table-format §6).

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::bitmap::{decode_roaring32, encode_roaring32};
use super::{proto, wire};
use crate::error::{Error, ErrorCode, Result};

/// Name of the fragment reuse entry.
pub const FRAG_REUSE_NAME: &str = "__lance_frag_reuse";
/// Name of the MemWAL entry.
pub const MEM_WAL_NAME: &str = "__lance_mem_wal";

/// One index segment as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexMetadata {
    /// Segment id; its files are in `_indices/{uuid}/`.
    pub uuid: Uuid,
    /// Key field ids, then carried ids.
    pub fields: Vec<i32>,
    /// Logical index name.
    pub name: String,
    /// Version whose rows the segment reflects.
    pub dataset_version: u64,
    /// Stored coverage; `None` = unknown, which is not empty.
    pub fragment_bitmap: Option<RoaringBitmap>,
    /// `type_url` and value of the details; `None` on very old entries.
    pub details: Option<IndexDetails>,
    /// Format version of the segment; `None` = not recorded (reads as 0).
    pub index_version: Option<i32>,
    /// Creation time, unix milliseconds.
    pub created_at_ms: Option<u64>,
    /// Base path id; `None` = the table's own root.
    pub base_id: Option<u32>,
    /// Files with sizes; empty = unknown.
    pub files: Vec<IndexFile>,
    /// Carried columns (a tail of `fields`).
    pub covering_fields: Vec<i32>,
    /// Object metadata (needs an unreleased writer flag).
    pub metadata: BTreeMap<String, String>,
    /// The bytes it was decoded from; empty for a new entry. While present they are what [`IndexMetadata::encode`] writes,
    /// whatever the other fields say: an entry is changed through [`IndexMetadata::with_bitmap`], not in place.
    pub raw: Bytes,
}

/// The `Any` that names the method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDetails {
    /// e.g. `/lance.table.BTreeIndexDetails`.
    pub type_url: String,
    /// Message bytes; often empty.
    pub value: Bytes,
}

/// A file of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFile {
    /// Path relative to the segment folder.
    pub path: String,
    /// Exact size in bytes.
    pub size_bytes: u64,
}

/// Field numbers this build can reproduce; anything else in an entry is carried along but not understood.
const LAST_KNOWN: u32 = 13;
const BITMAP: u32 = 5;
/// chrono's last representable millisecond: a later `created_at` makes Lance refuse the whole table.
const LAST_MILLISECOND: u64 = 8_210_266_876_799_999;

impl IndexMetadata {
    /// Reads one entry; strict, because one malformed entry makes the whole section unusable for every reader (§6.1).
    pub fn parse(object: &str, raw: &Bytes) -> Result<IndexMetadata> {
        let entry: proto::IndexMetadata = proto::decode(object, "an index entry", raw.clone())?;
        let at = |what: String| Error::corrupt(object, format!("index entry {:?}: {what}", entry.name));
        let uuid_bytes = entry.uuid.as_ref().map(|u| u.uuid.as_ref()).unwrap_or_default();
        let uuid = Uuid::from_slice(uuid_bytes).map_err(|_| at(format!("its uuid has {} bytes, not 16", uuid_bytes.len())))?;
        let fragment_bitmap = match entry.fragment_bitmap.as_ref() {
            [] => None,
            bytes => Some(decode_roaring32(object, bytes).map_err(|e| at(format!("segment {uuid}: {}", e.message())))?),
        };
        let carried = &entry.covering_fields;
        if !carried.is_empty() && (!entry.fields.ends_with(carried) || entry.fields.len() == carried.len()) {
            return Err(at(format!("covering fields {carried:?} are not the last part of its fields {:?}", entry.fields)));
        }
        if let Some(ms) = entry.created_at.filter(|ms| *ms > LAST_MILLISECOND) {
            return Err(at(format!("created_at {ms} ms is no representable date")));
        }
        Ok(IndexMetadata {
            uuid,
            fields: entry.fields,
            name: entry.name,
            dataset_version: entry.dataset_version,
            fragment_bitmap,
            details: entry.index_details.map(|d| IndexDetails { type_url: d.type_url, value: d.value }),
            index_version: entry.index_version,
            created_at_ms: entry.created_at,
            base_id: entry.base_id,
            files: entry.files.into_iter().map(|f| IndexFile { path: f.path, size_bytes: f.size_bytes }).collect(),
            covering_fields: entry.covering_fields,
            metadata: entry.metadata,
            raw: raw.clone(),
        })
    }

    /// The entry's bytes: those it was read from, or a fresh encoding when there are none. Optional zeros are written.
    pub fn encode(&self) -> Bytes {
        if !self.raw.is_empty() {
            return self.raw.clone();
        }
        let message = proto::IndexMetadata {
            uuid: Some(proto::Uuid { uuid: Bytes::copy_from_slice(self.uuid.as_bytes()) }),
            fields: self.fields.clone(),
            name: self.name.clone(),
            dataset_version: self.dataset_version,
            fragment_bitmap: self.fragment_bitmap.as_ref().map(encode_roaring32).unwrap_or_default().into(),
            index_details: self.details.as_ref().map(|d| proto::Any { type_url: d.type_url.clone(), value: d.value.clone() }),
            index_version: self.index_version,
            created_at: self.created_at_ms,
            base_id: self.base_id,
            files: self.files.iter().map(|f| proto::IndexFile { path: f.path.clone(), size_bytes: f.size_bytes }).collect(),
            covering_fields: self.covering_fields.clone(),
            metadata: self.metadata.clone(),
        };
        message.encode_to_vec().into()
    }

    /// The same entry with another stored coverage; every other byte of it, unknown fields included, stays.
    pub fn with_bitmap(&self, bitmap: Option<RoaringBitmap>) -> Result<IndexMetadata> {
        let mut changed = IndexMetadata { fragment_bitmap: bitmap, ..self.clone() };
        if !self.raw.is_empty() {
            let mut raw = Vec::with_capacity(self.raw.len());
            for field in wire::split(&self.name, &self.raw)?.iter().filter(|f| f.number != BITMAP) {
                raw.extend_from_slice(&field.raw);
            }
            if let Some(bitmap) = &changed.fragment_bitmap {
                wire::put_len_field(&mut raw, BITMAP, &encode_roaring32(bitmap));
            }
            changed.raw = raw.into();
        }
        Ok(changed)
    }

    /// Refuses (`UNSUPPORTED_FEATURE`) to replace or remove an entry that uses what this build does not understand:
    /// covering fields, clustering, object metadata, unknown field numbers (§12).
    pub fn check_touch(&self) -> Result<()> {
        let mut reasons = Vec::new();
        if !self.covering_fields.is_empty() {
            reasons.push(format!("carried columns {:?}", self.covering_fields));
        }
        for field in wire::split(&self.name, &self.raw)? {
            match field.number {
                12 => reasons.push("a clustering id".to_owned()),
                13 => reasons.push("object metadata".to_owned()),
                n if n > LAST_KNOWN => reasons.push(format!("the unknown field {n}")),
                _ => {}
            }
        }
        reasons.dedup();
        if reasons.is_empty() {
            return Ok(());
        }
        let text =
            format!("segment {} of index {} has {}; this build must not replace it", self.uuid, self.name, reasons.join(", "));
        Err(Error::new(ErrorCode::UnsupportedFeature, text).with("index", self.name.as_str()))
    }

    /// The part of the details' type after the last `/`, e.g. `lance.table.BTreeIndexDetails`; compare it ignoring ASCII case.
    pub fn type_name(&self) -> Option<&str> {
        self.details.as_ref().map(|d| d.type_url.rsplit('/').next().unwrap_or(&d.type_url))
    }

    /// System entries are never scalar indexes and never part of coverage.
    pub fn is_system(&self) -> bool {
        self.name == FRAG_REUSE_NAME || self.name == MEM_WAL_NAME
    }
}

/// Reads the message of an index section.
pub fn parse_index_section(object: &str, section: &Bytes) -> Result<Vec<IndexMetadata>> {
    let fields = wire::split(object, section)?;
    fields.iter().filter(|f| f.number == 1).map(|f| IndexMetadata::parse(object, f.as_bytes(object)?)).collect()
}

/// The message of an index section with these entries, in order.
pub fn encode_index_section(entries: &[IndexMetadata]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        wire::put_len_field(&mut out, 1, &entry.encode());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::transaction::tests_support::entry;

    fn parse(raw: Vec<u8>) -> Result<IndexMetadata> {
        IndexMetadata::parse("m", &raw.into())
    }

    #[test]
    fn zero_optionals_are_written() {
        let bytes = IndexMetadata { base_id: Some(0), ..entry("i") }.encode();
        let fields = wire::split("m", &bytes).unwrap();
        for number in [7, 9] {
            assert!(fields.iter().any(|f| f.number == number && f.value.as_ref() == [0]), "field {number}");
        }
        assert_eq!(parse(bytes.to_vec()).unwrap().base_id, Some(0));
    }

    #[test]
    fn unknown_and_empty_coverage_differ() {
        let unknown = IndexMetadata { fragment_bitmap: None, ..entry("i") };
        let empty = IndexMetadata { fragment_bitmap: Some(RoaringBitmap::new()), ..entry("i") };
        assert_eq!(parse(unknown.encode().to_vec()).unwrap().fragment_bitmap, None);
        assert_eq!(parse(empty.encode().to_vec()).unwrap().fragment_bitmap, Some(RoaringBitmap::new()));
    }

    #[test]
    fn a_new_bitmap_keeps_unknown_fields() {
        let mut raw = entry("i").encode().to_vec();
        wire::put_len_field(&mut raw, 77, b"later");
        let read = parse(raw).unwrap();
        let changed = read.with_bitmap(Some([9].into())).unwrap();
        let again = parse(changed.encode().to_vec()).unwrap();
        assert_eq!(again.fragment_bitmap, Some([9].into()));
        assert!(wire::split("m", &again.raw).unwrap().iter().any(|f| f.number == 77 && f.value == "later"));
        assert_eq!(parse(read.with_bitmap(None).unwrap().encode().to_vec()).unwrap().fragment_bitmap, None);
        let error = read.check_touch().unwrap_err();
        assert!(error.message().contains("unknown field 77"), "{error}");
        entry("i").check_touch().unwrap();
    }

    #[test]
    fn strictness() {
        let broken = |edit: &dyn Fn(&mut proto::IndexMetadata)| {
            let mut message = proto::IndexMetadata::decode(entry("i").encode()).unwrap();
            edit(&mut message);
            parse(message.encode_to_vec()).unwrap_err().message().to_owned()
        };
        assert!(broken(&|m| m.uuid = None).contains("0 bytes, not 16"));
        assert!(broken(&|m| m.fragment_bitmap = Bytes::from_static(b"xx")).contains("bitmap"));
        assert!(broken(&|m| m.covering_fields = vec![0]).contains("covering"));
        assert!(broken(&|m| m.covering_fields = vec![5]).contains("covering"));
        assert!(broken(&|m| m.created_at = Some(u64::MAX)).contains("no representable date"));
    }
}
