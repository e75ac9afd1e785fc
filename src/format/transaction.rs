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
const PROPERTIES: u32 = 4;

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
        let raw = message(read_version, &uuid, CREATE_INDEX, &operation);
        let operation = Operation::CreateIndex { new, removed };
        Transaction { read_version, uuid, operation, properties: BTreeMap::new(), raw }
    }

    /// A transaction of any operation, given by its number and message (table-format §8.2), computed from `read_version`.
    ///
    /// # Errors
    /// `CORRUPT_FILE` when the message is none of that operation.
    pub fn of_operation(read_version: u64, uuid: Uuid, number: u32, body: &[u8]) -> Result<Transaction> {
        Transaction::parse("the transaction", &message(read_version, &uuid.hyphenated().to_string(), number, body))
    }

    /// The same with free properties beside the operation.
    pub fn with_properties(mut self, properties: &[(&str, &str)]) -> Transaction {
        let mut raw = self.raw.to_vec();
        for (key, value) in properties {
            let mut pair = Vec::new();
            wire::put_len_field(&mut pair, 1, key.as_bytes());
            wire::put_len_field(&mut pair, 2, value.as_bytes());
            wire::put_len_field(&mut raw, PROPERTIES, &pair);
            self.properties.insert((*key).to_owned(), (*value).to_owned());
        }
        self.raw = raw.into();
        self
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

fn message(read_version: u64, uuid: &str, number: u32, operation: &[u8]) -> Bytes {
    let mut raw = Vec::new();
    if read_version != 0 {
        wire::put_varint_field(&mut raw, 1, read_version);
    }
    wire::put_len_field(&mut raw, 2, uuid.as_bytes());
    wire::put_len_field(&mut raw, number, operation);
    raw.into()
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

#[cfg(test)]
pub(crate) mod tests_support {
    use super::*;

    /// A bare entry of that name for tests.
    pub(crate) fn entry(name: &str) -> IndexMetadata {
        IndexMetadata {
            uuid: Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
            fields: vec![0],
            name: name.to_owned(),
            dataset_version: 3,
            fragment_bitmap: Some((0..5).collect()),
            details: None,
            index_version: Some(0),
            created_at_ms: Some(1_796_002_086_189),
            base_id: None,
            files: vec![],
            covering_fields: vec![],
            metadata: BTreeMap::new(),
            raw: Bytes::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn create_index_round_trips() {
        let (new, removed) = (tests_support::entry("a"), tests_support::entry("b"));
        let transaction = Transaction::create_index(7, Uuid::from_u128(1), vec![new.clone()], vec![removed]);
        assert_eq!(transaction.file_name(), "7-00000000-0000-0000-0000-000000000001.txn");
        let read = Transaction::parse("t", &transaction.encode()).unwrap();
        assert_eq!((read.read_version, &read.uuid, read.encode()), (7, &transaction.uuid, transaction.encode()));
        let Operation::CreateIndex { new: read_new, removed: read_removed } = &read.operation else { panic!("{read:?}") };
        assert_eq!(read_new, &[IndexMetadata { raw: new.encode(), ..new }]);
        assert_eq!(read_removed[0].name, "b");
    }

    #[test]
    fn operations_by_number() {
        let with = |number: u32, body: &[u8]| {
            let mut raw = Vec::new();
            wire::put_len_field(&mut raw, number, body);
            Transaction::parse("t", &raw.into())
        };
        let names: Vec<_> = (100..116).map(|n| with(n, &[]).unwrap().operation.name()).collect();
        assert_eq!(names[0], "Append");
        assert_eq!(names[15], "DataOverlay");
        assert!(!names.contains(&"Unknown"));
        assert_eq!(with(163, &[1, 2, 3]).unwrap().operation, Operation::Unknown(163));
        assert!(with(99, &[]).unwrap_err().message().contains("no operation"));
        // fields_modified, packed and unpacked.
        for body in [&[0x22u8, 2, 4, 5][..], &[0x20, 4, 0x20, 5]] {
            let Operation::Update(update) = with(108, body).unwrap().operation else { panic!() };
            assert_eq!(update.fields_modified, [4, 5]);
        }
    }
}
