//! Bytes of histories and row maps, and rows carried through them: rows of the scenario table that are more than set logic.

use bytes::Bytes;
use roaring::{RoaringBitmap, RoaringTreemap};
use uuid::Uuid;

use super::content::{LEGACY, TRANSITION, external_details, inline_details, records};
use super::ledger::Ledger;
use super::legacy::{CaughtUp, LegacyVersion, caught_up, chain};
use super::retention::{Trim, trim, trim_legacy};
use super::row_map::Counts;
use super::testing::{compaction, digest, facts, history, ledger, partition, segments, set, transition};
use super::transition::{Mapping, Transition};
use super::walk::Walk;
use crate::error::ErrorCode;
use crate::format::index_metadata::{IndexDetails, IndexMetadata};
use crate::format::reuse_v0::{ReuseContent, ReuseHistoryV0};
use crate::format::row::RowAddress;
use crate::format::transaction::tests_support::entry;
use crate::format::treemap::{decode_roaring64, encode_roaring64};
use crate::format::wire;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| b.is_ascii_hexdigit()).collect();
    digits.chunks(2).map(|c| u8::from_str_radix(std::str::from_utf8(c).unwrap(), 16).unwrap()).collect()
}

const F01: &str = "0100000000000000 01000000 3a30000001000000000001001000000000000200";
const F02: &str = "0a0210040a04080110041204080a10041204080b100422280a2430303030303030302d303030302d303030302d303030302d3030303030303030303030311064";

fn f03() -> Vec<u8> {
    [hex("0a060801100318011204080210021a220a20"), hex(F01)].concat()
}

fn f05() -> Vec<u8> {
    [hex("0a3408071a300a20"), hex(F01), hex("12060801100318011a0408021002")].concat()
}

fn rows(of: &[(u32, u32)]) -> RoaringTreemap {
    of.iter().map(|(f, o)| RowAddress::new(*f, *o).0).collect()
}

fn record(field: u32, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    wire::put_len_field(&mut out, field, message);
    out
}

fn decode(content: Vec<u8>) -> crate::Result<Ledger> {
    Ledger::decode("obj", &content.into())
}

fn one(message: &[u8]) -> Transition {
    decode(record(TRANSITION, message)).unwrap().transitions.remove(0)
}

