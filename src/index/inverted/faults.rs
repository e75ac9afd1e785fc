//! What in the files would lead a search astray though every row is under its tokens: counts that do not add up, and bounds by
//! which a search skips documents that it should have scored (index-formats §11.4, §11.6, §11.9-11.11).

use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::datatypes::{DataType, Field, Float32Type, UInt32Type, UInt64Type};
use fst::Streamer;
use roaring::RoaringTreemap;
use std::sync::Arc;

use super::packing::Reader;
use super::posting::{BLOCK, BLOCKS_PER_GROUP, Statistics, length_code, positions_size, read_block, read_impacts};
use super::read::{Documents, Head, List, column, documents, each_list, head, numbers, token_set, tokens};
use super::{docs_file, invert_file, tokens_file};
use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::index::SegmentFiles;
use crate::index::columns::whole;

/// Faults of a partition that are told one by one.
const TOLD: usize = 20;
/// A score may be less than the one computed here by this much: logarithms differ in their last bit.
const TOLERANCE: f32 = 1e-5;

pub(super) async fn faults(segment: &SegmentFiles) -> Result<Vec<String>> {
    let head = head(segment).await?;
    let mut faults = Vec::new();
    if !head.readable() {
        return Ok(faults);
    }
    let mut seen = RoaringTreemap::new();
    for partition in &head.partitions {
        let documents = documents(segment, *partition).await?;
        count_documents(segment, *partition, &documents, &mut seen, &mut faults).await?;
        count_tokens(segment, &head, *partition, &mut faults).await?;
        bounds(segment, &head, *partition, &documents, &mut faults).await?;
    }
    Ok(faults)
}

async fn count_documents(
    segment: &SegmentFiles,
    partition: u64,
    documents: &Documents,
    seen: &mut RoaringTreemap,
    faults: &mut Vec<String>,
) -> Result<()> {
    let file = segment.open(&docs_file(partition)).await?;
    let sum: u64 = documents.lengths.iter().map(|length| u64::from(*length)).sum();
    match file.metadata().get("total_tokens") {
        Some(text) if text.parse() != Ok(sum) => {
            faults.push(format!(
                "partition {partition} says that its documents have {text} tokens, they have {sum}: no search gets past that"
            ));
        }
        _ => {}
    }
    let twice = documents.rows.iter().filter(|row| !seen.insert(**row)).count();
    if twice > 0 {
        faults.push(format!("{twice} documents of partition {partition} are of rows that have one already"));
    }
    let empty = documents.lengths.iter().filter(|length| **length == 0).count();
    if empty > 0 {
        faults.push(format!("{empty} documents of partition {partition} have no token"));
    }
    Ok(())
}

async fn count_tokens(segment: &SegmentFiles, head: &Head, partition: u64, faults: &mut Vec<String>) -> Result<()> {
    let name = tokens_file(partition);
    let file = segment.open(&name).await?;
    if head.tokens == "fst" {
        let set = token_set(segment, &name, &file).await?;
        let mut bytes = 0u64;
        let mut stream = set.stream();
        while let Some((text, _)) = stream.next() {
            bytes += text.len() as u64;
        }
        let next = numbers::<UInt32Type>(segment, &name, &file, "_token_next_id").await?;
        let total = numbers::<UInt64Type>(segment, &name, &file, "_token_total_length").await?;
        if next.first().map(|next| u64::from(*next)) != Some(set.len() as u64) || total.first() != Some(&bytes) {
            faults.push(format!(
                "the token set of partition {partition} says {next:?} tokens of {total:?} bytes, it has {} of {bytes}",
                set.len()
            ));
        }
        return Ok(());
    }
    let texts = whole(&file, column(segment, &name, &file, "_token")?, &DataType::Utf8, false).await?;
    let texts = texts.as_string_opt::<i32>().ok_or_else(|| Error::corrupt(&segment.label(&name), "tokens that are no text"))?;
    if let Some(at) = (1..texts.len()).find(|at| texts.value(at - 1) >= texts.value(*at)) {
        faults.push(format!("token {at} of partition {partition} does not come after the one before it"));
    }
    // Whether they are numbered as the lists are.
    tokens(segment, head, partition, segment.open(&invert_file(partition)).await?.rows()).await.map(|_| ())
}

/// A column of lists, read whole.
struct Lists(Vec<ArrayRef>);

impl Lists {
    async fn read(file: &LanceFile, name: &str, item: DataType) -> Result<Option<Lists>> {
        let Some(at) = file.list_column(name) else { return Ok(None) };
        let data_type = DataType::List(Arc::new(Field::new("item", item, true)));
        let mut scan = file.scan(at, &data_type, false, 0..file.rows());
        let mut arrays = Vec::new();
        while let Some(array) = scan.next().await? {
            arrays.push(array);
        }
        Ok(Some(Lists(arrays)))
    }

    fn get(&self, mut row: usize) -> Option<ArrayRef> {
        for array in &self.0 {
            if row < array.len() {
                return array.as_list_opt::<i32>().map(|lists: &ListArray| lists.value(row));
            }
            row -= array.len();
        }
        None
    }
}

