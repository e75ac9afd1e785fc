//! Strings and binaries: unsigned byte order, shorter first.
//!
//! Short strings of few different bytes are sorted as numbers (`alphabet`). Others are distributed over buckets by eight
//! bytes taken after the common prefix, between splitters drawn from a sample. Rows with a splitter's very bytes are divided
//! by length: those that end there are equal, the others go on after it. So every division gets ahead, whatever the column
//! holds, and no bucket is sorted that the scratch space is too small for. The bytes themselves move along, so sorting a
//! bucket and reading it in order stays inside the cache; nothing is allocated per row. What ends up in the arena is the
//! value buffer of the index pages.

// Hot loops over our own buffers: every index below comes from lengths counted in the same function.
#![allow(clippy::indexing_slicing)]

use arrow::array::{Array, ArrayData, ArrayRef};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};

use crate::error::{Error, ErrorCode, Result};
use crate::index::order::KeyOrder;
use crate::index::sort::alphabet::{Alphabet, Census, Extent, Word};
use crate::index::sort::numbers::{out_of_memory, wrong_type, zeroed};
use crate::index::sort::pages::{KeyPages, TextPages};
use crate::index::sort::rows::{Ascent, Chunk, order_ties, row_id, rows_bytes};
use crate::index::sort::scatter::{Rows, scratch_bytes, sort_chunks};
use crate::index::sort::{PAGE_ROWS, Sorted, ValueSorter};
use crate::table::scan::BatchRows;

const MAX_SPLITTERS: usize = 511;
const ROWS_PER_SPLITTER: usize = 1 << 13;
const SAMPLE: usize = 1 << 13;
/// Largest bucket sorted in one piece; larger ones are distributed again, by bytes further in.
const LARGE_BUCKET: usize = 1 << 16;
/// Bytes a row takes: its length, its id, the number of its bucket, and what sorting a bucket needs besides the values.
const LENGTH: u64 = size_of::<u32>() as u64;
const ID: u64 = size_of::<u64>() as u64;
const BUCKET: u64 = size_of::<u16>() as u64;
const SCRATCH: u64 = (size_of::<(u64, u32)>() + size_of::<usize>() + size_of::<(u32, u64)>()) as u64;
/// Bytes that decide about a bucket.
const WINDOW: usize = 8;
/// Buckets of rows with a splitter's bytes: one for each length at which they may end, one for longer rows.
const GROUP: usize = WINDOW + 2;

/// The bytes of an array's slots, whatever the offset width.
pub struct ByteSlots {
    offsets: Offsets,
    data: Buffer,
    length: usize,
}

enum Offsets {
    Small(ScalarBuffer<i32>),
    Large(ScalarBuffer<i64>),
    Fixed(usize),
}

impl ByteSlots {
    /// A view of a string or binary array; `None` for other types.
    pub fn new(array: &dyn Array) -> Option<ByteSlots> {
        let data = array.to_data();
        let length = data.len();
        let buffers = data.buffers();
        Some(match array.data_type() {
            DataType::Utf8 | DataType::Binary => {
                ByteSlots { offsets: Offsets::Small(offsets_of(&data)?), data: buffers.get(1)?.clone(), length }
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                ByteSlots { offsets: Offsets::Large(offsets_of(&data)?), data: buffers.get(1)?.clone(), length }
            }
            DataType::FixedSizeBinary(width) => {
                let width = usize::try_from(*width).ok()?;
                let start = data.offset().checked_mul(width)?;
                let bytes = length.checked_mul(width)?;
                let buffer = buffers.first()?;
                (start.checked_add(bytes)? <= buffer.len()).then_some(())?;
                ByteSlots { offsets: Offsets::Fixed(width), data: buffer.slice_with_length(start, bytes), length }
            }
            _ => return None,
        })
    }

    /// Bytes of slot `index`; empty for an index outside.
    #[inline(always)]
    pub fn get(&self, index: usize) -> &[u8] {
        let range = match &self.offsets {
            Offsets::Small(offsets) => match (offsets.get(index), offsets.get(index + 1)) {
                (Some(start), Some(end)) => *start as usize..*end as usize,
                _ => return &[],
            },
            Offsets::Large(offsets) => match (offsets.get(index), offsets.get(index + 1)) {
                (Some(start), Some(end)) => *start as usize..*end as usize,
                _ => return &[],
            },
            Offsets::Fixed(width) => index * width..(index + 1) * width,
        };
        self.data.get(range).unwrap_or(&[])
    }

