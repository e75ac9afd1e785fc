//! Writing the files of a segment: partitions from 0 on, none when there is no document (index-formats §11.1). One is
//! enough, unless it would take more memory than there is.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, Float32Array, LargeBinaryArray, ListArray, UInt32Array, UInt64Array};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::Field;

use super::collect::Collector;
use super::packing::Reader;
use super::posting::{BLOCK, EncodedList, Statistics};
use super::settings::{FORMAT, Settings};
use super::{METADATA, TYPE_URL, docs_file, invert_file, tokens_file};
use crate::error::{Error, ErrorCode, Result};
use crate::file::{EncodedFile, FileWriter, WriterField};
use crate::format::index_metadata::IndexDetails;
use crate::index::{BuiltIndex, Params};

/// Bytes of postings after which a page is written.
const PAGE_BYTES: usize = 4 << 20;
/// Tokens after which a page is written, whatever their postings take.
const PAGE_ROWS: usize = 1 << 16;
/// An empty roaring bitmap: rows of no fragment are to be ignored.
const NO_FRAGMENTS: [u8; 8] = [0x3a, 0x30, 0, 0, 0, 0, 0, 0];

/// Encodes everything collected; `rows` are all that went in, those without a token included.
pub(super) fn write(collected: Collector, settings: &Settings, rows: u64) -> Result<BuiltIndex> {
    let mut partitions = Partitions::default();
    partitions.add(collected, settings)?;
    partitions.finish(settings, rows)
}

/// The partitions that are encoded so far.
#[derive(Default)]
pub(super) struct Partitions {
    files: Vec<(String, EncodedFile)>,
    count: u64,
    documents: u64,
    tokens: u64,
    total_tokens: u64,
}

impl Partitions {
    /// Encodes what was collected as one more partition, unless there is no document in it.
    pub(super) fn add(&mut self, mut collected: Collector, settings: &Settings) -> Result<()> {
        let documents = collected.rows().len() as u64;
        if documents == 0 {
            return Ok(());
        }
        self.documents += documents;
        self.total_tokens += collected.total_tokens();
        let (tokens, count) = write_tokens(&mut collected)?;
        self.tokens += count;
        let postings = write_postings(&mut collected, settings)?;
        self.files.push((tokens_file(self.count), tokens));
        self.files.push((invert_file(self.count), postings));
        self.files.push((docs_file(self.count), write_documents(&collected)?));
        self.count += 1;
        Ok(())
    }

    /// Bytes of their files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, file)| file.size).sum()
    }

    pub(super) fn finish(self, settings: &Settings, rows: u64) -> Result<BuiltIndex> {
        let Partitions { mut files, count, documents, tokens, total_tokens } = self;
        let mut metadata = FileWriter::new(vec![WriterField::new("deleted_fragments", "binary", false)]);
        let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        metadata.metadata("partitions", &format!("[{}]", numbers.join(",")));
        metadata.metadata("params", &settings.file_text());
        metadata.metadata("token_set_format", "fst");
        layout_metadata(&mut metadata, settings);
        let none: ArrayRef = Arc::new(BinaryArray::from_iter_values([NO_FRAGMENTS]));
        metadata.write_page(0, &none)?;
        files.insert(0, (METADATA.to_owned(), metadata.finish()?));
        let mut stats = Params::from_iter([
            ("documents".to_owned(), documents.into()),
            // A token of several partitions counts in each.
            ("tokens".to_owned(), tokens.into()),
            ("total_tokens".to_owned(), total_tokens.into()),
            ("positions".to_owned(), settings.with_position.into()),
        ]);
        if count > 1 {
            stats.insert("partitions".to_owned(), count.into());
        }
        Ok(BuiltIndex {
            files,
            details: IndexDetails { type_url: TYPE_URL.to_owned(), value: settings.details() },
            index_version: FORMAT as i32,
            rows,
            stats,
        })
    }
}

/// Keys that the metadata file and the postings share.
fn layout_metadata(file: &mut FileWriter, settings: &Settings) {
    file.metadata("format_version", &FORMAT.to_string());
    file.metadata("posting_block_size", &BLOCK.to_string());
    file.metadata("posting_tail_codec", "varint_delta_v1");
    if settings.with_position {
        file.metadata("positions_layout", "shared_stream_v2");
        file.metadata("positions_codec", "packed_delta_v1");
    }
}

fn write_documents(collected: &Collector) -> Result<EncodedFile> {
    let fields = vec![WriterField::new("_rowid", "uint64", false), WriterField::new("_num_tokens", "uint32", false)];
    let mut file = FileWriter::new(fields);
    file.metadata("total_tokens", &collected.total_tokens().to_string());
    let columns: [ArrayRef; 2] = [
        Arc::new(UInt64Array::from_iter_values(collected.rows().iter().copied())),
        Arc::new(UInt32Array::from_iter_values(collected.lengths().iter().copied())),
    ];
    for (column, values) in columns.iter().enumerate() {
        file.write_page(column, values)?;
    }
    file.finish()
}

