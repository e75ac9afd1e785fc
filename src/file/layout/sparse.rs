//! Sparse pages of 2.3 files (file-format §5.6): nulls and lists by their positions; one value, none, or
//! values as chunks or zipped without levels.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanBufferBuilder, make_array, new_empty_array, new_null_array};
use arrow::buffer::NullBuffer;
use async_trait::async_trait;
use bytes::Bytes;

use super::PageDecoder;
use super::constant::constant;
use super::fullzip::FullZipPage;
use super::miniblock::MiniBlockPage;
use crate::error::Result;
use crate::file::encodings::sequence;
use crate::file::fault::{Decoded, Fault, corrupt};
use crate::file::gather;
use crate::file::levels::ListPart;
use crate::file::messages::encoding21::{CompressiveEncoding, FullZipLayout, MiniBlockLayout, ZipWidth};
use crate::file::messages::encoding23::{Sparse, SparseKind, Validity};
use crate::file::nesting;
use crate::file::page::{PageSource, SLICE_BYTES, SLICE_ROWS};

/// A sequence's buffer is held whole; a larger one is refused, bytes.
const MAX_SEQUENCE: u64 = 64 << 20;
/// List items of one slice at most.
const MAX_ITEMS: u64 = 1 << 26;

/// Which slots of a layer are null; positions ascend.
enum Mask {
    Valid,
    Null,
    NullAt(Vec<u64>),
    ValidAt(Vec<u64>),
}

enum Layer {
    Validity(Mask),
    /// Positions of lists with items, items before each of them and in all, nulls.
    List(Vec<u64>, Vec<u64>, Mask),
}

/// Where the values are.
pub(super) enum Leaves {
    /// Everything is null.
    None,
    /// One value.
    Constant(Bytes),
    /// One for every slot, null or not.
    Every(Box<dyn PageDecoder>),
    /// One for every slot that is not null.
    Valid(Box<dyn PageDecoder>),
}

/// What the values of a sparse page say of themselves.
pub(super) enum SparseValues {
    None,
    Constant(Bytes),
    Chunked(MiniBlockLayout),
    Zipped(FullZipLayout),
}

/// An opened sparse page.
pub(super) struct SparsePage {
    source: PageSource,
    values: Leaves,
    /// Outermost first.
    layers: Vec<Layer>,
    slice_rows: u64,
}

impl SparsePage {
    pub(super) async fn open(source: PageSource, message: &Sparse, values: SparseValues) -> Result<SparsePage> {
        let mut layers = Vec::new();
        let (mut slots, mut items) = (source.rows, source.rows);
        // The buffers of the values come first.
        let mut buffer = match &values {
            SparseValues::None | SparseValues::Constant(_) => 0,
            SparseValues::Chunked(layout) => 2 + usize::from(layout.dictionary.is_some()),
            SparseValues::Zipped(layout) => 1 + usize::from(matches!(layout.width, Some(ZipWidth::BitsPerOffset(_)))),
        };
        for layer in &message.layers {
            match &layer.kind {
                Some(SparseKind::Validity(validity)) => {
                    layers.push(Layer::Validity(mask(&source, validity, slots, &mut buffer).await?));
                }
                Some(SparseKind::List(list)) => {
                    let count = list.num_non_empty;
                    let positions = numbers(&source, list.non_empty_positions.as_ref(), count, &mut buffer).await?;
                    let counts = numbers(&source, list.counts.as_ref(), count, &mut buffer).await?;
                    let nulls = match &list.validity {
                        Some(validity) => mask(&source, validity, slots, &mut buffer).await?,
                        None => Mask::Valid,
                    };
                    source.check(ascending(&positions, slots))?;
                    let mut before = Vec::with_capacity(counts.len() + 1);
                    before.push(0u64);
                    let mut sum = 0u64;
                    for count in counts {
                        sum = match sum.checked_add(count) {
                            Some(sum) if count > 0 => sum,
                            _ => return Err(source.corrupt("lists with items that have none")),
                        };
                        before.push(sum);
                    }
                    if sum != list.num_child_slots {
                        return Err(source.corrupt(format!("lists of {sum} items where {} belong", list.num_child_slots)));
                    }
                    slots = sum;
                    items = items.max(sum);
                    layers.push(Layer::List(positions, before, nulls));
                }
                Some(SparseKind::FixedSizeList(_)) => {
                    return Err(source.raise(Fault::Unsupported("2.3 sparse fixed-size lists".to_owned())));
                }
                None => return Err(source.raise(Fault::Unsupported("a sparse layer that this build does not know".to_owned()))),
            }
        }
        let lists = layers.iter().filter(|layer| matches!(layer, Layer::List(..))).count();
        if lists != source.lists.len() {
            return Err(source.corrupt(format!("values inside {lists} lists in a column whose type has {}", source.lists.len())));
        }
        let (values, width) = match values {
            SparseValues::None => (Leaves::None, 1),
            SparseValues::Constant(value) => {
                let width = value.len() as u64;
                (Leaves::Constant(value), width)
            }
            SparseValues::Chunked(layout) => {
                let layout = MiniBlockLayout { num_items: slots, ..layout };
                let page = MiniBlockPage::open(source.leaf(slots), &layout).await?;
                (Leaves::Every(Box::new(page)), source.bytes() / slots.max(1))
            }
            SparseValues::Zipped(layout) => {
                let valid = u64::from(layout.num_items);
                let masks = layers.iter().rev().map_while(|layer| match layer {
                    Layer::Validity(mask) => Some(mask),
                    Layer::List(..) => None,
                });
                let masks: Vec<&Mask> = masks.filter(|mask| !matches!(mask, Mask::Valid)).collect();
                let counted = match masks.as_slice() {
                    [] => slots,
                    [mask] => mask.valid_before(slots),
                    _ => return Err(source.raise(Fault::Unsupported("2.3 zipped values under several null layers".to_owned()))),
                };
                if counted != valid {
                    return Err(source.corrupt(format!("{valid} values for {counted} slots that are not null")));
                }
                let page = FullZipPage::open(source.leaf(valid), &layout)?;
                (Leaves::Valid(Box::new(page)), source.bytes() / valid.max(1))
            }
        };
        let slice_rows = (4 * SLICE_BYTES / width.max(1)).min(SLICE_ROWS).saturating_mul(source.rows) / items.max(1);
        Ok(SparsePage { source, values, layers, slice_rows: slice_rows.max(1) })
    }

