//! A decoded manifest (table-format §3, §4).

use std::collections::BTreeMap;

use bytes::Bytes;
use roaring::RoaringBitmap;

use super::fragment::{DataFile, DeletionFile, DeletionKind, Fragment, RowIdSource};
use super::index_metadata::{IndexMetadata, parse_index_section};
use super::proto;
use super::schema::Schema;
use super::transaction::Transaction;
use crate::error::{Error, ErrorCode, Result};
use crate::lists::map_of;

/// A manifest message, decoded; `raw` keeps every byte for rewriting.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    /// Version of the table.
    pub version: u64,
    /// Schema tree.
    pub schema: Schema,
    /// Fragments, ascending by id.
    pub fragments: Vec<Fragment>,
    /// Feature word readers must know.
    pub reader_flags: u64,
    /// Feature word writers must know.
    pub writer_flags: u64,
    /// Highest fragment id ever allocated.
    pub max_fragment_id: Option<u32>,
    /// Name inside `_transactions/`.
    pub transaction_file: Option<String>,
    /// Library and version that wrote it.
    pub writer_version: Option<(String, String)>,
    /// Next unused stable row id.
    pub next_row_id: u64,
    /// `2.0` … `2.3` or `0.1`.
    pub data_storage_version: String,
    /// Commit time, unix milliseconds; `None` when absent.
    pub timestamp_ms: Option<i64>,
    /// Table configuration.
    pub config: BTreeMap<String, String>,
    /// Free table metadata.
    pub table_metadata: BTreeMap<String, String>,
    /// Other roots that files may live in.
    pub base_paths: Vec<BasePath>,
    /// Branch; `None` = main.
    pub branch: Option<String>,
    /// The message as read.
    pub raw: Bytes,
}

impl Manifest {
    /// Ids of the fragments: the set `live`.
    pub fn live(&self) -> RoaringBitmap {
        self.fragments.iter().map(|f| f.id).collect()
    }

    /// The fragment of that id.
    pub fn fragment(&self, id: u32) -> Option<&Fragment> {
        let at = self.fragments.binary_search_by_key(&id, |f| f.id).ok()?;
        self.fragments.get(at)
    }

    /// The `DataFragment` messages as they were read, with their ids.
    ///
    /// # Errors
    /// `CORRUPT_FILE` when the list is not the one that was decoded.
    pub fn fragment_messages(&self) -> Result<Vec<(u32, Bytes)>> {
        let fields = super::wire::split("manifest", &self.raw)?;
        let messages: Vec<Bytes> = fields.into_iter().filter(|field| field.number == 2).map(|field| field.value).collect();
        if messages.len() != self.fragments.len() {
            return Err(Error::internal("a manifest whose fragments are not those of its bytes"));
        }
        Ok(self.fragments.iter().map(|fragment| fragment.id).zip(messages).collect())
    }

    /// Stable row ids are on (flag bit 1).
    pub fn has_stable_row_ids(&self) -> bool {
        self.reader_flags & 2 != 0
    }

    /// The base path of that id; `CORRUPT_FILE` when the manifest has none.
    pub fn base(&self, id: u32) -> Result<&BasePath> {
        let found = self.base_paths.iter().find(|b| b.id == id);
        found.ok_or_else(|| {
            Error::corrupt("manifest", format!("version {} names base path {id} and lists none of that id", self.version))
        })
    }

    /// Live rows of the table; `None` when some fragment's counts are not recorded.
    pub fn live_rows(&self) -> Option<u64> {
        self.fragments.iter().try_fold(0u64, |sum, f| sum.checked_add(f.live_rows()?))
    }
}

/// A manifest with the sections of its file.
#[derive(Clone, Debug, Default)]
pub struct ManifestFile {
    /// The manifest.
    pub manifest: Manifest,
    /// The index section in order; empty when there is none.
    pub indices: Vec<IndexMetadata>,
    /// The transaction message stored in the file; `None` when the file has none or it was not fetched.
    pub inline_transaction: Option<Bytes>,
}

/// Size of the footer: manifest position, format version, magic.
const FOOTER: u64 = 16;
const MAGIC: &[u8] = b"LANC";
const PREFIX: u64 = 4;
/// Data file format versions a manifest may state.
const STORAGE_VERSIONS: [&str; 5] = ["0.1", "2.0", "2.1", "2.2", "2.3"];
/// Writer flag of very old 2.x tables.
const FLAG_OLD_V2: u64 = 1 << 2;

