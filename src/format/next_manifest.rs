//! The manifest of the version after one that was read (table-format §9): for an index commit, and for one that changes fragments.

use bytes::Bytes;

use super::flags::TAGGED_REUSE;
use super::fragment_change::FragmentChange;
use super::index_metadata::{IndexMetadata, encode_index_section};
use super::manifest::ManifestFile;
use super::reuse_v0::is_tagged;
use super::transaction::Transaction;
use super::wire::{self, put_len_field, put_varint_field};
use crate::error::{Error, ErrorCode, Result};

/// Everything that goes into the next manifest.
#[derive(Clone, Debug)]
pub struct NextManifest<'a> {
    /// The version it follows: the latest one.
    pub base: &'a ManifestFile,
    /// The final index list; entries that stay are written with the bytes they were read from.
    pub indices: Vec<IndexMetadata>,
    /// The transaction, stored inline too.
    pub transaction: &'a Transaction,
    /// Name of the `.txn` file just written; empty = none was written.
    pub transaction_file: String,
    /// Commit time, unix milliseconds.
    pub now_ms: i64,
    /// What becomes of the fragments; `None` = they are copied byte for byte, as an index commit does.
    pub fragments: Option<&'a FragmentChange>,
}

/// Library name in `writer_version`: any name but `lance` makes Lance trust the bitmaps and counts (§4.2).
pub const WRITER_LIBRARY: &str = "whetstone";
/// A larger inline transaction is left out; the `.txn` file then is the only copy.
const INLINE_LIMIT: usize = 20 << 20;
const FLAG_DELETIONS: u64 = 1;
const FLAG_NO_TXN_FILE: u64 = 1 << 5;
const FLAG_COVERING: u64 = 1 << 7;
/// Numbers that are replaced: version, unused aux data, positions in the old file, time, tag, flags, transaction, writer.
const REPLACED: [u32; 11] = [3, 4, 6, 7, 8, 9, 10, 12, 13, 21, 23];
const MAX_FRAGMENT_ID: u32 = 11;
const FRAGMENTS: u32 = 2;
const TABLE_METADATA: u32 = 19;

impl NextManifest<'_> {
    /// The bytes of the whole file. Everything of the base that an index commit does not change, unknown fields included, is
    /// copied byte for byte.
    pub fn encode(&self) -> Result<Bytes> {
        let base = &self.base.manifest;
        if base.data_storage_version == "0.1" && base.schema.fields.iter().any(|f| f.has_dictionary) {
            let text = "the manifest of this table (data format 0.1) holds dictionary pages, which this build does not rewrite";
            return Err(Error::new(ErrorCode::UnsupportedFeature, text));
        }
        let version =
            base.version.checked_add(1).ok_or_else(|| Error::corrupt("manifest", "the version is the last possible one"))?;
        let transaction = self.transaction.encode();
        let inline = transaction.len() <= INLINE_LIMIT;
        if !inline && self.transaction_file.is_empty() {
            return Err(Error::internal("a transaction over 20 MiB needs a transaction file"));
        }

        let mut file = Vec::new();
        let index_position =
            if self.indices.is_empty() { None } else { Some(put_section(&mut file, &encode_index_section(&self.indices))?) };
        let transaction_position = if inline { Some(put_section(&mut file, &transaction)?) } else { None };

        let mut message = Vec::with_capacity(base.raw.len() + 256);
        let mut has_max_fragment_id = false;
        let mut deletions = false;
        let gone = |number: u32| match number {
            // The list is written anew, and with it what is derived from it.
            FRAGMENTS | MAX_FRAGMENT_ID => self.fragments.is_some(),
            TABLE_METADATA => self.fragments.is_some_and(|change| !change.metadata.is_empty()),
            other => REPLACED.contains(&other),
        };
        for field in wire::split("manifest", &base.raw)? {
            has_max_fragment_id |= field.number == MAX_FRAGMENT_ID;
            if !gone(field.number) {
                message.extend_from_slice(&field.raw);
            }
        }
        if let Some(change) = self.fragments {
            let list = change.apply(base)?;
            deletions = list.deletions;
            for fragment in &list.messages {
                put_len_field(&mut message, FRAGMENTS, fragment);
            }
            if let Some(id) = list.max_fragment_id {
                put_varint_field(&mut message, MAX_FRAGMENT_ID, u64::from(id));
            }
            has_max_fragment_id = true;
            for entry in change.metadata_entries(base) {
                put_len_field(&mut message, TABLE_METADATA, &entry);
            }
        }
        if let (false, Some(last)) = (has_max_fragment_id, base.fragments.last()) {
            put_varint_field(&mut message, MAX_FRAGMENT_ID, u64::from(last.id));
        }
        put_varint_field(&mut message, 3, version);
        if let Some(position) = index_position {
            put_varint_field(&mut message, 6, position);
        }
        put_len_field(&mut message, 7, &timestamp(self.now_ms));
        let (reader, writer) = self.flags(deletions);
        for (number, flags) in [(9, reader), (10, writer)] {
            if flags != 0 {
                put_varint_field(&mut message, number, flags);
            }
        }
        if !self.transaction_file.is_empty() {
            put_len_field(&mut message, 12, self.transaction_file.as_bytes());
        }
        let mut writer_version = Vec::new();
        put_len_field(&mut writer_version, 1, WRITER_LIBRARY.as_bytes());
        put_len_field(&mut writer_version, 2, env!("CARGO_PKG_VERSION").as_bytes());
        put_len_field(&mut message, 13, &writer_version);
        if let Some(position) = transaction_position {
            put_varint_field(&mut message, 23, position);
        }

        let manifest_position = put_section(&mut file, &message)?;
        file.extend_from_slice(&manifest_position.to_le_bytes());
        file.extend_from_slice(&[0, 0, 2, 0]);
        file.extend_from_slice(b"LANC");
        Ok(file.into())
    }

    /// Both words of the base; bit 0 follows the fragments, bit 7 follows the new index list, bit 5 goes once a transaction file is written (§7), bit 10 comes
    /// with a tagged reuse history and stays (fragment-reuse §2.2).
    fn flags(&self, deletions: bool) -> (u64, u64) {
        let tagged = if self.indices.iter().any(is_tagged) { TAGGED_REUSE } else { 0 };
        let covering = if self.indices.iter().any(|e| !e.covering_fields.is_empty()) { FLAG_COVERING } else { 0 };
        // An index commit leaves the fragments, and so the bit as it found it in each word.
        let (clear, set) = match (self.fragments, deletions) {
            (None, _) => (0, 0),
            (Some(_), true) => (0, FLAG_DELETIONS),
            (Some(_), false) => (FLAG_DELETIONS, 0),
        };
        let flags = |base: u64| base & !FLAG_COVERING & !clear | covering | tagged | set;
        let reader = flags(self.base.manifest.reader_flags);
        let mut writer = flags(self.base.manifest.writer_flags);
        if !self.transaction_file.is_empty() {
            writer &= !FLAG_NO_TXN_FILE;
        }
        (reader, writer)
    }
}

