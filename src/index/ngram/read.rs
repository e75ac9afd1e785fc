//! Reading what an NGRAM segment holds.

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::{DataType, UInt32Type};
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::format::treemap::encode_roaring64;
use crate::index::keyed::{KeyWriter, Keys, Top};
use crate::index::ngram::trigram::{LAST, NULL, text};
use crate::index::ngram::{FILE, NAMES, Ngram, file};
use crate::index::params::collected;
use crate::index::{BuiltIndex, IndexMethod, Params, SegmentFiles};

async fn open(segment: &SegmentFiles) -> Result<Keys> {
    Keys::open(segment, FILE, &segment.open(FILE).await?, NAMES)
}

pub(super) fn tokens<'a>(segment: &SegmentFiles, keys: &'a ArrayRef) -> Result<&'a UInt32Array> {
    keys.as_primitive_opt::<UInt32Type>()
        .filter(|tokens| tokens.null_count() == 0)
        .ok_or_else(|| Error::corrupt(&segment.label(FILE), "the column `tokens` is not made of codes"))
}

pub(super) async fn copy_without(segment: &SegmentFiles, drop: &dyn Fn(u64) -> bool) -> Result<BuiltIndex> {
    let mut keys = open(segment).await?;
    let mut writer = KeyWriter::new(NAMES, &DataType::UInt32, "uint32");
    let mut rows = RoaringTreemap::new();
    while let Some((values, bitmaps)) = keys.next().await? {
        for (row, token) in tokens(segment, &values)?.values().iter().enumerate() {
            let kept: RoaringTreemap = keys.rows(&bitmaps, row)?.iter().filter(|id| !drop(*id)).collect();
            if !kept.is_empty() {
                writer.push(Some(&token.to_le_bytes()), &mut |out| out.extend_from_slice(&encode_roaring64(&kept)))?;
                rows |= kept;
            }
        }
    }
    let stats = collected([("tokens".to_owned(), writer.count().into())]);
    let details = segment.entry().details.clone().unwrap_or_else(|| Ngram.details(&Params::new(), &DataType::Utf8));
    let index_version = segment.index_version();
    Ok(BuiltIndex { files: vec![file(writer)?], details, index_version, rows: rows.len(), stats })
}

pub(super) async fn inspect(segment: &SegmentFiles) -> Result<Value> {
    let mut keys = open(segment).await?;
    let mut problems: Vec<String> = Vec::new();
    let (mut count, mut postings, mut nulls, mut bytes) = (0u64, 0u64, 0u64, 0u64);
    let mut seen = RoaringTreemap::new();
    let mut top = Top::default();
    let mut last: Option<u32> = None;
    let mut descents = 0u64;
    while let Some((values, bitmaps)) = keys.next().await? {
        for (row, token) in tokens(segment, &values)?.values().iter().enumerate() {
            let rows = keys.rows(&bitmaps, row)?;
            bytes += bitmaps.value(row).len() as u64;
            count += 1;
            descents += u64::from(last.is_some_and(|last| last >= *token));
            last = Some(*token);
            if rows.is_empty() {
                problems.push(format!("token {} has no row", text(*token).unwrap_or_else(|| token.to_string())));
            }
            if *token == NULL {
                nulls = rows.len();
            } else {
                postings += rows.len();
                if text(*token).is_none() {
                    problems.push(format!("{token} is no token; the largest is {LAST}"));
                }
                top.offer(rows.len(), || json!(text(*token)));
            }
            seen |= rows;
        }
    }
    if descents > 0 {
        problems.push(format!("{descents} tokens do not come after the one before them"));
    }
    Ok(json!({
        "method": "NGRAM",
        "index_version": segment.index_version(),
        // Texts without a trigram are in no list and cannot be counted.
        "rows_with_tokens": seen.len().saturating_sub(nulls),
        "nulls": nulls,
        "tokens": count.saturating_sub(u64::from(nulls > 0)),
        "postings": postings,
        "posting_bytes": bytes,
        "largest": top.named("token"),
        "problems": problems,
    }))
}
