//! Reading what a BITMAP segment holds.

use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use async_trait::async_trait;
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::format::schema::scalar_name;
use crate::index::bitmap::{Bitmap, FILE, file};
use crate::index::check::{KeyCheck, value_keys};
use crate::index::json::scalar;
use crate::index::keep::Keep;
use crate::index::keyed::{KEYS_AND_BITMAPS, KeyInput, KeyWriter, Keys, Top, entries, key_parts, merge_keys, summarise};
use crate::index::order::comparison;
use crate::index::params::collected;
use crate::index::parts::Parts;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentFiles, Source};

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

/// The keys of a segment, which must be of the column's type; `None` for shards.
async fn input<'a>(segment: &SegmentFiles, data_type: &DataType, keep: Keep<'a>) -> Result<Option<KeyInput<'a>>> {
    if names(segment).await?.1 {
        return Ok(None);
    }
    let keys = Keys::open(segment, FILE, &segment.open(FILE).await?, KEYS_AND_BITMAPS)?;
    if keys.data_type() != data_type {
        let what = format!("`keys` is {}, the indexed column is {data_type}", keys.logical_type());
        return Err(Error::corrupt(&segment.label(FILE), what));
    }
    Ok(Some(KeyInput::new(keys, keep)))
}

pub(super) async fn copy_placed(segment: &SegmentFiles, data_type: &DataType, place: Placing<'_>) -> Result<Option<BuiltIndex>> {
    let Some(input) = input(segment, data_type, Keep::At(place)).await? else { return Ok(None) };
    let mut built = write(vec![input], data_type, segment.index_version()).await?;
    if let Some(details) = &segment.entry().details {
        built.details = details.clone();
    }
    Ok(Some(built))
}

pub(super) async fn merge(sources: &[Source<'_>], spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
    let mut inputs = Vec::with_capacity(sources.len());
    for source in sources {
        match input(source.files, &spec.data_type, Keep::Only(source.rows)).await? {
            Some(input) => inputs.push(input),
            None => return Ok(None),
        }
    }
    write(inputs, &spec.data_type, spec.index_version).await.map(Some)
}

async fn write(inputs: Vec<KeyInput<'_>>, data_type: &DataType, index_version: i32) -> Result<BuiltIndex> {
    let unordered = || Error::internal(format!("values of type {data_type} have no order"));
    let compare = comparison(data_type).ok_or_else(unordered)?;
    let logical_type = scalar_name(data_type).ok_or_else(unordered)?;
    let mut writer = KeyWriter::new(KEYS_AND_BITMAPS, data_type, &logical_type);
    let merged = merge_keys(inputs, compare, KEYS_AND_BITMAPS.layout, &mut writer).await?;
    let stats = collected([("bitmaps".to_owned(), writer.count().into())]);
    let details = Bitmap.details(&Params::new(), data_type);
    Ok(BuiltIndex { files: vec![file(writer)?], details, index_version, rows: merged.entries, stats })
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

pub(super) async fn parts(segment: &SegmentFiles, wanted: &Range<u64>) -> Result<Parts> {
    key_parts(segment, &names(segment).await?.0, KEYS_AND_BITMAPS, wanted, &scalar).await
}
