//! Plans that come back from outside, and uploads whose answers get lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use common::Fixture;
use futures::executor::block_on;
use serde_json::{Value, json};
use whetstone::env::TestEnv;
use whetstone::refresh::{RefreshOptions, RefreshPlan, build_segment, check_basis, check_plan, commit_segments, plan_refresh};
use whetstone::store::{Fault, FaultKind, HostEntry, HostIo, HostRead, HostStore, LocalIo, Store, StoreKind};
use whetstone::table::{At, Table};
use whetstone::{Changed, ErrorCode, document};

fn open(io: impl HostIo + 'static) -> Table {
    let env = Arc::new(TestEnv::new(1_800_000_000_000, 1));
    let store = Store::new(Arc::new(HostStore::new(Arc::new(io))), Default::default(), StoreKind::Host, env);
    block_on(Table::open(store, At::Latest, None)).unwrap()
}

fn plan(table: &Table) -> RefreshPlan {
    block_on(plan_refresh(table, "k_idx", RefreshOptions::default())).unwrap()
}

/// What `table.run` asks before it builds anything.
fn checked(table: &Table, plan: &Value) -> Result<(), whetstone::Error> {
    let plan: RefreshPlan = document::parse("the plan", &plan.to_string())?;
    check_plan(&plan)?;
    check_basis(&plan, &table.manifest().manifest)
}

#[test]
fn a_plan_that_was_tampered_with_is_refused_before_anything_is_built() {
    let mut tampered = 0;
    for fixture in common::tables() {
        let name = &fixture.name;
        let table = open(LocalIo::new(&fixture.path));
        let ours = |index: &&Value| index["type"] == "BTree" || index["type"] == "ZoneMap";
        let Some(index) = fixture.expected["indices"].as_array().unwrap().iter().find(ours) else { continue };
        let options = serde_json::from_value(json!({"absorb": true})).unwrap();
        let Ok(made) = block_on(plan_refresh(&table, index["name"].as_str().unwrap(), options)) else { continue };
        let good = serde_json::to_value(&made).unwrap();
        checked(&table, &good).unwrap();
        if good["runs"][0]["files"][0]["data"][0].is_null() {
            continue;
        }
        tampered += 1;
        type Edit = fn(&mut Value);
        let edits: [(&str, ErrorCode, Edit); 18] = [
            ("deletion of nothing", ErrorCode::InvalidArgument, |p| p["runs"][0]["files"][0]["deletion"] = json!("")),
            ("deletion elsewhere", ErrorCode::InvalidArgument, |p| p["runs"][0]["files"][0]["deletion"] = json!("../x.bin")),
            ("deletion around", ErrorCode::InvalidArgument, |p| {
                p["runs"][0]["files"][0]["deletion"] = json!("_deletions/../../x.bin");
            }),
            ("deletion of another", ErrorCode::StalePlan, |p| {
                p["runs"][0]["files"][0]["deletion"] = json!("_deletions/9-9-9.bin")
            }),
            ("deletion base", ErrorCode::StalePlan, |p| p["runs"][0]["files"][0]["deletion_base"] = json!(7)),
            ("empty data path", ErrorCode::InvalidArgument, |p| p["runs"][0]["files"][0]["data"][0]["path"] = json!("")),
            ("absolute data path", ErrorCode::InvalidArgument, |p| {
                p["runs"][0]["files"][0]["data"][0]["path"] = json!("/etc/passwd")
            }),
            ("another data path", ErrorCode::StalePlan, |p| p["runs"][0]["files"][0]["data"][0]["path"] = json!("x.lance")),
            ("another base", ErrorCode::StalePlan, |p| p["runs"][0]["files"][0]["data"][0]["base"] = json!(1)),
            ("another column", ErrorCode::StalePlan, |p| p["runs"][0]["files"][0]["data"][0]["column"] = json!(99)),
            ("another fragment", ErrorCode::StalePlan, |p| p["runs"][0]["files"][0]["fragment"] = json!(4_000_000_000u32)),
            ("another version", ErrorCode::InvalidArgument, |p| p["v_plan"] = json!(1)),
            ("params", ErrorCode::InvalidArgument, |p| p["tasks"][0]["index"]["params"] = Value::Null),
            ("other params", ErrorCode::InvalidArgument, |p| p["tasks"][0]["index"]["params"] = json!({"zone_size": 1})),
            ("branch", ErrorCode::InvalidArgument, |p| p["tasks"][0]["branch"] = json!("dev")),
            ("fragments", ErrorCode::InvalidArgument, |p| p["tasks"][0]["fragments"] = json!([-1])),
            ("no fragments", ErrorCode::InvalidArgument, |p| p["tasks"][0]["fragments"] = json!([])),
            ("format", ErrorCode::InvalidArgument, |p| p["format"] = json!(2)),
        ];
        for (what, code, edit) in edits {
            let mut bad = good.clone();
            edit(&mut bad);
            let error = checked(&table, &bad).expect_err(what);
            assert_eq!((error.code(), error.changed()), (code, Changed::Nothing), "{name}: {what}: {error}");
        }
        let mut bad = good.clone();
        bad["tasks"][0]["index"]["params"] = Value::Null;
        let error = checked(&table, &bad).unwrap_err();
        assert!(error.message().starts_with("the plan: tasks[0].index.params: "), "{}", error.message());
        let mut bad = good;
        bad["runs"][0]["files"][0]["deletion"] = json!("../x.bin");
        let plan: RefreshPlan = serde_json::from_value(bad).unwrap();
        let error = block_on(commit_segments(&table, &plan, &[])).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "a commit asks as well: {error}");
    }
    assert!(tampered >= 8, "only {tampered} tables had work");
}

