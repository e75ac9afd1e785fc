//! One page of one column: where its bytes are, and how a complaint about them reads.

use std::ops::Range;

use arrow::datatypes::DataType;
use bytes::Bytes;
use prost::Message;

use super::fault::{Decoded, Fault};
use super::messages::{Any, EncodingKind, Page};
use super::nesting;
use super::reader::LanceFile;
use super::values::{Physical, decoded_type};
use crate::error::{Error, ErrorCode, Result};

/// A page whose buffers are smaller than this in all is read by one request when most of it is wanted, bytes.
const SMALL_PAGE: u64 = 2 << 20;
/// A page of less is read by one request even when a few rows are wanted, bytes.
const TINY_PAGE: u64 = 64 << 10;
/// Bytes read for one slice of a larger page.
pub(crate) const SLICE_BYTES: u64 = 4 << 20;
/// Rows of one slice at most.
pub(crate) const SLICE_ROWS: u64 = 512 * 1024;

/// A page and what is needed to decode rows of it.
#[derive(Clone)]
pub(crate) struct PageSource {
    file: LanceFile,
    column: usize,
    index: usize,
    /// Rows of the page.
    pub(crate) rows: u64,
    buffers: Vec<Range<u64>>,
    held: Vec<Bytes>,
    /// Type asked for; dictionary types are still there.
    pub(crate) asked: DataType,
    /// Type of the arrays that are decoded.
    pub(crate) data_type: DataType,
    /// The lists around the values, outermost first.
    pub(crate) lists: Vec<DataType>,
    /// Type of the values inside all lists.
    pub(crate) leaf_type: DataType,
    /// How values of that type lie in a file.
    pub(crate) physical: Physical,
    /// The column is of an Arrow dictionary type; its values are decoded.
    pub(crate) dictionary: bool,
    nullable: bool,
}

/// What of a column is read, and as what.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Physical column.
    pub(crate) column: usize,
    /// Type as the schema has it.
    pub(crate) data_type: DataType,
    /// A null is an error when false.
    pub(crate) nullable: bool,
    /// The member of a packed struct, which is one column.
    pub(crate) member: Option<usize>,
}

impl PageSource {
    pub(crate) fn new(file: LanceFile, request: &Request, index: usize, page: &Page) -> Result<PageSource> {
        let buffers = page.buffer_offsets.iter().zip(&page.buffer_sizes).map(|(at, len)| *at..at.saturating_add(*len)).collect();
        let (_, stored) = nesting::split(&request.data_type);
        let data_type = decoded_type(&request.data_type);
        let (lists, leaf_type) = nesting::split(&data_type);
        let mut source = PageSource {
            file,
            column: request.column,
            index,
            rows: page.length,
            buffers,
            held: Vec::new(),
            asked: request.data_type.clone(),
            data_type,
            lists,
            leaf_type,
            physical: Physical::Null,
            dictionary: matches!(stored, DataType::Dictionary(..)),
            nullable: request.nullable,
        };
        source.physical = match Physical::of(&stored) {
            Ok(physical) => match request.member {
                Some(member) => Physical::Member(member, Box::new(physical)),
                None => physical,
            },
            Err(_) => {
                let ty = &request.data_type;
                let what = format!("{}: {} is read as {ty}, which this build cannot", source.file.path(), source.label());
                return Err(source.detail(Error::new(ErrorCode::UnsupportedType, what)));
            }
        };
        Ok(source)
    }

    /// The same page as `rows` values without lists and nulls, which are told apart from them.
    pub(crate) fn leaf(&self, rows: u64) -> PageSource {
        PageSource { rows, lists: Vec::new(), data_type: self.leaf_type.clone(), ..self.clone() }
    }

    fn label(&self) -> String {
        format!("{}, page {}", self.file.column_label(self.column), self.index)
    }

    fn detail(&self, error: Error) -> Error {
        error.with("object", self.file.path()).with("column", self.column).with("page", self.index)
    }

    /// The error that a decoder's complaint is, with its place.
    pub(crate) fn raise(&self, fault: Fault) -> Error {
        let (path, label) = (self.file.path(), self.label());
        self.detail(match fault {
            Fault::Corrupt(what) => Error::corrupt(path, format!("{label}: {what}")),
            Fault::Unsupported(what) => {
                let version = self.file.version().as_str();
                let message = format!("{path}: {label} (format {version}) is stored as {what}, which this build cannot decode");
                Error::new(ErrorCode::UnsupportedEncoding, message).with("encoding", what)
            }
            Fault::TooLarge(what) => Error::new(ErrorCode::MemoryLimit, format!("{path}: {label}: {what}")),
        })
    }

    /// Turns a decoder's result into the crate's.
    pub(crate) fn check<T>(&self, decoded: Decoded<T>) -> Result<T> {
        decoded.map_err(|fault| self.raise(fault))
    }

