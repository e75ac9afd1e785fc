//! Reading what a segment holds: parameters, documents, a copy without some rows, a summary.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use arrow::array::{Array, AsArray, LargeBinaryArray};
use arrow::datatypes::{DataType, Field, UInt32Type, UInt64Type};
use fst::Streamer;
use roaring::{RoaringBitmap, RoaringTreemap};
use serde_json::{Value, json};

use super::collect::Collector;
use super::packing::Reader;
use super::posting::{BLOCK, Tail, read_block, read_positions};
use super::settings::Settings;
use super::write::write;
use super::{METADATA, docs_file, invert_file, tokens_file, transducer};
use crate::error::{Error, ErrorCode, Result};
use crate::file::LanceFile;
use crate::format::bitmap::decode_roaring32;
use crate::index::columns::whole;
use crate::index::{BuildSpec, BuiltIndex, Params, Placing, SegmentFiles, Source};

/// Tokens that an inspection names.
const TOP: usize = 20;

/// The metadata file.
pub(super) struct Head {
    pub partitions: Vec<u64>,
    pub params: Params,
    /// Rows of these fragments are to be ignored.
    pub deleted: RoaringBitmap,
    /// `fst` or `arrow`.
    pub tokens: String,
    version: String,
    block: usize,
    tail: String,
    pub positions: bool,
}

impl Head {
    /// Whether the postings are of the kind that is written here.
    pub(super) fn readable(&self) -> bool {
        self.tail() == Some(Tail::Varint)
    }

    /// How lists end, of the kinds of postings that are decoded here: those of format 2, and of format 1 without its positions.
    pub(super) fn tail(&self) -> Option<Tail> {
        match (self.version.as_str(), self.block, self.tail.as_str()) {
            ("2", BLOCK, "varint_delta_v1") => Some(Tail::Varint),
            ("1", BLOCK, "fixed32_v1") => Some(Tail::Fixed),
            _ => None,
        }
    }
}

pub(super) async fn head(segment: &SegmentFiles) -> Result<Head> {
    let file = segment.open(METADATA).await?;
    let corrupt = |what: String| Error::corrupt(&segment.label(METADATA), what);
    let text = |key: &str| file.metadata().get(key).map(String::as_str);
    let partitions = text("partitions").unwrap_or("[]");
    let partitions: Vec<u64> =
        serde_json::from_str(partitions).map_err(|_| corrupt(format!("`partitions` is {partitions}, no list of numbers")))?;
    let params = Settings::recover(text("params").ok_or_else(|| corrupt("has no `params`".to_owned()))?).map_err(corrupt)?;
    let deleted = match file.column_index("deleted_fragments") {
        Some(column) if file.rows() > 0 => {
            let column = whole(&file, column, &DataType::Binary, false).await?;
            let bytes = column.as_binary::<i32>().value(0).to_vec();
            decode_roaring32(&segment.label(METADATA), &bytes)?
        }
        _ => RoaringBitmap::new(),
    };
    let number = |key: &str, absent: usize| match text(key) {
        None => Ok(absent),
        Some(text) => text.parse().map_err(|_| corrupt(format!("`{key}` is {text}, no number"))),
    };
    Ok(Head {
        partitions,
        params,
        deleted,
        tokens: text("token_set_format").unwrap_or("arrow").to_owned(),
        version: text("format_version").unwrap_or("1").to_owned(),
        block: number("posting_block_size", BLOCK)?,
        tail: text("posting_tail_codec").unwrap_or("fixed32_v1").to_owned(),
        positions: text("positions_layout").is_some(),
    })
}

pub(super) async fn recover_params(segment: &SegmentFiles) -> Result<Params> {
    Ok(head(segment).await?.params)
}

/// The column of a file by name.
pub(super) fn column(segment: &SegmentFiles, name: &str, file: &LanceFile, column: &str) -> Result<usize> {
    file.column_index(column).ok_or_else(|| Error::corrupt(&segment.label(name), format!("has no column `{column}`")))
}

pub(super) async fn numbers<T: arrow::datatypes::ArrowPrimitiveType>(
    segment: &SegmentFiles,
    name: &str,
    file: &LanceFile,
    at: &str,
) -> Result<Vec<T::Native>> {
    let at = column(segment, name, file, at)?;
    let array = whole(file, at, &T::DATA_TYPE, false).await?;
    let array = array.as_primitive_opt::<T>().ok_or_else(|| Error::corrupt(&segment.label(name), "a column of another type"))?;
    Ok(array.values().to_vec())
}

pub(super) async fn stored_rows(segment: &SegmentFiles) -> Result<RoaringTreemap> {
    let head = head(segment).await?;
    let mut rows = RoaringTreemap::new();
    for partition in &head.partitions {
        let name = docs_file(*partition);
        let file = segment.open(&name).await?;
        let mut ids = numbers::<UInt64Type>(segment, &name, &file, "_rowid").await?;
        ids.sort_unstable();
        rows.extend(ids);
    }
    Ok(rows)
}

