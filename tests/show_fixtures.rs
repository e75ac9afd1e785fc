//! Every fixture table opened and shown, compared with what Lance itself says about it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::Fixture;
use futures::executor::block_on;
use serde_json::{Map, Value, json};
use whetstone::env::TestEnv;
use whetstone::index::display_name;
use whetstone::store::{HostStore, LocalIo, Store, StoreKind};
use whetstone::table::describe::segments;
use whetstone::table::show::{fragments, show};
use whetstone::table::{At, Table};
use whetstone::{Error, ErrorCode};

fn store(root: &Path) -> Store {
    let object = Arc::new(HostStore::new(Arc::new(LocalIo::new(root))));
    Store::new(object, Default::default(), StoreKind::Host, Arc::new(TestEnv::new(1_700_000_000_000, 1)))
}

fn open(fixture: &Fixture) -> Result<Table, Error> {
    block_on(Table::open(store(&fixture.path), At::Latest, None))
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Entries of an array by a key of theirs.
fn by<'a>(list: &'a Value, key: &str) -> std::collections::BTreeMap<String, &'a Value> {
    list.as_array().unwrap().iter().map(|v| (text(v, key), v)).collect()
}

/// Every key that both have must have the same value; returns how many were compared.
fn same(at: &str, ours: &Map<String, Value>, theirs: &Map<String, Value>, except: &[&str]) -> usize {
    let mut compared = 0;
    for (key, value) in ours {
        let Some(expected) = theirs.get(key).filter(|_| !except.contains(&key.as_str())) else { continue };
        assert_eq!(value, expected, "{at}: {key}");
        compared += 1;
    }
    compared
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

#[test]
fn every_table_is_shown_as_lance_sees_it() {
    for fixture in common::tables() {
        let name = fixture.name.as_str();
        let expected = &fixture.expected;
        let table = open(&fixture).unwrap_or_else(|e| panic!("{name}: {e}"));
        let shown = serde_json::to_value(block_on(show(&table, display_name)).unwrap()).unwrap();
        let document = object(&shown);
        assert!(same(name, document, object(expected), &["fragments", "indices"]) >= 4, "{name}");
        assert_eq!(document["reader_feature_flags"], expected["manifest"]["reader_feature_flags"], "{name}");
        assert_eq!(document["writer_feature_flags"], expected["manifest"]["writer_feature_flags"], "{name}");
        assert_eq!(document["fragments"]["count"], expected["fragments"].as_array().unwrap().len(), "{name}");
        check_fragments(&table, expected, name);
        check_indices(&shown, expected, name);
    }
}

fn check_fragments(table: &Table, expected: &Value, name: &str) {
    let ours = serde_json::to_value(block_on(fragments(table, None)).unwrap()).unwrap();
    let (ours, theirs) = (ours.as_array().unwrap(), expected["fragments"].as_array().unwrap());
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (ours, theirs) in ours.iter().zip(theirs) {
        let at = format!("{name}: fragment {}", theirs["id"]);
        assert_eq!(same(&at, object(ours), object(theirs), &[]), 6, "{at}");
    }
    // What covers a fragment agrees with what an index covers.
    for index in expected["indices"].as_array().unwrap().iter().filter(|i| !text(i, "name").starts_with("__lance")) {
        let covered: Vec<&Value> = ours.iter().filter(|f| f["covered_by"].get(text(index, "name")).is_some()).collect();
        let ids: Vec<Value> = covered.iter().map(|f| f["id"].clone()).collect();
        assert_eq!(Value::Array(ids), index["covered_live_fragments"], "{name}: {}", index["name"]);
    }
}

fn check_indices(shown: &Value, expected: &Value, name: &str) {
    let theirs = by(&expected["indices"], "name");
    let ours = by(&shown["indices"], "name");
    let user: Vec<&String> = theirs.keys().filter(|n| !n.starts_with("__lance")).collect();
    assert_eq!(ours.keys().collect::<Vec<_>>(), user, "{name}");
    let stored = by(&expected["manifest"]["indices"], "uuid");
    for (index, ours) in &ours {
        let (at, theirs) = (format!("{name}: {index}"), theirs[index]);
        let compared = same(&at, object(ours), object(theirs), &["segments"]);
        assert!(compared >= 6, "{at}: only {compared} keys compared");
        if let Some(size) = theirs.get("total_size_bytes") {
            assert_eq!(&ours["size_bytes"], size, "{at}");
        }
        if let Some(unindexed) = theirs["statistics"]["num_unindexed_rows"].as_u64() {
            assert_eq!(ours["num_rows_unindexed"], unindexed, "{at}");
            let indexed = theirs["statistics"]["num_indexed_rows"].as_u64().unwrap();
            let percent = ours["indexed_percent"].as_f64();
            match indexed + unindexed {
                0 => assert_eq!(percent, None, "{at}"),
                total => assert_eq!(percent, Some((10_000 * indexed / total) as f64 / 100.0), "{at}"),
            }
        }
        assert_eq!(ours["num_segments"], theirs["segments"].as_array().unwrap().len(), "{at}");
        let our_segments = by(&ours["segments"], "uuid");
        for (uuid, theirs) in by(&theirs["segments"], "uuid") {
            let at = format!("{at}: {uuid}");
            assert!(same(&at, object(our_segments[&uuid]), object(theirs), &[]) >= 4, "{at}");
            let raw = stored[&uuid];
            assert_eq!(our_segments[&uuid]["dataset_version"], raw["dataset_version"], "{at}");
            let sizes = |files: &Value, key: &str| -> Vec<(String, u64)> {
                let list = files.as_array().cloned().unwrap_or_default();
                list.iter().map(|f| (text(f, "path"), f[key].as_u64().unwrap())).collect()
            };
            assert_eq!(sizes(&our_segments[&uuid]["files"], "size"), sizes(&raw["files"], "size_bytes"), "{at}");
        }
    }
    if name.starts_with("missing_bitmap") {
        assert!(ours.values().any(|i| i["coverage_known"] == json!(false)), "{name}");
    }
}

#[test]
fn segments_of_one_index_by_name_in_any_case() {
    let fixture = Fixture::table("segments_interleaved");
    let table = open(&fixture).unwrap();
    let all = block_on(segments(&table, None, display_name)).unwrap();
    let (name, list) = all.iter().next().unwrap();
    let one = block_on(segments(&table, Some(&name.to_uppercase()), display_name)).unwrap();
    assert_eq!(one.get(name), Some(list));
    let error = block_on(segments(&table, Some("nothing"), display_name)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IndexNotFound);
    let mixed = open(&Fixture::table("mixed_case_names")).unwrap();
    let names: Vec<String> = block_on(segments(&mixed, None, display_name)).unwrap().into_keys().collect();
    let folded = |n: &String| n.to_lowercase();
    let twice = names.iter().find(|n| names.iter().filter(|m| folded(m) == folded(n)).count() > 1);
    if let Some(twice) = twice {
        let other_case: String =
            twice.chars().map(|c| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }).collect();
        if !names.contains(&other_case) {
            let error = block_on(segments(&mixed, Some(&other_case), display_name)).unwrap_err();
            assert_eq!(error.code(), ErrorCode::IndexAmbiguous);
        }
    }
}