    /// `CORRUPT_FILE` with this page's place.
    pub(crate) fn corrupt(&self, what: impl Into<String>) -> Error {
        self.raise(Fault::Corrupt(what.into()))
    }

    /// The file the page is in.
    pub(crate) fn file(&self) -> &LanceFile {
        &self.file
    }

    /// Number of the page's column and of the page in it.
    pub(crate) fn place(&self) -> (usize, usize) {
        (self.column, self.index)
    }

    /// Bytes of all buffers.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffers.iter().fold(0u64, |sum, range| sum.saturating_add(range.end - range.start))
    }

    /// The page message: the part of its type after the last `/`, and its bytes.
    pub(crate) fn encoding(&self, page: &Page) -> Result<(String, Bytes)> {
        let direct = match page.encoding.as_ref().and_then(|encoding| encoding.kind.as_ref()) {
            Some(EncodingKind::Direct(direct)) => direct,
            Some(EncodingKind::Indirect(_)) => {
                return Err(self.raise(Fault::Unsupported("an encoding kept elsewhere".to_owned())));
            }
            _ => return Err(self.corrupt("it has no encoding")),
        };
        let any = Any::decode(direct.encoding.clone()).map_err(|e| self.corrupt(format!("its encoding does not decode: {e}")))?;
        let kind = any.type_url.rsplit('/').next().unwrap_or_default().to_owned();
        Ok((kind, any.value))
    }

    /// Number of buffers.
    pub(crate) fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// Size of a buffer in bytes.
    pub(crate) fn buffer_size(&self, index: usize) -> Result<u64> {
        match self.buffers.get(index) {
            Some(range) => Ok(range.end - range.start),
            None => Err(self.corrupt(format!("it names buffer {index} and has {}", self.buffers.len()))),
        }
    }

    /// Size of a buffer in bytes, `None` when there is none of that number.
    pub(crate) fn size_of(&self, index: usize) -> Option<u64> {
        self.buffers.get(index).map(|range| range.end - range.start)
    }

    /// A buffer that must hold at least `bytes`.
    pub(crate) fn expect_size(&self, index: usize, bytes: Option<u64>, what: &str) -> Result<()> {
        let size = self.buffer_size(index)?;
        match bytes {
            Some(bytes) if bytes <= size => Ok(()),
            _ => Err(self.corrupt(format!("{what} of {} rows in a buffer of {size} bytes", self.rows))),
        }
    }

    /// Reads a small page in one go, so that what follows costs no further request; not when a small part of it is wanted.
    pub(crate) async fn hold_if_small(&mut self, wanted: &Range<u64>) -> Result<()> {
        let size = self.bytes();
        let most = (wanted.end - wanted.start) >= self.rows / 2;
        if size <= TINY_PAGE || (most && size <= SMALL_PAGE) {
            self.held = self.file.read(&self.buffers).await?;
        }
        Ok(())
    }

    /// Ranges of buffers, all within the page.
    pub(crate) async fn read(&self, wanted: &[(usize, Range<u64>)]) -> Result<Vec<Bytes>> {
        for (index, range) in wanted {
            let size = self.buffer_size(*index)?;
            if range.start > range.end || range.end > size {
                return Err(self.corrupt(format!("bytes {}-{} of buffer {index}, which has {size}", range.start, range.end)));
            }
        }
        if !self.held.is_empty() {
            let from_held = |(index, range): &(usize, Range<u64>)| {
                let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
                self.held.get(*index).filter(|bytes| end <= bytes.len()).map(|bytes| bytes.slice(start..end))
            };
            let slices: Option<Vec<Bytes>> = wanted.iter().map(from_held).collect();
            return slices.ok_or_else(|| Error::internal("a page's buffer was not read"));
        }
        let in_file = |(index, range): &(usize, Range<u64>)| {
            let base = self.buffers.get(*index).map_or(0, |buffer| buffer.start);
            base + range.start..base + range.end
        };
        self.file.read(&wanted.iter().map(in_file).collect::<Vec<_>>()).await
    }

    /// One range of one buffer.
    pub(crate) async fn read_one(&self, buffer: usize, range: Range<u64>) -> Result<Bytes> {
        self.read(&[(buffer, range)]).await?.pop().ok_or_else(|| Error::internal("a page's buffer was not read"))
    }

    /// A whole buffer, refused above `limit` bytes.
    pub(crate) async fn read_whole(&self, buffer: usize, limit: u64) -> Result<Bytes> {
        let size = self.buffer_size(buffer)?;
        if size > limit {
            return Err(self.raise(Fault::TooLarge(format!("buffer {buffer} has {size} bytes, the limit is {limit}"))));
        }
        self.read_one(buffer, 0..size).await
    }

    /// Refuses nulls in a column that may not have them.
    pub(crate) fn check_nulls(&self, nulls: usize) -> Result<()> {
        if nulls == 0 || self.nullable { Ok(()) } else { Err(self.corrupt(format!("{nulls} nulls in a column that has none"))) }
    }
}
