//! Our trims and prunes while others commit: whatever lands in between, what ours takes out is what the version just before does
//! not need, and no index covers less for it.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use futures::executor::block_on;
use prost::Message;
use roaring::{RoaringBitmap, RoaringTreemap};
use uuid::Uuid;
use whetstone::format::index_metadata::{FRAG_REUSE_NAME, IndexMetadata};
use whetstone::format::manifest::ManifestFile;
use whetstone::format::next_manifest::NextManifest;
use whetstone::format::row::RowAddress;
use whetstone::format::transaction::Transaction;
use whetstone::format::treemap::encode_roaring64;
use whetstone::format::{proto, wire};
use whetstone::maintain::{plan_prune, plan_trim, run_prune, run_trim};
use whetstone::reuse::content::{inline_details, records};
use whetstone::reuse::coverage::Derived;
use whetstone::reuse::retention::needs;
use whetstone::reuse::segment::Segment;
use whetstone::reuse::superseded::superseded;
use whetstone::reuse::withdraw::{settle, withdraw};
use whetstone::table::commit::{CommitOutcome, NextVersion};
use whetstone::table::history::content;
use whetstone::table::publish::Committing;
use whetstone::table::{At, Table};

use super::common::shared::Shared;
use super::common::{Fixture, Rng};

/// Commits an index section, and fragments, on top of `latest`, as any writer may; false when somebody was faster.
async fn land(latest: &Table, base: &ManifestFile, indices: Vec<IndexMetadata>) -> bool {
    let before = &latest.manifest().indices;
    let new = indices.iter().filter(|e| !before.contains(e)).cloned().collect();
    let removed = before.iter().filter(|e| !indices.contains(e)).cloned().collect();
    let transaction = Transaction::create_index(latest.version(), latest.store().env().uuid(), new, removed);
    let manifest = NextManifest {
        base,
        indices,
        transaction: &transaction,
        transaction_file: transaction.file_name(),
        now_ms: 1_800_000_000_000,
        fragments: None,
    };
    let next = NextVersion { version: latest.version() + 1, manifest: manifest.encode().unwrap(), transaction: &transaction };
    matches!(latest.put_next(next).await.unwrap(), CommitOutcome::Landed(_))
}

/// The same manifest with other fragments.
fn with_fragments(file: &ManifestFile, change: impl FnOnce(&mut Vec<proto::DataFragment>)) -> ManifestFile {
    let mut manifest = proto::Manifest::decode(file.manifest.raw.clone()).unwrap();
    change(&mut manifest.fragments);
    manifest.max_fragment_id = manifest.max_fragment_id.max(manifest.fragments.iter().map(|f| f.id).max());
    (manifest.index_section, manifest.transaction_section) = (None, None);
    let body = manifest.encode_to_vec();
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend(body);
    bytes.extend([0; 8]);
    bytes.extend(*b"\0\0\x02\0LANC");
    ManifestFile::parse("race", &Bytes::from(bytes)).unwrap()
}

fn compaction_record(sources: &[proto::DataFragment], output: u64, rows: u64) -> Vec<u8> {
    let mut record = Vec::new();
    let mut survivors = RoaringTreemap::new();
    let digest = |id, physical_rows| proto::FragmentDigest { id, physical_rows, num_deleted_rows: 0 }.encode_to_vec();
    for source in sources {
        wire::put_len_field(&mut record, 1, &digest(source.id, source.physical_rows));
        let first = RowAddress::new(source.id as u32, 0).0;
        survivors.insert_range(first..first + source.physical_rows);
    }
    wire::put_len_field(&mut record, 2, &digest(output, rows));
    let mapping = proto::OrderedCompaction { changed_row_addrs: encode_roaring64(&survivors).into() };
    wire::put_len_field(&mut record, 3, &mapping.encode_to_vec());
    let mut out = Vec::new();
    wire::put_len_field(&mut out, 2, &record);
    out
}