/// FRI-F-01 to F-07: golden bytes, both ways.
#[test]
fn golden_bytes() {
    assert_eq!(decode_roaring64("b", &hex(F01)).unwrap(), rows(&[(1, 0), (1, 2)]));
    assert_eq!(encode_roaring64(&rows(&[(1, 0), (1, 2)])), hex(F01));

    let id = "00000000-0000-0000-0000-000000000001";
    let digests = |ids: [u64; 2]| ids.map(|id| digest(id, 4, 0));
    assert_eq!(transition(&digests([0, 1]), &digests([10, 11]), partition(id, 100)), hex(F02));
    let p = one(&hex(F02));
    assert_eq!(p.source_ids().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(p.destination_ids().collect::<Vec<_>>(), [10, 11]);
    let Mapping::StablePartition(map) = p.mapping else { panic!("a partition") };
    assert_eq!((map.map_id, map.size, map.base_id), (Uuid::from_u128(1), 100, None));

    let survivors = rows(&[(1, 0), (1, 2)]);
    assert_eq!(transition(&[digest(1, 3, 1)], &[digest(2, 2, 0)], compaction(&survivors)), f03());
    let tagged = one(&f03());
    let details = inline_details(&record(TRANSITION, &f03()));
    assert_eq!(details.value.as_ref(), [hex("0a341232"), f03()].concat());

    let mut lifted = decode(f05()).unwrap().transitions.remove(0);
    assert_eq!(lifted.legacy_stamp.take(), Some(7));
    assert_eq!(lifted, tagged, "lifting changes nothing but the stamp");

    let external = external_details(300_000);
    assert_eq!(external.value.as_ref(), hex("12130a0d64657461696c732e62696e706218e0a712"));
    let of = IndexMetadata { details: Some(external), index_version: Some(1), ..entry("__lance_frag_reuse") };
    let place = ReuseContent::External { path: "details.binpb".into(), offset: 0, size: 300_000 };
    assert_eq!(ReuseContent::locate("o", &of).unwrap(), place);

    let counts = counts(&F07.map(Some), 2, 3);
    assert_eq!(
        counts.as_ref(),
        hex("4c535043010000000000000002000000030000000800000000000000020000000100000003000000030000000400000004000000")
    );
    let parsed = Counts::parse("m", &counts).unwrap();
    assert_eq!((parsed.blocks(), parsed.total(0), parsed.total(1)), (3, 4, 4));
}

const F07: [u16; 8] = [0, 1, 0, 1, 0, 1, 0, 1];
const F08: [Option<u16>; 10] = [Some(0), Some(2), None, Some(2), Some(1), Some(1), Some(0), Some(2), None, Some(0)];

/// The counts buffer of these labels.
fn counts(labels: &[Option<u16>], destinations: u32, block_rows: u32) -> Bytes {
    let mut out = b"LSPC".to_vec();
    for word in [1, 0, destinations, block_rows, labels.len() as u32, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    let mut totals = vec![0u32; destinations as usize];
    for block in labels.chunks(block_rows as usize) {
        for label in block.iter().flatten() {
            totals[usize::from(*label)] += 1;
        }
        totals.iter().for_each(|t| out.extend_from_slice(&t.to_le_bytes()));
    }
    out.into()
}

/// Places of all rows of a block.
fn places(counts: &Counts, block: u64, labels: &[Option<u16>]) -> crate::Result<Vec<Option<(u16, u32)>>> {
    let range = counts.rows_of(block);
    let mut at = counts.enter(block);
    let rows: Vec<_> = (range.start..range.end).map(|row| at.next("m", labels[row as usize])).collect::<crate::Result<_>>()?;
    at.finish("m")?;
    Ok(rows)
}

/// FRI-F-08 to F-14.
#[test]
fn counts_and_labels() {
    let buffer = counts(&F08, 3, 4);
    let good = Counts::parse("m", &buffer).unwrap();
    assert_eq!((0..3).map(|label| good.total(label)).collect::<Vec<_>>(), [3, 2, 3]);
    let second = places(&good, 1, &F08).unwrap();
    assert_eq!(second, [Some((1, 0)), Some((1, 1)), Some((0, 1)), Some((2, 2))]);

    let word = |at: usize, value: u32| {
        let mut changed = buffer.to_vec();
        changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
        Bytes::from(changed)
    };
    // Block 1, label 1: one less. The file opens; reading that block shows the contradiction.
    let less = Counts::parse("m", &word(28 + 4 * 4, 1)).unwrap();
    assert_eq!(places(&less, 0, &F08).unwrap(), [Some((0, 0)), Some((2, 0)), None, Some((2, 1))]);
    assert!(places(&less, 1, &F08).unwrap_err().message().contains("contradict"));
    let refused = |buffer: Bytes, part: &str| {
        let error = Counts::parse("m", &buffer).unwrap_err();
        assert_eq!(error.code(), ErrorCode::CorruptFile);
        assert!(error.message().contains(part), "{part}: {error}");
    };
    refused(word(28 + 4 * 3, 0), "goes down");
    refused(word(28 + 4 * 3, 5), "more rows than it is long");
    refused(buffer.slice(..buffer.len() - 1), "length");
    refused([buffer.as_ref(), &[0]].concat().into(), "length");
    refused(word(0, 0), "magic");
    refused(word(4, 2), "version");
    refused(word(8, 1), "representation");
    refused(word(12, 0), "no destinations");
    refused(word(12, u32::MAX), "too many");
    refused(word(16, 0), "blocks without rows");
    refused(word(24, u32::MAX), "length");
    refused(buffer.slice(..20), "cut off");
    // A label without a destination, a row too many, a row too few.
    let two = Counts::parse("m", &counts(&[Some(0), Some(1)], 2, 4)).unwrap();
    assert!(places(&two, 0, &[Some(0), Some(2)]).unwrap_err().message().contains("label 2 of 2"));
    let mut at = two.enter(0);
    at.next("m", Some(0)).unwrap();
    at.next("m", Some(1)).unwrap();
    assert!(at.next("m", None).is_err());
    let mut short = two.enter(0);
    short.next("m", Some(0)).unwrap();
    assert!(short.finish("m").is_err());

    let p = one(&hex(F02));
    Counts::parse("m", &counts(&F07.map(Some), 2, 3)).unwrap().bind("m", &p).unwrap();
    for (labels, destinations, part) in [
        (&F07[..7], 2, "the sources have 8"),
        (&F07[..], 3, "the transition has 2"),
        (&[0, 0, 0, 1, 0, 1, 0, 1][..], 2, "destination 10"),
    ] {
        let labels: Vec<_> = labels.iter().copied().map(Some).collect();
        let error = Counts::parse("m", &counts(&labels, destinations, 3)).unwrap().bind("m", &p).unwrap_err();
        assert!(error.message().contains(part), "{error}");
    }
}

/// FRI-F-17: a row that was deleted before has no label.
#[test]
fn rows_deleted_before_a_partition() {
    let labels = [Some(0), Some(1), None, Some(1), Some(0), Some(1), Some(0), Some(1)];
    let counts = Counts::parse("m", &counts(&labels, 2, 8)).unwrap();
    let places = places(&counts, 0, &labels).unwrap();
    assert_eq!((places[2], places[4], counts.total(0), counts.total(1)), (None, Some((0, 1)), 3, 4));
}

fn corrupt(content: Vec<u8>, part: &str) {
    let error = decode(content).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CorruptFile, "{error}");
    assert!(error.message().starts_with("obj: ") && error.message().contains(part), "{part}: {error}");
}

/// FRI-F-22 to F-35, F-43 to F-46: what a history may not say.
#[test]
fn validation() {
    let none = || compaction(&RoaringTreemap::new());
    let empty = |from: &[u64], to: &[u64]| {
        let digests = |ids: &[u64]| ids.iter().map(|id| digest(*id, 0, 0)).collect::<Vec<_>>();
        record(TRANSITION, &transition(&digests(from), &digests(to), none()))
    };
    let pair = |a: Vec<u8>, b: Vec<u8>| [a, b].concat();
    corrupt(pair(empty(&[1], &[3]), empty(&[2], &[3])), "produce fragment 3");
    corrupt(pair(empty(&[1], &[2]), empty(&[1], &[3])), "consume fragment 1");
    corrupt(pair(empty(&[1], &[2]), empty(&[2], &[1])), "circle");
    corrupt(empty(&[1], &[1]), "circle");
    corrupt(empty(&[1, 1], &[2]), "twice among its sources");
    corrupt(empty(&[1], &[2, 2]), "twice among its destinations");
    corrupt(record(TRANSITION, &transition(&[], &[], none())), "no sources");
    let with = |sources: &[_], destinations: &[_], mapping| record(TRANSITION, &transition(sources, destinations, mapping));
    corrupt(with(&[digest(4_294_967_295, 0, 0)], &[], none()), "no fragment id");
    corrupt(with(&[digest(1, 1 << 32, 0)], &[], none()), "has 4294967296 rows");
    corrupt(with(&[digest(1, 1, 2)], &[], none()), "2 of 1 rows");
    corrupt(with(&[digest(1, 1, 1)], &[digest(2, 1, 1)], none()), "with deleted rows");
    corrupt(with(&[digest(1, 3, 0), digest(2, 3, 0)], &[digest(3, 5, 0)], none()), "hold 6 rows");
    let two_of = |physical, deleted| {
        let first = with(&[digest(1, 4, 0)], &[digest(2, 4, 0)], partition(&Uuid::from_u128(1).to_string(), 9));
        let left = physical - deleted;
        let second = with(&[digest(2, physical, deleted)], &[digest(3, left, 0)], partition(&Uuid::from_u128(2).to_string(), 9));
        pair(first, second)
    };
    corrupt(two_of(5, 0), "written with 4 rows and read with 5");
    decode(two_of(4, 1)).unwrap();
    for (survivors, part) in [
        (rows(&[(1, 0), (1, 3)]), "past its 3 rows"),
        (rows(&[(1, 0), (5, 0)]), "1 rows of fragment 1 survive"),
        (rows(&[(1, 0), (1, 1), (5, 0)]), "fragment 5, which is no source"),
        (rows(&[(1, 0)]), "1 rows of fragment 1 survive"),
    ] {
        corrupt(with(&[digest(1, 3, 1)], &[digest(2, 2, 0)], compaction(&survivors)), part);
    }
    let trailing = (3, [vec![0x0a, 9], vec![0; 9]].concat());
    corrupt(with(&[digest(1, 0, 0)], &[], trailing), "followed by 1 more");
    for id in ["../escape", ""] {
        corrupt(with(&[digest(1, 0, 0)], &[], partition(id, 9)), "is no uuid");
    }
    corrupt(with(&[digest(1, 0, 0)], &[], partition(&Uuid::from_u128(1).to_string(), 0)), "no bytes");
    let bare = {
        let mut out = Vec::new();
        wire::put_len_field(&mut out, 1, &hex("0801"));
        out
    };
    corrupt(record(TRANSITION, &bare), "no mapping");
    for second in [3, 4] {
        let twice = [transition(&[digest(1, 0, 0)], &[], none()), record(second, &[])].concat();
        corrupt(record(TRANSITION, &twice), "two mappings");
    }
    corrupt(vec![0x10, 1], "wire type 0");
    corrupt(vec![0x08, 1], "wire type 0");
    corrupt(record(TRANSITION, &[0x20, 1]), "wire type 0");
    corrupt(vec![0x12, 200], "varint");
    corrupt(vec![0x12, 100, 1], "past the");

    // All rows deleted, nothing written.
    let gone = decode(with(&[digest(1, 2, 2)], &[], none())).unwrap();
    assert_eq!(gone.transitions[0].map(RowAddress::new(1, 1)).unwrap(), None);
    assert!(gone.transitions[0].map(RowAddress::new(1, 2)).is_err(), "past the end is no row");
    assert!(gone.transitions[0].map(RowAddress::new(2, 0)).is_err(), "no source");
    // Map ids in other spellings.
    for id in ["00000000-0000-0000-0000-00000000000A", "0000000000000000000000000000000a"] {
        let Mapping::StablePartition(map) = one(&transition(&[digest(1, 0, 0)], &[], partition(id, 9))).mapping else {
            panic!("a partition")
        };
        assert_eq!(map.map_id, Uuid::from_u128(10));
    }
    // A version-0 group whose survivors differ from its digest: refused here, unnoticed by the version-0 reader.
    let survivors = rows(&[(1, 0), (1, 1), (1, 2), (1, 3)]);
    let group = super::super::format::proto::ReuseGroup {
        changed_row_addrs: encode_roaring64(&survivors).into(),
        old_fragments: vec![digest(1, 4, 1)],
        new_fragments: vec![digest(2, 4, 0)],
    };
    let version = super::super::format::proto::ReuseVersion { dataset_version: 3, groups: vec![group] };
    let content = record(LEGACY, &prost::Message::encode_to_vec(&version));
    ReuseHistoryV0::parse("obj", &content.clone().into()).unwrap();
    corrupt(content, "hold 3 rows");
}

/// FRI-F-34, F-35: order of the lineage, whatever the order of the records.
#[test]
fn lineage_order() {
    let ids = |text: &str| ledger(text).transitions.iter().map(|t| t.source_ids().collect::<Vec<_>>()).collect::<Vec<_>>();
    assert_eq!(ids("OC{10}→{11}; OC{1}→{2}"), [[10], [1]]);
    assert_eq!(ids("OC{2}→{3}; OC{1}→{2}"), [[1], [2]]);
    let sorted = ledger("OC{2}→{3}; OC{1}→{2}");
    assert_eq!((sorted.transitions[0].record, sorted.records.len()), (1, 2), "records stay where they are");
    assert_eq!((sorted.consumer(2), sorted.producer(2), sorted.mentions(3), sorted.mentions(4)), (Some(1), Some(0), true, false));
}

/// FRI-F-18 to F-20, F-37, F-38: where the content of an entry is.
#[test]
fn envelopes() {
    let place = |value: Vec<u8>, version: i32, url: &str| {
        let details = Some(IndexDetails { type_url: url.to_owned(), value: value.into() });
        ReuseContent::locate("obj", &IndexMetadata { details, index_version: Some(version), ..entry("__lance_frag_reuse") })
    };
    const URL: &str = "x/lance.table.FragmentReuseIndexDetails";
    let inline = record(1, b"");
    let external = hex("12130a0d64657461696c732e62696e706218e0a712");
    for version in [0, 1] {
        for bad in [vec![], [inline.clone(), external.clone()].concat(), inline.repeat(2), vec![0x0a, 5, 1], vec![0x08, 1]] {
            assert_eq!(place(bad.clone(), version, URL).unwrap_err().code(), ErrorCode::CorruptFile, "{bad:?}");
        }
        place([inline.clone(), record(9, b"later")].concat(), version, URL).unwrap();
        let overflow = record(2, &hex("10ffffffffffffffffff011801"));
        assert!(place(overflow, version, URL).unwrap_err().message().contains("64 bits"));
    }
    let lower = "x/lance.table.fragmentreuseindexdetails";
    place(inline.clone(), 0, lower).unwrap();
    assert_eq!(place(inline, 1, lower).unwrap_err().code(), ErrorCode::CorruptFile);
    // A tagged record in a version-0 entry means nothing to its readers.
    assert!(ReuseHistoryV0::parse("obj", &record(TRANSITION, &f03()).into()).unwrap().versions.is_empty());
}

/// FRI-U-01, R-32: what a newer writer added.
#[test]
fn unknown_content() {
    let p = record(TRANSITION, &hex(F02));
    for extra in [vec![0x48, 1], record(9, b"?"), vec![0x4d, 1, 2, 3, 4]] {
        let ledger = decode([p.clone(), extra].concat()).unwrap();
        assert!(!ledger.supported);
        assert_eq!(ledger.transitions.len(), 1, "what is known still decodes");
        let refused = trim("obj", &ledger, &[]).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::HistoryUnsupported);
    }
    let extended = record(TRANSITION, &[hex(F02), record(17, b"?")].concat());
    let ledger = decode(extended).unwrap();
    assert_eq!((ledger.supported, ledger.transitions.len()), (false, 0));
    assert_eq!(trim("obj", &ledger, &[]).unwrap_err().code(), ErrorCode::HistoryUnsupported);
    // Inside a mapping or a digest they are ignored (F-45).
    let nested = [hex("0a0708011003180148010a0408011003").as_slice()].concat();
    assert!(nested.len() > 4);
    let odd =
        transition(&[digest(1, 3, 1)], &[digest(2, 2, 0)], (3, [compaction(&rows(&[(1, 0), (1, 2)])).1, vec![0x48, 1]].concat()));
    assert!(decode(record(TRANSITION, &odd)).unwrap().supported);
}

