//! Reading what a LABEL_LIST segment holds.

use arrow::array::Array;
use arrow::datatypes::DataType;
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::format::treemap::{decode_row_treemap, encode_row_treemap};
use crate::index::bytes::ValueBytes;
use crate::index::keyed::{KEYS_AND_BITMAPS, KeyWriter, Keys, summarise};
use crate::index::labellist::{FILE, LabelList, NULL_LISTS, file as finished, item};
use crate::index::params::collected;
use crate::index::{BuiltIndex, IndexMethod, Params, SegmentFiles};

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

pub(super) async fn copy_without(
    segment: &SegmentFiles,
    data_type: &DataType,
    drop: &dyn Fn(u64) -> bool,
) -> Result<Option<BuiltIndex>> {
    let file = segment.open(FILE).await?;
    let Some(null_lists) = null_lists(segment, &file).await? else { return Ok(None) };
    let mut keys = Keys::open(segment, FILE, &file, KEYS_AND_BITMAPS)?;
    if Some(keys.data_type()) != item(data_type) {
        let what = format!("`keys` is {}, the indexed column is {data_type}", keys.logical_type());
        return Err(Error::corrupt(&segment.label(FILE), what));
    }
    let null_lists: RoaringTreemap = null_lists.iter().filter(|id| !drop(*id)).collect();
    let mut writer = KeyWriter::new(KEYS_AND_BITMAPS, keys.data_type(), keys.logical_type());
    let mut seen = null_lists.clone();
    while let Some((values, bitmaps)) = keys.next().await? {
        let bytes = ValueBytes::new(&values).ok_or_else(|| Error::internal("an array has no readable values"))?;
        for row in 0..values.len() {
            let kept: RoaringTreemap = keys.rows(&bitmaps, row)?.iter().filter(|id| !drop(*id)).collect();
            if !kept.is_empty() {
                let key = values.is_valid(row).then(|| bytes.get(row));
                writer.push(key, &mut |out| out.extend_from_slice(&encode_row_treemap(&kept)))?;
                seen |= kept;
            }
        }
    }
    let stats = collected([("bitmaps".to_owned(), writer.count().into())]);
    let details = segment.entry().details.clone().unwrap_or_else(|| LabelList.details(&Params::new(), data_type));
    Ok(Some(BuiltIndex {
        files: vec![finished(writer, &null_lists)?],
        details,
        index_version: segment.index_version(),
        // Rows with empty lists are in no list and cannot be counted.
        rows: seen.len(),
        stats,
    }))
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
