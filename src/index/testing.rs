//! What the tests of this layer share: seeded randomness, segments in a memory store, an independent model of order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::{SortOptions, concat, sort_to_indices, take};
use arrow::datatypes::DataType;
use futures::executor::block_on;
use uuid::Uuid;

use crate::env::TestEnv;
use crate::format::index_metadata::{IndexFile, IndexMetadata};
use crate::format::row::RowAddress;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, SegmentFiles};
use crate::store::Store;
use crate::table::scan::{BatchRows, ColumnBatch};

/// Parts of a segment as they are shown.
pub fn parts(method: &dyn IndexMethod, segment: &SegmentFiles, wanted: std::ops::Range<u64>) -> serde_json::Value {
    futures::executor::block_on(method.parts(segment, wanted)).unwrap().document()
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// A fragment's live rows: physical offsets, ascending, and their values.
pub struct Rows {
    pub fragment: u32,
    pub offsets: Vec<u32>,
    pub values: ArrayRef,
}

impl Rows {
    /// All rows of `values` live.
    pub fn dense(fragment: u32, values: ArrayRef) -> Rows {
        Rows { fragment, offsets: (0..values.len() as u32).collect(), values }
    }

    /// Deletes every row for which `deleted` says so; `values` were those of all physical rows.
    pub fn without(fragment: u32, values: &ArrayRef, deleted: impl Fn(u32) -> bool) -> Rows {
        let offsets: Vec<u32> = (0..values.len() as u32).filter(|offset| !deleted(*offset)).collect();
        let picked = UInt64Array::from_iter_values(offsets.iter().map(|offset| u64::from(*offset)));
        Rows { fragment, values: take(values, &picked, None).unwrap(), offsets }
    }

    /// Address of live row `row`.
    pub fn address(&self, row: usize) -> u64 {
        RowAddress::new(self.fragment, self.offsets[row]).0
    }

    /// The rows as batches of uneven sizes up to `longest`; consecutive offsets as a range, others as a list.
    pub fn batches(&self, longest: u64, random: &mut Random) -> Vec<ColumnBatch> {
        let mut batches = Vec::new();
        let mut start = 0;
        while start < self.offsets.len() {
            let length = (1 + random.below(longest) as usize).min(self.offsets.len() - start);
            let consecutive = self.offsets[start + length - 1] - self.offsets[start] == length as u32 - 1;
            let rows = if consecutive {
                BatchRows::Range { start: self.address(start) }
            } else {
                BatchRows::List((start..start + length).map(|row| self.address(row)).collect())
            };
            batches.push(ColumnBatch { fragment: self.fragment, values: self.values.slice(start, length), rows });
            start += length;
        }
        batches
    }
}

/// Builds a segment from all rows, fragment by fragment.
pub fn build(
    method: &dyn IndexMethod,
    logical_type: &str,
    version: i32,
    params: &Params,
    rows: &[Rows],
    random: &mut Random,
) -> BuiltIndex {
    let data_type = crate::format::schema::scalar_type(logical_type).unwrap();
    let spec = BuildSpec {
        data_type,
        logical_type: logical_type.to_owned(),
        params: method.merge_params(method.default_params(), params).unwrap(),
        index_version: version,
        rows_hint: None,
    };
    let mut builder = method.builder(spec).unwrap();
    for fragment in rows {
        for batch in fragment.batches(3000, random) {
            builder.push(batch).unwrap();
        }
    }
    builder.finish().unwrap()
}

/// Stores the files of a built segment and hands out the segment.
pub fn store(built: &BuiltIndex) -> SegmentFiles {
    let store = Store::memory(Arc::new(TestEnv::new(0, 1)));
    let mut files = Vec::new();
    for (name, file) in &built.files {
        block_on(store.put(name, file.chunks.clone())).unwrap();
        files.push(IndexFile { path: name.clone(), size_bytes: file.size });
    }
    SegmentFiles::new(
        store,
        IndexMetadata {
            uuid: Uuid::nil(),
            fields: vec![0],
            name: "idx".to_owned(),
            dataset_version: 1,
            fragment_bitmap: None,
            details: Some(built.details.clone()),
            index_version: Some(built.index_version),
            created_at_ms: None,
            base_id: None,
            files,
            covering_fields: vec![],
            metadata: Default::default(),
            raw: Default::default(),
        },
    )
}

/// A whole column of a stored file.
pub fn column(segment: &SegmentFiles, file: &str, name: &str, data_type: &DataType, nullable: bool) -> ArrayRef {
    block_on(async {
        let file = segment.open(file).await.unwrap();
        let at = file.column_index(name).unwrap();
        crate::index::columns::whole(&file, at, data_type, nullable).await.unwrap()
    })
}

/// The metadata of a stored file.
pub fn metadata(segment: &SegmentFiles, file: &str) -> Vec<(String, String)> {
    let file = block_on(segment.open(file)).unwrap();
    file.metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// All values in Arrow's own sort order, nulls first, with their addresses; ties by address.
pub fn model(rows: &[Rows]) -> (ArrayRef, Vec<u64>) {
    let parts: Vec<&dyn Array> = rows.iter().map(|rows| rows.values.as_ref()).collect();
    let values = concat(&parts).unwrap();
    let addresses: Vec<u64> = rows.iter().flat_map(|rows| (0..rows.offsets.len()).map(|row| rows.address(row))).collect();
    let order = sort_to_indices(&values, Some(SortOptions { descending: false, nulls_first: true }), None).unwrap();
    let sorted = take(&values, &order, None).unwrap();
    let ids = order.values().iter().map(|at| addresses[*at as usize]).collect();
    let ids = by_ties(&sorted, ids);
    (sorted, ids)
}

/// Sorts the ids inside each run of equal values (equal bytes: NaNs of one payload are ties, both zeros are not).
pub fn by_ties(values: &ArrayRef, mut ids: Vec<u64>) -> Vec<u64> {
    let data = |row: usize| values.slice(row, 1).to_data();
    let mut start = 0;
    for end in 1..=ids.len() {
        if end == ids.len() || data(end) != data(start) {
            ids[start..end].sort_unstable();
            start = end;
        }
    }
    ids
}