/// What is kept is kept byte for byte: nested unknown fields, lengths written with more bytes than needed (FRI-T-41, T-43, T-44).
#[test]
fn retained_records_are_spliced() {
    let drained = record(TRANSITION, &transition(&[digest(0, 0, 0)], &[digest(10, 0, 0)], compaction(&RoaringTreemap::new())));
    let mapping = (4, [partition(&Uuid::from_u128(7).to_string(), 9).1, record(77, b"later"), vec![0x98, 0x06, 1]].concat());
    let message = transition(&[digest(2, 0, 0)], &[digest(20, 0, 0)], mapping);
    let length = message.len() as u64;
    assert!(length > 0x7f || length > 0);
    // The same length in three bytes.
    let kept = [vec![0x12, (length as u8 & 0x7f) | 0x80, (length >> 7) as u8 | 0x80, 0], message].concat();
    let content = [drained.clone(), kept.clone(), drained_again()].concat();
    let ledger = decode(content).unwrap();
    let held = segments("A{2}@1; B{10,11}@9");
    match trim("obj", &ledger, &facts(&held)).unwrap() {
        Trim::Replace { content, ids } => {
            assert_eq!(content.as_ref(), kept);
            assert_eq!(ids, set("{2,20}"));
        }
        other => panic!("{other:?}"),
    }
}