/// Where the sections of a manifest file are, for reading a big one in ranges: byte ranges of the file without the length
/// prefixes' contents checked. Read `manifest` first, then ask [`ManifestFooter::sections`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestFooter {
    /// Position of the manifest's length prefix.
    pub manifest_position: u64,
    /// Size of the file in bytes.
    pub file_size: u64,
}

/// Positions that a manifest message states for the other sections of its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectionPositions {
    /// Position of the index section's length prefix; `None` = no indexes.
    pub index_section: Option<u64>,
    /// Position of the inline transaction's length prefix.
    pub transaction_section: Option<u64>,
}

impl ManifestFooter {
    /// Reads the footer from the last bytes (16 at least) of a file of `file_size` bytes.
    pub fn parse(object: &str, tail: &[u8], file_size: u64) -> Result<ManifestFooter> {
        let start = tail.len().checked_sub(FOOTER as usize);
        let footer = start.and_then(|at| tail.get(at..)).ok_or_else(|| {
            Error::corrupt(object, format!("a manifest has at least {FOOTER} bytes, this one has {}", tail.len()))
        })?;
        if footer.get(12..) != Some(MAGIC) {
            return Err(Error::corrupt(object, "does not end in \"LANC\": it is no manifest, or it is cut off"));
        }
        let position = footer.get(..8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes).unwrap_or(u64::MAX);
        if position.checked_add(PREFIX + FOOTER).is_none_or(|end| end > file_size) {
            return Err(Error::corrupt(
                object,
                format!("the manifest message starts at {position} in a file of {file_size} bytes"),
            ));
        }
        Ok(ManifestFooter { manifest_position: position, file_size })
    }

    /// Byte range of the manifest message with its length prefix: everything from its position to the footer.
    pub fn manifest_range(&self) -> std::ops::Range<u64> {
        self.manifest_position..self.file_size - FOOTER
    }

    /// Takes the message out of the bytes of [`ManifestFooter::manifest_range`]; it must fill them.
    pub fn manifest_message(&self, object: &str, range: &Bytes) -> Result<Bytes> {
        let message = section(object, "manifest message", range, 0)?;
        if message.len() as u64 + PREFIX != range.len() as u64 {
            return Err(Error::corrupt(
                object,
                format!(
                    "the manifest message has {} bytes where {} lie before the footer",
                    message.len(),
                    range.len() as u64 - PREFIX
                ),
            ));
        }
        Ok(message)
    }
}

impl SectionPositions {
    /// Reads the positions from a manifest message.
    pub fn parse(object: &str, message: &Bytes) -> Result<SectionPositions> {
        let mut positions = SectionPositions::default();
        let mut old = None;
        for field in super::wire::split(object, message)? {
            match field.number {
                6 => positions.index_section = Some(field.as_varint(object)?),
                21 => old = Some(field.as_varint(object)?),
                23 => positions.transaction_section = Some(field.as_varint(object)?),
                _ => {}
            }
        }
        positions.transaction_section = positions.transaction_section.or(old);
        Ok(positions)
    }

    /// Byte range that holds the index section (and usually nothing else) in the layout every writer uses: sections in the
    /// order index, transaction, manifest. The length prefix at its start says what is really there. `None` = no indexes.
    pub fn index_range(&self, object: &str, footer: &ManifestFooter) -> Result<Option<std::ops::Range<u64>>> {
        let Some(start) = self.index_section else { return Ok(None) };
        let ends = [self.transaction_section, Some(footer.manifest_position), Some(footer.file_size - FOOTER)];
        let end = ends.into_iter().flatten().filter(|end| *end > start).min();
        let end = end.ok_or_else(|| outside(object, "index section", start, footer.file_size))?;
        Ok(Some(start..end))
    }
}

/// The message whose `u32` length prefix is at `position` of `bytes`.
pub fn section(object: &str, what: &str, bytes: &Bytes, position: u64) -> Result<Bytes> {
    let start = usize::try_from(position).ok();
    let body = start.and_then(|s| s.checked_add(PREFIX as usize));
    let (Some(start), Some(body)) = (start, body) else { return Err(outside(object, what, position, bytes.len() as u64)) };
    let length = bytes.get(start..body).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let length = length.ok_or_else(|| outside(object, what, position, bytes.len() as u64))? as usize;
    match body.checked_add(length) {
        Some(end) if end <= bytes.len() => Ok(bytes.slice(body..end)),
        _ => Err(Error::corrupt(
            object,
            format!("the {what} at {position} has {length} bytes and ends past the {} of the file", bytes.len()),
        )),
    }
}

