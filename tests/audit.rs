//! Audits: nothing is found in what Lance made soundly, the tables that lie are named, and every planted fault is found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, BooleanArray, StringArray, UInt32Array, UInt64Array, new_null_array};
use common::Fixture;
use common::shared::{Shared, rewrite};
use futures::executor::block_on;
use roaring::RoaringTreemap;
use whetstone::ErrorCode;
use whetstone::file::{FileWriter, LanceFile, WriterField};
use whetstone::format::index_metadata::{IndexFile, IndexMetadata};
use whetstone::format::schema::scalar_type;
use whetstone::format::treemap::{decode_row_treemap, encode_row_treemap};
use whetstone::maintain::{AuditOptions, AuditReport, audit};
use whetstone::table::{At, Table};

fn run(table: &Table, index: &str) -> Result<AuditReport, whetstone::Error> {
    let mut last = (0, 0);
    let report = block_on(audit(table, index, AuditOptions::default(), &mut |done, total| last = (done, total)))?;
    assert_eq!(last, (report.rows, report.rows), "{index}: progress ends at the rows there are");
    Ok(report)
}

/// Tables in which an index does not say what its column says, as Lance left them.
const LYING: [(&str, &str); 4] = [
    ("list_column_not_pruned", "l_idx"),
    ("stale_pages_delta", "k_idx"),
    ("stale_pages_delta", "l_idx"),
    ("stale_pages_delta", "m_idx"),
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

/// One file of a segment, taken apart.
struct Parts {
    fields: Vec<WriterField>,
    columns: Vec<ArrayRef>,
    metadata: Vec<(String, String)>,
    buffer: Option<Vec<u8>>,
}

impl Parts {
    fn read(file: &LanceFile) -> Parts {
        let column = |at: usize| {
            let field = &file.fields()[at];
            let data_type = scalar_type(&field.logical_type).unwrap();
            support::collect_scan(file.scan(at, &data_type, field.nullable, 0..file.rows()), &data_type).unwrap()
        };
        let fields = file.fields().iter().map(|f| WriterField::new(&*f.name, &*f.logical_type, f.nullable)).collect::<Vec<_>>();
        Parts {
            columns: (0..fields.len()).map(column).collect(),
            fields,
            metadata: file.metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            buffer: (file.global_buffers() > 1).then(|| block_on(file.global_buffer(1)).unwrap().to_vec()),
        }
    }

    fn write(self) -> (Vec<bytes::Bytes>, u64) {
        let mut writer = FileWriter::new(self.fields);
        for (at, column) in self.columns.iter().enumerate() {
            writer.write_page(at, column).unwrap();
        }
        if let Some(buffer) = self.buffer {
            writer.global_buffer(buffer.into());
        }
        self.metadata.iter().for_each(|(key, value)| writer.metadata(key, value));
        let file = writer.finish().unwrap();
        (file.chunks, file.size)
    }

    fn at(&self, name: &str) -> usize {
        self.fields.iter().position(|field| field.name == name).unwrap_or_else(|| panic!("no column {name}"))
    }

    /// Takes these rows of every column, in this order.
    fn take(&mut self, rows: &[usize]) {
        let rows = UInt64Array::from_iter_values(rows.iter().map(|row| *row as u64));
        for column in &mut self.columns {
            *column = arrow::compute::take(column, &rows, None).unwrap();
        }
    }

    fn rows(&self) -> usize {
        self.columns[0].len()
    }

    fn u64s(&mut self, name: &str, change: impl FnOnce(&mut Vec<u64>)) {
        let at = self.at(name);
        let mut values = self.columns[at].as_any().downcast_ref::<UInt64Array>().unwrap().values().to_vec();
        change(&mut values);
        self.columns[at] = Arc::new(UInt64Array::from(values));
    }

    fn u32s(&mut self, name: &str, change: impl FnOnce(&mut Vec<u32>)) {
        let at = self.at(name);
        let mut values = self.columns[at].as_any().downcast_ref::<UInt32Array>().unwrap().values().to_vec();
        change(&mut values);
        self.columns[at] = Arc::new(UInt32Array::from(values));
    }

    fn blobs(&mut self, name: &str, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
        let at = self.at(name);
        let array = self.columns[at].as_any().downcast_ref::<BinaryArray>().unwrap();
        let mut values: Vec<Vec<u8>> = (0..array.len()).map(|row| array.value(row).to_vec()).collect();
        change(&mut values);
        self.columns[at] = Arc::new(BinaryArray::from_iter_values(values));
    }

    fn bitmap(&mut self, row: usize, change: impl FnOnce(&mut RoaringTreemap)) {
        self.blobs("bitmaps", |blobs| {
            let mut map = decode_row_treemap("t", &blobs[row]).unwrap();
            change(&mut map);
            blobs[row] = encode_row_treemap(&map);
        });
    }

    fn nulls(&mut self, change: impl FnOnce(&mut RoaringTreemap)) {
        let mut map = decode_row_treemap("t", self.buffer.as_ref().unwrap()).unwrap();
        change(&mut map);
        self.buffer = Some(encode_row_treemap(&map));
    }

    fn set_metadata(&mut self, key: &str, value: &str) {
        self.metadata.retain(|(other, _)| other != key);
        self.metadata.push((key.to_owned(), value.to_owned()));
    }

    /// Replaces a column by nulls, or by one value everywhere.
    fn blank(&mut self, name: &str) {
        let at = self.at(name);
        self.columns[at] = new_null_array(self.columns[at].data_type(), self.columns[at].len());
    }
}

/// The first segment of an index, in the entries of a manifest.
fn first<'a>(entries: &'a mut [IndexMetadata], index: &str) -> &'a mut IndexMetadata {
    let entry = entries.iter_mut().find(|entry| entry.name == index).unwrap();
    // Written anew instead of as it was read.
    entry.raw = Default::default();
    entry
}

/// Changes a file of the first segment of an index, with the manifest keeping up.
fn edit(shared: &Shared, index: &str, file: &str, change: impl FnOnce(&mut Parts)) -> Table {
    let table = shared.open(1);
    let mut entries = table.manifest().indices.clone();
    let entry = first(&mut entries, index).clone();
    let path = format!("_indices/{}/{file}", entry.uuid);
    let mut parts = Parts::read(&block_on(LanceFile::open(table.store(), &path, None)).unwrap());
    change(&mut parts);
    let (chunks, size) = parts.write();
    block_on(table.store().put(&path, chunks)).unwrap();
    rewrite(&table, |entries| {
        let entry = first(entries, index);
        entry.files.iter_mut().filter(|known| known.path == file).for_each(|known| known.size_bytes = size);
    })
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
    manifests(&mut planted);
    assert!(planted.wrong.is_empty(), "{}", planted.wrong.join("\n"));
    assert!(planted.count >= 40, "{}", planted.count);
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
