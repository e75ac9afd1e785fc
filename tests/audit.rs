//! Audits: nothing is found in what Lance made soundly, the tables that lie are named, and every planted fault is found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
mod support;
#[path = "support/planted_texts.rs"]
mod texts;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, StringArray};
use common::Fixture;
use common::planted::{Parts, edit, first};
use common::shared::{Shared, rewrite};
use futures::executor::block_on;
use roaring::RoaringTreemap;
use whetstone::ErrorCode;
use whetstone::format::index_metadata::{IndexFile, IndexMetadata};
use whetstone::maintain::{AuditOptions, AuditReport, MergeOptions, audit, plan_merge};
use whetstone::refresh::{build_segment, commit_segments};
use whetstone::table::{At, Table};

fn run(table: &Table, index: &str) -> Result<AuditReport, whetstone::Error> {
    let mut last = (0, 0);
    let report = block_on(audit(table, index, AuditOptions::default(), &mut |done, total| last = (done, total)))?;
    assert_eq!(last, (report.rows, report.rows), "{index}: progress ends at the rows there are");
    Ok(report)
}

/// Tables in which an index does not say what its column says, as Lance left them.
const LYING: [(&str, &str); 5] = [
    ("list_column_not_pruned", "l_idx"),
    ("stale_pages_delta", "k_idx"),
    ("stale_pages_delta", "l_idx"),
    ("stale_pages_delta", "m_idx"),
    ("stale_pages_delta", "t_idx"),
];

#[test]
fn sound_tables_are_sound_and_the_lying_ones_are_named() {
    let (mut audited, mut rows, mut lying) = (BTreeMap::<String, usize>::new(), 0, Vec::new());
    for fixture in common::tables() {
        let table = block_on(Table::open(support::folder_store(&fixture.path), At::Latest, None)).unwrap();
        for index in fixture.expected["indices"].as_array().unwrap() {
            let name = index["name"].as_str().unwrap();
            let at = format!("{} {name}", fixture.name);
            let report = match run(&table, name) {
                Ok(report) => report,
                Err(error) => {
                    let known = [ErrorCode::UnsupportedMethod, ErrorCode::UnsupportedEncoding, ErrorCode::UnsupportedType];
                    assert!(known.contains(&error.code()), "{at}: {error:?}");
                    continue;
                }
            };
            assert!(report.exact && report.error_bound.is_none(), "{at}");
            *audited.entry(report.method).or_default() += 1;
            rows += report.rows;
            if !report.findings.is_empty() {
                let stale = report.findings.iter().all(|finding| finding.code == "ROW_STALE" && finding.fragment == Some(1));
                lying.push((fixture.name.clone(), name.to_owned()));
                assert!(
                    stale || fixture.name == "list_column_not_pruned",
                    "{at}: {:?} {:?}",
                    report.counts,
                    report.findings.first()
                );
            }
        }
    }
    assert!(lying.iter().map(|(table, index)| (table.as_str(), index.as_str())).eq(LYING), "{lying:?}");
    assert!(audited.values().sum::<usize>() > 200 && rows > 900_000, "{audited:?}, {rows} rows");
}

struct Planted {
    wrong: Vec<String>,
    count: usize,
}

impl Planted {
    /// Plants a fault and looks for it.
    fn expect(&mut self, what: &str, index: &str, code: &str, plant: impl FnOnce(&Shared) -> Table) {
        let table = plant(&Shared::new("segments_built_apart"));
        let report = run(&table, index).unwrap_or_else(|error| panic!("{what}: {error:?}"));
        self.count += 1;
        if !report.counts.contains_key(code) {
            self.wrong.push(format!("{index}: {what}: wanted {code}, found {:?} {:?}", report.counts, report.findings.first()));
        }
    }

    fn file(&mut self, what: &str, index: &str, file: &str, code: &str, change: impl FnOnce(&mut Parts)) {
        self.expect(what, index, code, |shared| edit(shared, index, file, change));
    }

