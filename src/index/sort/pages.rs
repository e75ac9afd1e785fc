//! Cutting sorted values into the pages of an index file.

// Our own buffers: the lengths add up to the bytes.
#![allow(clippy::indexing_slicing)]

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{ArrowNativeType, DataType};

use crate::error::{Error, Result};
use crate::index::sort::alphabet::{Decoder, LONGEST, Word};
use crate::index::sort::{PAGE_BYTES, PAGE_ROWS};

/// Pages in order, each made when it is asked for.
pub(super) type Pages = Box<dyn Iterator<Item = Result<ArrayRef>>>;

/// Slices of at most `rows` rows.
pub(super) fn cut(array: ArrayRef, rows: usize) -> Pages {
    let starts = (0..array.len()).step_by(rows.max(1));
    Box::new(starts.map(move |start| Ok(array.slice(start, rows.max(1).min(array.len() - start)))))
}

fn page_of(data_type: &DataType, rows: usize, buffers: Vec<Buffer>) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone())
        .len(rows)
        .buffers(buffers)
        .build()
        .map_err(|error| Error::internal(format!("sorted values do not form an array: {error}")))?;
    Ok(make_array(data))
}

/// One buffer of `rows` values of a fixed width, cut without copying it.
pub(super) fn fixed_pages<T: ArrowNativeType>(
    data_type: &DataType,
    rows: usize,
    values: Vec<T>,
    page_rows: usize,
) -> Result<Pages> {
    Ok(cut(page_of(data_type, rows, vec![Buffer::from_vec(values)])?, page_rows.clamp(1, PAGE_ROWS)))
}

/// Values laid end to end, of these lengths.
pub(super) struct TextPages {
    pub(super) data_type: DataType,
    pub(super) arena: Buffer,
    pub(super) lengths: Vec<u32>,
    pub(super) row: usize,
    pub(super) byte: usize,
}

impl Iterator for TextPages {
    type Item = Result<ArrayRef>;

    fn next(&mut self) -> Option<Result<ArrayRef>> {
        let mut offsets = Offsets::of(&self.data_type, self.lengths.len() - self.row);
        let mut used = 0;
        while let Some(length) = self.lengths.get(self.row).map(|length| *length as usize) {
            if offsets.full(used, length) {
                break;
            }
            used += length;
            offsets.push(used);
            self.row += 1;
        }
        let data = self.arena.slice_with_length(self.byte, used);
        self.byte += used;
        offsets.page(&self.data_type, data)
    }
}

/// Values as keys of an alphabet.
pub(super) struct KeyPages<W> {
    pub(super) data_type: DataType,
    pub(super) decoder: Decoder,
    pub(super) keys: Vec<W>,
    pub(super) row: usize,
    /// Bytes of the values from `row` on.
    pub(super) bytes: usize,
}

impl<W: Word> Iterator for KeyPages<W> {
    type Item = Result<ArrayRef>;

    fn next(&mut self) -> Option<Result<ArrayRef>> {
        let mut offsets = Offsets::of(&self.data_type, self.keys.len() - self.row);
        // Pages are cut as those of longer texts are, whichever way they were sorted: a value too much is taken back.
        let mut data = Vec::with_capacity(self.bytes.min(PAGE_BYTES + LONGEST));
        while let Some(key) = self.keys.get(self.row) {
            let used = data.len();
            self.decoder.decode(*key, &mut data);
            if offsets.full(used, data.len() - used) {
                data.truncate(used);
                break;
            }
            offsets.push(data.len());
            self.row += 1;
        }
        self.bytes -= data.len().min(self.bytes);
        offsets.page(&self.data_type, Buffer::from_vec(data))
    }
}

/// Ends of the values of one page, as wide as the type wants them.
enum Offsets {
    Small(Vec<i32>),
    Large(Vec<i64>),
    Fixed(usize),
}

impl Offsets {
    /// Room for the rows of a page, of `left` that there are.
    fn of(data_type: &DataType, left: usize) -> Offsets {
        fn start<T: Default>(rows: usize) -> Vec<T> {
            let mut ends = Vec::with_capacity(rows + 1);
            ends.push(T::default());
            ends
        }
        let rows = left.min(PAGE_ROWS);
        match data_type {
            DataType::FixedSizeBinary(_) => Offsets::Fixed(0),
            DataType::LargeUtf8 | DataType::LargeBinary => Offsets::Large(start(rows)),
            _ => Offsets::Small(start(rows)),
        }
    }

    #[inline(always)]
    fn push(&mut self, end: usize) {
        match self {
            // A page ends by its bytes long before an i32 does, and a value alone fits the array it came in.
            Offsets::Small(ends) => ends.push(end as i32),
            Offsets::Large(ends) => ends.push(end as i64),
            Offsets::Fixed(rows) => *rows += 1,
        }
    }

    #[inline(always)]
    fn rows(&self) -> usize {
        match self {
            Offsets::Small(ends) => ends.len() - 1,
            Offsets::Large(ends) => ends.len() - 1,
            Offsets::Fixed(rows) => *rows,
        }
    }

    /// Does a value of `length` bytes belong on the next page?
    #[inline(always)]
    fn full(&self, used: usize, length: usize) -> bool {
        let rows = self.rows();
        rows > 0 && (used + length > PAGE_BYTES || rows >= PAGE_ROWS)
    }

    fn page(self, data_type: &DataType, data: Buffer) -> Option<Result<ArrayRef>> {
        let rows = self.rows();
        let buffers = match self {
            Offsets::Small(ends) => vec![Buffer::from_vec(ends), data],
            Offsets::Large(ends) => vec![Buffer::from_vec(ends), data],
            Offsets::Fixed(_) => vec![data],
        };
        (rows > 0).then(|| page_of(data_type, rows, buffers))
    }
}