    /// Slots.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Bytes of the values, with the ends of those that have them.
    pub fn bytes(&self) -> u64 {
        match &self.offsets {
            Offsets::Small(offsets) => span(offsets) + 4 * self.length as u64,
            Offsets::Large(offsets) => span(offsets) + 8 * self.length as u64,
            Offsets::Fixed(_) => self.data.len() as u64,
        }
    }
}

fn span<T: ArrowNativeType>(offsets: &[T]) -> u64 {
    match offsets {
        [first, .., last] => last.as_usize().saturating_sub(first.as_usize()) as u64,
        _ => 0,
    }
}

/// The `length + 1` offsets of an array's own slots; an array without rows may have none at all.
fn offsets_of<T: ArrowNativeType>(data: &ArrayData) -> Option<ScalarBuffer<T>> {
    let buffer = data.buffers().first()?.clone();
    if data.is_empty() {
        return Some(ScalarBuffer::from(Vec::new()));
    }
    let end = data.offset().checked_add(data.len())?.checked_add(1)?.checked_mul(size_of::<T>())?;
    (buffer.len() >= end && buffer.as_ptr().align_offset(align_of::<T>()) == 0)
        .then(|| ScalarBuffer::new(buffer, data.offset(), data.len() + 1))
}

/// Rows with bytes, in any order.
trait Source {
    fn each(&self, f: impl FnMut(&[u8], u64));
}

impl Source for Chunk<ByteSlots> {
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(&[u8], u64)) {
        for index in 0..self.values.len() {
            if self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(index))
                && let Some(id) = row_id(&self.rows, index)
            {
                f(self.values.get(index), id);
            }
        }
    }
}

impl Source for Vec<Chunk<ByteSlots>> {
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(&[u8], u64)) {
        for chunk in self {
            chunk.each(&mut f);
        }
    }
}

/// Rows laid end to end.
struct Run {
    arena: Vec<u8>,
    lengths: Vec<u32>,
    ids: Vec<u64>,
}

impl Source for Run {
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(&[u8], u64)) {
        let mut rest = self.arena.as_slice();
        for (length, id) in self.lengths.iter().zip(&self.ids) {
            let (value, tail) = rest.split_at(*length as usize);
            rest = tail;
            f(value, *id);
        }
    }
}

/// Where sorted rows go: three buffers of exactly the right size.
struct Target<'a> {
    arena: &'a mut [u8],
    lengths: &'a mut [u32],
    ids: &'a mut [u64],
}

/// Collects and sorts a string or binary column.
pub(super) struct ByteSorter {
    data_type: DataType,
    chunks: Vec<Chunk<ByteSlots>>,
    census: Census,
    rows: usize,
    bytes: usize,
    held: u64,
    ascending: bool,
    last: Vec<u8>,
    ids: Ascent,
    /// What the census has seen when the alphabet was last asked for its sizes, and these.
    sized: (Extent, Option<(u64, u64)>),
}

impl ByteSorter {
    /// A sorter for a column of `data_type`.
    pub(super) fn new(data_type: DataType) -> ByteSorter {
        ByteSorter {
            data_type,
            chunks: Vec::new(),
            census: Census::new(),
            rows: 0,
            bytes: 0,
            held: 0,
            ascending: true,
            last: Vec::new(),
            ids: Ascent::default(),
            sized: Default::default(),
        }
    }
}