fn outside(object: &str, what: &str, position: u64, size: u64) -> Error {
    Error::corrupt(object, format!("the {what} starts at {position} in a file of {size} bytes"))
}

impl ManifestFile {
    /// Reads a whole manifest file. Anything that contradicts the layout (§3), an index section that does not decode
    /// strictly (§6) and a structure this build cannot represent is an error naming `object`.
    pub fn parse(object: &str, file: &Bytes) -> Result<ManifestFile> {
        let size = file.len() as u64;
        let footer = ManifestFooter::parse(object, file, size)?;
        let range = footer.manifest_range();
        let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end)) else {
            return Err(outside(object, "manifest message", range.start, size));
        };
        let message = footer.manifest_message(object, &file.slice(start..end))?;
        let positions = SectionPositions::parse(object, &message)?;
        // A section may not reach into the footer.
        let sections = file.slice(..end);
        let indices = positions.index_section.map(|at| section(object, "index section", &sections, at)).transpose()?;
        let transaction = positions.transaction_section.map(|at| section(object, "transaction", &sections, at)).transpose()?;
        ManifestFile::parse_parts(object, message, indices, transaction)
    }

    /// Assembles a manifest from its messages (without length prefixes), however they were fetched.
    pub fn parse_parts(
        object: &str,
        manifest: Bytes,
        index_section: Option<Bytes>,
        inline_transaction: Option<Bytes>,
    ) -> Result<ManifestFile> {
        let manifest = Manifest::parse(object, manifest)?;
        let indices = index_section.map(|bytes| parse_index_section(object, &bytes)).transpose()?.unwrap_or_default();
        Ok(ManifestFile { manifest, indices, inline_transaction })
    }

    /// The inline transaction, decoded; `None` when there is none (then only the `.txn` file exists).
    pub fn transaction(&self, object: &str) -> Result<Option<Transaction>> {
        self.inline_transaction.as_ref().map(|bytes| Transaction::parse(object, bytes)).transpose()
    }
}

impl Manifest {
    /// Decodes a manifest message.
    pub fn parse(object: &str, raw: Bytes) -> Result<Manifest> {
        let m: proto::Manifest = proto::decode(object, "the manifest message", raw.clone())?;
        let schema = Schema::from_proto(object, m.fields, m.schema_metadata)?;
        let mut fragments: Vec<Fragment> = Vec::with_capacity(m.fragments.len());
        for fragment in m.fragments {
            let fragment = Fragment::from_proto(object, fragment)?;
            if let Some(last) = fragments.last().filter(|last| last.id >= fragment.id) {
                return Err(Error::corrupt(
                    object,
                    format!("fragment {} follows fragment {}: they must ascend", fragment.id, last.id),
                ));
            }
            fragments.push(fragment);
        }
        let narrow =
            |id: u64| u32::try_from(id).map_err(|_| Error::corrupt(object, format!("max_fragment_id {id} does not fit 32 bits")));
        let data_storage_version = storage_version(object, m.data_format, &fragments, m.writer_feature_flags)?;
        Ok(Manifest {
            version: m.version,
            schema,
            reader_flags: m.reader_feature_flags,
            writer_flags: m.writer_feature_flags,
            max_fragment_id: m.max_fragment_id.map(narrow).transpose()?,
            transaction_file: Some(m.transaction_file).filter(|name| !name.is_empty()),
            writer_version: m.writer_version.map(|w| (w.library, w.version)),
            next_row_id: m.next_row_id,
            data_storage_version,
            timestamp_ms: m.timestamp.map(|t| t.seconds.saturating_mul(1000).saturating_add(i64::from(t.nanos) / 1_000_000)),
            config: map_of(m.config),
            table_metadata: map_of(m.table_metadata),
            base_paths: m.base_paths.into_iter().map(BasePath::from).collect(),
            branch: m.branch,
            fragments,
            raw,
        })
    }
}

