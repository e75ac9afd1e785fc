//! Segments written again without the rows they ought not to hold any more (refresh-and-compaction §2.5), on tables Lance
//! made and Lance asks afterwards. `tests/oracle/stale_tables.py` also shows that without the cure the answers are wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::path::Path;

use futures::executor::block_on;
use serde_json::json;
use whetstone::format::row::{RowAddress, RowDomain};
use whetstone::index::{SegmentFiles, method_by_url};
use whetstone::refresh::task::CopyOf;
use whetstone::refresh::{RefreshPlan, build_segment, commit_segments, plan_refresh};
use whetstone::table::{At, Table};

const COVERED: [u32; 5] = [0, 1, 3, 4, 6];
const REWRITTEN: [u32; 2] = [2, 5];
const INDEXES: [&str; 9] =
    ["k_btree", "s_btree", "d_btree", "z_zonemap", "t_zonemap", "m_bitmap", "n_bitmap", "f_bloomfilter", "g_bloomfilter"];

fn open(path: &Path) -> Table {
    block_on(Table::open(support::folder_store(path), At::Latest, None)).unwrap()
}

/// Where the planner would read the column again, because that is cheaper, the plan is turned into a copy.
fn by_copying(table: &Table, mut plan: RefreshPlan) -> RefreshPlan {
    let cured = plan.absorbed[0].clone();
    let old = table.manifest().indices.iter().find(|entry| entry.uuid == cured.uuid).unwrap();
    let rows = |fragments: &[u32]| -> u64 {
        fragments.iter().map(|id| table.manifest().manifest.fragment(*id).unwrap().live_rows().unwrap()).sum()
    };
    let mut copying = plan.tasks[0].clone();
    copying.copy_of = Some(CopyOf {
        uuid: old.uuid,
        dataset_version: old.dataset_version,
        without: cured.stale.clone(),
        files: plan.runs[0].files.iter().filter(|key| COVERED.contains(&key.fragment)).cloned().collect(),
    });
    copying.fragments = COVERED.to_vec();
    copying.rows = rows(&COVERED);
    plan.tasks[0].fragments = REWRITTEN.to_vec();
    plan.tasks[0].rows = rows(&REWRITTEN);
    plan.tasks.push(copying);
    plan
}

fn refresh_by_copying(path: &Path, index: &str) {
    let table = open(path);
    let at = format!("{} {index}", path.display());
    let options = serde_json::from_value(json!({})).unwrap();
    let mut plan = block_on(plan_refresh(&table, index, options)).unwrap();
    assert_eq!((plan.absorbed.len(), plan.absorbed[0].stale.as_slice()), (1, REWRITTEN.as_slice()), "{at}");
    let chosen = plan.tasks.iter().any(|task| task.copy_of.is_some());
    // A zone map is far smaller than its column; a BTREE of these types is not.
    if index.ends_with("zonemap") || index.ends_with("btree") {
        assert_eq!(chosen, index.ends_with("zonemap"), "{at}");
    }
    if !chosen {
        plan = by_copying(&table, plan);
    }
    let build = |task| block_on(build_segment(table.store(), table.manifest().clone(), task, &mut |_| {})).unwrap();
    let built: Vec<_> = plan.tasks.iter().map(build).collect();
    let copied = built.iter().find(|segment| segment.copy_of.is_some()).unwrap_or_else(|| panic!("{at}: nothing was copied"));
    let (report, after) = block_on(commit_segments(&table, &plan, &built)).unwrap();
    assert_eq!((report.segments_added, report.segments_removed, report.left_out.len()), (2, 1, 0), "{at}");

    let entry = after.manifest().indices.iter().find(|entry| entry.uuid == copied.uuid).unwrap();
    let old = table.manifest().indices.iter().find(|entry| Some(entry.uuid) == copied.copy_of).unwrap();
    assert!(entry.fragment_bitmap.as_ref().unwrap().iter().eq(COVERED), "{at}");
    assert_eq!((entry.dataset_version, entry.index_version), (old.dataset_version, old.index_version), "{at}");
    assert_eq!(entry.details, old.details, "{at}");
    let method = method_by_url(&entry.details.as_ref().unwrap().type_url).unwrap();
    let files = |entry: &whetstone::format::index_metadata::IndexMetadata| {
        SegmentFiles::new(after.store().child(&format!("_indices/{}", entry.uuid)).unwrap(), entry.clone())
    };
    let (old, new) = (files(old), files(entry));
    assert_eq!(block_on(method.recover_params(&new)).unwrap(), block_on(method.recover_params(&old)).unwrap(), "{at}");
    let mut kept = block_on(method.stored_rows(&old)).unwrap();
    let before = kept.len();
    let domain = method.row_domain(entry.index_version.unwrap_or(0), table.manifest().manifest.has_stable_row_ids());
    let stale: Vec<u64> = match domain {
        RowDomain::Address => kept.iter().filter(|row| REWRITTEN.contains(&RowAddress(*row).fragment())).collect(),
        // Ids count the rows as they were written, 300 a fragment; those of deleted rows are no row's any more.
        RowDomain::StableId => kept.iter().filter(|row| REWRITTEN.contains(&((row / 300) as u32)) && row % 50 != 11).collect(),
    };
    stale.iter().for_each(|row| assert!(kept.remove(*row)));
    assert!(!kept.is_empty() && kept.len() < before, "{at}");
    assert_eq!(block_on(method.stored_rows(&new)).unwrap(), kept, "{at}");
    assert_eq!(block_on(method.inspect(&new)).unwrap()["problems"], json!([]), "{at}");
}

#[test]
fn lance_answers_rightly_from_copies() {
    let folder = tempfile::tempdir().unwrap();
    support::run_oracle("stale_tables.py", &["make".as_ref(), folder.path().as_os_str()]);
    for name in ["plain.lance", "stable.lance"] {
        for index in INDEXES {
            refresh_by_copying(&folder.path().join(name), index);
        }
    }
    support::run_oracle("stale_tables.py", &["check".as_ref(), folder.path().as_os_str()]);
}