impl ValueSorter for ByteSorter {
    fn push(&mut self, values: &ArrayRef, rows: BatchRows) -> Result<()> {
        if values.data_type() != &self.data_type {
            return Err(wrong_type(&self.data_type, values.data_type()));
        }
        let slots = ByteSlots::new(values).ok_or_else(|| Error::internal("a byte array has no readable buffers"))?;
        let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        self.held += slots.bytes() + rows_bytes(&rows);
        let chunk = Chunk { values: slots, nulls, rows };
        let (mut count, mut bytes) = (0usize, 0u64);
        let mut ascending = self.ascending;
        let mut last: &[u8] = &self.last;
        for index in 0..chunk.values.len() {
            if chunk.nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) {
                continue;
            }
            let value = chunk.values.get(index);
            count += 1;
            bytes += value.len() as u64;
            self.census.count(value);
            if ascending {
                ascending = last <= value;
                last = value;
            }
        }
        if let Err(longest) = self.census.longest() {
            return Err(Error::new(ErrorCode::MemoryLimit, format!("a value of {longest} bytes cannot be indexed")));
        }
        let last = if ascending { last.to_vec() } else { Vec::new() };
        (self.ascending, self.last) = (ascending, last);
        self.rows += count;
        let bytes = usize::try_from(bytes).ok().and_then(|bytes| self.bytes.checked_add(bytes));
        self.bytes = bytes.ok_or_else(|| out_of_memory(usize::MAX))?;
        self.ids.note(&chunk.rows, chunk.values.len());
        self.chunks.push(chunk);
        let extent = self.census.extent();
        if extent != self.sized.0 {
            let alphabet = self.census.alphabet();
            self.sized = (extent, alphabet.map(|alphabet| (alphabet.key_bytes() as u64, alphabet.table_bytes())));
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let (rows, bytes) = (self.rows as u64, self.bytes as u64);
        let target = bytes + rows * (LENGTH + ID);
        // Ids, the pages and the ends that the file format wants.
        let paging = rows * (ID + 8) + bytes + rows.min(PAGE_ROWS as u64) * 8;
        if self.ascending {
            return (self.held + target).max(paging + rows * LENGTH);
        }
        if let Some((key, tables)) = self.sized.1 {
            let slots: u64 = self.chunks.iter().map(|chunk| chunk.values.len() as u64).sum();
            let scratch = scratch_bytes::<u128>(self.rows);
            return (self.held + slots * key).max(slots * key + rows * (key + ID) + scratch).max(paging + rows * key + tables);
        }
        let dividing = self.held + target + rows * BUCKET;
        // By then the input is gone. One bucket may hold nearly all rows; it is copied to be divided again.
        let dividing_again = 2 * target + rows * BUCKET + rows.min(LARGE_BUCKET as u64) * SCRATCH;
        dividing.max(dividing_again).max(paging + rows * LENGTH)
    }

    fn finish(self: Box<Self>) -> Result<Sorted> {
        let ByteSorter { data_type, chunks, census, rows, bytes, ascending, ids: ascent, .. } = *self;
        if !ascending && let Some(alphabet) = census.alphabet() {
            return match alphabet.key_bytes() {
                8 => sort_as_keys::<u64>(data_type, chunks, &alphabet, (rows, bytes), ascent),
                _ => sort_as_keys::<u128>(data_type, chunks, &alphabet, (rows, bytes), ascent),
            };
        }
        let mut run = Run { arena: zeroed(bytes)?, lengths: zeroed(rows)?, ids: zeroed(rows)? };
        let target = Target { arena: &mut run.arena, lengths: &mut run.lengths, ids: &mut run.ids };
        if ascending {
            copy(chunks, target);
        } else {
            distribute(chunks, target, &mut Scratch::default())?;
        }
        let Run { arena, lengths, mut ids } = run;
        if !ascent.unbroken() {
            let mut end = lengths.first().map_or(0, |first| *first as usize);
            order_ties(&mut ids, |at| {
                let (before, length) = (lengths[at - 1] as usize, lengths[at] as usize);
                let same = before == length && arena[end - before..end] == arena[end..end + length];
                end += length;
                same
            });
        }
        let pages = TextPages { data_type, arena: Buffer::from_vec(arena), lengths, row: 0, byte: 0 };
        Ok(Sorted { pages: Box::new(pages), ids: ScalarBuffer::from(ids) })
    }
}