fn storage_version(object: &str, format: Option<proto::DataFormat>, fragments: &[Fragment], writer_flags: u64) -> Result<String> {
    let Some(format) = format else {
        // Very old manifests: the data files tell; without any, the old flag does.
        let file = fragments.iter().flat_map(|f| &f.files).next();
        let inferred = match file {
            Some(file) => file.format_version(),
            None => Some(if writer_flags & FLAG_OLD_V2 != 0 { "2.0" } else { "0.1" }),
        };
        let what = || Error::corrupt(object, "states no data format and its data files have no known version");
        return inferred.map(str::to_owned).ok_or_else(what);
    };
    if format.file_format != "lance" || !STORAGE_VERSIONS.contains(&format.version.as_str()) {
        let text = format!(
            "{object}: data files of format {:?} version {:?} are unknown to this build",
            format.file_format, format.version
        );
        return Err(Error::new(ErrorCode::UnsupportedFeature, text).with("object", object));
    }
    Ok(format.version)
}

impl From<proto::BasePath> for BasePath {
    fn from(base: proto::BasePath) -> BasePath {
        BasePath { id: base.id, name: base.name, is_dataset_root: base.is_dataset_root, path: base.path }
    }
}

impl Fragment {
    fn from_proto(object: &str, f: proto::DataFragment) -> Result<Fragment> {
        let id = u32::try_from(f.id).ok().filter(|id| *id != u32::MAX);
        let id = id.ok_or_else(|| Error::corrupt(object, format!("fragment id {} cannot be addressed", f.id)))?;
        Ok(Fragment {
            id,
            files: f.files.into_iter().map(|file| DataFile::from_proto(object, id, file)).collect::<Result<_>>()?,
            deletion_file: f.deletion_file.map(|file| DeletionFile::from_proto(object, id, &file)).transpose()?,
            physical_rows: Some(f.physical_rows).filter(|rows| *rows != 0),
            row_ids: f.row_ids.map(|ids| match ids {
                proto::RowIds::Inline(bytes) => RowIdSource::Inline(bytes),
                proto::RowIds::Column(_) => RowIdSource::Column,
            }),
            has_overlays: !f.overlays.is_empty(),
        })
    }
}

impl DataFile {
    fn from_proto(object: &str, fragment: u32, f: proto::DataFile) -> Result<DataFile> {
        if !f.column_indices.is_empty() && f.column_indices.len() != f.fields.len() {
            let (columns, fields) = (f.column_indices.len(), f.fields.len());
            return Err(Error::corrupt(
                object,
                format!("fragment {fragment}, file {}: {columns} columns for {fields} fields", f.path),
            ));
        }
        Ok(DataFile {
            path: f.path,
            fields: f.fields,
            column_indices: f.column_indices,
            major: f.file_major_version,
            minor: f.file_minor_version,
            size: Some(f.file_size_bytes).filter(|size| *size != 0),
            base_id: f.base_id,
        })
    }

    /// File format version (`0.1`, `2.0` … `2.3`) that the recorded pair of numbers stands for (§4.4); `None` = none known.
    pub fn format_version(&self) -> Option<&'static str> {
        match (self.major, self.minor) {
            (0, 0..=2) => Some("0.1"),
            (0, 3) | (2, 0) => Some("2.0"),
            (2, 1) => Some("2.1"),
            (2, 2) => Some("2.2"),
            (2, 3) => Some("2.3"),
            _ => None,
        }
    }
}

impl DeletionFile {
    fn from_proto(object: &str, fragment: u32, f: &proto::DeletionFile) -> Result<DeletionFile> {
        let kind = match f.file_type {
            0 => DeletionKind::Arrow,
            1 => DeletionKind::Bitmap,
            other => {
                let text = format!("{object}: fragment {fragment} has a deletion file of unknown type {other}");
                return Err(Error::new(ErrorCode::UnsupportedFeature, text).with("object", object));
            }
        };
        Ok(DeletionFile {
            kind,
            read_version: f.read_version,
            id: f.id,
            num_deleted_rows: Some(f.num_deleted_rows).filter(|n| *n != 0),
            base_id: f.base_id,
        })
    }
}

/// Another root (table-format §4.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasePath {
    /// Key used by `base_id`; 0 is valid.
    pub id: u32,
    /// Alias.
    pub name: Option<String>,
    /// Whether `data/`, `_deletions/`, `_indices/` lie below it.
    pub is_dataset_root: bool,
    /// Absolute URI or local path.
    pub path: String,
}
