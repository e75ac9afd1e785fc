//! The content of a reuse entry as records, each with its exact bytes (spec fragment-reuse §2.3, §2.4, §11).

use bytes::Bytes;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::format::index_metadata::IndexDetails;
use crate::format::{proto, wire};

/// Content up to this many bytes is kept inside the entry, longer content in a file.
pub const INLINE_LIMIT: usize = 204_800;
/// Name of that file in the entry's segment folder.
pub const EXTERNAL_NAME: &str = "details.binpb";
/// `type_url` of the details, as Lance writes it.
pub const DETAILS_URL: &str = "/lance.table.FragmentReuseIndexDetails";

/// Field number of version-0 records.
pub const LEGACY: u32 = 1;
/// Field number of tagged records.
pub const TRANSITION: u32 = 2;

/// One record of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// 1 = a version-0 record, 2 = a transition, anything else belongs to a newer writer.
    pub field: u32,
    /// Key, length and payload as they are stored.
    pub raw: Bytes,
    /// The payload.
    pub value: Bytes,
}

/// Cuts content into records.
///
/// # Errors
/// `CORRUPT_FILE` for bytes that are no message, or a record of a known number that is not length-delimited.
pub fn records(object: &str, content: &Bytes) -> Result<Vec<Record>> {
    let mut all = Vec::new();
    for field in wire::split(object, content)? {
        if field.number == LEGACY || field.number == TRANSITION {
            field.as_bytes(object)?;
        }
        all.push(Record { field: field.number, raw: field.raw, value: field.value });
    }
    Ok(all)
}

/// The content that is left when only some records stay: their bytes, unchanged, in their order.
pub fn splice<'a>(kept: impl IntoIterator<Item = &'a Record>) -> Bytes {
    let mut out = Vec::new();
    for record in kept {
        out.extend_from_slice(&record.raw);
    }
    out.into()
}

/// Details that hold content inside the entry.
pub fn inline_details(content: &[u8]) -> IndexDetails {
    let mut value = Vec::with_capacity(content.len() + 8);
    wire::put_len_field(&mut value, 1, content);
    IndexDetails { type_url: DETAILS_URL.to_owned(), value: value.into() }
}

/// Where the content of the entry of this id lies when it is in a file, below the table.
pub fn external_path(uuid: Uuid) -> String {
    format!("_indices/{uuid}/{EXTERNAL_NAME}")
}

/// Details that name the file `details.binpb`, of `size` bytes, in the entry's segment folder.
pub fn external_details(size: u64) -> IndexDetails {
    let file = proto::ExternalFile { path: EXTERNAL_NAME.to_owned(), offset: 0, size };
    let mut value = Vec::new();
    wire::put_len_field(&mut value, 2, &prost::Message::encode_to_vec(&file));
    IndexDetails { type_url: DETAILS_URL.to_owned(), value: value.into() }
}

/// Refuses content that a newer writer extended, for whoever wants to shorten it.
///
/// # Errors
/// `HISTORY_UNSUPPORTED`.
pub fn check_known(object: &str, records: &[Record]) -> Result<()> {
    match records.iter().find(|r| r.field != LEGACY && r.field != TRANSITION) {
        Some(record) => Err(Error::new(
            crate::error::ErrorCode::HistoryUnsupported,
            format!("{object}: the history has records of the unknown kind {}; nothing was changed", record.field),
        )),
        None => Ok(()),
    }
}
