//! Mini-block pages (file-format §5.1): chunks of some thousand values, indexed by one word each.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use async_trait::async_trait;
use bytes::Bytes;

use super::PageDecoder;
use crate::error::Result;
use crate::file::encodings::{BlockReader, ChunkReader, MAX_BLOCK_VALUES, block_reader, chunk_reader};
use crate::file::fault::{Decoded, Fault, corrupt, le, part, unsupported};
use crate::file::levels::{Layers, read_levels};
use crate::file::messages::encoding21::MiniBlockLayout;
use crate::file::page::{PageSource, SLICE_BYTES, SLICE_ROWS};
use crate::file::values::{Physical, Values, gather_fixed, gather_texts};

/// The words of a page are held whole; more are refused, bytes (8 million chunks).
const MAX_WORDS: u64 = 32 << 20;
/// The dictionary of a page is held whole; a larger one is refused, bytes.
const MAX_DICTIONARY: u64 = 256 << 20;
/// Decoded bytes of one slice of a dictionary page, when all its rows were the longest item.
const DICTIONARY_SLICE: u64 = 64 << 20;

/// Where a chunk begins, in bytes of buffer 1 and in rows of the page.
#[derive(Clone, Copy)]
struct ChunkStart {
    byte: u64,
    row: u64,
}

/// An opened mini-block page without lists.
pub(crate) struct MiniBlockPage {
    source: PageSource,
    /// One more than chunks: the last is the end.
    starts: Vec<ChunkStart>,
    values: Box<dyn ChunkReader>,
    layers: Layers,
    levels: Option<Box<dyn BlockReader>>,
    dictionary: Option<Values>,
    large: bool,
    slice_rows: u64,
}

impl MiniBlockPage {
    pub(crate) async fn open(source: PageSource, layout: &MiniBlockLayout) -> Result<MiniBlockPage> {
        let mut page = source.check(Self::prepare(&source, layout)).map(|parts| {
            let (values, layers, levels) = parts;
            MiniBlockPage {
                source,
                starts: Vec::new(),
                values,
                layers,
                levels,
                dictionary: None,
                large: layout.has_large_chunk,
                slice_rows: SLICE_ROWS,
            }
        })?;
        let source = &page.source;
        let words = source.read_whole(0, MAX_WORDS).await?;
        page.starts = source.check(chunk_starts(&words, page.large, layout.num_items, source.buffer_size(1)?))?;
        if layout.dictionary.is_some() {
            let block = source.read_whole(2, MAX_DICTIONARY).await?;
            let items = source.check(dictionary(&block, layout, source.physical))?;
            let longest = match &items {
                Values::Variable(texts) => texts.longest() as u64,
                _ => 0,
            };
            page.slice_rows = DICTIONARY_SLICE.checked_div(longest).unwrap_or(SLICE_ROWS).clamp(1, SLICE_ROWS);
            page.dictionary = Some(items);
        }
        Ok(page)
    }

    #[allow(clippy::type_complexity)]
    fn prepare(
        source: &PageSource,
        layout: &MiniBlockLayout,
    ) -> Decoded<(Box<dyn ChunkReader>, Layers, Option<Box<dyn BlockReader>>)> {
        let layers = Layers::parse(&layout.layers)?;
        if layout.rep_compression.is_some() || layout.repetition_index_depth > 0 {
            return unsupported("repetition levels (values inside lists)");
        }
        if layout.num_items != source.rows {
            return corrupt(format!("{} values for {} rows", layout.num_items, source.rows));
        }
        // A dictionary page stores 32-bit indices where the values would be.
        let stored = if layout.dictionary.is_some() { Physical::Fixed(4) } else { source.physical };
        let values = chunk_reader(layout.value_compression.as_ref(), stored)?;
        if layout.num_buffers != values.buffers() as u64 {
            return corrupt(format!("{} value buffers per chunk, its encoding has {}", layout.num_buffers, values.buffers()));
        }
        let levels = match &layout.def_compression {
            None => None,
            Some(encoding) => Some(block_reader(Some(encoding), Physical::Fixed(2))?),
        };
        if levels.is_none() && layers.levels > 0 {
            return corrupt("nullable layers without definition levels");
        }
        Ok((values, layers, levels))
    }