/// Two neighbours that the same segments name are compacted and the compaction recorded, as Lance's deferred one is.
async fn compact(latest: &Table) -> bool {
    let file = latest.manifest();
    let raw = proto::Manifest::decode(file.manifest.raw.clone()).unwrap();
    let key = |f: &proto::DataFragment| -> Vec<bool> {
        file.indices.iter().map(|e| e.fragment_bitmap.as_ref().is_some_and(|b| b.contains(f.id as u32))).collect()
    };
    let joined = |pair: &[proto::DataFragment]| pair.iter().all(|f| f.deletion_file.is_none()) && key(&pair[0]) == key(&pair[1]);
    let Some(entry) = file.indices.iter().find(|e| e.name == FRAG_REUSE_NAME) else { return false };
    let Some(pair) = raw.fragments.windows(2).find(|pair| joined(pair)).map(<[_]>::to_vec) else { return false };
    let output = u64::from(file.manifest.max_fragment_id.unwrap().max(100)) + 1;
    let rows = pair.iter().map(|f| f.physical_rows).sum();
    let (_, old) = content(latest.store(), &file.manifest, entry).await.unwrap();
    let content = [old.to_vec(), compaction_record(&pair, output, rows)].concat();
    let mut lineage = entry.fragment_bitmap.clone().unwrap();
    lineage.extend(pair.iter().map(|f| f.id as u32).chain([output as u32]));
    let entry = IndexMetadata {
        uuid: latest.store().env().uuid(),
        dataset_version: file.manifest.version,
        fragment_bitmap: Some(lineage),
        details: Some(inline_details(&content)),
        raw: Default::default(),
        ..entry.clone()
    };
    let mut indices: Vec<IndexMetadata> = file.indices.iter().filter(|e| e.name != FRAG_REUSE_NAME).cloned().collect();
    indices.push(entry);
    let base = with_fragments(file, |fragments| {
        fragments.retain(|f| f.id != pair[0].id && f.id != pair[1].id);
        fragments.push(proto::DataFragment { id: output, physical_rows: rows, ..pair[0].clone() });
    });
    land(latest, &base, indices).await
}

/// What somebody else does to a segment of one index.
async fn change_index(latest: &Table, rng: &RefCell<Rng>) -> bool {
    let below = |n| rng.borrow_mut().below(n);
    let file = latest.manifest();
    let live = file.manifest.live();
    let history = latest.history().await.unwrap();
    let mut indices = file.indices.clone();
    let users: Vec<usize> = (0..indices.len()).filter(|at| indices[*at].name != FRAG_REUSE_NAME).collect();
    if users.is_empty() {
        return false;
    }
    let at = users[below(users.len())];
    let fresh = |entry: &IndexMetadata, bitmap: RoaringBitmap| {
        let changed = entry.with_bitmap(Some(bitmap)).unwrap();
        IndexMetadata {
            uuid: latest.store().env().uuid(),
            dataset_version: file.manifest.version,
            raw: Default::default(),
            ..changed
        }
    };
    let of_name = |indices: &[IndexMetadata], name: &str| -> Vec<usize> {
        (0..indices.len()).filter(|at| indices[*at].name == name).collect()
    };
    match below(5) {
        // Another delta: fragments that no segment of the name names.
        0 => {
            let named: RoaringBitmap = of_name(&indices, &indices[at].name)
                .iter()
                .flat_map(|at| indices[*at].fragment_bitmap.clone().unwrap_or_default())
                .collect();
            let free = &live - &named;
            if free.is_empty() {
                return false;
            }
            let taken = free.iter().take(1 + below(free.len() as usize)).collect();
            let delta = fresh(&indices[at], taken);
            indices.push(delta);
        }
        // A remap or rebuild: what the reader derived is named directly now.
        1 | 2 => {
            let derived: Option<Derived> = history.as_ref().and_then(|h| h.of(at).cloned());
            let Some(derived) = derived.filter(|d| d.listed) else { return false };
            let remapped = fresh(&indices[at], derived.coverage);
            indices.remove(at);
            indices.push(remapped);
        }
        // The segment is replaced by one that holds less.
        3 => {
            let bitmap = indices[at].fragment_bitmap.clone().unwrap_or_default();
            if bitmap.len() < 2 {
                return false;
            }
            let narrowed = fresh(&indices[at], bitmap.iter().take(below(bitmap.len() as usize).max(1)).collect());
            indices.remove(at);
            indices.push(narrowed);
        }
        // The column is rewritten in place somewhere.
        _ => {
            let rewritten = RoaringBitmap::from([live.select(below(live.len() as usize) as u32).unwrap()]);
            let members = of_name(&indices, &indices[at].name);
            let ledger = history.as_ref().map(|h| &h.ledger);
            let before: Vec<Option<RoaringBitmap>> = members.iter().map(|at| indices[*at].fragment_bitmap.clone()).collect();
            let after: Vec<Option<RoaringBitmap>> =
                before.iter().map(|b| b.as_ref().map(|b| withdraw(ledger, &live, b, &rewritten))).collect();
            let stays = settle(&before, &after);
            for (at, bitmap) in members.iter().zip(&after) {
                indices[*at] = indices[*at].with_bitmap(bitmap.clone()).unwrap();
            }
            let gone: Vec<Uuid> =
                members.iter().zip(&stays).filter(|(_, stays)| !**stays).map(|(at, _)| indices[*at].uuid).collect();
            indices.retain(|e| !gone.contains(&e.uuid));
        }
    }
    land(latest, file, indices).await
}

