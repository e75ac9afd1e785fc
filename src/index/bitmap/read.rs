//! Reading what a BITMAP segment holds.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use async_trait::async_trait;
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::format::treemap::encode_row_treemap;
use crate::index::bitmap::{Bitmap, FILE, file};
use crate::index::bytes::ValueBytes;
use crate::index::check::{KeyCheck, value_keys};
use crate::index::keyed::{KEYS_AND_BITMAPS, KeyWriter, Keys, Top, entries, summarise};
use crate::index::params::collected;
use crate::index::{BuiltIndex, IndexMethod, Params, SegmentFiles};

/// Files of the segment: the one, or the shards that nobody reads (index-formats §6).
async fn names(segment: &SegmentFiles) -> Result<(Vec<String>, bool)> {
    let files = segment.files().await?;
    let shards: Vec<String> =
        files.iter().map(|file| &file.path).filter(|name| name.starts_with("part_") && name.ends_with(FILE)).cloned().collect();
    let only_shards = !shards.is_empty() && files.iter().all(|file| file.path != FILE);
    Ok(if only_shards { (shards, true) } else { (vec![FILE.to_owned()], false) })
}

pub(super) struct Entries;

#[async_trait(?Send)]
impl KeyCheck for Entries {
    fn keys(&self, values: &ArrayRef, each: &mut dyn FnMut(u64)) -> Result<()> {
        value_keys(values, each)
    }

    async fn entries(&self, segment: &SegmentFiles, each: &mut dyn FnMut(usize, u64, u64)) -> Result<()> {
        // Shards are read by nobody, so that their rows are as good as missing.
        entries(segment, FILE, KEYS_AND_BITMAPS, each).await
    }
}

pub(super) async fn stored_rows(segment: &SegmentFiles) -> Result<RoaringTreemap> {
    let mut rows = RoaringTreemap::new();
    for name in names(segment).await?.0 {
        rows |= Keys::open(segment, &name, &segment.open(&name).await?, KEYS_AND_BITMAPS)?.all_rows().await?;
    }
    Ok(rows)
}

pub(super) async fn copy_without(
    segment: &SegmentFiles,
    data_type: &DataType,
    drop: &dyn Fn(u64) -> bool,
) -> Result<Option<BuiltIndex>> {
    if names(segment).await?.1 {
        return Ok(None);
    }
    let mut keys = Keys::open(segment, FILE, &segment.open(FILE).await?, KEYS_AND_BITMAPS)?;
    if keys.data_type() != data_type {
        let what = format!("`keys` is {}, the indexed column is {data_type}", keys.logical_type());
        return Err(Error::corrupt(&segment.label(FILE), what));
    }
    let mut writer = KeyWriter::new(KEYS_AND_BITMAPS, data_type, keys.logical_type());
    let mut total = 0;
    while let Some((values, bitmaps)) = keys.next().await? {
        let bytes = ValueBytes::new(&values).ok_or_else(|| Error::internal("an array has no readable values"))?;
        for row in 0..values.len() {
            let kept: RoaringTreemap = keys.rows(&bitmaps, row)?.iter().filter(|id| !drop(*id)).collect();
            if !kept.is_empty() {
                total += kept.len();
                let key = values.is_valid(row).then(|| bytes.get(row));
                writer.push(key, &mut |out| out.extend_from_slice(&encode_row_treemap(&kept)))?;
            }
        }
    }
    let stats = collected([("bitmaps".to_owned(), writer.count().into())]);
    let details = segment.entry().details.clone().unwrap_or_else(|| Bitmap.details(&Params::new(), data_type));
    Ok(Some(BuiltIndex { files: vec![file(writer)?], details, index_version: segment.index_version(), rows: total, stats }))
}

pub(super) async fn inspect(segment: &SegmentFiles) -> Result<Value> {
    let (files, shards) = names(segment).await?;
    let mut problems: Vec<String> = Vec::new();
    if shards {
        problems.push(format!("only shards that no reader reads: {}", files.join(", ")));
    }
    let (mut count, mut nulls) = (0u64, 0u64);
    let mut seen = RoaringTreemap::new();
    let (mut min, mut max) = (Value::Null, Value::Null);
    let mut top = Top::default();
    let mut total = 0u64;
    for name in &files {
        let file = segment.open(name).await?;
        let summary = summarise(segment, name, &file, &mut seen, &mut problems).await?;
        count += summary.keys;
        nulls += summary.nulls;
        total += summary.rows;
        if min.is_null() {
            min = summary.min;
        }
        max = summary.max;
        top.merge(summary.top);
    }
    if seen.len() != total {
        problems.push(format!("{} rows are under more than one key", total - seen.len()));
    }
    Ok(json!({
        "method": "BITMAP",
        "index_version": segment.index_version(),
        "rows": seen.len(),
        "bitmaps": count,
        "nulls": nulls,
        "min": min,
        "max": max,
        "largest": top.named("key"),
        "data_files": files,
        "problems": problems,
    }))
}