    /// Decodes chunks `chunks`, whose bytes are `bytes`.
    fn decode_chunks(&self, chunks: Range<usize>, bytes: &Bytes, rows: Range<u64>) -> Decoded<ArrayRef> {
        let starts = self.starts.get(chunks.start..=chunks.end).unwrap_or_default();
        let (Some(first), Some(last)) = (starts.first(), starts.last()) else { return corrupt("no chunk for these rows") };
        let total =
            usize::try_from(last.row - first.row).map_err(|_| Fault::TooLarge("a chunk of too many values".to_owned()))?;
        let stored = if self.dictionary.is_some() { Physical::Fixed(4) } else { self.source.physical };
        let mut values = Values::new(stored, total)?;
        let mut levels: Vec<u16> = Vec::with_capacity(if self.levels.is_some() { total.min(1 << 20) } else { 0 });
        let mut done = 0usize;
        for pair in starts.windows(2) {
            let [from, to] = pair else { continue };
            let at = (from.byte - first.byte) as usize;
            let chunk = part(bytes, at, (to.byte - from.byte) as usize, "a chunk")?;
            let n = (to.row - from.row) as usize;
            self.decode_chunk(chunk, n, &mut values, &mut levels)?;
            done += n;
            if values.len() != done {
                return corrupt(format!("{} values came out of chunks of {done}", values.len()));
            }
        }
        let values = match &self.dictionary {
            None => values,
            Some(items) => gather(items, values, self.source.physical)?,
        };
        let nulls = if self.levels.is_some() { self.layers.validity(&levels)? } else { None };
        let array = values.finish(&self.source.data_type, nulls)?;
        let skip = (rows.start - first.row) as usize;
        Ok(array.slice(skip, (rows.end - rows.start) as usize))
    }

    fn decode_chunk(&self, chunk: &[u8], n: usize, values: &mut Values, levels: &mut Vec<u16>) -> Decoded<()> {
        let mut at = 0usize;
        let mut number = |width: usize| -> Decoded<usize> {
            let bytes = part(chunk, at, width, "a chunk's header")?;
            at += width;
            usize::try_from(le(bytes)).map_err(|_| Fault::Corrupt("a chunk's header".to_owned()))
        };
        let level_count = number(2)?;
        let level_bytes = if self.levels.is_some() { Some(number(2)?) } else { None };
        let width = if self.large { 4 } else { 2 };
        let mut sizes = [0usize; 2];
        let count = self.values.buffers();
        for size in sizes.iter_mut().take(count) {
            *size = number(width)?;
        }
        at = at.next_multiple_of(8);
        let mut take = |size: usize, what: &str| -> Decoded<&[u8]> {
            let bytes = part(chunk, at, size, what)?;
            at = (at + size).next_multiple_of(8);
            Ok(bytes)
        };
        let level_block = level_bytes.map(|size| take(size, "a chunk's levels")).transpose()?;
        let mut buffers: [&[u8]; 2] = [&[], &[]];
        for (buffer, size) in buffers.iter_mut().zip(sizes).take(count) {
            *buffer = take(size, "a chunk's values")?;
        }
        if at != chunk.len() {
            return corrupt(format!("a chunk of {} bytes whose parts take {at}", chunk.len()));
        }
        self.values.read(buffers.get(..count).unwrap_or_default(), n, values)?;
        if let (Some(reader), Some(block)) = (&self.levels, level_block) {
            // Counts past 65535 are stored modulo 65536.
            if level_count as u16 != n as u16 {
                return corrupt(format!("{level_count} levels for a chunk of {n} values"));
            }
            read_levels(&**reader, block, n, levels)?;
        }
        Ok(())
    }
}