#[test]
fn tagged_histories_are_shown() {
    for fixture in common::tagged() {
        let (name, expected) = (fixture.name.as_str(), &fixture.expected["state"]);
        let table = match open(&fixture) {
            Ok(table) => table,
            // A history this build must not interpret at all.
            Err(error) => {
                let refused = [ErrorCode::HistoryUnsupported, ErrorCode::UnsupportedFeature];
                assert!(refused.contains(&error.code()), "{name}: {error}");
                continue;
            }
        };
        let shown = serde_json::to_value(block_on(show(&table, display_name)).unwrap()).unwrap();
        assert_eq!(shown["version"], expected["version"], "{name}");
        assert_eq!(shown["reader_feature_flags"], expected["reader_feature_flags"], "{name}");
        let list = serde_json::to_value(block_on(fragments(&table, None)).unwrap()).unwrap();
        let ids: Vec<Value> = list.as_array().unwrap().iter().map(|f| f["id"].clone()).collect();
        assert_eq!(Value::Array(ids), expected["live_fragments"], "{name}");
        for (ours, theirs) in list.as_array().unwrap().iter().zip(expected["fragments"].as_array().unwrap()) {
            assert_eq!(ours["physical_rows"], theirs["physical_rows"], "{name}");
            assert_eq!(ours["num_deletions"], theirs["num_deleted_rows"], "{name}");
        }
        let stored = expected["segments"].as_array().unwrap();
        let ours: Vec<&Value> =
            shown["indices"].as_array().unwrap().iter().flat_map(|i| i["segments"].as_array().unwrap()).collect();
        let users: Vec<&Value> = stored.iter().filter(|s| !text(s, "name").starts_with("__lance")).collect();
        assert_eq!(ours.len(), users.len(), "{name}");
        for theirs in users {
            let ours = ours.iter().find(|s| s["uuid"] == theirs["uuid"]).unwrap_or_else(|| panic!("{name}: {}", theirs["uuid"]));
            assert_eq!(ours["fragment_ids"], theirs["stored_bitmap"], "{name}");
        }
    }
}