/// The documents of a partition, by number.
pub(super) struct Documents {
    pub rows: Vec<u64>,
    pub lengths: Vec<u32>,
}

pub(super) async fn documents(segment: &SegmentFiles, partition: u64) -> Result<Documents> {
    let name = docs_file(partition);
    let file = segment.open(&name).await?;
    let rows = numbers::<UInt64Type>(segment, &name, &file, "_rowid").await?;
    let lengths = numbers::<UInt32Type>(segment, &name, &file, "_num_tokens").await?;
    if rows.len() != lengths.len() {
        return Err(Error::corrupt(&segment.label(&name), "not every document has a length"));
    }
    Ok(Documents { rows, lengths })
}

/// Everything of the segment's partitions that is to stay, gathered again as if it were being built.
async fn gather(segment: &SegmentFiles, head: &Head, into: &mut Collector, place: Placing<'_>) -> Result<u64> {
    let mut kept = 0u64;
    for partition in &head.partitions {
        let Documents { rows, lengths } = documents(segment, *partition).await?;
        let mut renumbered = Vec::with_capacity(rows.len());
        for (row, length) in rows.iter().zip(&lengths) {
            let place = if head.deleted.contains((*row >> 32) as u32) { None } else { place(*row) };
            renumbered.push(place.map(|row| into.document(row, *length)).transpose()?);
            kept += u64::from(place.is_some());
        }
        each_list(segment, head, *partition, &mut |list| {
            let id = into.token(list.text)?;
            let read = list.each(&mut |document, frequency, deltas| {
                if let Some(Some(document)) = renumbered.get(document as usize) {
                    into.posting(id, *document, frequency, deltas.iter().copied());
                }
            });
            read.ok_or_else(|| list.damaged(segment))
        })
        .await?;
    }
    Ok(kept)
}

/// A posting list as it lies in its file.
pub(super) struct List<'a> {
    /// The token.
    pub text: &'a str,
    /// Its number.
    pub token: usize,
    /// The file, for messages.
    pub file: &'a str,
    /// Documents that are said to have it.
    pub length: usize,
    pub blocks: &'a LargeBinaryArray,
    pub tail: Tail,
    pub positions: Option<&'a [u8]>,
}

impl List<'_> {
    /// Hands every document to `each`, with its frequency and position deltas; `None` for damaged bytes.
    pub(super) fn each(&self, each: &mut dyn FnMut(u32, u32, &[u32])) -> Option<()> {
        read_list(self.blocks, self.length, self.tail, self.positions.map(Reader), each)
    }

    pub(super) fn damaged(&self, segment: &SegmentFiles) -> Error {
        Error::corrupt(&segment.label(self.file), format!("the postings of token {} are damaged", self.token))
    }
}

