//! Pages of 2.0 files (file-format §3): a tree of encodings whose leaves name page buffers, one file per encoding.
//!
//! Reading has two steps, so that one round of requests serves the whole tree: every node names the bytes it needs, then
//! takes them in the same order. Only what depends on offsets (the bytes of strings, the items of lists) is read after that.
//! [`READERS`] is the complete list of what this build decodes; `docs/encodings.md` is printed from it.

mod binary;
mod bitpacked;
mod dictionary;
mod fixed_size_binary;
mod fixed_size_list;
mod flat;
mod fsst;
mod list;
mod nullable;
mod packed_struct;

use std::ops::Range;
use std::rc::Rc;

use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;
use async_trait::async_trait;
use bytes::Bytes;

use super::PageDecoder;
use crate::error::Result;
use crate::file::fault::{Decoded, Fault, corrupt, unsupported};
use crate::file::messages::encoding20::{ArrayEncoding, ArrayKind, Buffer};
use crate::file::page::{PageSource, SLICE_BYTES, SLICE_ROWS};
use crate::file::values::{Column, Physical};

/// Dictionaries and compressed buffers are held whole; larger ones are refused, bytes.
const MAX_HELD: u64 = 256 << 20;
/// Encodings inside encodings.
const MAX_DEPTH: usize = 32;

/// Decoded values of some rows; `None` = everything is null.
struct Part {
    column: Option<Column>,
    nulls: Option<NullBuffer>,
}

/// Bytes that were asked for, in the order in which they were.
type Read = std::vec::IntoIter<Bytes>;

/// One node of an opened tree.
#[async_trait(?Send)]
trait Node {
    /// Reads what is needed whatever rows are wanted.
    async fn prepare(&mut self, _source: &PageSource) -> Result<()> {
        Ok(())
    }
    /// Names the bytes of `rows`.
    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>);
    /// Decodes `rows`; takes from `read` what `plan` named.
    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part>;
    /// Bytes of a row, about.
    fn row_bytes(&self) -> u64;
}

/// What a node is opened with.
struct Opening<'a> {
    source: &'a PageSource,
    /// Values of the node.
    rows: u64,
    /// Their form.
    physical: Physical,
    depth: usize,
}

impl Opening<'_> {
    /// A node inside this one.
    fn inner(&self, encoding: Option<&ArrayEncoding>, rows: u64, physical: Physical) -> Decoded<Box<dyn Node>> {
        if self.depth >= MAX_DEPTH {
            return corrupt(format!("encodings more than {MAX_DEPTH} deep"));
        }
        let Some(encoding) = encoding else { return corrupt("an encoding without its parts") };
        open_node(encoding, &Opening { source: self.source, rows, physical, depth: self.depth + 1 })
    }

    /// A page buffer that must hold at least `bytes`.
    fn buffer(&self, buffer: Option<&Buffer>, bytes: Option<u64>, what: &str) -> Decoded<usize> {
        let index = match buffer {
            Some(buffer) if buffer.buffer_type == 0 => buffer.buffer_index as usize,
            Some(_) => return unsupported(format!("{what} in a buffer outside its page")),
            None => return corrupt(format!("{what} without a buffer")),
        };
        match (self.source.size_of(index), bytes) {
            (Some(size), Some(bytes)) if bytes <= size => Ok(index),
            (size, _) => corrupt(format!("{what} of {} values in buffer {index}, of {size:?} bytes", self.rows)),
        }
    }
}