/// Holds scores, impacts and the beginnings of positions against the documents of every list.
async fn bounds(
    segment: &SegmentFiles,
    head: &Head,
    partition: u64,
    documents: &Documents,
    faults: &mut Vec<String>,
) -> Result<()> {
    let name = invert_file(partition);
    let file = segment.open(&name).await?;
    let best = numbers::<Float32Type>(segment, &name, &file, "_max_score").await?;
    let impacts = Lists::read(&file, "_impacts", DataType::LargeBinary).await?;
    let starts = match head.positions {
        true => Lists::read(&file, "_position_block_offset", DataType::UInt32).await?,
        false => None,
    };
    let total = documents.lengths.iter().map(|length| u64::from(*length)).sum();
    let statistics = Statistics::new(documents.rows.len(), total);
    let told = faults.len();
    let mut more = 0u64;
    each_list(segment, head, partition, &mut |list| {
        let wrong = Held { list, documents, statistics: &statistics }
            .fault(best.get(list.token).copied(), impacts.as_ref().and_then(|lists| lists.get(list.token)), starts.as_ref())
            .unwrap_or(Some("is damaged"));
        if let Some(wrong) = wrong {
            if faults.len() < told + TOLD {
                faults.push(format!("token {:?} of partition {partition} {wrong}", list.text));
            } else {
                more += 1;
            }
        }
        Ok(())
    })
    .await?;
    if more > 0 {
        faults.push(format!("{more} more tokens of partition {partition} are bounded wrongly"));
    }
    Ok(())
}

struct Held<'a> {
    list: &'a List<'a>,
    documents: &'a Documents,
    statistics: &'a Statistics,
}

impl Held<'_> {
    /// The first fault of a list; `None` outside for bytes that cannot be read.
    fn fault(&self, best: Option<f32>, impacts: Option<ArrayRef>, starts: Option<&Lists>) -> Option<Option<&'static str>> {
        let count = self.list.blocks.len();
        let groups = count.div_ceil(BLOCKS_PER_GROUP);
        let impacts = impacts.as_ref().and_then(|array| array.as_binary_opt::<i64>()).filter(|entries| !entries.is_empty());
        if impacts.is_some_and(|entries| entries.len() != count + groups) {
            return Some(Some("has not one entry of impacts for every block and group of blocks"));
        }
        let starts = starts.and_then(|lists| lists.get(self.list.token));
        let starts = starts.as_ref().and_then(|array| array.as_primitive_opt::<UInt32Type>());
        let stream = self.list.positions.unwrap_or_default();
        let (mut positions, mut left) = (Reader(stream), self.list.length);
        let mut group: Vec<(u32, u8)> = Vec::new();
        for block in 0..count {
            let bytes = self.list.blocks.value(block);
            let rows = left.min(BLOCK);
            left -= rows;
            let (mut ids, mut frequencies) = (Vec::new(), Vec::new());
            read_block(bytes, rows, self.list.tail, &mut ids, &mut frequencies)?;
            let length = |id: &u32| self.documents.lengths.get(*id as usize).copied();
            let pairs: Option<Vec<(u32, u32)>> = ids.iter().zip(&frequencies).map(|(id, f)| Some((*f, length(id)?))).collect();
            let pairs = pairs?;
            let least = self.statistics.block_score(self.list.length, pairs.iter().copied());
            let score = Reader(bytes).u32().map(f32::from_bits)?;
            if score.is_nan() || score < least * (1.0 - TOLERANCE) {
                return Some(Some("has a block whose best score is too low: searches skip documents in it"));
            }
            if !best.is_some_and(|best| best >= score) {
                return Some(Some("has a best score below that of one of its blocks"));
            }
            let last = ids.last().copied().unwrap_or(0);
            group.extend(pairs.iter().map(|(frequency, length)| (*frequency, length_code(*length))));
            if let Some(entries) = impacts {
                let own = group.get(group.len() - rows..).unwrap_or_default();
                if !bounded(entries.value(block), last, own)? {
                    return Some(Some("has impacts below the documents of a block: searches skip documents in it"));
                }
                if ((block + 1) % BLOCKS_PER_GROUP == 0 || block + 1 == count)
                    && !bounded(entries.value(count + block / BLOCKS_PER_GROUP), last, &group)?
                {
                    return Some(Some("has impacts below the documents of a group of blocks: searches skip documents in it"));
                }
            }
            if (block + 1) % BLOCKS_PER_GROUP == 0 {
                group.clear();
            }
            if let Some(starts) = starts {
                let at = stream.len() - positions.0.len();
                if starts.len() != count || starts.value(block) as usize != at {
                    return Some(Some("has blocks whose positions begin elsewhere than recorded"));
                }
                positions.take(positions_size(positions, &frequencies)?)?;
            }
        }
        Some(None)
    }
}

/// Whether an entry of impacts lets every document through: a pair of at least its frequency and at most its length.
fn bounded(entry: &[u8], last: u32, documents: &[(u32, u8)]) -> Option<bool> {
    let (recorded, pairs) = read_impacts(entry)?;
    let admits = |(f, code): &(u32, u8)| pairs.iter().any(|(most, shortest)| most >= f && shortest <= code);
    Some(recorded >= last && documents.iter().all(admits))
}