fn sort_as_keys<W: Word>(
    data_type: DataType,
    chunks: Vec<Chunk<ByteSlots>>,
    alphabet: &Alphabet,
    (rows, bytes): (usize, usize),
    ascent: Ascent,
) -> Result<Sorted> {
    let encoder = alphabet.encoder::<W>();
    let mut bounds: Option<(W, W)> = None;
    let mut coded = Vec::with_capacity(chunks.len());
    for Chunk { values, nulls, rows } in chunks {
        let mut keys = zeroed::<W::Raw>(values.len())?;
        for (index, slot) in keys.iter_mut().enumerate() {
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(index)) {
                let key = encoder.encode(values.get(index));
                *slot = key.to_bits();
                bounds = Some(bounds.map_or((key, key), |(low, high)| (low.min(key), high.max(key))));
            }
        }
        coded.push(Chunk { values: ScalarBuffer::from(keys), nulls, rows });
    }
    let mut keys = zeroed::<W::Raw>(rows)?;
    let mut ids = zeroed::<u64>(rows)?;
    if let Some(bounds) = bounds {
        sort_chunks(coded, &KeyOrder::<W>::unsigned(), bounds, Rows { values: &mut keys, ids: &mut ids });
    }
    let keys: Vec<W> = keys.into_iter().map(W::from_bits).collect();
    if !ascent.unbroken() {
        order_ties(&mut ids, |at| keys[at - 1] == keys[at]);
    }
    Ok(Sorted {
        pages: Box::new(KeyPages { data_type, decoder: alphabet.decoder(), keys, row: 0, bytes }),
        ids: ScalarBuffer::from(ids),
    })
}

fn copy(chunks: Vec<Chunk<ByteSlots>>, target: Target) {
    let (mut row, mut byte) = (0, 0);
    for chunk in chunks {
        chunk.each(|value, id| {
            target.arena[byte..byte + value.len()].copy_from_slice(value);
            target.lengths[row] = value.len() as u32;
            target.ids[row] = id;
            byte += value.len();
            row += 1;
        });
    }
}

