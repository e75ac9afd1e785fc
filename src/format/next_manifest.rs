//! The manifest of the version after one that was read, for an index commit (table-format §9).

use bytes::Bytes;

use super::index_metadata::{IndexMetadata, encode_index_section};
use super::manifest::ManifestFile;
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
}

/// Library name in `writer_version`: any name but `lance` makes Lance trust the bitmaps and counts (§4.2).
pub const WRITER_LIBRARY: &str = "whetstone";
/// A larger inline transaction is left out; the `.txn` file then is the only copy.
const INLINE_LIMIT: usize = 20 << 20;
const FLAG_NO_TXN_FILE: u64 = 1 << 5;
const FLAG_COVERING: u64 = 1 << 7;
/// Numbers that are replaced: version, unused aux data, positions in the old file, time, tag, flags, transaction, writer.
const REPLACED: [u32; 11] = [3, 4, 6, 7, 8, 9, 10, 12, 13, 21, 23];
const MAX_FRAGMENT_ID: u32 = 11;

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
        for field in wire::split("manifest", &base.raw)? {
            has_max_fragment_id |= field.number == MAX_FRAGMENT_ID;
            if !REPLACED.contains(&field.number) {
                message.extend_from_slice(&field.raw);
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
        let (reader, writer) = self.flags();
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

    /// Both words of the base; bit 7 follows the new index list, bit 5 goes once a transaction file is written (§7).
    fn flags(&self) -> (u64, u64) {
        let covering = if self.indices.iter().any(|e| !e.covering_fields.is_empty()) { FLAG_COVERING } else { 0 };
        let reader = self.base.manifest.reader_flags & !FLAG_COVERING | covering;
        let mut writer = self.base.manifest.writer_flags & !FLAG_COVERING | covering;
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
