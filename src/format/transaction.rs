//! Transactions: what a version did (table-format §8).

use std::collections::BTreeMap;

use bytes::Bytes;
use uuid::Uuid;

use super::index_metadata::IndexMetadata;
use super::{proto, wire};
use crate::error::{Error, Result};

/// A decoded transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Version the change was computed from; 0 for the creation of the table.
    pub read_version: u64,
    /// Hyphenated text.
    pub uuid: String,
    /// What it does.
    pub operation: Operation,
    /// Free properties.
    pub properties: BTreeMap<String, String>,
    /// The message as read or as it will be written.
    pub raw: Bytes,
}

/// The operation of a transaction, as far as an index commit has to understand it.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// New fragments.
    Append,
    /// Deleted rows or fragments.
    Delete,
    /// Everything replaced.
    Overwrite,
    /// Index segments added, replaced or removed.
    CreateIndex {
        /// Entries that come.
        new: Vec<IndexMetadata>,
        /// Copies of the entries that go; matched by uuid.
        removed: Vec<IndexMetadata>,
    },
    /// Fragments rewritten (compaction).
    Rewrite {
        /// What became what.
        groups: Vec<RewriteGroup>,
    },
    /// Columns merged in: the complete new fragment list and schema.
    Merge,
    /// An older version restored.
    Restore {
        /// That version.
        version: u64,
    },
    /// Fragment ids reserved.
    ReserveFragments,
    /// Rows updated.
    Update(Update),
    /// Columns renamed or dropped.
    Project,
    /// Configuration or metadata changed.
    UpdateConfig,
    /// Column files replaced.
    DataReplacement {
        /// Per replaced file: fragment id and the field ids of the new file.
        replacements: Vec<(u64, Vec<i32>)>,
    },
    /// MemWAL state changed.
    UpdateMemWalState,
    /// First version of a clone or branch.
    Clone,
    /// Base paths added.
    UpdateBases,
    /// Overlay files attached.
    DataOverlay,
    /// An operation of a newer writer: its field number.
    Unknown(u32),
}

/// One group of a rewrite: fragment ids before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewriteGroup {
    /// Before.
    pub old: Vec<u64>,
    /// After.
    pub new: Vec<u64>,
}

/// What an update touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Fragments that went away.
    pub removed: Vec<u64>,
    /// Fragments that stay and changed.
    pub updated: Vec<u64>,
    /// Field ids changed in place in `updated`; empty when rows were moved instead.
    pub fields_modified: Vec<u32>,
}

impl Operation {
    /// Name as in the format's documentation, e.g. `CreateIndex`; `Unknown` for newer ones.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Append => "Append",
            Operation::Delete => "Delete",
            Operation::Overwrite => "Overwrite",
            Operation::CreateIndex { .. } => "CreateIndex",
            Operation::Rewrite { .. } => "Rewrite",
            Operation::Merge => "Merge",
            Operation::Restore { .. } => "Restore",
            Operation::ReserveFragments => "ReserveFragments",
            Operation::Update(_) => "Update",
            Operation::Project => "Project",
            Operation::UpdateConfig => "UpdateConfig",
            Operation::DataReplacement { .. } => "DataReplacement",
            Operation::UpdateMemWalState => "UpdateMemWalState",
            Operation::Clone => "Clone",
            Operation::UpdateBases => "UpdateBases",
            Operation::DataOverlay => "DataOverlay",
            Operation::Unknown(_) => "Unknown",
        }
    }
}

const OPERATIONS: std::ops::RangeInclusive<u32> = 100..=199;
const CREATE_INDEX: u32 = 103;

impl Transaction {
    /// A transaction that adds and removes index segments, computed from `read_version`.
    pub fn create_index(read_version: u64, uuid: Uuid, new: Vec<IndexMetadata>, removed: Vec<IndexMetadata>) -> Transaction {
        let uuid = uuid.hyphenated().to_string();
        let mut operation = Vec::new();
        for entry in &new {
            wire::put_len_field(&mut operation, 1, &entry.encode());
        }
        for entry in &removed {
            wire::put_len_field(&mut operation, 2, &entry.encode());
        }
        let mut raw = Vec::new();
        if read_version != 0 {
            wire::put_varint_field(&mut raw, 1, read_version);
        }
        wire::put_len_field(&mut raw, 2, uuid.as_bytes());
        wire::put_len_field(&mut raw, CREATE_INDEX, &operation);
        Transaction {
            read_version,
            uuid,
            operation: Operation::CreateIndex { new, removed },
            properties: BTreeMap::new(),
            raw: raw.into(),
        }
    }

