//! Reading what an NGRAM segment holds.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::{DataType, UInt32Type};
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::index::keep::Keep;
use crate::index::keyed::{KeyInput, KeyWriter, Keys, Top, key_parts, merge_keys};
use crate::index::ngram::trigram::{LAST, NULL, text};
use crate::index::ngram::{FILE, NAMES, Ngram, file};
use crate::index::order::comparison;
use crate::index::params::collected;
use crate::index::parts::Parts;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, Placing, SegmentFiles, Source};

async fn open(segment: &SegmentFiles) -> Result<Keys> {
    let keys = Keys::open(segment, FILE, &segment.open(FILE).await?, NAMES)?;
    match keys.data_type() {
        DataType::UInt32 => Ok(keys),
        _ => Err(Error::corrupt(&segment.label(FILE), "the column `tokens` is not made of codes")),
    }
}

pub(super) fn tokens<'a>(segment: &SegmentFiles, keys: &'a ArrayRef) -> Result<&'a UInt32Array> {
    keys.as_primitive_opt::<UInt32Type>()
        .filter(|tokens| tokens.null_count() == 0)
        .ok_or_else(|| Error::corrupt(&segment.label(FILE), "the column `tokens` is not made of codes"))
}

pub(super) async fn copy_placed(segment: &SegmentFiles, place: Placing<'_>) -> Result<BuiltIndex> {
    let input = KeyInput::new(open(segment).await?, Keep::At(place));
    let mut built = write(vec![input], segment.index_version(), None).await?;
    if let Some(details) = &segment.entry().details {
        built.details = details.clone();
    }
    Ok(built)
}

pub(super) async fn merge(sources: &[Source<'_>], spec: &BuildSpec) -> Result<BuiltIndex> {
    let mut inputs = Vec::with_capacity(sources.len());
    for source in sources {
        inputs.push(KeyInput::new(open(source.files).await?, Keep::Only(source.rows)));
    }
    write(inputs, spec.index_version, spec.rows_hint).await
}

async fn write(inputs: Vec<KeyInput<'_>>, index_version: i32, rows: Option<u64>) -> Result<BuiltIndex> {
    let compare = comparison(&DataType::UInt32).ok_or_else(|| Error::internal("codes have no order"))?;
    let mut writer = KeyWriter::new(NAMES, &DataType::UInt32, "uint32");
    let merged = merge_keys(inputs, compare, NAMES.layout, &mut writer).await?;
    let stats = collected([("tokens".to_owned(), writer.count().into())]);
    let details = Ngram.details(&Params::new(), &DataType::Utf8);
    // Texts without a trigram are in no list and cannot be counted.
    let rows = rows.unwrap_or_else(|| merged.rows.len());
    Ok(BuiltIndex { files: vec![file(writer)?], details, index_version, rows, stats })
}

pub(super) async fn inspect(segment: &SegmentFiles) -> Result<Value> {
    let mut keys = open(segment).await?;
    let mut problems: Vec<String> = Vec::new();
    let (mut count, mut postings, mut nulls, mut bytes) = (0u64, 0u64, 0u64, 0u64);
    let mut seen = RoaringTreemap::new();
    let mut top = Top::default();
    let mut last: Option<u32> = None;
    let (mut descents, mut empty) = (0u64, 0u64);
    while let Some((values, bitmaps)) = keys.next().await? {
        for (row, token) in tokens(segment, &values)?.values().iter().enumerate() {
            let rows = keys.rows(&bitmaps, row)?;
            bytes += bitmaps.value(row).len() as u64;
            count += 1;
            descents += u64::from(last.is_some_and(|last| last >= *token));
            last = Some(*token);
            if rows.is_empty() {
                empty += 1;
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
        // A compaction by Lance leaves them where all rows of a token were deleted: no search finds anything wrong in them.
        "remarks": (empty > 0).then(|| format!("{empty} tokens have no row")).into_iter().collect::<Vec<_>>(),
    }))
}

pub(super) async fn parts(segment: &SegmentFiles, wanted: &Range<u64>) -> Result<Parts> {
    let token = |keys: &ArrayRef, row: usize| {
        let code = keys.as_primitive_opt::<UInt32Type>().and_then(|codes| codes.values().get(row).copied());
        json!(code.and_then(text))
    };
    key_parts(segment, &[FILE.to_owned()], NAMES, wanted, &token).await
}