/// What the version before one of ours needs and what it does not, held against what ours took out.
async fn check_ours(table: &Table, version: u64) {
    let (parent, child) = (table.at(At::Version(version - 1)).await.unwrap(), table.at(At::Version(version)).await.unwrap());
    let (before, after) = (parent.manifest(), child.manifest());
    assert_eq!(before.manifest.fragments, after.manifest.fragments, "version {version}");
    let (places, segments): (Vec<usize>, Vec<Segment<'_>>) = Segment::all(&before.indices).into_iter().unzip();
    let history = parent.history().await.unwrap().expect("nothing is taken out of a table without a history");
    let derived: Vec<Derived> = history.derived.iter().map(|(_, d)| d.clone()).collect();
    let gone: Vec<Uuid> =
        before.indices.iter().filter(|e| e.name != FRAG_REUSE_NAME && !after.indices.contains(e)).map(|e| e.uuid).collect();
    if gone.is_empty() {
        // A trim: just the records that no segment of the parent needs.
        let kept: Vec<Bytes> = needs(&history.ledger, &segments)
            .iter()
            .zip(&history.ledger.records)
            .filter(|(needs, _)| !needs.is_empty())
            .map(|(_, record)| record.raw.clone())
            .collect();
        let left = match after.indices.iter().find(|e| e.name == FRAG_REUSE_NAME) {
            Some(entry) => records("left", &content(child.store(), &after.manifest, entry).await.unwrap().1).unwrap(),
            None => Vec::new(),
        };
        assert_eq!(left.iter().map(|r| r.raw.clone()).collect::<Vec<_>>(), kept, "version {version}");
        assert!(kept.len() < history.ledger.records.len(), "version {version} takes nothing out");
    } else {
        // Superseded segments are found newest first.
        let mut gone = gone;
        gone.sort_unstable();
        let mut justified: Vec<Uuid> = superseded(&before.manifest.live(), &segments, &derived)
            .iter()
            .map(|s| before.indices[places[s.segment]].uuid)
            .collect();
        justified.sort_unstable();
        assert_eq!(gone, justified, "version {version}");
    }
    // Whoever reads the table finds every index covering what it covered.
    let covered = |indices: &[IndexMetadata], live: &RoaringBitmap| -> Vec<(String, RoaringBitmap)> {
        let mut all: Vec<(String, RoaringBitmap)> = Vec::new();
        for entry in indices.iter().filter(|e| e.name != FRAG_REUSE_NAME) {
            let bitmap = entry.fragment_bitmap.as_ref().map(|b| b & live).unwrap_or_default();
            match all.iter_mut().find(|(name, _)| *name == entry.name) {
                Some((_, all)) => *all |= bitmap,
                None => all.push((entry.name.clone(), bitmap)),
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    let live = before.manifest.live();
    assert_eq!(
        covered(child.indices().await.unwrap(), &live),
        covered(parent.indices().await.unwrap(), &live),
        "version {version}: an index covers less"
    );
}

const TABLES: [&str; 9] = [
    "superseded",
    "partially_drained",
    "partition_2hop",
    "mixed_compaction_then_partition",
    "mutually_redundant",
    "chain_middle_covered",
    "fully_drained",
    "withdrawn_one_of_two",
    "superseded_still_direct",
];

/// Trims and prunes of two sessions, with compactions, deltas, remaps, withdrawals and each other's commits between decision and
/// commit. `WHETSTONE_SIM_SEEDS` sets the seeds per table.
#[test]
fn no_removal_lands_that_the_version_before_does_not_justify() {
    let seeds: u64 = std::env::var("WHETSTONE_SIM_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(16);
    let (mut ours, mut theirs, mut lost, mut nothing) = (0, 0, 0, 0);
    for (number, name) in TABLES.iter().enumerate() {
        let fixture = Fixture::tagged(name);
        for seed in 0..seeds {
            let shared = Rc::new(Shared::of(&fixture));
            let rng = Rc::new(RefCell::new(Rng::new(seed * 1000 + number as u64 + 1)));
            let landed = Rc::new(RefCell::new(0));
            let first = shared.open(1).version();
            let mut by_us: Vec<Uuid> = Vec::new();
            for session in 0..3u64 {
                let (writers, dice, count) = (shared.clone(), rng.clone(), landed.clone());
                let meddle = move |_: Committing| {
                    let (writers, dice, count) = (writers.clone(), dice.clone(), count.clone());
                    let work = async move {
                        let times = if dice.borrow_mut().below(3) == 0 { 0 } else { 1 + dice.borrow_mut().below(2) };
                        for _ in 0..times {
                            let other = 10 + dice.borrow_mut().below(1_000_000) as u64;
                            let table = Table::open(writers.store(other), At::Latest, None).await.unwrap();
                            let kind = dice.borrow_mut().below(4);
                            let done = match kind {
                                0 => compact(&table).await,
                                1 => {
                                    // Another session of ours, whom nobody disturbs.
                                    let plan = plan_trim(&table).await.unwrap();
                                    let (report, after) =
                                        run_trim(&table, &plan, &whetstone::table::publish::tell_nobody).await.unwrap();
                                    for version in table.version() + 1..=after.version() {
                                        check_ours(&after, version).await;
                                    }
                                    !report.transactions.is_empty()
                                }
                                _ => change_index(&table, &dice).await,
                            };
                            *count.borrow_mut() += usize::from(done);
                        }
                        Ok(())
                    };
                    Box::pin(work) as futures::future::LocalBoxFuture<'static, whetstone::Result<()>>
                };
                let stale = shared.open(2 + session);
                let at = format!("{name}, seed {seed}");
                let (done, attempts) = if session == 1 {
                    let plan = block_on(plan_prune(&stale)).unwrap();
                    let (report, _) = block_on(run_prune(&stale, &plan, &meddle)).unwrap_or_else(|e| panic!("{at}: {e}"));
                    (report.transaction.into_iter().collect::<Vec<_>>(), report.attempts)
                } else {
                    let plan = block_on(plan_trim(&stale)).unwrap();
                    let (report, _) = block_on(run_trim(&stale, &plan, &meddle)).unwrap_or_else(|e| panic!("{at}: {e}"));
                    (report.transactions, report.attempts)
                };
                nothing += usize::from(done.is_empty());
                lost += attempts.len() - done.len().min(attempts.len());
                by_us.extend(done);
            }
            let last = shared.open(1);
            for version in first + 1..=last.version() {
                let table = block_on(last.at(At::Version(version))).unwrap();
                let transaction = block_on(table.transaction(version)).unwrap().unwrap();
                if by_us.iter().any(|uuid| transaction.uuid == uuid.to_string()) {
                    block_on(check_ours(&last, version));
                    ours += 1;
                }
            }
            theirs += *landed.borrow();
        }
    }
    assert!(
        ours > 50 && theirs > 100 && lost > 60 && nothing > 20,
        "{ours} of ours, {theirs} of others, {lost} lost, {nothing} nothing to do"
    );
}