    /// The message bytes: what was read, or what [`Transaction::create_index`] built.
    pub fn encode(&self) -> Bytes {
        self.raw.clone()
    }

    /// Reads a transaction: a `.txn` file, or the inline section of a manifest without its length prefix.
    pub fn parse(object: &str, bytes: &Bytes) -> Result<Transaction> {
        let head: proto::TransactionHead = proto::decode(object, "the transaction", bytes.clone())?;
        let mut operation = None;
        for field in wire::split(object, bytes)?.iter().filter(|f| OPERATIONS.contains(&f.number)) {
            operation = Some(parse_operation(object, field)?); // a oneof: the last one counts
        }
        let operation = operation.ok_or_else(|| Error::corrupt(object, "the transaction holds no operation"))?;
        Ok(Transaction {
            read_version: head.read_version,
            uuid: head.uuid,
            operation,
            properties: head.properties,
            raw: bytes.clone(),
        })
    }

    /// Name inside `_transactions/`; keeps the original read version whatever the transaction is rebased onto.
    pub fn file_name(&self) -> String {
        format!("{}-{}.txn", self.read_version, self.uuid)
    }
}

fn parse_operation(object: &str, field: &wire::RawField) -> Result<Operation> {
    let body = field.as_bytes(object)?.clone();
    let ids = |fragments: &[proto::DataFragment]| fragments.iter().map(|f| f.id).collect::<Vec<_>>();
    Ok(match field.number {
        100 => Operation::Append,
        101 => Operation::Delete,
        102 => Operation::Overwrite,
        CREATE_INDEX => {
            let (mut new, mut removed) = (Vec::new(), Vec::new());
            for entry in wire::split(object, &body)? {
                match entry.number {
                    1 => new.push(IndexMetadata::parse(object, entry.as_bytes(object)?)?),
                    2 => removed.push(IndexMetadata::parse(object, entry.as_bytes(object)?)?),
                    _ => {}
                }
            }
            Operation::CreateIndex { new, removed }
        }
        104 => {
            let rewrite: proto::Rewrite = proto::decode(object, "the Rewrite operation", body)?;
            let mut groups: Vec<_> =
                rewrite.groups.iter().map(|g| RewriteGroup { old: ids(&g.old_fragments), new: ids(&g.new_fragments) }).collect();
            if !rewrite.old_fragments.is_empty() || !rewrite.new_fragments.is_empty() {
                groups.push(RewriteGroup { old: ids(&rewrite.old_fragments), new: ids(&rewrite.new_fragments) });
            }
            Operation::Rewrite { groups }
        }
        105 => Operation::Merge,
        106 => Operation::Restore { version: proto::decode::<proto::Restore>(object, "the Restore operation", body)?.version },
        107 => Operation::ReserveFragments,
        108 => {
            let update: proto::Update = proto::decode(object, "the Update operation", body)?;
            Operation::Update(Update {
                removed: update.removed_fragment_ids,
                updated: ids(&update.updated_fragments),
                fields_modified: update.fields_modified,
            })
        }
        109 => Operation::Project,
        110 => Operation::UpdateConfig,
        111 => {
            let replacement: proto::DataReplacement = proto::decode(object, "the DataReplacement operation", body)?;
            let of = |r: proto::Replacement| (r.fragment_id, r.new_file.map(|f| f.fields).unwrap_or_default());
            Operation::DataReplacement { replacements: replacement.replacements.into_iter().map(of).collect() }
        }
        112 => Operation::UpdateMemWalState,
        113 => Operation::Clone,
        114 => Operation::UpdateBases,
        115 => Operation::DataOverlay,
        other => Operation::Unknown(other),
    })
}