fn put_section(file: &mut Vec<u8>, message: &[u8]) -> Result<u64> {
    let position = file.len() as u64;
    let length = u32::try_from(message.len()).map_err(|_| Error::invalid("a manifest section would exceed 4 GiB"))?;
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(message);
    Ok(position)
}

fn timestamp(ms: i64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint_field(&mut out, 1, ms.div_euclid(1000) as u64);
    put_varint_field(&mut out, 2, (ms.rem_euclid(1000) * 1_000_000) as u64);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::manifest::{ManifestFooter, SectionPositions};
    use crate::format::transaction::tests_support::entry;
    use uuid::Uuid;

    /// The golden sample of table-format §3.1: version 1 of an empty table.
    const EMPTY_TABLE: &str = "62000000122434393066343432372d323030342d343439392d623562332d376263363132373833343264b20639121a1202696420\
        ffffffffffffffffff012a05696e743634300138\
        01121b12046e616d65180120ffffffffffffffffff012a046e756c6c3001970000000a1a1202696420ffffffffffffffffff012a\
        05696e743634300138010a1b12046e616d65180120ffffffffffffffffff012a046e756c6c300118013a0c088c8eb3d806109ded98de01622a302d343930\
        66343432372d323030342d343439392d623562332d3762633631323738333432642e74786e6a0f0a056c616e6365120631342e302e327a0c0a056c616e63\
        651203322e32b801006600000000000000000002004c414e43";

    fn golden() -> Bytes {
        let bytes = EMPTY_TABLE.as_bytes().chunks(2);
        bytes.map(|c| u8::from_str_radix(std::str::from_utf8(c).unwrap(), 16).unwrap()).collect::<Vec<_>>().into()
    }

    #[test]
    fn reads_the_golden_sample() {
        let file = ManifestFile::parse("m", &golden()).unwrap();
        let m = &file.manifest;
        assert_eq!((m.version, m.reader_flags, m.writer_flags, m.max_fragment_id), (1, 0, 0, None));
        let fields: Vec<_> =
            m.schema.fields.iter().map(|f| (f.id, f.name.as_str(), f.logical_type.as_str(), f.nullable)).collect();
        assert_eq!(fields, [(0, "id", "int64", true), (1, "name", "null", true)]);
        assert_eq!(m.data_storage_version, "2.2");
        assert_eq!(m.writer_version, Some(("lance".into(), "14.0.2".into())));
        let transaction = file.transaction("m").unwrap().unwrap();
        assert_eq!(transaction.operation.name(), "Overwrite");
        assert_eq!(Some(transaction.file_name()), m.transaction_file);
        assert!(file.indices.is_empty());
    }

    fn next(base: &ManifestFile, indices: Vec<IndexMetadata>, txn_file: &str) -> Bytes {
        let transaction = Transaction::create_index(base.manifest.version, Uuid::from_u128(5), indices.clone(), vec![]);
        let next = NextManifest {
            base,
            indices,
            transaction: &transaction,
            transaction_file: txn_file.into(),
            now_ms: -1_500,
            fragments: None,
        };
        next.encode().unwrap()
    }

    #[test]
    fn unknown_fields_stay_and_flags_follow() {
        let mut base = ManifestFile::parse("m", &golden()).unwrap();
        let mut raw = base.manifest.raw.to_vec();
        put_len_field(&mut raw, 4000, b"of a newer Lance");
        put_varint_field(&mut raw, 10, 1 << 5 | 1 << 3);
        put_varint_field(&mut raw, 11, 0);
        base.manifest = crate::format::manifest::Manifest::parse("m", raw.into()).unwrap();

        let covering = IndexMetadata { fields: vec![0, 1], covering_fields: vec![1], ..entry("i") };
        let file = next(&base, vec![entry("j"), covering], "1-x.txn");
        let read = ManifestFile::parse("n", &file).unwrap();
        let m = &read.manifest;
        let fields = wire::split("n", &m.raw).unwrap();
        assert!(fields.iter().any(|f| f.number == 4000 && f.value == "of a newer Lance"));
        assert_eq!((m.version, m.max_fragment_id, m.timestamp_ms), (2, Some(0), Some(-1_500)));
        assert_eq!((m.reader_flags, m.writer_flags), (1 << 7, 1 << 7 | 1 << 3));
        assert_eq!(m.transaction_file.as_deref(), Some("1-x.txn"));
        assert_eq!(m.writer_version.as_ref().unwrap().0, "whetstone");
        assert_eq!(read.indices.len(), 2);
        assert_eq!(m.schema, base.manifest.schema);
        // index_section = 0 is written, not dropped.
        assert!(fields.iter().any(|f| f.number == 6 && f.value.as_ref() == [0]));

        let bare = ManifestFile::parse("n", &next(&read, vec![], "")).unwrap();
        assert_eq!((bare.manifest.reader_flags, bare.manifest.writer_flags), (0, 1 << 3));
        assert_eq!((bare.indices.len(), &bare.manifest.transaction_file), (0, &None));
        let fields = wire::split("n", &bare.manifest.raw).unwrap();
        assert!(!fields.iter().any(|f| f.number == 6));
        assert_eq!(fields.iter().filter(|f| f.number == 3).count(), 1);
        assert_eq!(bare.transaction("n").unwrap().unwrap().operation.name(), "CreateIndex");
    }

    #[test]
    fn kept_entries_are_written_byte_for_byte() {
        let base = ManifestFile::parse("m", &golden()).unwrap();
        let mut raw = entry("i").encode().to_vec();
        put_len_field(&mut raw, 99, b"?");
        let kept = IndexMetadata::parse("m", &raw.clone().into()).unwrap();
        let carried = IndexMetadata { fragment_bitmap: Some([77].into()), ..kept };
        let read = ManifestFile::parse("n", &next(&base, vec![carried], "")).unwrap();
        assert_eq!(read.indices[0].raw, raw);
    }

    #[test]
    fn in_ranges_as_in_one_piece() {
        let base = ManifestFile::parse("m", &golden()).unwrap();
        let file = next(&base, vec![entry("i")], "");
        let size = file.len() as u64;
        let footer = ManifestFooter::parse("n", &file[file.len() - 20..], size).unwrap();
        let of = |r: std::ops::Range<u64>| file.slice(r.start as usize..r.end as usize);
        let message = footer.manifest_message("n", &of(footer.manifest_range())).unwrap();
        let positions = SectionPositions::parse("n", &message).unwrap();
        let range = positions.index_range("n", &footer).unwrap().unwrap();
        let section = crate::format::manifest::section("n", "index section", &of(range), 0).unwrap();
        let parts = ManifestFile::parse_parts("n", message, Some(section), None).unwrap();
        assert_eq!(parts.indices, ManifestFile::parse("n", &file).unwrap().indices);
        assert_eq!(parts.inline_transaction, None);
    }

    #[test]
    fn contradictions_name_the_object() {
        let good = golden();
        let with = |at: usize, bytes: &[u8]| {
            let mut bad = good.to_vec();
            bad[at..at + bytes.len()].copy_from_slice(bytes);
            ManifestFile::parse("_versions/1.manifest", &bad.into()).unwrap_err().message().to_owned()
        };
        let end = good.len();
        for (message, part) in [
            (with(end - 1, b"X"), "LANC"),
            (with(end - 16, &[0xff; 8]), "starts at"),
            (with(end - 16, &[0x67]), "manifest message"),
            (with(0x66, &[0x98]), "manifest message"),
            (with(0x66, &[0x96]), "manifest message has 150 bytes where 151"),
        ] {
            assert!(message.starts_with("_versions/1.manifest: ") && message.contains(part), "{message}");
        }
        assert!(ManifestFile::parse("m", &Bytes::new()).is_err());
    }
}