/// Eight bytes from `skip` on as a number in byte order; missing bytes count as 0.
#[inline(always)]
fn window(value: &[u8], skip: usize) -> u64 {
    let rest = value.get(skip..).unwrap_or(&[]);
    match rest.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Length of the prefix that all values share.
fn common_prefix(source: &impl Source) -> usize {
    let mut shared: Option<Vec<u8>> = None;
    source.each(|value, _| match &mut shared {
        None => shared = Some(value.to_vec()),
        Some(prefix) => {
            if !value.starts_with(prefix) {
                let same = prefix.iter().zip(value).take_while(|(a, b)| a == b).count();
                prefix.truncate(same);
            }
        }
    });
    shared.map_or(0, |prefix| prefix.len())
}

fn splitters(source: &impl Source, rows: usize, skip: usize) -> Vec<u64> {
    let stride = (rows / SAMPLE).max(1);
    let mut sample = Vec::with_capacity(rows / stride + 1);
    let mut at = 0;
    source.each(|value, _| {
        if at % stride == 0 {
            sample.push(window(value, skip));
        }
        at += 1;
    });
    sample.sort_unstable();
    let wanted = (rows / ROWS_PER_SPLITTER).clamp(1, MAX_SPLITTERS);
    let mut chosen: Vec<u64> = (1..=wanted).filter_map(|n| sample.get(n * sample.len() / (wanted + 1)).copied()).collect();
    chosen.dedup();
    chosen
}

#[derive(Default)]
struct Scratch {
    entries: Vec<(u64, u32)>,
    offsets: Vec<usize>,
    bytes: Vec<u8>,
    rows: Vec<(u32, u64)>,
}

/// Moves the rows of `source` into `target` in order.
fn distribute(source: impl Source, target: Target, scratch: &mut Scratch) -> Result<()> {
    let rows = target.ids.len();
    let skip = common_prefix(&source);
    let splitters = splitters(&source, rows, skip);
    // First the buckets between splitters, close together because they are met most, then each splitter's group.
    let group = |at: usize| splitters.len() + 1 + GROUP * at;
    let bucket_of = |value: &[u8]| {
        let key = window(value, skip);
        let at = splitters.partition_point(|splitter| *splitter < key);
        // A window ends in zeros where the value is over: of equal windows the shorter value comes first.
        if splitters.get(at) == Some(&key) { group(at) + (value.len() - skip).min(WINDOW + 1) } else { at }
    };
    let buckets = group(splitters.len());
    let ascending = || {
        (0..=splitters.len())
            .flat_map(|at| std::iter::once(at).chain(group(at)..group(at + 1)))
            .filter(|bucket| *bucket < buckets)
    };
    let mut which: Vec<u16> = Vec::new();
    which.try_reserve_exact(rows).map_err(|_| out_of_memory(2 * rows))?;
    let mut cursors = vec![(0usize, 0usize); buckets];
    source.each(|value, _| {
        let bucket = bucket_of(value);
        which.push(bucket as u16);
        cursors[bucket].0 += 1;
        cursors[bucket].1 += value.len();
    });
    let (mut row, mut byte) = (0, 0);
    for bucket in ascending() {
        let (count, bytes) = std::mem::replace(&mut cursors[bucket], (row, byte));
        (row, byte) = (row + count, byte + bytes);
    }
    let mut position = 0;
    source.each(|value, id| {
        let (row, byte) = &mut cursors[which[position] as usize];
        target.arena[*byte..*byte + value.len()].copy_from_slice(value);
        target.lengths[*row] = value.len() as u32;
        target.ids[*row] = id;
        *row += 1;
        *byte += value.len();
        position += 1;
    });
    drop((source, which));
    // Every cursor stands at the end of its bucket now.
    let (mut row, mut byte) = (0, 0);
    for bucket in ascending() {
        let (row_end, byte_end) = cursors[bucket];
        let part = Target {
            arena: &mut target.arena[byte..byte_end],
            lengths: &mut target.lengths[row..row_end],
            ids: &mut target.ids[row..row_end],
        };
        (row, byte) = (row_end, byte_end);
        if bucket.checked_sub(group(0)).is_some_and(|at| at % GROUP <= WINDOW) {
            // The same bytes and the same end: equal values.
            continue;
        }
        if part.ids.len() > LARGE_BUCKET && !all_equal(&part) {
            let run = Run { arena: part.arena.to_vec(), lengths: part.lengths.to_vec(), ids: part.ids.to_vec() };
            distribute(run, part, scratch)?;
        } else {
            sort_bucket(part, scratch);
        }
    }
    Ok(())
}

fn all_equal(part: &Target) -> bool {
    let Some(length) = part.lengths.first().map(|length| *length as usize) else { return true };
    if part.lengths.iter().any(|other| *other as usize != length) {
        return false;
    }
    length == 0 || part.arena.chunks_exact(length).all(|value| value == &part.arena[..length])
}

fn sort_bucket(part: Target, scratch: &mut Scratch) {
    if part.ids.len() < 2 || all_equal(&part) {
        return;
    }
    let Scratch { entries, offsets, bytes, rows } = scratch;
    offsets.clear();
    let mut end = 0;
    for length in part.lengths.iter() {
        offsets.push(end);
        end += *length as usize;
    }
    let lengths = &*part.lengths;
    let value = |index: u32| {
        let start = offsets[index as usize];
        &part.arena[start..start + lengths[index as usize] as usize]
    };
    let first = value(0);
    let skip = (1..lengths.len() as u32).fold(first.len(), |skip, index| {
        let other = value(index);
        if other.starts_with(&first[..skip]) { skip } else { first.iter().zip(other).take_while(|(a, b)| a == b).count() }
    });
    entries.clear();
    entries.extend((0..lengths.len() as u32).map(|index| (window(value(index), skip), index)));
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| value(a.1)[skip..].cmp(&value(b.1)[skip..])).then(a.1.cmp(&b.1)));
    bytes.clear();
    bytes.reserve_exact(end);
    rows.clear();
    for (_, index) in entries.iter() {
        bytes.extend_from_slice(value(*index));
        rows.push((lengths[*index as usize], part.ids[*index as usize]));
    }
    part.arena.copy_from_slice(bytes);
    for ((length, id), row) in part.lengths.iter_mut().zip(part.ids.iter_mut()).zip(rows.iter()) {
        (*length, *id) = *row;
    }
}

#[cfg(test)]
#[path = "bytes_tests.rs"]
mod tests;
