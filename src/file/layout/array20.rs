//! Pages of 2.0 files (file-format §3): plain values, validity, strings, dictionaries of strings.

use std::ops::Range;

use arrow::array::{ArrayRef, new_null_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use async_trait::async_trait;
use bytes::Bytes;

use super::PageDecoder;
use crate::error::Result;
use crate::file::fault::{Decoded, Fault, corrupt, unsupported};
use crate::file::messages::encoding20::{ArrayEncoding, ArrayKind, Binary, Flat, Nullability};
use crate::file::page::{PageSource, SLICE_BYTES, SLICE_ROWS};
use crate::file::values::{Physical, Texts, Values, aligned, array, gather_texts, variable};

/// Dictionaries are held whole; larger ones are refused, bytes.
const MAX_DICTIONARY: u64 = 256 << 20;

#[derive(Clone, Copy, Debug)]
struct Strings {
    ends: usize,
    bytes: usize,
    adjustment: u64,
}

enum Tree {
    AllNull,
    Bits(usize),
    Fixed(usize, usize),
    Strings(Strings),
    /// Indices of one byte, 0 = null; the items, null or not.
    Dictionary(usize, Texts, Option<NullBuffer>),
}

/// An opened 2.0 page.
pub(crate) struct ArrayPage {
    source: PageSource,
    validity: Option<usize>,
    tree: Tree,
    slice_rows: u64,
}

impl ArrayPage {
    pub(crate) async fn open(source: PageSource, encoding: &ArrayEncoding) -> Result<ArrayPage> {
        let (validity, values) = source.check(split_nullable(encoding))?;
        let tree = match values.map(|values| source.check(known(values))).transpose()? {
            None => Tree::AllNull,
            Some(ArrayKind::Flat(flat)) => source.check(flat_tree(flat, source.physical))?,
            Some(ArrayKind::Binary(binary)) => match source.physical {
                Physical::Variable(_) => Tree::Strings(source.check(strings(binary))?),
                _ => return Err(source.corrupt("strings in a column of fixed width")),
            },
            Some(ArrayKind::Dictionary(dictionary)) => {
                if !matches!(source.physical, Physical::Variable(_)) {
                    return Err(source.raise(Fault::Unsupported("a dictionary of values of fixed width".to_owned())));
                }
                let indices = source.check(inner_flat(dictionary.indices.as_deref(), 8))?;
                let items = match source
                    .check(dictionary.items.as_deref().map_or_else(|| corrupt("a dictionary without items"), known))?
                {
                    ArrayKind::Binary(binary) => source.check(strings(binary))?,
                    other => return Err(source.raise(Fault::Unsupported(format!("a dictionary of {}", name(other))))),
                };
                let (items, nulls) = read_items(&source, items, u64::from(dictionary.num_dictionary_items)).await?;
                Tree::Dictionary(indices, items, nulls)
            }
            Some(other) => return Err(source.raise(Fault::Unsupported(name(other).to_owned()))),
        };
        let rows = source.rows;
        if let Some(buffer) = validity {
            source.expect_size(buffer, Some(rows.div_ceil(8)), "validity")?;
        }
        let row_bytes = match &tree {
            Tree::AllNull => 0,
            Tree::Bits(buffer) => {
                source.expect_size(*buffer, Some(rows.div_ceil(8)), "a bitmap")?;
                0
            }
            Tree::Fixed(buffer, width) => {
                source.expect_size(*buffer, rows.checked_mul(*width as u64), "plain values")?;
                *width as u64
            }
            Tree::Strings(strings) => {
                source.expect_size(strings.ends, rows.checked_mul(8), "string ends")?;
                8 + source.buffer_size(strings.bytes)? / rows.max(1)
            }
            Tree::Dictionary(buffer, items, _) => {
                source.expect_size(*buffer, Some(rows), "dictionary indices")?;
                items.longest() as u64 / 4
            }
        };
        let slice_rows = (SLICE_BYTES / row_bytes.max(1)).clamp(1, SLICE_ROWS);
        Ok(ArrayPage { source, validity, tree, slice_rows })
    }

    fn values(&self, bytes: Bytes, rows: &Range<u64>, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
        let ty = &self.source.data_type;
        let count = (rows.end - rows.start) as usize;
        match &self.tree {
            Tree::AllNull => Ok(new_null_array(ty, count)),
            Tree::Bits(_) => {
                let bits = bitmap(bytes, rows.start, count)?;
                array(ty, count, vec![bits.sliced()], nulls)
            }
            Tree::Fixed(_, width) => array(ty, count, vec![aligned(bytes, *width)], nulls),
            Tree::Strings(_) => corrupt("strings without their bytes"),
            Tree::Dictionary(_, items, item_nulls) => {
                let valid: BooleanBuffer = BooleanBuffer::collect_bool(count, |row| {
                    let index = bytes.get(row).copied().map_or(0, usize::from);
                    index > 0
                        && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
                        && item_nulls.as_ref().is_none_or(|nulls| index > nulls.len() || nulls.is_valid(index - 1))
                });
                // Index 0 shows the empty item appended at the end; the row is null.
                let empty = items.len() as u32;
                let indices: Vec<u32> = bytes.iter().map(|index| u32::from(*index).checked_sub(1).unwrap_or(empty)).collect();
                if let Some(bad) = bytes.iter().find(|index| u32::from(**index) > empty) {
                    return corrupt(format!("dictionary index {bad} of {empty} items"));
                }
                let mut with_empty = items.clone();
                with_empty.end_value()?;
                let mut out = Texts::with_capacity(count);
                gather_texts(&with_empty, &indices, &mut out)?;
                Values::Variable(out).finish(ty, Some(NullBuffer::new(valid)))
            }
        }
    }

    async fn decode_strings(&self, strings: Strings, rows: Range<u64>, validity: Option<Bytes>, ends: &[u8]) -> Result<ArrayRef> {
        let source = &self.source;
        let count = (rows.end - rows.start) as usize;
        let ends = source.check(Ends::parse(ends, count, strings.adjustment, rows.start > 0))?;
        let bytes = source.read_one(strings.bytes, ends.bytes.clone()).await?;
        let outer = validity.map(|bits| bitmap(bits, rows.start, count)).transpose();
        let nulls = source.check(outer)?.map(NullBuffer::new);
        let nulls = NullBuffer::union(nulls.as_ref(), ends.nulls.as_ref());
        source.check(variable(&source.data_type, ends.offsets, Buffer::from(bytes), nulls))
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
        let bits = rows.start / 8..rows.end.div_ceil(8);
        let mut wanted: Vec<(usize, Range<u64>)> = self.validity.iter().map(|buffer| (*buffer, bits.clone())).collect();
        match &self.tree {
            Tree::AllNull => {}
            Tree::Bits(buffer) => wanted.push((*buffer, bits)),
            Tree::Fixed(buffer, width) => wanted.push((*buffer, rows.start * *width as u64..rows.end * *width as u64)),
            Tree::Strings(strings) => wanted.push((strings.ends, rows.start.saturating_sub(1) * 8..rows.end * 8)),
            Tree::Dictionary(buffer, ..) => wanted.push((*buffer, rows.clone())),
        }
        let mut read = source.read(&wanted).await?.into_iter();
        let validity = if self.validity.is_some() { read.next() } else { None };
        let values = read.next().unwrap_or_default();
        if let Tree::Strings(strings) = &self.tree {
            return self.decode_strings(*strings, rows, validity, &values).await;
        }
        let count = (rows.end - rows.start) as usize;
        let nulls = source.check(validity.map(|bits| bitmap(bits, rows.start, count)).transpose())?.map(NullBuffer::new);
        source.check(self.values(values, &rows, nulls))
    }
}

/// End offsets of consecutive strings, resolved.
struct Ends {
    offsets: Vec<i32>,
    /// The bytes of these strings in the page's byte buffer.
    bytes: Range<u64>,
    nulls: Option<NullBuffer>,
}

impl Ends {
    /// `raw` holds `count` ends, after the end of the row before them when there is one.
    fn parse(raw: &[u8], count: usize, adjustment: u64, has_previous: bool) -> Decoded<Ends> {
        let (ends, _) = raw.as_chunks::<8>();
        if ends.len() != count + usize::from(has_previous) {
            return corrupt(format!("{} string ends for {count} rows", ends.len()));
        }
        // A null has the adjustment, which is larger than any end, added to its end. It may own bytes: filler of its writer.
        let resolve = |raw: &[u8; 8]| {
            let end = u64::from_le_bytes(*raw);
            if adjustment > 0 && end >= adjustment { (end - adjustment, true) } else { (end, false) }
        };
        let (previous, ends) =
            if has_previous { ends.split_first().map_or((None, ends), |(p, e)| (Some(p), e)) } else { (None, ends) };
        let start = previous.map_or(0, |raw| resolve(raw).0);
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0i32);
        let (mut last, mut ascending, mut any_null) = (start, true, false);
        for raw in ends {
            let (end, null) = resolve(raw);
            ascending &= end >= last;
            any_null |= null;
            last = end;
            offsets.push(end.wrapping_sub(start) as i32);
        }
        if !ascending {
            return corrupt("string ends that do not ascend");
        }
        if last - start > i32::MAX as u64 {
            return Err(Fault::TooLarge("more than 2 GiB of strings in one slice".to_owned()));
        }
        let nulls = any_null.then(|| NullBuffer::new(ends.iter().map(|raw| !resolve(raw).1).collect::<BooleanBuffer>()));
        Ok(Ends { offsets, bytes: start..last, nulls })
    }
}