    fn entry(&mut self, what: &str, index: &str, code: &str, change: impl FnOnce(&mut IndexMetadata)) {
        self.expect(what, index, code, |shared| rewrite(&shared.open(1), |entries| change(first(entries, index))));
    }
}

#[test]
fn every_planted_fault_is_found() {
    let mut planted = Planted { wrong: Vec::new(), count: 0 };
    btree(&mut planted);
    bitmap(&mut planted);
    zonemap(&mut planted);
    bloomfilter(&mut planted);
    lists_and_texts(&mut planted);
    texts::plant(&mut planted);
    manifests(&mut planted);
    assert!(planted.wrong.is_empty(), "{}", planted.wrong.join("\n"));
    assert!(planted.count >= 99, "{}", planted.count);
}

fn btree(planted: &mut Planted) {
    let (data, lookup) = ("page_data.lance", "page_lookup.lance");
    let last = |parts: &Parts| parts.rows() - 1;
    planted.file("a row is left out", BTREE, data, "ROW_MISSING", |parts| parts.take(&(1..parts.rows()).collect::<Vec<_>>()));
    planted.file("two ids are swapped", BTREE, data, "ROW_OTHER_VALUE", |parts| {
        let end = last(parts);
        parts.u64s("ids", |ids| ids.swap(0, end));
    });
    planted.file("an id is past its fragment", BTREE, data, "ROW_NOT_THERE", |parts| parts.u64s("ids", |ids| ids[3] = 9999));
    planted.file("an id is of no fragment", BTREE, data, "ROW_NOT_THERE", |parts| parts.u64s("ids", |ids| ids[3] = 77 << 32));
    planted.file("a row is there twice", BTREE, data, "ROW_TWICE", |parts| {
        let mut rows: Vec<usize> = (0..parts.rows()).collect();
        rows.insert(0, 0);
        parts.take(&rows);
    });
    planted.file("a row of the other segment with another value", BTREE, data, "ROW_STALE", |parts| {
        let end = last(parts);
        parts.u64s("ids", |ids| (0..end).for_each(|at| ids[at] = (2 << 32) + at as u64 % 20));
    });
    planted
        .file("the upper bound of a page is too low", BTREE, lookup, "FILE", |parts| parts.columns[1] = parts.columns[0].clone());
    planted.file("the lower bound of a page is too high", BTREE, lookup, "FILE", |parts| {
        parts.columns[0] = parts.columns[1].clone()
    });
    planted
        .file("nulls of a page are miscounted", BTREE, lookup, "FILE", |parts| parts.u32s("null_count", |counts| counts[0] += 1));
    planted.file("a page has another number", BTREE, lookup, "FILE", |parts| parts.u32s("page_idx", |pages| pages[0] = 4));
    planted.file("pages are said to be shorter", BTREE, lookup, "FILE", |parts| parts.set_metadata("batch_size", "7"));
    planted.file("the lookup is empty", BTREE, lookup, "FILE", |parts| parts.take(&[]));
}

fn bitmap(planted: &mut Planted) {
    let file = "bitmap_page_lookup.lance";
    planted.file("a key is left out", BITMAP, file, "ROW_MISSING", |parts| parts.take(&(1..parts.rows()).collect::<Vec<_>>()));
    planted.file("two bitmaps are swapped", BITMAP, file, "ROW_OTHER_VALUE", |parts| {
        let end = parts.rows() - 1;
        parts.blobs("bitmaps", |blobs| blobs.swap(0, end));
    });
    planted.file("a row is under two keys", BITMAP, file, "FILE", |parts| {
        parts.bitmap(0, |rows| {
            rows.insert_range(0..20);
        });
    });
    planted.file("a row is gone from a bitmap", BITMAP, file, "ROW_MISSING", |parts| {
        parts.bitmap(1, |rows| {
            let row = rows.min().unwrap();
            rows.remove(row);
        });
    });
    planted.file("a row that is not there", BITMAP, file, "ROW_NOT_THERE", |parts| {
        parts.bitmap(1, |rows| {
            rows.insert((1 << 32) + 5000);
        });
    });
    planted.file("keys run backwards", BITMAP, file, "FILE", |parts| parts.take(&(0..parts.rows()).rev().collect::<Vec<_>>()));
    planted.file("bitmaps are miscounted", BITMAP, file, "FILE", |parts| {
        parts.set_metadata("lance:index_stats", "{\"num_bitmaps\":1000}")
    });
    planted.file("a bitmap is cut off", BITMAP, file, "UNREADABLE", |parts| {
        parts.blobs("bitmaps", |blobs| {
            blobs[0].pop();
        });
    });
    planted.file("a bitmap is empty", BITMAP, file, "FILE", |parts| parts.bitmap(0, RoaringTreemap::clear));
}