#[test]
fn tags_branches_and_versions() {
    let fixture = Fixture::table("tags_and_versions");
    let table = open(&fixture).unwrap();
    let tags = serde_json::to_value(block_on(table.tags()).unwrap()).unwrap();
    for (name, expected) in object(&fixture.expected["tags"]) {
        assert!(same(name, object(&tags[name]), object(expected), &["created_at", "updated_at"]) >= 4);
        let at = block_on(Table::open(store(&fixture.path), At::Tag(name.clone()), None)).unwrap();
        assert_eq!(at.version(), expected["version"].as_u64().unwrap());
    }
    let versions: Vec<u64> = block_on(table.versions()).unwrap().iter().map(|v| v.version).collect();
    assert_eq!(json!(versions), fixture.expected["versions"]);
    for version in &versions {
        let transaction = block_on(table.transaction(*version)).unwrap().expect("each version has its transaction");
        let found = block_on(table.find_transaction(&transaction.uuid)).unwrap().unwrap();
        assert_eq!(found.0, Some(*version));
    }
    assert_eq!(block_on(table.at(At::Version(2))).unwrap().version(), 2);
    let error = block_on(table.at(At::Version(99))).unwrap_err();
    assert_eq!((error.code(), error.detail()["latest"].as_u64()), (ErrorCode::VersionNotFound, versions.last().copied()));
    assert!(block_on(table.manifest_at(99)).unwrap().is_none());
    let error = block_on(Table::open(store(&fixture.path), At::Tag("none".into()), None)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::VersionNotFound);
}

#[test]
fn a_branch_is_a_table_of_its_own() {
    let fixture = Fixture::table("branch");
    let main = open(&fixture).unwrap();
    let branches = serde_json::to_value(block_on(main.branches()).unwrap()).unwrap();
    let expected = &fixture.expected["branches"]["dev"];
    assert_eq!(branches["dev"]["parent_version"], expected["parent_version"]);
    let dev = block_on(Table::open(store(&fixture.path), At::Latest, Some("dev"))).unwrap();
    let extra = &fixture.expected["extra"]["branch_dev"];
    assert_eq!(json!(dev.version()), extra["version"]);
    assert_eq!(dev.branch(), Some("dev"));
    let shown = serde_json::to_value(block_on(show(&dev, display_name)).unwrap()).unwrap();
    assert_eq!((&shown["rows"], &shown["branch"]), (&extra["rows"], &json!("dev")));
    // Files of the parent are found at the parent, wherever the table was when the branch was made.
    let manifest = &dev.manifest().manifest;
    for fragment in &manifest.fragments {
        for file in &fragment.files {
            let (store, path) = whetstone::table::base::data_file(dev.store(), manifest, file).unwrap();
            assert_eq!(block_on(store.get(&path, None)).unwrap().len() as u64, file.size.unwrap());
        }
    }
    for entry in &dev.manifest().indices {
        let (store, folder) = whetstone::table::base::segment_folder(dev.store(), manifest, entry).unwrap();
        for file in &entry.files {
            block_on(store.get(&format!("{folder}/{}", file.path), Some(file.size_bytes))).unwrap();
        }
    }
    // The folder of the branch opened as if it were a table.
    let inside = block_on(Table::open(store(&fixture.path).child("tree/dev").unwrap(), At::Latest, None)).unwrap();
    assert_eq!((inside.version(), inside.branch()), (dev.version(), Some("dev")));
    assert_eq!(block_on(inside.branches()).unwrap().len(), 1);
    let error = block_on(Table::open(store(&fixture.path), At::Latest, Some("none"))).unwrap_err();
    assert_eq!(error.code(), ErrorCode::VersionNotFound);
}

#[test]
fn one_listing_and_one_read_and_no_more_for_show() {
    for name in ["fragments_200", "btree_all_types", "legacy_fri_one_round"] {
        let fixture = Fixture::table(name);
        let table = open(&fixture).unwrap();
        let shown = block_on(show(&table, display_name)).unwrap();
        block_on(fragments(&table, None)).unwrap();
        // The host's listing is not in order, yet complete in one call.
        assert_eq!(shown.requests.count, 2, "{name}");
        assert_eq!(table.store().requests().count, 2, "{name}");
        assert!(shown.requests.bytes > 0);
    }
}

/// A writable copy of a fixture with one file changed.
fn broken(name: &str, change: impl FnOnce(&Path, &Path)) -> Error {
    let fixture = Fixture::table(name);
    let dir = tempfile::tempdir().unwrap();
    fixture.copy(dir.path());
    let latest = dir.path().join(text(&fixture.expected["manifest"], "file"));
    change(dir.path(), &latest);
    block_on(Table::open(store(dir.path()), At::Latest, None)).unwrap_err()
}