fn chunk_starts(words: &[u8], large: bool, num_items: u64, size: u64) -> Decoded<Vec<ChunkStart>> {
    let width = if large { 4 } else { 2 };
    if !words.len().is_multiple_of(width) {
        return corrupt(format!("{} bytes of chunk words of {width} bytes", words.len()));
    }
    let count = words.len() / width;
    let mut starts = Vec::with_capacity(count + 1);
    let (mut byte, mut row) = (0u64, 0u64);
    for (index, word) in words.chunks_exact(width).enumerate() {
        let word = le(word);
        starts.push(ChunkStart { byte, row });
        byte += ((word >> 4) + 1) * 8;
        let log = word & 15;
        row = if index + 1 == count {
            num_items
        } else if log == 0 {
            return corrupt(format!("chunk {index} of {count} does not say how many values it has"));
        } else {
            row + (1 << log)
        };
        if row > num_items {
            return corrupt(format!("chunks of more than {num_items} values"));
        }
    }
    if byte != size || row != num_items {
        return corrupt(format!("chunks of {byte} bytes and {row} values in {size} bytes and {num_items} values"));
    }
    starts.push(ChunkStart { byte, row });
    Ok(starts)
}

fn dictionary(block: &[u8], layout: &MiniBlockLayout, physical: Physical) -> Decoded<Values> {
    let count = usize::try_from(layout.num_dictionary_items).unwrap_or(usize::MAX);
    if count > MAX_BLOCK_VALUES {
        return Err(Fault::TooLarge(format!("a dictionary of {count} items, the limit is {MAX_BLOCK_VALUES}")));
    }
    let mut items = Values::new(physical, count)?;
    block_reader(layout.dictionary.as_ref(), physical)?.read(block, count, &mut items)?;
    if items.len() != count {
        return corrupt(format!("a dictionary of {count} items that holds {}", items.len()));
    }
    Ok(items)
}

fn gather(items: &Values, mut indices: Values, physical: Physical) -> Decoded<Values> {
    let indices = indices.fixed(4)?;
    let indices: &[u32] = indices.typed_data();
    let mut out = Values::new(physical, indices.len())?;
    match (items, &mut out) {
        (Values::Fixed { width, data }, Values::Fixed { data: out, .. }) => gather_fixed(data, *width, indices, out)?,
        (Values::Variable(items), Values::Variable(out)) => gather_texts(items, indices, out)?,
        _ => return unsupported("a dictionary of such values"),
    }
    Ok(out)
}

#[async_trait(?Send)]
impl PageDecoder for MiniBlockPage {
    fn source(&self) -> &PageSource {
        &self.source
    }

    fn slice_end(&self, start: u64) -> u64 {
        let chunk = self.starts.partition_point(|s| s.row <= start).saturating_sub(1);
        let Some(first) = self.starts.get(chunk) else { return u64::MAX };
        // Chunks before the first one count as fitting, so that the predicate is sorted.
        let fits = |s: &ChunkStart| {
            s.byte.saturating_sub(first.byte) <= SLICE_BYTES && s.row.saturating_sub(first.row) <= self.slice_rows
        };
        let last = self.starts.partition_point(fits).saturating_sub(1).max(chunk + 1);
        self.starts.get(last).map_or(u64::MAX, |s| s.row)
    }

    async fn decode(&self, rows: Range<u64>) -> Result<ArrayRef> {
        let first = self.starts.partition_point(|s| s.row <= rows.start).saturating_sub(1);
        let end = self.starts.partition_point(|s| s.row < rows.end);
        let (Some(from), Some(to)) = (self.starts.get(first), self.starts.get(end)) else {
            return Err(self.source.corrupt("rows past its last chunk"));
        };
        let bytes = self.source.read_one(1, from.byte..to.byte).await?;
        self.source.check(self.decode_chunks(first..end, &bytes, rows))
    }
}
