//! Fixed-size lists (file-format §6.1–6.3): the items of every value, in front of them optionally which are valid.

use arrow::array::BooleanBufferBuilder;

use super::{BlockReader, ChunkReader, ItemReader, block_reader, chunk_reader, plain_bits};
use crate::file::fault::{Decoded, Fault, corrupt, part, unsupported};
use crate::file::messages::encoding21 as message;
use crate::file::values::{Physical, Values};

fn dimension<'a>(message: &message::FixedSizeList, physical: &'a Physical) -> Decoded<(usize, &'a Physical)> {
    match physical {
        Physical::List(dimension, inner) if *dimension as u64 == message.items_per_value => Ok((*dimension, inner)),
        _ => corrupt(format!("FixedSizeList of {} items in a column of other values", message.items_per_value)),
    }
}

/// `n` values of `dimension` items from a reader of items; the bits of `validity` tell which of them are valid.
fn read_items(
    out: &mut Values,
    n: usize,
    validity: Option<&[u8]>,
    read: impl FnOnce(usize, &mut Values) -> Decoded<()>,
) -> Decoded<()> {
    let Values::List { dimension, items, valid } = out else { return corrupt("FixedSizeList in a column of other values") };
    let count = n.checked_mul(*dimension).ok_or_else(|| Fault::TooLarge(format!("{n} lists of {dimension} items")))?;
    let before = items.len();
    read(count, items)?;
    match validity {
        None => {
            if let Some(valid) = valid {
                valid.append_n(count, true);
            }
        }
        Some(bits) => {
            let bits = part(bits, 0, count.div_ceil(8), "the validity of list items")?;
            let valid = valid.get_or_insert_with(|| {
                let mut valid = BooleanBufferBuilder::new(before);
                valid.append_n(before, true);
                valid
            });
            valid.append_packed_range(0..count, bits);
        }
    }
    Ok(())
}

/// Mini-block form.
pub(crate) struct ListChunks {
    validity: bool,
    inner: Box<dyn ChunkReader>,
}

impl ListChunks {
    pub(crate) fn new(message: &message::FixedSizeList, physical: &Physical) -> Decoded<ListChunks> {
        let (_, inner) = dimension(message, physical)?;
        Ok(ListChunks { validity: message.has_validity, inner: chunk_reader(message.values.as_deref(), inner)? })
    }
}

impl ChunkReader for ListChunks {
    fn buffers(&self) -> usize {
        usize::from(self.validity) + self.inner.buffers()
    }

    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        let (validity, rest) = match buffers.split_first() {
            Some((first, rest)) if self.validity => (Some(*first), rest),
            _ => (None, buffers),
        };
        read_items(out, n, validity, |count, items| self.inner.read(rest, count, items))
    }
}

/// Block form: dictionaries of fixed-size lists. With null items, the values lie one after another as in full-zip pages.
pub(crate) enum ListBlock {
    Plain(Box<dyn BlockReader>),
    Valued(ListItem),
}

impl ListBlock {
    pub(crate) fn new(message: &message::FixedSizeList, physical: &Physical) -> Decoded<ListBlock> {
        if message.has_validity {
            return Ok(ListBlock::Valued(ListItem::new(message, physical)?));
        }
        let (_, inner) = dimension(message, physical)?;
        Ok(ListBlock::Plain(block_reader(message.values.as_deref(), inner)?))
    }
}

impl BlockReader for ListBlock {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        match self {
            ListBlock::Plain(inner) => read_items(out, n, None, |count, items| inner.read(block, count, items)),
            ListBlock::Valued(item) => {
                let size = item.validity + item.bytes;
                if Some(block.len()) != n.checked_mul(size) {
                    return corrupt(format!("{} bytes of {n} lists of {size} bytes", block.len()));
                }
                block.chunks_exact(size.max(1)).try_for_each(|value| item.read(value, out))
            }
        }
    }
}

/// Full-zip form.
pub(crate) struct ListItem {
    validity: usize,
    bytes: usize,
}

impl ListItem {
    pub(crate) fn new(message: &message::FixedSizeList, physical: &Physical) -> Decoded<ListItem> {
        let (dimension, inner) = dimension(message, physical)?;
        let stored = plain_bits(message.values.as_deref());
        match (stored, inner.plain_bits()) {
            (Some(stored), Some(expected)) if stored != expected => {
                corrupt(format!("FixedSizeList of {stored}-bit items in a column of {expected}-bit items"))
            }
            (Some(bits), Some(_)) if bits.is_multiple_of(8) => {
                let bytes = usize::try_from(bits / 8).ok().and_then(|bytes| bytes.checked_mul(dimension));
                let bytes = bytes.ok_or_else(|| Fault::TooLarge(format!("lists of {dimension} items of {bits} bits")))?;
                Ok(ListItem { validity: if message.has_validity { dimension.div_ceil(8) } else { 0 }, bytes })
            }
            _ => unsupported("FixedSizeList of such items in full-zip form"),
        }
    }
}

impl ItemReader for ListItem {
    fn read(&self, value: &[u8], out: &mut Values) -> Decoded<()> {
        if value.len() != self.validity + self.bytes {
            return corrupt(format!("a list of {} bytes, not {}", value.len(), self.validity + self.bytes));
        }
        let (validity, items) = value.split_at(self.validity);
        read_items(out, 1, (self.validity > 0).then_some(validity), |_, out| out.push_plain(items))
    }
}