    /// The values of consecutive slots.
    async fn leaves(&self, slots: Range<u64>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let source = &self.source;
        let count = (slots.end - slots.start) as usize;
        match &self.values {
            Leaves::None => source.check(constant(source, None, count, nulls)),
            Leaves::Constant(value) => source.check(constant(source, Some(value), count, nulls)),
            Leaves::Every(page) if count > 0 => {
                let values = page.decode(slots).await?;
                source.check(with_nulls(&values, nulls))
            }
            Leaves::Valid(page) if count > 0 => {
                let masks = self.layers.iter().rev().map_while(|layer| match layer {
                    Layer::Validity(mask) => Some(mask),
                    Layer::List(..) => None,
                });
                let mask = masks.filter(|mask| !matches!(mask, Mask::Valid)).last().unwrap_or(&Mask::Valid);
                let (first, last) = (mask.valid_before(slots.start), mask.valid_before(slots.end));
                if first == last {
                    return Ok(new_null_array(&source.leaf_type, count));
                }
                let values = page.decode(first..last).await?;
                // Every slot shows the value that comes next; the null ones are hidden.
                let valid = |slot: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(slot));
                let mut next = 0usize;
                let positions = (0..count).map(|slot| {
                    let at = next.min(values.len().saturating_sub(1));
                    next += usize::from(valid(slot));
                    at
                });
                let spread = gather::take(&values, positions)?;
                source.check(with_nulls(&spread, nulls))
            }
            Leaves::Every(_) | Leaves::Valid(_) => Ok(new_empty_array(&source.leaf_type)),
        }
    }

    /// The lists of some rows, innermost first, their leaf slots, and which of those are null.
    fn structure(&self, rows: &Range<u64>) -> Decoded<(Vec<ListPart>, Range<u64>, Option<NullBuffer>)> {
        let mut parts: Vec<ListPart> = Vec::new();
        let mut slots = rows.clone();
        let mut nulls: Option<NullBuffer> = None;
        for layer in &self.layers {
            match layer {
                Layer::Validity(mask) => nulls = NullBuffer::union(nulls.as_ref(), mask.nulls(&slots).as_ref()),
                Layer::List(positions, before, mask) => {
                    let own = NullBuffer::union(nulls.as_ref(), mask.nulls(&slots).as_ref());
                    let from = positions.partition_point(|position| *position < slots.start);
                    let to = positions.partition_point(|position| *position < slots.end);
                    let at = |index: usize| before.get(index).copied().unwrap_or(0);
                    let inner = at(from)..at(to);
                    if inner.end - inner.start > MAX_ITEMS {
                        return Err(Fault::TooLarge(format!("{} list items in one slice", inner.end - inner.start)));
                    }
                    let mut offsets = Vec::with_capacity((slots.end - slots.start) as usize + 1);
                    let mut next = from;
                    for slot in slots.clone() {
                        offsets.push((at(next) - inner.start) as usize);
                        if positions.get(next) == Some(&slot) {
                            next += 1;
                        }
                    }
                    offsets.push((inner.end - inner.start) as usize);
                    parts.push(ListPart { offsets, nulls: own });
                    (slots, nulls) = (inner, None);
                }
            }
        }
        parts.reverse();
        Ok((parts, slots, nulls))
    }
}