fn zonemap(planted: &mut Planted) {
    let file = "zonemap.lance";
    planted
        .file("upper bounds are too low", ZONEMAP, file, "ZONE_TOO_TIGHT", |parts| parts.columns[1] = parts.columns[0].clone());
    planted
        .file("lower bounds are too high", ZONEMAP, file, "ZONE_TOO_TIGHT", |parts| parts.columns[0] = parts.columns[1].clone());
    planted.file("bounds are not known", ZONEMAP, file, "ZONE_TOO_TIGHT", |parts| {
        parts.blank("min");
        parts.blank("max");
    });
    planted
        .file("a zone is left out", ZONEMAP, file, "ZONE_TOO_TIGHT", |parts| parts.take(&(1..parts.rows()).collect::<Vec<_>>()));
    planted.file("a zone ends too early", ZONEMAP, file, "ZONE_TOO_TIGHT", |parts| parts.u64s("zone_length", |l| l[0] -= 1));
    planted.file("a zone starts too late", ZONEMAP, file, "ZONE_TOO_TIGHT", |parts| parts.u64s("zone_start", |s| s[0] += 1));
    planted
        .file("a zone is of another fragment", ZONEMAP, file, "ZONE_TOO_TIGHT", |parts| parts.u64s("fragment_id", |f| f[0] = 9));
    planted.file("a zone is past all rows", ZONEMAP, file, "FILE", |parts| parts.u64s("zone_start", |s| s[0] = 1 << 40));
    planted.file("a value is stored as null", ZONEMAP, file, "NULL_SURPLUS", |parts| {
        parts.nulls(|nulls| {
            nulls.insert_range(0..20);
        });
    });
    planted.file("a null that is not there", ZONEMAP, file, "ROW_NOT_THERE", |parts| {
        parts.nulls(|nulls| {
            nulls.insert((1 << 32) + 3000);
        });
    });
    planted.file("nulls of the other segment", ZONEMAP, file, "ROW_STALE", |parts| {
        parts.nulls(|nulls| {
            nulls.insert_range(2 << 32..(2 << 32) + 20);
        });
    });
    planted.file("more nulls are counted than stored", ZONEMAP, file, "FILE", |parts| {
        parts.u32s("null_count", |counts| counts[0] += 1)
    });
}

fn bloomfilter(planted: &mut Planted) {
    let file = "bloomfilter.lance";
    let name = "bloom_filter_data";
    planted.file("a filter is empty", BLOOM, file, "ZONE_TOO_TIGHT", |parts| parts.blobs(name, |blobs| blobs[0].fill(0)));
    planted.file("one bit is cleared", BLOOM, file, "ZONE_TOO_TIGHT", |parts| {
        parts.blobs(name, |blobs| {
            let byte = blobs[0].iter_mut().find(|byte| **byte != 0).unwrap();
            *byte &= *byte - 1;
        });
    });
    planted.file("a filter is no blocks", BLOOM, file, "FILE", |parts| {
        parts.blobs(name, |blobs| {
            blobs[0].pop();
        });
    });
    planted.file("two filters are swapped", BLOOM, file, "ZONE_TOO_TIGHT", |parts| parts.blobs(name, |blobs| blobs.swap(0, 1)));
    planted.file("a zone is left out", BLOOM, file, "ZONE_TOO_TIGHT", |parts| parts.take(&(1..parts.rows()).collect::<Vec<_>>()));
    planted.file("a zone ends too early", BLOOM, file, "ZONE_TOO_TIGHT", |parts| parts.u64s("zone_length", |l| l[0] -= 1));
    planted.file("nulls are claimed", BLOOM, file, "NULL_SURPLUS", |parts| {
        parts.nulls(|nulls| {
            nulls.insert_range(0..20);
        });
    });
    planted.file("flags of nulls are turned", BLOOM, file, "FILE", |parts| {
        let at = parts.at("has_null");
        let flags = parts.columns[at].as_any().downcast_ref::<BooleanArray>().unwrap();
        parts.columns[at] = Arc::new(flags.values().iter().map(|flag| Some(!flag)).collect::<BooleanArray>());
    });
}

