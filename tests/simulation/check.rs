//! What has to be true whatever happened.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use futures::executor::block_on;
use roaring::RoaringBitmap;
use uuid::Uuid;
use whetstone::Changed;
use whetstone::coverage::fate::{Fate, SegmentFate};
use whetstone::format::manifest::ManifestFile;
use whetstone::format::transaction::Operation;
use whetstone::maintain::audit;
use whetstone::refresh::RefreshReport;
use whetstone::table::values::{ColumnRequest, ColumnValues};
use whetstone::table::{At, Table};

use crate::Sim;
use crate::lance::COLUMN;
use crate::sessions::{INDEXES, Outcome};

/// When a job reports: what it says of the version is what the version says.
pub fn published(sim: &Sim, job: &str, report: &RefreshReport) {
    let Some(transaction) = report.transaction else {
        assert!(
            report.added.is_empty() && report.removed.is_empty() && report.established.is_empty(),
            "{job}: nothing was committed: {report:?}"
        );
        return;
    };
    let written = sim.disk.written();
    let ours = written
        .iter()
        .find(|w| w.version == report.version && w.newest)
        .unwrap_or_else(|| panic!("{job}: version {} is not in the history", report.version));
    let file = parse(&ours.bytes);
    assert_eq!(
        file.transaction("sim").unwrap().unwrap().uuid,
        transaction.to_string(),
        "{job}: version {} is another's",
        report.version
    );
    let live = file.manifest.live();
    let added: Vec<Uuid> = file.indices.iter().filter(|e| report.added.contains(&e.uuid)).map(|e| e.uuid).collect();
    assert_eq!(added, report.added, "{job}");
    assert!(!file.indices.iter().any(|e| report.removed.contains(&e.uuid)), "{job}: a removed segment is there");
    let claims: RoaringBitmap =
        file.indices.iter().filter(|e| report.added.contains(&e.uuid)).flat_map(|e| e.fragment_bitmap.clone().unwrap()).collect();
    assert_eq!((claims & live).iter().collect::<Vec<_>>(), report.established, "{job}");
    // As long as it is there, and no stray in its place, it has to answer right.
    if sim.disk.versions().contains(&report.version) {
        let table = sim.open(At::Version(report.version));
        if table.manifest().manifest.raw == file.manifest.raw {
            serves(sim, job, &table);
        }
    }
}

/// Every index of the version says what its column says.
fn serves(sim: &Sim, job: &str, table: &Table) {
    for (name, _) in INDEXES.iter().filter(|(name, _)| table.manifest().indices.iter().any(|e| e.name == *name)) {
        match block_on(audit(table, name, Default::default(), &mut |_, _| {})) {
            Ok(report) => {
                assert!(report.findings.is_empty(), "{job}: index {name} of version {}: {:?}", table.version(), report.findings)
            }
            // A cleanup may have taken what an old version names.
            Err(_) if sim.disk.versions().last() != Some(&table.version()) => {}
            Err(error) => panic!("{job}: index {name} of version {}: {error:?}", table.version()),
        }
    }
}

/// The versions of the history with what they list under `name`, from `first` to the one before `report`'s.
fn before(sim: &Sim, name: &str, first: u64, report: &RefreshReport) -> Vec<Vec<(Uuid, bool)>> {
    let mut found: BTreeMap<u64, Vec<(Uuid, bool)>> = BTreeMap::new();
    for written in sim.disk.written().iter().filter(|w| w.newest && (first..report.version).contains(&w.version)) {
        let file = parse(&written.bytes);
        let live = file.manifest.live();
        let covers = |bitmap: &Option<RoaringBitmap>| bitmap.as_ref().is_none_or(|b| !b.is_disjoint(&live));
        let named = file.indices.iter().filter(|e| e.name == name);
        found.insert(written.version, named.map(|e| (e.uuid, covers(&e.fragment_bitmap))).collect());
    }
    found.into_values().collect()
}