type Open = fn(&ArrayKind, &Opening<'_>) -> Decoded<Box<dyn Node>>;

/// One member of the encoding message and its reader.
pub(crate) struct Reader {
    /// Name in messages and documents.
    pub(crate) name: &'static str,
    is: fn(&ArrayKind) -> bool,
    open: Option<Open>,
}

impl Reader {
    /// Whether pages of it are read.
    #[cfg(test)]
    pub(crate) fn reads(&self) -> bool {
        // Lists and struct headers are read as columns of their own, not as values.
        self.open.is_some() || matches!(self.name, "List" | "Struct")
    }
}

macro_rules! reader {
    ($member:ident, $open:expr) => {
        Reader {
            name: stringify!($member),
            is: |kind| matches!(kind, ArrayKind::$member(_)),
            open: Some(|kind, opening| match kind {
                ArrayKind::$member(message) => Ok(Box::new($open(message, opening)?)),
                _ => corrupt("an encoding under another's name"),
            }),
        }
    };
    ($member:ident) => {
        Reader { name: stringify!($member), is: |kind| matches!(kind, ArrayKind::$member(_)), open: None }
    };
}

/// Every encoding, in the order of the message.
pub(crate) static READERS: &[Reader] = &[
    reader!(Flat, flat::Flat::new),
    reader!(Nullable, nullable::Nullable::new),
    reader!(FixedSizeList, fixed_size_list::FixedSizeList::new),
    reader!(List),
    reader!(Struct),
    reader!(Binary, binary::Binary::new),
    reader!(Dictionary, dictionary::Dictionary::new),
    reader!(Fsst, fsst::Fsst::new),
    reader!(PackedStruct, packed_struct::PackedStruct::new),
    reader!(Bitpacked, bitpacked::Bitpacked::new),
    reader!(FixedSizeBinary, fixed_size_binary::FixedSizeBinary::new),
    reader!(BitpackedForNonNeg, bitpacked::BitpackedForNonNeg::new),
];

fn kind(encoding: &ArrayEncoding) -> Decoded<&ArrayKind> {
    encoding.kind.as_ref().map_or_else(|| unsupported("an array encoding that this build does not know"), Ok)
}

fn open_node(encoding: &ArrayEncoding, opening: &Opening<'_>) -> Decoded<Box<dyn Node>> {
    let kind = kind(encoding)?;
    let Some(reader) = READERS.iter().find(|reader| (reader.is)(kind)) else {
        return unsupported("an array encoding that this build does not know");
    };
    match reader.open {
        Some(open) => open(kind, opening),
        None => corrupt(format!("{} in a column of values", reader.name)),
    }
}

/// Chooses the decoder of a 2.0 page.
pub(crate) async fn open(source: PageSource, encoding: &ArrayEncoding) -> Result<Rc<dyn PageDecoder>> {
    if let (Some(_), ArrayKind::List(message)) = (source.lists.first(), source.check(kind(encoding))?) {
        return Ok(Rc::new(list::ListPage::open(source, message).await?));
    }
    Ok(Rc::new(ArrayPage::open(source, encoding).await?))
}

/// An opened page of values.
struct ArrayPage {
    source: PageSource,
    root: Box<dyn Node>,
    slice_rows: u64,
}

impl ArrayPage {
    async fn open(source: PageSource, encoding: &ArrayEncoding) -> Result<ArrayPage> {
        if let Some(ty) = source.lists.first() {
            // An all-null column of lists may have a page that says no more than that.
            let all_null = matches!(source.check(kind(encoding))?, ArrayKind::Nullable(n) if nullable::is_all_null(n));
            if !all_null {
                return Err(source.corrupt(format!("values in a column of type {ty}")));
            }
        }
        let opening = Opening { source: &source, rows: source.rows, physical: source.physical.clone(), depth: 0 };
        let mut root = source.check(open_node(encoding, &opening))?;
        root.prepare(&source).await?;
        let slice_rows = (SLICE_BYTES / root.row_bytes().max(1)).clamp(1, SLICE_ROWS);
        Ok(ArrayPage { source, root, slice_rows })
    }
}

#[async_trait(?Send)]
impl PageDecoder for ArrayPage {
    fn source(&self) -> &PageSource {
        &self.source
    }

    fn slice_end(&self, start: u64) -> u64 {
        // Slices that begin at whole bytes of bitmaps need no shifting.
        let end = start.saturating_add(self.slice_rows);
        if self.slice_rows > 64 { end - end % 64 } else { end }
    }

    async fn decode(&self, rows: Range<u64>) -> Result<ArrayRef> {
        let source = &self.source;
        let part = read_node(&*self.root, source, &rows).await?;
        let count = (rows.end - rows.start) as usize;
        match part.column {
            None => Ok(arrow::array::new_null_array(&source.data_type, count)),
            Some(column) => source.check(column.finish(&source.data_type, count, part.nulls)),
        }
    }
}

/// Plans, reads and decodes rows of a tree.
async fn read_node(node: &dyn Node, source: &PageSource, rows: &Range<u64>) -> Result<Part> {
    let mut wanted = Vec::new();
    node.plan(rows, &mut wanted);
    let mut read = source.read(&wanted).await?.into_iter();
    node.finish(source, rows, &mut read).await
}

/// The next of the bytes asked for.
fn next(source: &PageSource, read: &mut Read) -> Result<Bytes> {
    read.next().ok_or_else(|| source.raise(Fault::Corrupt("bytes that were not read".to_owned())))
}

/// The fixed-width values of a node that has no nulls: offsets, indices, bytes.
async fn numbers(
    node: &dyn Node,
    source: &PageSource,
    rows: &Range<u64>,
    read: &mut Read,
    what: &str,
) -> Result<arrow::buffer::Buffer> {
    match node.finish(source, rows, read).await? {
        Part { column: Some(Column::Fixed(values)), nulls: None } => Ok(values),
        _ => Err(source.raise(Fault::Unsupported(format!("{what} with nulls")))),
    }
}
