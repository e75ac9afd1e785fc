//! Histories and segments in the notation of the scenario table, for tests.

use bytes::Bytes;
use prost::Message;
use roaring::{RoaringBitmap, RoaringTreemap};
use uuid::Uuid;

use super::content::{LEGACY, TRANSITION};
use super::ledger::Ledger;
use super::segment::{Capability, Segment};
use crate::format::treemap::encode_roaring64;
use crate::format::{proto, wire};

/// `{0,1}` or `∅`.
pub fn set(text: &str) -> RoaringBitmap {
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    if inner.trim() == "∅" || inner.trim().is_empty() {
        return RoaringBitmap::new();
    }
    inner.split(',').map(|id| id.trim().parse::<u32>().unwrap_or_else(|_| panic!("{text:?} is no set"))).collect()
}

/// The ids of a list, in its order.
fn ids(text: &str) -> Vec<u64> {
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    if inner.trim() == "∅" { Vec::new() } else { inner.split(',').map(|id| id.trim().parse().unwrap()).collect() }
}

/// A fragment with this many rows, some deleted.
pub fn digest(id: u64, physical_rows: u64, num_deleted_rows: u64) -> proto::FragmentDigest {
    proto::FragmentDigest { id, physical_rows, num_deleted_rows }
}

/// The bytes of a transition: field 3 with these survivors, or field 4 with a map id.
pub fn transition(sources: &[proto::FragmentDigest], destinations: &[proto::FragmentDigest], mapping: (u32, Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, list) in [(1, sources), (2, destinations)] {
        list.iter().for_each(|d| wire::put_len_field(&mut out, number, &d.encode_to_vec()));
    }
    wire::put_len_field(&mut out, mapping.0, &mapping.1);
    out
}

/// Mapping of a compaction.
pub fn compaction(survivors: &RoaringTreemap) -> (u32, Vec<u8>) {
    (3, proto::OrderedCompaction { changed_row_addrs: encode_roaring64(survivors).into() }.encode_to_vec())
}

/// Mapping of a partition.
pub fn partition(map_id: &str, map_size_bytes: u64) -> (u32, Vec<u8>) {
    (4, proto::StablePartition { map_id: map_id.to_owned(), map_size_bytes, base_id: None }.encode_to_vec())
}

/// Content of a history such as `V10{1}→{2}+{5}→{6}; SP{0,1}→{10,11}`. Fragments have no rows: set logic asks for none.
pub fn history(text: &str) -> Bytes {
    let mut out = Vec::new();
    for (at, record) in text.split(';').map(str::trim).filter(|r| !r.is_empty()).enumerate() {
        let (head, _) = record.split_once('{').unwrap();
        let groups: Vec<(Vec<_>, Vec<_>)> = record[head.len()..]
            .split('+')
            .map(|group| {
                let (from, to) = group.split_once('→').unwrap();
                let digests = |text| ids(text).into_iter().map(|id| digest(id, 0, 0)).collect::<Vec<_>>();
                (digests(from), digests(to))
            })
            .collect();
        if let Some(stamp) = head.strip_prefix('V') {
            let groups = groups.into_iter().map(|(old_fragments, new_fragments)| proto::ReuseGroup {
                changed_row_addrs: encode_roaring64(&RoaringTreemap::new()).into(),
                old_fragments,
                new_fragments,
            });
            let version = proto::ReuseVersion { dataset_version: stamp.parse().unwrap(), groups: groups.collect() };
            wire::put_len_field(&mut out, LEGACY, &version.encode_to_vec());
        } else {
            let mapping = match head {
                "SP" => partition(&Uuid::from_u128(at as u128 + 1).to_string(), 100),
                "OC" => compaction(&RoaringTreemap::new()),
                other => panic!("{other:?} is no kind of record"),
            };
            wire::put_len_field(&mut out, TRANSITION, &transition(&groups[0].0, &groups[0].1, mapping));
        }
    }
    out.into()
}

/// The decoded history.
pub fn ledger(text: &str) -> Ledger {
    Ledger::decode("history", &history(text)).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Owned parts of a segment in the notation.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub letter: String,
    pub index: String,
    pub stored: Option<RoaringBitmap>,
    pub dataset_version: u64,
    pub marks: Vec<String>,
}

/// Segments such as `A{0,1}@2; B?@3/b; C{0}@2!u`.
pub fn segments(text: &str) -> Vec<Parsed> {
    let one = |text: &str| {
        let (head, tail) = text.split_once('@').unwrap_or_else(|| panic!("{text:?} is no segment"));
        let at = head.find(['{', '?', '∅']).unwrap();
        let stored = (&head[at..] != "?").then(|| set(&head[at..]));
        let (tail, index) = tail.split_once('/').map_or((tail, "i"), |(tail, index)| (tail, index));
        let mut parts = tail.split('!');
        let dataset_version = parts.next().unwrap().trim().parse().unwrap();
        let mut marks: Vec<String> = parts.map(|m| m.trim().to_owned()).collect();
        let index = index.split_once('!').map_or(index, |(index, mark)| {
            marks.push(mark.to_owned());
            index
        });
        Parsed { letter: head[..at].to_owned(), index: index.to_owned(), stored, dataset_version, marks }
    };
    if text.trim() == "none" { Vec::new() } else { text.split(';').map(str::trim).filter(|t| !t.is_empty()).map(one).collect() }
}

/// As the logic takes them; uuids order as the letters do.
pub fn facts(parsed: &[Parsed]) -> Vec<Segment<'_>> {
    let fact = |p: &'_ Parsed| {
        let has = |mark: &str| p.marks.iter().any(|m| m == mark);
        (has("u"), has("t"))
    };
    parsed
        .iter()
        .map(|p| Segment {
            index: &p.index,
            uuid: Uuid::from_u128(u128::from(p.letter.as_bytes()[0])),
            dataset_version: p.dataset_version,
            stored: p.stored.as_ref(),
            usable: !fact(p).0,
            capability: if fact(p).1 { Capability::IdentityOnly } else { Capability::Translates },
            described: true,
            vector: false,
        })
        .collect()
}