/// What was changed is the index that was planned on: one of its segments was still there, or its name never went away.
pub fn the_one_planned(sim: &Sim, job: &str, name: &str, v_plan: u64, planned: &[Uuid], report: &RefreshReport) {
    if report.transaction.is_none() {
        return;
    }
    let versions = before(sim, name, v_plan, report);
    let seen = versions.last().is_some_and(|last| last.iter().any(|(uuid, _)| planned.contains(uuid)));
    assert!(
        seen || versions.iter().all(|named| !named.is_empty()),
        "{job}: the index was dropped and made again after version {v_plan}, and version {} changes the other one",
        report.version
    );
}

/// A refresh or a merge takes out what its plan said, and what covers nothing: never what somebody else built meanwhile.
pub fn as_planned(sim: &Sim, job: &str, name: &str, v_plan: u64, planned: &[SegmentFate], report: &RefreshReport) {
    let all: Vec<Uuid> = planned.iter().map(|s| s.uuid).collect();
    the_one_planned(sim, job, name, v_plan, &all, report);
    let last = before(sim, name, v_plan, report).pop().unwrap_or_default();
    for uuid in &report.removed {
        let goes = planned.iter().any(|s| s.uuid == *uuid && s.fate == Fate::Removed);
        let covers = last.iter().any(|(there, covers)| there == uuid && *covers);
        assert!(goes || !covers, "{job}: version {} takes out segment {uuid}, which it did not plan to", report.version);
    }
}

fn parse(bytes: &bytes::Bytes) -> ManifestFile {
    ManifestFile::parse("sim", bytes).unwrap()
}

/// After everything came to rest.
pub fn all(sim: &Sim) {
    let written = sim.disk.written();
    let history: BTreeMap<u64, ManifestFile> =
        written.iter().filter(|w| w.newest).map(|w| (w.version, parse(&w.bytes))).collect();
    assert_eq!(history.len(), written.iter().filter(|w| w.newest).count(), "a version was written twice");
    assert_eq!(
        history.keys().copied().collect::<Vec<_>>(),
        (1..=history.len() as u64).collect::<Vec<_>>(),
        "a number was left out"
    );
    versions(&history);
    their_commits(sim, &history);
    our_words(sim, &history);
    // What was written below the newest version is gone, or its writer does not claim to know.
    let strays = written.iter().filter(|w| !w.newest && sim.disk.versions().contains(&w.version)).map(|w| w.version);
    let mentions = |said: &&crate::sessions::Said| match &said.outcome {
        Outcome::Unknown(_) => true,
        Outcome::Report(report) => {
            report.attempts.iter().any(|a| a.why.as_deref().is_some_and(|w| w.contains("could not be removed")))
        }
        Outcome::Failed(_, _, text) => text.contains("could not be removed"),
    };
    let mentioned = sim.said.borrow().iter().filter(mentions).count() + sim.disk.late.load(std::sync::atomic::Ordering::Relaxed);
    assert!(strays.collect::<BTreeSet<_>>().len() <= mentioned, "a stray version is left that nobody mentioned");
    let table = sim.open(At::Latest);
    serves(sim, "the end", &table);
    let mut found = BTreeSet::new();
    let column = ColumnValues::new(&table, COLUMN, ColumnRequest::default()).unwrap();
    block_on(column.read(&mut |batch| {
        let values = batch.values.as_primitive::<Int64Type>();
        found.extend((0..values.len()).filter(|at| values.is_valid(*at)).map(|at| values.value(at)));
        Ok(())
    }))
    .unwrap();
    assert_eq!(found, sim.values_at(table.version()), "rows were lost or came back");
}