/// What becomes of a write whose answer is a 500.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Loss {
    /// Nothing was stored.
    Request,
    /// Everything was.
    Answer,
    /// Half of it was.
    Half,
}

/// A folder that loses the first so many writes of index files.
struct Losing {
    inner: LocalIo,
    loss: Loss,
    left: AtomicU32,
    writes: Arc<AtomicU32>,
}

#[async_trait::async_trait]
impl HostIo for Losing {
    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<HostRead, Fault> {
        self.inner.read(path, range).await
    }

    async fn write(&self, path: &str, data: Vec<Bytes>, create: bool) -> Result<bool, Fault> {
        if !path.contains("_indices/") {
            return self.inner.write(path, data, create).await;
        }
        self.writes.fetch_add(1, Ordering::Relaxed);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err() {
            return self.inner.write(path, data, create).await;
        }
        match self.loss {
            Loss::Request => {}
            Loss::Answer => {
                let _ = self.inner.write(path, data, create).await?;
            }
            Loss::Half => {
                let all = data.concat();
                let _ = self.inner.write(path, vec![Bytes::copy_from_slice(&all[..all.len() / 2])], create).await?;
            }
        }
        Err(Fault::new(FaultKind::Status(500), "PUT", "lost"))
    }

    async fn list(&self, dir: &str) -> Result<Vec<HostEntry>, Fault> {
        self.inner.list(dir).await
    }

    async fn delete(&self, path: &str) -> Result<(), Fault> {
        self.inner.delete(path).await
    }
}

fn folders(path: &Path) -> usize {
    std::fs::read_dir(path.join("_indices"))
        .unwrap()
        .filter(|e| e.as_ref().unwrap().path().read_dir().unwrap().next().is_some())
        .count()
}

#[test]
fn a_lost_upload_is_sent_again_or_found_to_be_there() {
    let cases = [
        (Loss::Request, 1, true),
        (Loss::Request, 2, true),
        (Loss::Answer, 1, true),
        (Loss::Request, 99, false),
        (Loss::Half, 1, false),
    ];
    for (loss, times, survives) in cases {
        let folder = tempfile::tempdir().unwrap();
        Fixture::table("fragments_one_wide").copy(folder.path());
        let before = folders(folder.path());
        let writes = Arc::new(AtomicU32::new(0));
        let io = Losing { inner: LocalIo::new(folder.path()), loss, left: AtomicU32::new(times), writes: writes.clone() };
        let table = open(io);
        let plan = plan(&table);
        let built = block_on(build_segment(table.store(), table.manifest().clone(), &plan.tasks[0], &mut |_| {}));
        if survives {
            let (report, _) = block_on(commit_segments(&table, &plan, &[built.unwrap()])).unwrap();
            assert_eq!(report.established, plan.sets.unindexed, "{loss:?} × {times}");
        } else {
            let error = built.unwrap_err();
            assert_eq!((error.code(), error.changed()), (ErrorCode::StoreUnreachable, Changed::Nothing), "{loss:?}: {error}");
            assert_eq!(folders(folder.path()), before, "{loss:?}: what may have arrived is removed");
            assert!(writes.load(Ordering::Relaxed) <= 3, "it is not sent for ever");
        }
    }
}