#[test]
fn broken_manifests_are_named() {
    let cut = broken("deletions_small", |_, latest| {
        let bytes = std::fs::read(latest).unwrap();
        std::fs::write(latest, &bytes[..bytes.len() - 7]).unwrap();
    });
    assert_eq!(cut.code(), ErrorCode::CorruptFile);
    assert!(cut.message().contains(".manifest"), "{cut}");
    let empty = broken("deletions_small", |_, latest| std::fs::write(latest, b"").unwrap());
    assert_eq!(empty.code(), ErrorCode::CorruptFile);
    let elsewhere = broken("deletions_small", |root, latest| {
        std::fs::rename(latest, root.join("_versions/18446744073709551506.manifest")).unwrap();
    });
    assert_eq!(elsewhere.code(), ErrorCode::CorruptFile);
    let mixed = broken("deletions_small", |root, latest| {
        std::fs::copy(latest, root.join("_versions/7.manifest")).unwrap();
    });
    assert_eq!(mixed.code(), ErrorCode::CorruptFile);
    let nothing = broken("deletions_small", |root, _| std::fs::remove_dir_all(root.join("_versions")).unwrap());
    assert_eq!(nothing.code(), ErrorCode::TableNotFound);
}

#[test]
fn a_flipped_bit_is_an_error_or_a_readable_table_but_never_a_panic() {
    let fixture = Fixture::table("deletions_small");
    let dir = tempfile::tempdir().unwrap();
    fixture.copy(dir.path());
    let latest = dir.path().join(text(&fixture.expected["manifest"], "file"));
    let bytes = std::fs::read(&latest).unwrap();
    let mut refused = 0;
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        std::fs::write(&latest, &changed).unwrap();
        let opened = block_on(async {
            let table = Table::open(store(dir.path()), At::Latest, None).await?;
            show(&table, display_name).await
        });
        refused += usize::from(opened.is_err());
    }
    assert!(refused > bytes.len() / 20, "{refused} of {}", bytes.len());
}

#[test]
fn a_big_manifest_is_read_by_its_parts() {
    use whetstone::format::next_manifest::NextManifest;
    use whetstone::format::transaction::Transaction;
    use whetstone::table::commit::{CommitOutcome, NextVersion};
    let fixture = Fixture::table("deletions_small");
    let dir = tempfile::tempdir().unwrap();
    fixture.copy(dir.path());
    let table = open(&Fixture { path: dir.path().to_owned(), ..Fixture::table("deletions_small") }).unwrap();
    // Very many entries of another index make the file pass the size that is read whole.
    let base = table.manifest().indices[0].clone();
    let mut indices = table.manifest().indices.clone();
    for i in 0..12_000u128 {
        let uuid = uuid::Uuid::from_u128(i + 1);
        indices.push(whetstone::format::index_metadata::IndexMetadata {
            uuid,
            name: "other".into(),
            raw: Default::default(),
            ..base.clone()
        });
    }
    let transaction = Transaction::create_index(table.version(), uuid::Uuid::from_u128(7), Vec::new(), Vec::new());
    let next = NextManifest {
        base: table.manifest(),
        indices: indices.clone(),
        transaction: &transaction,
        transaction_file: transaction.file_name(),
        now_ms: 1_700_000_000_000,
        fragments: None,
    };
    let manifest = next.encode().unwrap();
    assert!(manifest.len() > 1024 * 1024, "{}", manifest.len());
    let outcome =
        block_on(table.put_next(NextVersion { version: table.version() + 1, manifest, transaction: &transaction })).unwrap();
    assert!(matches!(outcome, CommitOutcome::Landed(_)), "{outcome:?}");
    let again = block_on(Table::open(store(dir.path()), At::Latest, None)).unwrap();
    assert_eq!(again.version(), table.version() + 1);
    assert_eq!(again.manifest().indices.len(), indices.len());
    assert!(again.manifest_bytes().is_none(), "it was read by parts");
    assert!(again.store().requests().count <= 4, "{:?}", again.store().requests());
    let made = block_on(again.transaction(again.version())).unwrap().unwrap();
    assert_eq!(made.uuid, transaction.uuid);
    // A second writer of the same version loses and knows it.
    let other = Transaction::create_index(table.version(), uuid::Uuid::from_u128(8), Vec::new(), Vec::new());
    let next = NextManifest {
        base: table.manifest(),
        indices: table.manifest().indices.clone(),
        transaction: &other,
        transaction_file: other.file_name(),
        now_ms: 1_700_000_000_000,
        fragments: None,
    };
    let manifest = next.encode().unwrap();
    let outcome = block_on(table.put_next(NextVersion { version: table.version() + 1, manifest, transaction: &other })).unwrap();
    assert!(matches!(outcome, CommitOutcome::Lost { taken: Some(_), .. }), "{outcome:?}");
    assert!(!dir.path().join("_transactions").join(other.file_name()).exists(), "the loser's transaction is gone");
}