/// Every version follows from the one before.
fn versions(history: &BTreeMap<u64, ManifestFile>) {
    for (version, file) in history {
        let live = file.manifest.live();
        let mut covered: BTreeMap<&str, RoaringBitmap> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for entry in &file.indices {
            assert!(seen.insert(entry.uuid), "version {version} lists segment {} twice", entry.uuid);
            let own = entry.fragment_bitmap.clone().unwrap() & &live;
            let all = covered.entry(&entry.name).or_default();
            assert!(all.is_disjoint(&own), "version {version}: two segments of {} cover the same fragments", entry.name);
            *all |= own;
        }
        let Some(before) = history.get(&(version - 1)).filter(|_| *version > 1) else { continue };
        let transaction = file.transaction("sim").unwrap().unwrap();
        let ours = file.manifest.writer_version.as_ref().is_some_and(|(name, _)| name == "whetstone");
        let Operation::CreateIndex { new, removed } = &transaction.operation else {
            assert!(!ours, "version {version} is ours and no index commit");
            continue;
        };
        if !ours {
            continue;
        }
        assert_eq!(transaction.read_version + 1, *version);
        assert_eq!(file.manifest.fragments, before.manifest.fragments, "version {version} changed fragments");
        let expected: Vec<Uuid> = before
            .indices
            .iter()
            .map(|e| e.uuid)
            .filter(|u| !removed.iter().any(|r| r.uuid == *u))
            .chain(new.iter().map(|e| e.uuid))
            .collect();
        assert_eq!(file.indices.iter().map(|e| e.uuid).collect::<Vec<_>>(), expected, "version {version}");
        assert!(
            removed.iter().all(|r| before.indices.iter().any(|e| e.uuid == r.uuid)),
            "version {version} removes what is not there"
        );
    }
}

fn transactions(history: &BTreeMap<u64, ManifestFile>) -> BTreeMap<String, Vec<u64>> {
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (version, file) in history {
        all.entry(file.transaction("sim").unwrap().unwrap().uuid).or_default().push(*version);
    }
    all
}

fn their_commits(sim: &Sim, history: &BTreeMap<u64, ManifestFile>) {
    let all = transactions(history);
    for (version, uuid) in sim.theirs.borrow().iter() {
        assert_eq!(all.get(&uuid.to_string()), Some(&vec![*version]), "a commit of Lance is lost");
    }
}

/// What every job said, held against the history.
fn our_words(sim: &Sim, history: &BTreeMap<u64, ManifestFile>) {
    let all = transactions(history);
    let named: BTreeSet<Uuid> = history.values().flat_map(|file| file.indices.iter().map(|e| e.uuid)).collect();
    for said in sim.said.borrow().iter() {
        let job = &said.job;
        match &said.outcome {
            Outcome::Report(report) => match report.transaction {
                Some(uuid) => {
                    assert_eq!(all.get(&uuid.to_string()), Some(&vec![report.version]), "{job}: a success is in the history once")
                }
                None => assert!(said.built.iter().all(|uuid| !named.contains(uuid)), "{job}: said that nothing was committed"),
            },
            Outcome::Failed(code, changed, _) => {
                assert!(matches!(changed, Changed::Nothing | Changed::Staged), "{job}: {code:?} {changed:?}");
                assert!(said.built.iter().all(|uuid| !named.contains(uuid)), "{job}: {code:?} said that nothing was committed");
            }
            Outcome::Unknown(staged) => {
                let listed: BTreeSet<&str> =
                    staged.iter().filter_map(|path| path.strip_prefix("_indices/")?.split('/').next()).collect();
                assert!(
                    said.built.iter().all(|uuid| listed.contains(uuid.to_string().as_str())),
                    "{job}: staged segments are not listed"
                );
            }
        }
    }
    // A name that is gone comes back only by somebody who makes it.
    for (version, file) in history.iter().filter(|(version, _)| **version > 1) {
        let before = &history[&(version - 1)];
        let Operation::CreateIndex { new, .. } = file.transaction("sim").unwrap().unwrap().operation else { continue };
        for entry in new.iter().filter(|e| !before.indices.iter().any(|b| b.name == e.name)) {
            let maker = sim.said.borrow().iter().any(|s| s.job.contains(" create ") && s.built.contains(&entry.uuid))
                || file.manifest.writer_version.as_ref().is_some_and(|(name, _)| name != "whetstone");
            assert!(maker, "version {version} brings index {} back", entry.name);
        }
    }
}