fn lists_and_texts(planted: &mut Planted) {
    let file = "bitmap_page_lookup.lance";
    planted.file("a label is renamed", LABELS, file, "ROW_OTHER_VALUE", |parts| {
        let keys = parts.columns[0].as_any().downcast_ref::<StringArray>().unwrap();
        let last = keys.len() - 1;
        parts.columns[0] = Arc::new(
            (0..keys.len())
                .map(|row| if row == last { Some("zzz") } else { keys.is_valid(row).then(|| keys.value(row)) })
                .collect::<StringArray>(),
        );
    });
    planted.file("a label has all rows", LABELS, file, "ROW_OTHER_VALUE", |parts| {
        parts.bitmap(1, |rows| {
            rows.insert_range(0..20);
        });
    });
    planted.file("all labels are left out", LABELS, file, "ROW_MISSING", |parts| parts.take(&[]));
    let file = "ngram_postings.lance";
    planted.file("a token is left out", NGRAM, file, "ROW_OTHER_VALUE", |parts| {
        parts.take(&(0..parts.rows() - 1).collect::<Vec<_>>())
    });
    planted.file("a posting list is cut off", NGRAM, file, "UNREADABLE", |parts| {
        parts.blobs("posting_list", |blobs| {
            blobs[0].pop();
        });
    });
    planted.file("a token is none", NGRAM, file, "FILE", |parts| {
        let end = parts.rows() - 1;
        parts.u32s("tokens", |tokens| tokens[end] = 60_000);
    });
    planted.file("two tokens are swapped", NGRAM, file, "FILE", |parts| parts.u32s("tokens", |tokens| tokens.swap(0, 1)));
}

fn manifests(planted: &mut Planted) {
    let widen = |entry: &mut IndexMetadata| {
        entry.fragment_bitmap.as_mut().unwrap().insert(4);
    };
    planted.entry("covers what it never saw", BTREE, "ROW_MISSING", widen);
    planted.entry("covers what it never saw", BITMAP, "ROW_MISSING", widen);
    planted.entry("covers what it never saw", ZONEMAP, "ZONE_TOO_TIGHT", widen);
    planted.entry("covers what it never saw", BLOOM, "ZONE_TOO_TIGHT", widen);
    planted.entry("covers what it never saw", LABELS, "ROW_MISSING", widen);
    planted.entry("covers what it never saw", NGRAM, "ROW_MISSING", widen);
    planted.entry("covers what it never saw", FULL_TEXT, "ROW_MISSING", widen);
    planted.entry("overlaps its sibling", BTREE, "OVERLAP", |entry| {
        entry.fragment_bitmap.as_mut().unwrap().insert(2);
    });
    planted.entry("a size is off by one", BITMAP, "FILE_SIZE", |entry| entry.files[0].size_bytes += 1);
    planted.entry("a file is not there", ZONEMAP, "FILE_MISSING", |entry| {
        entry.files.push(IndexFile { path: "more.lance".to_owned(), size_bytes: 5 });
    });
    planted.expect("all files are gone", NGRAM, "UNREADABLE", |shared| {
        let table = shared.open(1);
        let entry = table.manifest().indices.iter().find(|entry| entry.name == NGRAM).unwrap().clone();
        block_on(table.store().delete(&format!("_indices/{}/ngram_postings.lance", entry.uuid))).unwrap();
        table
    });
}

