//! Reading what a LABEL_LIST segment holds.

use std::ops::Range;

use arrow::datatypes::DataType;
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::format::schema::scalar_name;
use crate::format::treemap::decode_row_treemap;
use crate::index::json::scalar;
use crate::index::keep::Keep;
use crate::index::keyed::{KEYS_AND_BITMAPS, KeyInput, KeyWriter, Keys, key_parts, merge_keys, summarise};
use crate::index::labellist::{FILE, LabelList, NULL_LISTS, file as finished, item};
use crate::index::order::comparison;
use crate::index::params::collected;
use crate::index::parts::Parts;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentFiles, Source};

/// The rows whose list is null; `None` for files of version 0 that do not store them.
pub(super) async fn null_lists(segment: &SegmentFiles, file: &LanceFile) -> Result<Option<RoaringTreemap>> {
    let label = segment.label(FILE);
    let Some(text) = file.metadata().get(NULL_LISTS) else { return Ok(None) };
    let number: u32 = text
        .parse()
        .map_err(|_| Error::corrupt(&label, format!("the metadata says {NULL_LISTS} {text}, which is not a buffer number")))?;
    decode_row_treemap(&label, &file.global_buffer(number).await?).map(Some)
}

pub(super) async fn stored_rows(segment: &SegmentFiles) -> Result<RoaringTreemap> {
    let file = segment.open(FILE).await?;
    let null_lists = null_lists(segment, &file).await?.unwrap_or_default();
    Ok(null_lists | Keys::open(segment, FILE, &file, KEYS_AND_BITMAPS)?.all_rows().await?)
}

/// The keys of a segment and its null lists, of the rows that are kept; `None` for a file that does not store the latter.
async fn input<'a>(
    segment: &SegmentFiles,
    data_type: &DataType,
    keep: Keep<'a>,
) -> Result<Option<(KeyInput<'a>, RoaringTreemap)>> {
    let file = segment.open(FILE).await?;
    let Some(null_lists) = null_lists(segment, &file).await? else { return Ok(None) };
    let keys = Keys::open(segment, FILE, &file, KEYS_AND_BITMAPS)?;
    if Some(keys.data_type()) != item(data_type) {
        let what = format!("`keys` is {}, the indexed column is {data_type}", keys.logical_type());
        return Err(Error::corrupt(&segment.label(FILE), what));
    }
    Ok(Some((KeyInput::new(keys, keep), keep.of(&null_lists))))
}

pub(super) async fn copy_placed(segment: &SegmentFiles, data_type: &DataType, place: Placing<'_>) -> Result<Option<BuiltIndex>> {
    let Some((input, null_lists)) = input(segment, data_type, Keep::At(place)).await? else { return Ok(None) };
    let mut built = write(vec![input], &null_lists, data_type, segment.index_version(), None).await?;
    if let Some(details) = &segment.entry().details {
        built.details = details.clone();
    }
    Ok(Some(built))
}

pub(super) async fn merge(sources: &[Source<'_>], spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
    let (mut inputs, mut all_null_lists) = (Vec::with_capacity(sources.len()), RoaringTreemap::new());
    for source in sources {
        let Some((input, null_lists)) = input(source.files, &spec.data_type, Keep::Only(source.rows)).await? else {
            return Ok(None);
        };
        inputs.push(input);
        all_null_lists |= null_lists;
    }
    write(inputs, &all_null_lists, &spec.data_type, spec.index_version, spec.rows_hint).await.map(Some)
}

async fn write(
    inputs: Vec<KeyInput<'_>>,
    null_lists: &RoaringTreemap,
    data_type: &DataType,
    index_version: i32,
    rows: Option<u64>,
) -> Result<BuiltIndex> {
    let unordered = || Error::internal(format!("values of type {data_type} are no lists of values with an order"));
    let item = item(data_type).ok_or_else(unordered)?;
    let compare = comparison(item).ok_or_else(unordered)?;
    let mut writer = KeyWriter::new(KEYS_AND_BITMAPS, item, &scalar_name(item).ok_or_else(unordered)?);
    let merged = merge_keys(inputs, compare, KEYS_AND_BITMAPS.layout, &mut writer).await?;
    let stats = collected([("bitmaps".to_owned(), writer.count().into())]);
    let details = LabelList.details(&Params::new(), data_type);
    // Rows with empty lists are in no list and cannot be counted.
    let rows = rows.unwrap_or_else(|| (merged.rows | null_lists).len());
    Ok(BuiltIndex { files: vec![finished(writer, null_lists)?], details, index_version, rows, stats })
}

pub(super) async fn inspect(segment: &SegmentFiles) -> Result<Value> {
    let file = segment.open(FILE).await?;
    let null_lists = null_lists(segment, &file).await?;
    let mut problems: Vec<String> = Vec::new();
    let mut seen = RoaringTreemap::new();
    let summary = summarise(segment, FILE, &file, &mut seen, &mut problems).await?;
    match &null_lists {
        None if segment.index_version() > 0 => {
            problems.push("the rows of null lists are not stored, which a reader of this version refuses".to_owned());
        }
        Some(nulls) if !nulls.is_disjoint(&seen) => {
            problems.push(format!("{} rows are null lists and have labels", nulls.intersection_len(&seen)));
        }
        _ => {}
    }
    Ok(json!({
        "method": "LABEL_LIST",
        "index_version": segment.index_version(),
        "rows_with_labels": seen.len(),
        "null_lists": null_lists.as_ref().map(RoaringTreemap::len),
        "labels": summary.keys.saturating_sub(u64::from(summary.nulls > 0)),
        "postings": summary.rows,
        "rows_with_null_items": summary.nulls,
        "min": summary.min,
        "max": summary.max,
        "largest": summary.top.named("label"),
        "problems": problems,
    }))
}

pub(super) async fn parts(segment: &SegmentFiles, wanted: &Range<u64>) -> Result<Parts> {
    key_parts(segment, &[FILE.to_owned()], KEYS_AND_BITMAPS, wanted, &scalar).await
}