/// The values with these nulls, instead of none.
fn with_nulls(values: &ArrayRef, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    match values.to_data().into_builder().nulls(nulls).build() {
        Ok(data) => Ok(make_array(data)),
        Err(error) => corrupt(format!("values that do not fit their nulls: {error}")),
    }
}

impl Mask {
    /// Valid slots before `slot`.
    fn valid_before(&self, slot: u64) -> u64 {
        let before = |positions: &[u64]| positions.partition_point(|position| *position < slot) as u64;
        match self {
            Mask::Valid => slot,
            Mask::Null => 0,
            Mask::NullAt(positions) => slot - before(positions),
            Mask::ValidAt(positions) => before(positions),
        }
    }

    fn nulls(&self, slots: &Range<u64>) -> Option<NullBuffer> {
        let count = (slots.end - slots.start) as usize;
        let (positions, valid) = match self {
            Mask::Valid => return None,
            Mask::Null => return Some(NullBuffer::new_null(count)),
            Mask::NullAt(positions) => (positions, false),
            Mask::ValidAt(positions) => (positions, true),
        };
        let mut bits = BooleanBufferBuilder::new(count);
        bits.append_n(count, !valid);
        let first = positions.partition_point(|position| *position < slots.start);
        for position in positions.iter().skip(first).take_while(|position| **position < slots.end) {
            bits.set_bit((position - slots.start) as usize, valid);
        }
        Some(NullBuffer::new(bits.finish()))
    }
}

async fn mask(source: &PageSource, validity: &Validity, slots: u64, buffer: &mut usize) -> Result<Mask> {
    let positions = numbers(source, validity.positions.as_ref(), validity.num_positions, buffer).await?;
    source.check(ascending(&positions, slots))?;
    match (validity.meaning, positions.is_empty()) {
        (1, true) => Ok(Mask::Valid),
        (1, false) => Ok(Mask::NullAt(positions)),
        (2, true) => Ok(Mask::Null),
        (2, false) => Ok(Mask::ValidAt(positions)),
        (other, _) => Err(source.raise(Fault::Unsupported(format!("2.3 validity of meaning {other}")))),
    }
}

fn ascending(positions: &[u64], slots: u64) -> Decoded<()> {
    let sorted = positions.windows(2).all(|pair| pair.first() < pair.last());
    if sorted && positions.last().is_none_or(|last| *last < slots) {
        return Ok(());
    }
    corrupt(format!("positions that do not ascend below {slots}"))
}

/// A sequence of `count` numbers; takes the next page buffer when it has a payload.
async fn numbers(
    source: &PageSource,
    encoding: Option<&CompressiveEncoding>,
    count: u64,
    buffer: &mut usize,
) -> Result<Vec<u64>> {
    if encoding.is_none() && count == 0 {
        return Ok(Vec::new());
    }
    let mut payload = Bytes::new();
    if source.check(sequence::has_payload(encoding))? {
        payload = source.read_whole(*buffer, MAX_SEQUENCE).await?;
        *buffer += 1;
    }
    source.check(sequence::read(encoding, count, &payload))
}

#[async_trait(?Send)]
impl PageDecoder for SparsePage {
    fn source(&self) -> &PageSource {
        &self.source
    }

    fn slice_end(&self, start: u64) -> u64 {
        start.saturating_add(self.slice_rows)
    }

    async fn decode(&self, rows: Range<u64>) -> Result<ArrayRef> {
        let (parts, slots, nulls) = self.source.check(self.structure(&rows))?;
        let leaves = self.leaves(slots, nulls).await?;
        self.source.check(nesting::wrap(leaves, &self.source.lists, parts))
    }
}