const BTREE: &str = "b_btree";
const BITMAP: &str = "m_bitmap";
const ZONEMAP: &str = "z_zonemap";
const BLOOM: &str = "f_bloomfilter";
const LABELS: &str = "l_label_list";
const NGRAM: &str = "n_ngram";
const FULL_TEXT: &str = "t_inverted";

/// Every index of every fixture that has several segments, made one: from files where these allow it, else from the column.
#[test]
fn merged_segments_say_what_their_column_says() {
    let (mut files, mut column) = (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new());
    for fixture in common::tables() {
        let table = Shared::new(&fixture.name).open(1);
        let names: std::collections::BTreeSet<_> = table.manifest().indices.iter().map(|entry| entry.name.clone()).collect();
        for name in names.iter().filter(|name| !name.starts_with("__lance")) {
            let at = format!("{} {name}", fixture.name);
            let Ok(plan) = block_on(plan_merge(&table, name, MergeOptions::default())) else { continue };
            let Some(task) = plan.tasks.first() else { continue };
            let built = block_on(build_segment(table.store(), table.manifest().clone(), task, &mut |_| {})).unwrap();
            let planned = task.merge_of.as_ref().map(|merge| merge.segments.clone()).unwrap_or_default();
            assert_eq!(built.merged_from, planned, "{at}: the plan is kept to");
            let rules: Vec<&str> = plan.warnings.iter().map(|advice| advice.rule.as_str()).collect();
            let told = rules.contains(&"merge_from_files") || rules.contains(&"merge_from_column");
            assert!(told && rules.contains(&"merge_from_files") != planned.is_empty(), "{at}: {rules:?}");
            *if planned.is_empty() { &mut column } else { &mut files }.entry(built.method.clone()).or_default() += 1;
            let (_, merged) = block_on(commit_segments(&table, &plan, &[built])).unwrap();
            let report = run(&merged, name).unwrap();
            assert!(
                report.findings.is_empty() && report.segments == 1,
                "{at}: {:?} {:?}",
                report.counts,
                report.findings.first()
            );
            // Read again, the column says the same.
            let plan = block_on(plan_merge(&table, name, MergeOptions { reread: true, ..Default::default() })).unwrap();
            assert!(plan.tasks.iter().all(|task| task.merge_of.is_none()), "{at}");
        }
    }
    assert!(files.len() == 7 && files.values().sum::<usize>() >= 20, "{files:?} {column:?}");
    assert!(column.values().sum::<usize>() >= 1, "{files:?} {column:?}");
}

#[test]
fn samples_state_their_error() {
    let table = Shared::new("fragments_200").open(1);
    let sample = |fragments| block_on(audit(&table, "k_idx", AuditOptions { sample: Some(fragments) }, &mut |_, _| {}));
    let report = sample(30).unwrap();
    assert!(!report.exact && report.findings.is_empty());
    assert_eq!((report.fragments.len(), report.covered_fragments), (30, 100));
    // Thirty draws without a fault: fewer than about a tenth of the fragments has one.
    assert!(report.error_bound.is_some_and(|bound| (0.09..0.1).contains(&bound)), "{:?}", report.error_bound);
    assert!(sample(100).unwrap().exact);
    assert_eq!(sample(0).unwrap_err().code(), ErrorCode::InvalidArgument);
}

#[test]
fn addresses_where_ids_are_meant() {
    let fixture = Fixture::table("stable_row_ids");
    let table = Shared::new(&fixture.name).open(1);
    let table = rewrite(&table, |entries| first(entries, "k_idx").index_version = Some(0));
    let report = run(&table, "k_idx").unwrap();
    assert!(report.counts.contains_key("WRONG_ROW_DOMAIN"), "{:?}", report.counts);
}
