//! The tokens of a segment, a stretch at a time.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Field};
use fst::Streamer;
use serde_json::{Value, json};

use super::read::{Head, column, head, token_set, tokens};
use super::{invert_file, tokens_file};
use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::columns::Rows;
use crate::index::json::scalar;
use crate::index::parts::Parts;

/// Tokens in the order of their numbers, partition by partition.
pub(super) async fn parts(segment: &SegmentFiles, wanted: &Range<u64>) -> Result<Parts> {
    let head = head(segment).await?;
    let mut opened = Vec::with_capacity(head.partitions.len());
    for partition in &head.partitions {
        opened.push((*partition, segment.open(&invert_file(*partition)).await?));
    }
    let mut parts = Parts::new("tokens", opened.iter().map(|(_, file)| file.rows()).sum(), wanted);
    let blobs = DataType::List(Arc::new(Field::new("item", DataType::LargeBinary, true)));
    let mut first = 0u64;
    for (partition, file) in &opened {
        let inside = parts.inside(first, file.rows());
        first += file.rows();
        if inside.is_empty() {
            continue;
        }
        let name = invert_file(*partition);
        let lists = file.list_column("_posting");
        let lists = lists.ok_or_else(|| Error::corrupt(&segment.label(&name), "has no lists `_posting`"))?;
        let columns = [(column(segment, &name, file, "_length")?, DataType::UInt32, false), (lists, blobs.clone(), false)];
        let texts = texts(segment, &head, *partition, file.rows(), &inside).await?;
        let mut token = inside.start;
        let mut rows = Rows::new(file, &columns, &inside);
        while let Some(arrays) = rows.next().await? {
            let [lengths, postings] = arrays.as_slice() else { break };
            for row in 0..lengths.len() {
                let blocks = postings.as_list_opt::<i32>().map(|lists| lists.value(row));
                let blocks = blocks.as_ref().and_then(|blocks| blocks.as_binary_opt::<i64>());
                let bytes: Option<usize> = blocks.map(|blocks| blocks.iter().flatten().map(<[u8]>::len).sum());
                let more = parts.push(json!({
                    "partition": partition,
                    "token": texts.get(&token),
                    "documents": scalar(lengths, row),
                    "bytes": bytes,
                }));
                if !more {
                    return Ok(parts);
                }
                token += 1;
            }
        }
    }
    Ok(parts)
}

/// The texts of the tokens with these numbers; the set is gone through for it, and no others are held.
async fn texts(
    segment: &SegmentFiles,
    head: &Head,
    partition: u64,
    count: u64,
    wanted: &Range<u64>,
) -> Result<HashMap<u64, Value>> {
    let mut texts = HashMap::new();
    if head.tokens != "fst" {
        let all = tokens(segment, head, partition, count).await?;
        texts.extend((0u64..).zip(all).filter(|(token, _)| wanted.contains(token)).map(|(token, text)| (token, text.into())));
        return Ok(texts);
    }
    let name = tokens_file(partition);
    let set = token_set(segment, &name, &segment.open(&name).await?).await?;
    let mut stream = set.stream();
    while let Some((text, token)) = stream.next() {
        if wanted.contains(&token) {
            texts.insert(token, String::from_utf8_lossy(text).into_owned().into());
        }
    }
    Ok(texts)
}