/// Hands every posting list of a partition to `each`, by number of the token.
///
/// # Errors
/// Those of reading, `CORRUPT_FILE` when tokens and lists are not as many, and those of `each`.
pub(super) async fn each_list(
    segment: &SegmentFiles,
    head: &Head,
    partition: u64,
    each: &mut dyn FnMut(&List<'_>) -> Result<()>,
) -> Result<()> {
    let name = invert_file(partition);
    let corrupt = |what: String| Error::corrupt(&segment.label(&name), what);
    let tail = head.tail().ok_or_else(|| corrupt("has postings of a format that is not read here".to_owned()))?;
    let file = segment.open(&name).await?;
    let texts = tokens(segment, head, partition, file.rows()).await?;
    let lengths = numbers::<UInt32Type>(segment, &name, &file, "_length").await?;
    let spots = match head.positions {
        true => Some(whole(&file, column(segment, &name, &file, "_compressed_position")?, &DataType::LargeBinary, false).await?),
        false => None,
    };
    let spots = spots.as_ref().and_then(|array| array.as_binary_opt::<i64>());
    let blobs = DataType::List(Arc::new(Field::new("item", DataType::LargeBinary, true)));
    let at = file.list_column("_posting").ok_or_else(|| corrupt("has no lists `_posting`".to_owned()))?;
    let mut scan = file.scan(at, &blobs, false, 0..file.rows());
    let mut token = 0usize;
    while let Some(array) = scan.next().await? {
        let lists = array.as_list_opt::<i32>().ok_or_else(|| corrupt("`_posting` is not made of lists".to_owned()))?;
        for row in 0..lists.len() {
            let damaged = || corrupt(format!("the postings of token {token} are damaged"));
            let (Some(text), Some(length)) = (texts.get(token), lengths.get(token)) else { return Err(damaged()) };
            let blocks = lists.value(row);
            let blocks = blocks.as_binary_opt::<i64>().ok_or_else(damaged)?;
            let positions = spots.map(|spots| if token < spots.len() { spots.value(token) } else { &[] });
            each(&List { text, token, file: &name, length: *length as usize, blocks, tail, positions })?;
            token += 1;
        }
    }
    Ok(())
}

/// Hands every posting of a list of `length` documents to `each`, with its position deltas; `None` for damaged bytes.
fn read_list(
    blocks: &LargeBinaryArray,
    length: usize,
    tail: Tail,
    mut positions: Option<Reader<'_>>,
    each: &mut dyn FnMut(u32, u32, &[u32]),
) -> Option<()> {
    let mut left = length;
    for block in 0..blocks.len() {
        let (mut documents, mut frequencies, mut deltas) = (Vec::new(), Vec::new(), Vec::new());
        let rows = left.min(BLOCK);
        read_block(blocks.value(block), rows, tail, &mut documents, &mut frequencies)?;
        left -= rows;
        if let Some(positions) = &mut positions {
            read_positions(positions, &frequencies, &mut deltas)?;
        }
        let mut rest = deltas.as_slice();
        for (document, frequency) in documents.iter().zip(&frequencies) {
            let own = if positions.is_some() { *frequency as usize } else { 0 };
            let (own, after) = rest.split_at_checked(own)?;
            rest = after;
            each(*document, *frequency, own);
        }
    }
    (left == 0 && positions.is_none_or(|rest| rest.is_empty())).then_some(())
}

pub(super) async fn copy_placed(segment: &SegmentFiles, place: Placing<'_>) -> Result<Option<BuiltIndex>> {
    let head = head(segment).await?;
    let Ok(settings) = Settings::parse(&head.params) else { return Ok(None) };
    if !head.readable() || settings.with_position != head.positions {
        return Ok(None);
    }
    let mut collected = Collector::new(settings.with_position);
    let rows = match gather(segment, &head, &mut collected, place).await {
        Err(error) if matches!(error.code(), ErrorCode::UnsupportedType | ErrorCode::UnsupportedEncoding) => return Ok(None),
        gathered => gathered?,
    };
    let mut built = write(collected, &settings, rows)?;
    if let Some(details) = &segment.entry().details {
        built.details = details.clone();
    }
    Ok(Some(built))
}

/// Gathers the documents of several segments that were built with the same settings; nothing is cut into tokens again.
pub(super) async fn merge(sources: &[Source<'_>], spec: &BuildSpec) -> Result<Option<BuiltIndex>> {
    let settings = Settings::parse(&spec.params)?;
    let mut collected = Collector::new(settings.with_position);
    let mut rows = 0u64;
    for source in sources {
        let head = head(source.files).await?;
        let alike = Settings::parse(&head.params).is_ok_and(|own| own == settings);
        if !alike || !head.readable() || settings.with_position != head.positions {
            return Ok(None);
        }
        rows += gather(source.files, &head, &mut collected, &|row| source.rows.contains(row).then_some(row)).await?;
    }
    // Rows without a token have no document.
    write(collected, &settings, spec.rows_hint.unwrap_or(rows)).map(Some)
}

/// Texts of all tokens by number.
pub(super) async fn tokens(segment: &SegmentFiles, head: &Head, partition: u64, count: u64) -> Result<Vec<String>> {
    let name = tokens_file(partition);
    let corrupt = |what: &str| Error::corrupt(&segment.label(&name), what.to_owned());
    let count = usize::try_from(count).map_err(|_| corrupt("more tokens than can be numbered"))?;
    let mut texts = Vec::new();
    let mut put = |text: &[u8], id: u64| {
        let text = std::str::from_utf8(text).map_err(|_| corrupt("a token that is no text"))?;
        let id = usize::try_from(id).ok().filter(|id| *id < count).ok_or_else(|| corrupt("a token past the posting lists"))?;
        if texts.len() <= id {
            texts.resize(id + 1, String::new());
        }
        if let Some(slot) = texts.get_mut(id) {
            *slot = text.to_owned();
        }
        Ok::<(), Error>(())
    };
    let file = segment.open(&name).await?;
    if head.tokens == "fst" {
        let set = token_set(segment, &name, &file).await?;
        let mut stream = set.stream();
        while let Some((text, id)) = stream.next() {
            put(text, id)?;
        }
    } else {
        let at = column(segment, &name, &file, "_token")?;
        let column = whole(&file, at, &DataType::Utf8, false).await?;
        let ids = numbers::<UInt32Type>(segment, &name, &file, "_token_id").await?;
        for (row, id) in ids.iter().enumerate().take(column.len()) {
            put(column.as_string::<i32>().value(row).as_bytes(), u64::from(*id))?;
        }
    }
    if texts.len() != count || texts.iter().filter(|text| text.is_empty()).count() > 1 {
        return Err(corrupt("its tokens are not numbered as the posting lists are"));
    }
    Ok(texts)
}

/// The transducer, checked before it is followed.
pub(super) async fn token_set(segment: &SegmentFiles, name: &str, file: &LanceFile) -> Result<fst::Map<Vec<u8>>> {
    let at = column(segment, name, file, "_token_fst_bytes")?;
    let corrupt = |what: String| Error::corrupt(&segment.label(name), what);
    if file.rows() != 1 {
        return Err(corrupt(format!("{} rows where there is one token set", file.rows())));
    }
    let array = whole(file, at, &DataType::LargeBinary, false).await?;
    let bytes = array.as_binary_opt::<i64>().ok_or_else(|| corrupt("the token set is no binary value".to_owned()))?;
    transducer::open(bytes.value(0).to_vec()).map_err(|e| corrupt(format!("the token set is damaged: {e}")))
}

pub(super) async fn inspect(segment: &SegmentFiles) -> Result<Value> {
    let head = head(segment).await?;
    let (mut documents, mut total, mut terms) = (0u64, Some(0u64), 0u64);
    let mut problems: Vec<String> = Vec::new();
    let mut top: BinaryHeap<Reverse<(u32, String)>> = BinaryHeap::new();
    let mut postings = 0u64;
    for partition in &head.partitions {
        let name = docs_file(*partition);
        let docs = segment.open(&name).await?;
        documents += docs.rows();
        let recorded = docs.metadata().get("total_tokens").and_then(|text| text.parse::<u64>().ok());
        total = total.zip(recorded).map(|(sum, own)| sum + own);
        let name = invert_file(*partition);
        let invert = segment.open(&name).await?;
        postings += invert.size();
        terms += invert.rows();
        for (text, count) in top_tokens(segment, &head, *partition, &invert, &mut problems).await? {
            // A token of several partitions is counted in each; the sum is what a search sees.
            let known = top.iter().find(|Reverse((_, known))| *known == text).map_or(0, |Reverse((count, _))| *count);
            top.retain(|Reverse((_, known))| *known != text);
            top.push(Reverse((known + count, text)));
        }
    }
    let mut top: Vec<(u32, String)> = top.into_iter().map(|Reverse(entry)| entry).collect();
    top.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    top.truncate(TOP);
    Ok(json!({
        "method": "INVERTED",
        "index_version": segment.index_version(),
        "posting_format": head.version,
        "documents": documents,
        "tokens": terms,
        "total_tokens": total,
        "average_length": total.filter(|_| documents > 0).map(|total| total as f64 / documents as f64),
        "partitions": head.partitions,
        "with_position": head.positions,
        "token_set_format": head.tokens,
        "params": head.params,
        "posting_bytes": postings,
        "top_tokens": top.into_iter().map(|(count, text)| json!({ "token": text, "documents": count })).collect::<Vec<_>>(),
        "deleted_fragments": head.deleted.iter().collect::<Vec<u32>>(),
        "problems": problems,
    }))
}

/// The tokens of a partition that are in most documents. Only the counts are read whole.
async fn top_tokens(
    segment: &SegmentFiles,
    head: &Head,
    partition: u64,
    invert: &LanceFile,
    problems: &mut Vec<String>,
) -> Result<Vec<(String, u32)>> {
    let name = invert_file(partition);
    let lengths = numbers::<UInt32Type>(segment, &name, invert, "_length").await?;
    let mut order: Vec<(u32, u32)> = (0u32..).zip(&lengths).map(|(token, count)| (*count, token)).collect();
    if order.len() > TOP {
        order.select_nth_unstable_by(TOP, |a, b| b.cmp(a));
        order.truncate(TOP);
    }
    let wanted: HashMap<u64, u32> = order.into_iter().map(|(count, token)| (u64::from(token), count)).collect();
    if head.tokens != "fst" {
        let texts = tokens(segment, head, partition, invert.rows()).await?;
        let text = |token: u64| texts.get(token as usize).cloned().unwrap_or_default();
        return Ok(wanted.into_iter().map(|(token, count)| (text(token), count)).collect());
    }
    let name = tokens_file(partition);
    let file = segment.open(&name).await?;
    let set = token_set(segment, &name, &file).await?;
    if set.len() as u64 != invert.rows() {
        problems.push(format!("{} tokens and {} posting lists in partition {partition}", set.len(), invert.rows()));
    }
    let mut found = Vec::new();
    let mut stream = set.stream();
    while let Some((text, token)) = stream.next() {
        if let Some(count) = wanted.get(&token) {
            found.push((String::from_utf8_lossy(text).into_owned(), *count));
        }
    }
    Ok(found)
}