fn drained_again() -> Vec<u8> {
    record(TRANSITION, &transition(&[digest(5, 0, 0)], &[digest(11, 0, 0)], compaction(&RoaringTreemap::new())))
}

fn walk(ledger: &Ledger, live: &RoaringBitmap, excluded: &RoaringBitmap, from: &[(u32, u32)]) -> Vec<Option<(u32, u32)>> {
    let from: Vec<RowAddress> = from.iter().map(|(f, o)| RowAddress::new(*f, *o)).collect();
    let mut walk = Walk::new(ledger, live, excluded, &from);
    while let Some(question) = walk.ask().unwrap() {
        // Every partition of these tests goes by the parity of the offset.
        let to: Vec<u32> = ledger.transitions[question.position].destination_ids().collect();
        let places: Vec<_> =
            question.addresses.iter().map(|a| Some(RowAddress::new(to[(a.offset() % 2) as usize], a.offset() / 2))).collect();
        walk.answer(&question, &places);
    }
    walk.finish().into_iter().map(|a| a.map(|a| (a.fragment(), a.offset()))).collect()
}

/// FRI-R-31 to R-34.
#[test]
fn walks() {
    let hop = |from: u64, to: u64| {
        let all = rows(&[(from as u32, 0), (from as u32, 1)]);
        record(TRANSITION, &transition(&[digest(from, 2, 0)], &[digest(to, 2, 0)], compaction(&all)))
    };
    let chain = decode([hop(0, 1), hop(1, 2), hop(2, 3)].concat()).unwrap();
    let from = [(0, 1), (1, 1), (2, 1), (3, 1), (9, 1)];
    let (live, none) = (set("{3,9}"), RoaringBitmap::new());
    assert_eq!(walk(&chain, &live, &none, &from), [Some((3, 1)), Some((3, 1)), Some((3, 1)), Some((3, 1)), Some((9, 1))]);
    assert_eq!(walk(&chain, &live, &set("{2}"), &from), [None, None, Some((3, 1)), Some((3, 1)), Some((9, 1))]);
    let dropped =
        decode([hop(0, 1), record(TRANSITION, &[hop(1, 2)[2..].to_vec(), vec![0x88, 1, 1]].concat()), hop(2, 3)].concat());
    let dropped = dropped.unwrap();
    assert!(!dropped.supported);
    assert_eq!(walk(&dropped, &live, &none, &from), [None, None, Some((3, 1)), Some((3, 1)), Some((9, 1))]);
    assert_eq!(walk(&chain, &live, &none, &[(999, 0)]), [None], "an unknown fragment is never passed through");

    let sp = transition(&[digest(1, 4, 0)], &[digest(2, 2, 0), digest(3, 2, 0)], partition(&Uuid::from_u128(1).to_string(), 9));
    let oc = transition(&[digest(3, 2, 1), digest(2, 2, 0)], &[digest(4, 3, 0)], compaction(&rows(&[(3, 1), (2, 0), (2, 1)])));
    // The order of the records does not matter, that of the sources does.
    let mixed = decode([record(TRANSITION, &oc), record(TRANSITION, &sp)].concat()).unwrap();
    let live = set("{4}");
    assert_eq!(walk(&mixed, &live, &none, &[(3, 0), (3, 1), (2, 0), (2, 1)]), [None, Some((4, 0)), Some((4, 1)), Some((4, 2))]);
    assert_eq!(walk(&mixed, &live, &none, &[(1, 0), (1, 1), (1, 2), (1, 3)]), [Some((4, 1)), None, Some((4, 2)), Some((4, 0))]);
    let past = [RowAddress::new(3, 2)];
    assert!(Walk::new(&mixed, &live, &none, &past).ask().is_err());
}