async fn read_items(source: &PageSource, items: Strings, count: u64) -> Result<(Texts, Option<NullBuffer>)> {
    source.expect_size(items.ends, count.checked_mul(8), "dictionary ends")?;
    if source.buffer_size(items.bytes)? > MAX_DICTIONARY {
        return Err(source.raise(Fault::TooLarge(format!("a dictionary of more than {MAX_DICTIONARY} bytes"))));
    }
    let raw = source.read_one(items.ends, 0..count * 8).await?;
    let ends = source.check(Ends::parse(&raw, count as usize, items.adjustment, false))?;
    let data = source.read_one(items.bytes, ends.bytes).await?.to_vec();
    Ok((Texts { offsets: ends.offsets, data }, ends.nulls))
}

/// `count` bits of a bitmap whose first byte holds bit `start`.
fn bitmap(bytes: Bytes, start: u64, count: usize) -> Decoded<BooleanBuffer> {
    let shift = (start % 8) as usize;
    if bytes.len() < (shift + count).div_ceil(8) {
        return corrupt(format!("a bitmap of {} bytes for {count} rows", bytes.len()));
    }
    Ok(BooleanBuffer::new(Buffer::from(bytes), shift, count))
}

fn known(encoding: &ArrayEncoding) -> Decoded<&ArrayKind> {
    encoding.kind.as_ref().map_or_else(|| unsupported("an array encoding that this build does not know"), Ok)
}

