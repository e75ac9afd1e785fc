//! One edge of the history: ordered sources became ordered destinations, through a mapping (spec fragment-reuse §4.1, §4.4).

use bytes::Bytes;
use roaring::RoaringBitmap;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::format::row::RowAddress;
use crate::format::treemap::decode_roaring64;
use crate::format::{proto, wire};
use crate::lists::{map_of, set_of};

/// Fragment id that no fragment has.
const TOMBSTONE: u64 = 0xFFFF_FFFF;

/// A fragment at the time it was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Id.
    pub id: u32,
    /// Rows including deleted ones.
    pub physical_rows: u32,
    /// Deleted rows.
    pub deleted_rows: u32,
}

impl Digest {
    fn live_rows(&self) -> u64 {
        u64::from(self.physical_rows) - u64::from(self.deleted_rows)
    }
}

/// How rows of the sources became rows of the destinations.
#[derive(Clone, Debug, PartialEq)]
pub enum Mapping {
    /// Surviving rows in order, cut into destinations.
    OrderedCompaction(Survivors),
    /// Every row has a label that names its destination.
    StablePartition(RowMapRef),
}

/// The rows of a compaction's sources that survived it.
#[derive(Clone, Debug, PartialEq)]
pub struct Survivors {
    /// Per source, in the order of the sources: surviving offsets, and how many rows of earlier sources survived.
    sources: Vec<(RoaringBitmap, u64)>,
    /// Per destination, how many rows it and the earlier ones hold.
    ends: Vec<u64>,
}

/// Where a stable partition's row map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowMapRef {
    /// Names the folder below `_fri/`.
    pub map_id: Uuid,
    /// Exact size of the file in bytes.
    pub size: u64,
    /// Base path it is below; `None` = the table's own root.
    pub base_id: Option<u32>,
}

/// One transition.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// Position of its record in the stored content.
    pub record: usize,
    /// Table version the compaction of a version-0 record was built on; `None` for tagged records.
    pub legacy_stamp: Option<u64>,
    /// Before, in scan order.
    pub sources: Vec<Digest>,
    /// After, in write order (compaction) or label order (partition); may be empty.
    pub destinations: Vec<Digest>,
    /// How rows moved.
    pub mapping: Mapping,
}

/// What a tagged record turned out to be.
pub(super) enum Decoded {
    Known(Box<Transition>),
    /// It has fields this build does not know, and means nothing here.
    Unknown,
}

impl Transition {
    /// Ids of the sources.
    pub fn source_ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.sources.iter().map(|d| d.id)
    }

    /// Ids of the destinations.
    pub fn destination_ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.destinations.iter().map(|d| d.id)
    }

    /// `ordered_compaction`, `stable_partition` or `legacy_version`, as the documents name it.
    pub fn kind(&self) -> &'static str {
        match (&self.mapping, self.legacy_stamp) {
            (_, Some(_)) => "legacy_version",
            (Mapping::OrderedCompaction(_), None) => "ordered_compaction",
            (Mapping::StablePartition(_), None) => "stable_partition",
        }
    }

    /// A compaction that was not run: where its rows will go is not known.
    pub(super) fn planned(record: usize, sources: Vec<Digest>, destinations: Vec<Digest>) -> Transition {
        let mapping = Mapping::OrderedCompaction(Survivors { sources: Vec::new(), ends: Vec::new() });
        Transition { record, legacy_stamp: None, sources, destinations, mapping }
    }

    /// Reads a tagged record (§2.5).
    pub(super) fn decode(object: &str, record: usize, message: &Bytes) -> Result<Decoded> {
        let fault = |what: String| fault(object, record, what);
        let (mut sources, mut destinations, mut mapping) = (Vec::new(), Vec::new(), None);
        let mut unknown = false;
        for field in wire::split(object, message)? {
            match field.number {
                1 => sources.push(field.as_bytes(object)?.clone()),
                2 => destinations.push(field.as_bytes(object)?.clone()),
                3 | 4 => {
                    let body = field.as_bytes(object)?.clone();
                    if mapping.replace((field.number, body)).is_some() {
                        return Err(fault("it has two mappings".to_owned()));
                    }
                }
                _ => unknown = true,
            }
        }
        if unknown {
            return Ok(Decoded::Unknown);
        }
        let (kind, body) = mapping.ok_or_else(|| fault("it has no mapping".to_owned()))?;
        let digests = |list: Vec<Bytes>| {
            let one = |bytes| proto::decode::<proto::FragmentDigest>(object, "a fragment digest", bytes);
            list.into_iter().map(one).collect::<Result<Vec<_>>>()
        };
        let (sources, destinations) = checked(object, record, &digests(sources)?, &digests(destinations)?)?;
        let mapping = if kind == 3 {
            let compaction: proto::OrderedCompaction = proto::decode(object, "an ordered compaction", body)?;
            let rows = Survivors::read(object, record, &sources, &destinations, &compaction.changed_row_addrs)?;
            Mapping::OrderedCompaction(rows)
        } else {
            let partition: proto::StablePartition = proto::decode(object, "a stable partition", body)?;
            let map_id = Uuid::parse_str(&partition.map_id)
                .map_err(|_| fault(format!("its row map id {:?} is no uuid", partition.map_id)))?;
            if partition.map_size_bytes == 0 {
                return Err(fault("its row map has no bytes".to_owned()));
            }
            Mapping::StablePartition(RowMapRef { map_id, size: partition.map_size_bytes, base_id: partition.base_id })
        };
        Ok(Decoded::Known(Box::new(Transition { record, legacy_stamp: None, sources, destinations, mapping })))
    }

    /// Reads a group of a version-0 record as the transition it amounts to.
    pub(super) fn lift(object: &str, record: usize, stamp: u64, group: &proto::ReuseGroup) -> Result<Transition> {
        let (sources, destinations) = checked(object, record, &group.old_fragments, &group.new_fragments)?;
        let rows = Survivors::read(object, record, &sources, &destinations, &group.changed_row_addrs)?;
        let mapping = Mapping::OrderedCompaction(rows);
        Ok(Transition { record, legacy_stamp: Some(stamp), sources, destinations, mapping })
    }

    /// Where a compaction put a row; `None` = it was deleted before.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an address that is no row of a source, or a transition that is no compaction.
    pub fn map(&self, address: RowAddress) -> Result<Option<RowAddress>> {
        let at = self.sources.iter().position(|d| d.id == address.fragment());
        let (Mapping::OrderedCompaction(rows), Some(at)) = (&self.mapping, at) else { return Err(foreign(address)) };
        let (Some(source), Some((kept, before))) = (self.sources.get(at), rows.sources.get(at)) else {
            return Err(foreign(address));
        };
        if address.offset() >= source.physical_rows {
            return Err(foreign(address));
        }
        if !kept.contains(address.offset()) {
            return Ok(None);
        }
        let place = before + kept.rank(address.offset()) - 1; // `rank` counts the row itself
        let to = rows.ends.partition_point(|end| *end <= place);
        let start = to.checked_sub(1).and_then(|to| rows.ends.get(to)).copied().unwrap_or(0);
        let to = self.destinations.get(to).ok_or_else(|| Error::internal("a surviving row has no destination"))?;
        Ok(Some(RowAddress::new(to.id, (place - start) as u32)))
    }
}