/// FRI-L-05 to L-08.
#[test]
fn legacy_rules() {
    let caught = |text: &str, segment: &str| {
        let versions = LegacyVersion::of("h", &records("h", &history(text)).unwrap()).unwrap();
        let held = segments(segment);
        caught_up(&versions[0], &chain(&versions), &facts(&held)[0])
    };
    use CaughtUp::{No, Straddles, Yes};
    for (segment, state) in [
        ("A{1,2,3}@5", Yes),
        ("A{1,4,5}@5", No),
        ("A{1,6}@5", No),
        ("A{1,6}@10", No),
        ("A{1,6}@11", Yes),
        ("A?@11", Yes),
        ("A?@10", No),
    ] {
        assert_eq!(caught("V10{4,5}→{6}", segment), state, "{segment}");
    }
    assert_eq!(caught("V10{4,5}→{6}; V11{6}→{7}", "A{1,7}@5"), No);
    assert_eq!(caught("V20{7}→∅", "A∅@5"), Yes);
    assert_eq!(caught("V20{7}→∅", "A{7}@5"), No);
    assert_eq!(caught("V10{4,5}→{6}", "A{4}@11"), Straddles);
}

/// FRI-L-08, L-09, L-12, L-24: trims of version-0 histories.
#[test]
fn legacy_trims() {
    let shown = |text: &str, held: &str| {
        let held = segments(held);
        match trim_legacy("h", &history(text), &facts(&held)).unwrap() {
            Trim::Nothing => "nothing".to_owned(),
            Trim::Delete => "delete".to_owned(),
            Trim::Replace { content, ids } => {
                format!("{} records, {}", records("h", &content).unwrap().len(), super::explain::list(&ids))
            }
        }
    };
    assert_eq!(shown("V10{4,5}→{6}", "A{4}@11"), "0 records, ", "a straddled record is no use");
    assert_eq!(shown("V10{4,5}→{6}", "A{6}@11"), "0 records, ");
    assert_eq!(shown("", "A{6}@11"), "nothing");
    assert_eq!(shown("V10{4,5}→{6}", "A{4,5}@12"), "nothing", "as stored, not as a reader carries it on");
    assert_eq!(shown("V10{4,5}→{6}", "A{6}@12"), "0 records, ");
    assert_eq!(shown("V10{0,1}→{2}", "A{2}@11/i; B{2}@5/j"), "nothing");
    assert_eq!(shown("V10{0,1}→{2}", "A{2}@11/i; B{2}@11/j"), "0 records, ");
    assert_eq!(shown("V10{0,1}→{2}; V12{2,3}→{4}", "A{4}@11"), "1 records, 4", "only what it has not caught up with");
    let tagged = trim_legacy("h", &history("SP{0,1}→{2}"), &[]).unwrap_err();
    assert_eq!(tagged.code(), ErrorCode::HistoryUnsupported);
}