/// Separates an outer `Nullable`: the validity buffer and the values (`None` = all null).
fn split_nullable(encoding: &ArrayEncoding) -> Decoded<(Option<usize>, Option<&ArrayEncoding>)> {
    let ArrayKind::Nullable(nullable) = known(encoding)? else { return Ok((None, Some(encoding))) };
    match &nullable.nullability {
        Some(Nullability::AllNulls(_)) => Ok((None, None)),
        Some(Nullability::NoNulls(inner)) => match inner.values.as_deref() {
            Some(values) => Ok((None, Some(values))),
            None => corrupt("Nullable without values"),
        },
        Some(Nullability::SomeNulls(inner)) => match inner.values.as_deref() {
            Some(values) => Ok((Some(inner_flat(inner.validity.as_deref(), 1)?), Some(values))),
            None => corrupt("Nullable without values"),
        },
        None => unsupported("Nullable of a kind that this build does not know"),
    }
}

/// The page buffer of plain values.
fn flat_buffer(flat: &Flat) -> Decoded<usize> {
    match flat.compression.as_ref().map(|compression| compression.scheme.as_str()) {
        None | Some("" | "none") => {}
        Some(other) => return unsupported(format!("Flat compressed with {other}")),
    }
    match &flat.buffer {
        Some(buffer) if buffer.buffer_type == 0 => Ok(buffer.buffer_index as usize),
        Some(_) => unsupported("Flat in a buffer outside its page"),
        None => corrupt("Flat without a buffer"),
    }
}

/// A `Flat` of `bits` inside another encoding, with or without a `Nullable` that has no nulls.
fn inner_flat(encoding: Option<&ArrayEncoding>, bits: u64) -> Decoded<usize> {
    let Some(encoding) = encoding else { return corrupt("an encoding without its parts") };
    match split_nullable(encoding)? {
        (None, Some(values)) => match known(values)? {
            ArrayKind::Flat(flat) if flat.bits_per_value == bits => flat_buffer(flat),
            ArrayKind::Flat(flat) => unsupported(format!("Flat {} where Flat {bits} is usual", flat.bits_per_value)),
            other => unsupported(format!("{} where Flat {bits} is usual", name(other))),
        },
        _ => unsupported("nulls inside offsets, bytes or indices"),
    }
}

fn flat_tree(flat: &Flat, physical: Physical) -> Decoded<Tree> {
    let buffer = flat_buffer(flat)?;
    match physical {
        Physical::Bits if flat.bits_per_value == 1 => Ok(Tree::Bits(buffer)),
        Physical::Fixed(width) if flat.bits_per_value == 8 * width as u64 => Ok(Tree::Fixed(buffer, width)),
        _ => corrupt(format!("Flat {} in a column of other values", flat.bits_per_value)),
    }
}

fn strings(binary: &Binary) -> Decoded<Strings> {
    Ok(Strings {
        ends: inner_flat(binary.indices.as_deref(), 64)?,
        bytes: inner_flat(binary.bytes.as_deref(), 8)?,
        adjustment: binary.null_adjustment,
    })
}

fn name(kind: &ArrayKind) -> &'static str {
    match kind {
        ArrayKind::Flat(_) => "Flat",
        ArrayKind::Nullable(_) => "Nullable",
        ArrayKind::FixedSizeList(_) => "FixedSizeList",
        ArrayKind::List(_) => "List",
        ArrayKind::Struct(_) => "Struct",
        ArrayKind::Binary(_) => "Binary",
        ArrayKind::Dictionary(_) => "Dictionary",
        ArrayKind::Fsst(_) => "Fsst",
        ArrayKind::PackedStruct(_) => "PackedStruct",
        ArrayKind::Bitpacked(_) => "Bitpacked",
        ArrayKind::FixedSizeBinary(_) => "FixedSizeBinary",
        ArrayKind::BitpackedForNonNeg(_) => "BitpackedForNonNeg",
    }
}