/// The token set as one finite state transducer; also renumbers tokens so that none is without a document.
fn write_tokens(collected: &mut Collector) -> Result<(EncodedFile, u64)> {
    let numbers = collected.numbers();
    let mut map = fst::MapBuilder::memory();
    let mut bytes = 0u64;
    let mut count = 0u32;
    for (text, token) in collected.sorted_tokens() {
        let number = numbers.get(token as usize).copied().unwrap_or_default();
        map.insert(text, u64::from(number)).map_err(|e| Error::internal(format!("a token set: {e}")))?;
        bytes += text.len() as u64;
        count += 1;
    }
    let map = map.into_inner().map_err(|e| Error::internal(format!("a token set: {e}")))?;
    let mut file = FileWriter::new(vec![
        WriterField::new("_token_fst_bytes", "large_binary", false),
        WriterField::new("_token_next_id", "uint32", false),
        WriterField::new("_token_total_length", "uint64", false),
    ]);
    let columns: [ArrayRef; 3] = [
        Arc::new(LargeBinaryArray::from_iter_values([map])),
        Arc::new(UInt32Array::from_iter_values([count])),
        Arc::new(UInt64Array::from_iter_values([bytes])),
    ];
    for (column, values) in columns.iter().enumerate() {
        file.write_page(column, values)?;
    }
    Ok((file.finish()?, u64::from(count)))
}

fn write_postings(collected: &mut Collector, settings: &Settings) -> Result<EncodedFile> {
    let mut fields = vec![
        WriterField::list("_posting", "large_binary", true, false),
        WriterField::new("_max_score", "float", false),
        WriterField::new("_length", "uint32", false),
        WriterField::list("_impacts", "large_binary", true, false),
    ];
    if settings.with_position {
        fields.push(WriterField::new("_compressed_position", "large_binary", false));
        fields.push(WriterField::list("_position_block_offset", "uint32", true, false));
    }
    let mut file = FileWriter::new(fields);
    layout_metadata(&mut file, settings);
    let lengths = collected.lengths().to_vec();
    let statistics = Statistics::new(lengths.len(), collected.total_tokens());
    let mut page = Page::default();
    for list in collected.take_lists().filter(|list| !list.documents.is_empty()) {
        let spots = settings.with_position.then_some(Reader(&list.spots));
        let encoded = EncodedList::encode(&list.documents, &list.frequencies, spots, &lengths, &statistics).ok_or_else(|| {
            Error::new(ErrorCode::MemoryLimit, "the positions of one token take more than 4 GiB; plan more segments")
        })?;
        page.push(encoded, list.documents.len() as u32);
        if page.bytes() >= PAGE_BYTES || page.lengths.len() >= PAGE_ROWS {
            std::mem::take(&mut page).write(&mut file, settings.with_position)?;
        }
    }
    page.write(&mut file, settings.with_position)?;
    file.finish()
}

/// Rows of the postings file that are not written yet.
#[derive(Default)]
struct Page {
    postings: Lists,
    scores: Vec<f32>,
    lengths: Vec<u32>,
    impacts: Lists,
    positions: Blobs,
    starts: Vec<u32>,
    starts_ends: Vec<usize>,
}

impl Page {
    fn push(&mut self, list: EncodedList, documents: u32) {
        self.postings.push(list.blocks, &list.block_ends);
        self.impacts.push(list.impacts, &list.impact_ends);
        self.scores.push(list.max_score);
        self.lengths.push(documents);
        self.positions.push(&list.positions);
        self.starts.extend(list.position_starts);
        self.starts_ends.push(self.starts.len());
    }

    fn bytes(&self) -> usize {
        self.postings.items.bytes.len() + self.impacts.items.bytes.len() + self.positions.bytes.len()
    }

    fn write(self, file: &mut FileWriter, with_position: bool) -> Result<()> {
        if self.lengths.is_empty() {
            return Ok(());
        }
        file.write_page(0, &self.postings.array()?)?;
        file.write_page(1, &(Arc::new(Float32Array::from(self.scores)) as ArrayRef))?;
        file.write_page(2, &(Arc::new(UInt32Array::from(self.lengths)) as ArrayRef))?;
        file.write_page(3, &self.impacts.array()?)?;
        if with_position {
            file.write_page(4, &self.positions.array()?)?;
            file.write_page(5, &list_array(&self.starts_ends, Arc::new(UInt32Array::from(self.starts)))?)?;
        }
        Ok(())
    }
}

/// Values of a large binary column.
#[derive(Default)]
struct Blobs {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Blobs {
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    fn array(self) -> Result<ArrayRef> {
        let offsets: Vec<i64> = std::iter::once(0).chain(self.ends).map(|end| end as i64).collect();
        let array = LargeBinaryArray::try_new(OffsetBuffer::new(offsets.into()), Buffer::from_vec(self.bytes), None);
        Ok(Arc::new(array.map_err(|e| Error::internal(e.to_string()))?))
    }
}

/// Rows of a column of lists of blobs.
#[derive(Default)]
struct Lists {
    items: Blobs,
    ends: Vec<usize>,
}

impl Lists {
    fn push(&mut self, bytes: Vec<u8>, ends: &[usize]) {
        let base = self.items.bytes.len();
        self.items.bytes.extend(bytes);
        self.items.ends.extend(ends.iter().map(|end| base + end));
        self.ends.push(self.items.ends.len());
    }

    fn array(self) -> Result<ArrayRef> {
        list_array(&self.ends, self.items.array()?)
    }
}

fn list_array(ends: &[usize], items: ArrayRef) -> Result<ArrayRef> {
    let offsets: Result<Vec<i32>, _> = std::iter::once(&0).chain(ends).map(|end| i32::try_from(*end)).collect();
    let offsets = offsets.map_err(|_| Error::internal("a page of postings with over 2^31 blocks"))?;
    let field = Arc::new(Field::new("item", items.data_type().clone(), true));
    let array = ListArray::try_new(field, OffsetBuffer::new(offsets.into()), items, None);
    Ok(Arc::new(array.map_err(|e| Error::internal(e.to_string()))?))
}