fn foreign(address: RowAddress) -> Error {
    Error::invalid(format!(
        "row {} of fragment {} is no row of a source of this transition",
        address.offset(),
        address.fragment()
    ))
}

fn fault(object: &str, record: usize, what: String) -> Error {
    Error::corrupt(object, format!("fragment reuse record {record}: {what}"))
}

impl Survivors {
    fn read(object: &str, record: usize, sources: &[Digest], destinations: &[Digest], bytes: &[u8]) -> Result<Survivors> {
        let fault = |what: String| fault(object, record, what);
        let map = decode_roaring64(object, bytes).map_err(|e| fault(e.message().to_owned()))?;
        let mut of_fragment = map_of(map.bitmaps().filter(|(_, rows)| !rows.is_empty()));
        let (mut read, mut before) = (Vec::with_capacity(sources.len()), 0u64);
        for source in sources {
            let rows = of_fragment.remove(&source.id).cloned().unwrap_or_default();
            if rows.max().is_some_and(|last| last >= source.physical_rows) {
                return Err(fault(format!(
                    "a surviving row of fragment {} lies past its {} rows",
                    source.id, source.physical_rows
                )));
            }
            if rows.len() != source.live_rows() {
                let text =
                    format!("{} rows of fragment {} survive, its digest says {}", rows.len(), source.id, source.live_rows());
                return Err(fault(text));
            }
            let count = rows.len();
            read.push((rows, before));
            before += count;
        }
        if let Some((id, _)) = of_fragment.first_key_value() {
            return Err(fault(format!("surviving rows of fragment {id}, which is no source")));
        }
        let mut end = 0u64;
        let ends = destinations.iter().map(|d| {
            end += u64::from(d.physical_rows);
            end
        });
        Ok(Survivors { sources: read, ends: ends.collect() })
    }
}

fn checked(
    object: &str,
    record: usize,
    sources: &[proto::FragmentDigest],
    destinations: &[proto::FragmentDigest],
) -> Result<(Vec<Digest>, Vec<Digest>)> {
    let fault = |what: String| fault(object, record, what);
    let digest = |d: &proto::FragmentDigest| {
        let id = u32::try_from(d.id).ok().filter(|id| u64::from(*id) < TOMBSTONE);
        let id = id.ok_or_else(|| fault(format!("{} is no fragment id", d.id)))?;
        let rows = u32::try_from(d.physical_rows).map_err(|_| fault(format!("fragment {id} has {} rows", d.physical_rows)))?;
        let deleted = u32::try_from(d.num_deleted_rows).ok().filter(|deleted| *deleted <= rows);
        let deleted =
            deleted.ok_or_else(|| fault(format!("{} of {rows} rows of fragment {id} are deleted", d.num_deleted_rows)))?;
        Ok(Digest { id, physical_rows: rows, deleted_rows: deleted })
    };
    let read = |list: &[proto::FragmentDigest], what: &str| {
        let read = list.iter().map(digest).collect::<Result<Vec<_>>>()?;
        if set_of(read.iter().map(|d| d.id)).len() != read.len() {
            return Err(fault(format!("a fragment is twice among its {what}")));
        }
        Ok(read)
    };
    let (sources, destinations) = (read(sources, "sources")?, read(destinations, "destinations")?);
    if sources.is_empty() {
        return Err(fault("it has no sources".to_owned()));
    }
    if let Some(d) = destinations.iter().find(|d| d.deleted_rows != 0) {
        return Err(fault(format!("its destination {} was written with deleted rows", d.id)));
    }
    let before: u64 = sources.iter().map(Digest::live_rows).sum();
    let after: u64 = destinations.iter().map(Digest::live_rows).sum();
    if before != after {
        return Err(fault(format!("its sources hold {before} rows and its destinations {after}")));
    }
    Ok((sources, destinations))
}
