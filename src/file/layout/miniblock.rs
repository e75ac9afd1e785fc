//! Mini-block pages (file-format §5.1): chunks of some thousand values, indexed by one word each; with lists also by the
//! rows that end in each.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use async_trait::async_trait;
use bytes::Bytes;

use super::PageDecoder;
use crate::error::Result;
use crate::file::encodings::{BlockReader, ChunkReader, MAX_BLOCK_VALUES, block_reader, chunk_reader, integer_bits};
use crate::file::fault::{Decoded, Fault, corrupt, le, part, unsupported};
use crate::file::levels::{Layers, read_levels};
use crate::file::messages::encoding21::MiniBlockLayout;
use crate::file::nesting;
use crate::file::page::{PageSource, SLICE_BYTES, SLICE_ROWS};
use crate::file::values::{Physical, Values, gather_values};

/// The words of a page are held whole; more are refused, bytes (8 million chunks).
const MAX_WORDS: u64 = 32 << 20;
/// The dictionary of a page is held whole; a larger one is refused, bytes.
const MAX_DICTIONARY: u64 = 256 << 20;
/// Decoded bytes of one slice of a dictionary page, when all its rows were the longest item.
const DICTIONARY_SLICE: u64 = 64 << 20;

/// More value buffers per chunk than any encoding has.
const MAX_BUFFERS: usize = 8;

/// Where a chunk begins, in bytes of buffer 1 and in value slots of the page.
#[derive(Clone, Copy)]
struct ChunkStart {
    byte: u64,
    slot: u64,
}

/// An opened mini-block page.
pub(crate) struct MiniBlockPage {
    source: PageSource,
    /// One more than chunks: the last is the end.
    starts: Vec<ChunkStart>,
    /// Pages with lists only.
    lists: Option<Lists>,
    values: Box<dyn ChunkReader>,
    layers: Layers,
    levels: Option<Box<dyn BlockReader>>,
    dictionary: Option<Values>,
    /// How values lie in the chunks: as indices when there is a dictionary.
    stored: Physical,
    large: bool,
    slice_rows: u64,
}

/// What a page with lists has besides.
struct Lists {
    rep: Box<dyn BlockReader>,
    /// Rows that begin before each chunk; one more than chunks.
    first: Vec<u64>,
    /// The chunk begins inside a row that an earlier one began.
    preamble: Vec<bool>,
}

/// Levels and values of some chunks.
#[derive(Default)]
struct Levels {
    rep: Vec<u16>,
    def: Vec<u16>,
}

impl MiniBlockPage {
    pub(crate) async fn open(source: PageSource, layout: &MiniBlockLayout) -> Result<MiniBlockPage> {
        let mut page = source.check(Self::prepare(&source, layout)).map(|parts| {
            let (values, layers, levels, stored) = parts;
            MiniBlockPage {
                source,
                starts: Vec::new(),
                lists: None,
                values,
                layers,
                levels,
                dictionary: None,
                stored,
                large: layout.has_large_chunk,
                slice_rows: SLICE_ROWS,
            }
        })?;
        let source = &page.source;
        let words = source.read_whole(0, MAX_WORDS).await?;
        page.starts = source.check(chunk_starts(&words, page.large, layout.num_items, source.buffer_size(1)?))?;
        if page.layers.lists > 0 {
            let index = 2 + usize::from(layout.dictionary.is_some());
            let index = source.read_whole(index, 2 * MAX_WORDS).await?;
            page.lists = Some(source.check(Lists::new(layout, &index, page.starts.len() - 1, source.rows))?);
        }
        if layout.dictionary.is_some() {
            let block = source.read_whole(2, MAX_DICTIONARY).await?;
            let items = source.check(dictionary(&block, layout, &source.physical))?;
            let longest = match &items {
                Values::Variable(texts) => texts.longest() as u64,
                _ => source.physical.plain_bits().unwrap_or(0) / 8,
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
    ) -> Decoded<(Box<dyn ChunkReader>, Layers, Option<Box<dyn BlockReader>>, Physical)> {
        let layers = Layers::parse(&layout.layers, source.lists.len())?;
        if layers.lists == 0 && (layout.rep_compression.is_some() || layout.repetition_index_depth > 0) {
            return corrupt("repetition levels in a page without lists");
        }
        if layers.lists == 0 && layout.num_items != source.rows {
            return corrupt(format!("{} values for {} rows", layout.num_items, source.rows));
        }
        let stored = match &layout.dictionary {
            None => source.physical.clone(),
            Some(_) => match integer_bits(layout.value_compression.as_ref()) {
                Some(bits @ (8 | 16 | 32 | 64)) => Physical::Fixed(bits as usize / 8),
                other => return corrupt(format!("dictionary indices of {other:?} bits")),
            },
        };
        let values = chunk_reader(layout.value_compression.as_ref(), &stored)?;
        if layout.num_buffers != values.buffers() as u64 || values.buffers() > MAX_BUFFERS {
            return corrupt(format!("{} value buffers per chunk, its encoding has {}", layout.num_buffers, values.buffers()));
        }
        let levels = match &layout.def_compression {
            None => None,
            Some(encoding) => Some(block_reader(Some(encoding), &Physical::Fixed(2))?),
        };
        if levels.is_none() && layers.levels > 0 {
            return corrupt("nullable layers without definition levels");
        }
        Ok((values, layers, levels, stored))
    }

    /// Decodes chunks `chunks`, whose bytes are `bytes`.
    fn decode_chunks(&self, chunks: Range<usize>, bytes: &Bytes, levels: &mut Levels) -> Decoded<Values> {
        let starts = self.starts.get(chunks.start..=chunks.end).unwrap_or_default();
        let (Some(first), Some(last)) = (starts.first(), starts.last()) else { return corrupt("no chunk for these rows") };
        let total =
            usize::try_from(last.slot - first.slot).map_err(|_| Fault::TooLarge("a chunk of too many values".to_owned()))?;
        let mut values = Values::new(&self.stored, total)?;
        levels.def.reserve(if self.levels.is_some() { total.min(1 << 20) } else { 0 });
        let mut done = 0usize;
        for pair in starts.windows(2) {
            let [from, to] = pair else { continue };
            let at = (from.byte - first.byte) as usize;
            let chunk = part(bytes, at, (to.byte - from.byte) as usize, "a chunk")?;
            let n = (to.slot - from.slot) as usize;
            self.decode_chunk(chunk, n, &mut values, levels)?;
            done += n;
            if values.len() != done {
                return corrupt(format!("{} values came out of chunks of {done}", values.len()));
            }
        }
        match &self.dictionary {
            None => Ok(values),
            Some(items) => gather(items, values, &self.stored, &self.source.physical),
        }
    }

    fn decode_chunk(&self, chunk: &[u8], n: usize, values: &mut Values, levels: &mut Levels) -> Decoded<()> {
        let mut at = 0usize;
        let mut number = |width: usize| -> Decoded<usize> {
            let bytes = part(chunk, at, width, "a chunk's header")?;
            at += width;
            usize::try_from(le(bytes)).map_err(|_| Fault::Corrupt("a chunk's header".to_owned()))
        };
        let level_count = number(2)?;
        let rep_bytes = if self.lists.is_some() { Some(number(2)?) } else { None };
        let def_bytes = if self.levels.is_some() { Some(number(2)?) } else { None };
        let width = if self.large { 4 } else { 2 };
        let mut sizes = [0usize; MAX_BUFFERS];
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
        let rep_block = rep_bytes.map(|size| take(size, "a chunk's repetition levels")).transpose()?;
        let def_block = def_bytes.map(|size| take(size, "a chunk's definition levels")).transpose()?;
        let mut buffers: [&[u8]; MAX_BUFFERS] = [&[]; MAX_BUFFERS];
        for (buffer, size) in buffers.iter_mut().zip(sizes).take(count) {
            *buffer = take(size, "a chunk's values")?;
        }
        if at != chunk.len() {
            return corrupt(format!("a chunk of {} bytes whose parts take {at}", chunk.len()));
        }
        self.values.read(buffers.get(..count).unwrap_or_default(), n, values)?;
        let Some(lists) = &self.lists else {
            if let (Some(reader), Some(block)) = (&self.levels, def_block) {
                // Counts past 65535 are stored modulo 65536.
                if level_count as u16 != n as u16 {
                    return corrupt(format!("{level_count} levels for a chunk of {n} values"));
                }
                read_levels(&**reader, block, n, &mut levels.def)?;
            }
            return Ok(());
        };
        let rep_block = rep_block.unwrap_or_default();
        // Old writers stored the count modulo 65536 when runs made more levels fit.
        let entries = match lists.rep.count(rep_block).and_then(|count| usize::try_from(count).ok()) {
            Some(count) if count as u16 == level_count as u16 => count,
            _ => level_count,
        };
        read_levels(&*lists.rep, rep_block, entries, &mut levels.rep)?;
        let slots = match (&self.levels, def_block) {
            (Some(reader), Some(block)) => {
                let before = levels.def.len();
                read_levels(&**reader, block, entries, &mut levels.def)?;
                self.layers.slots(levels.def.get(before..).unwrap_or_default())
            }
            _ => entries,
        };
        if slots != n {
            return corrupt(format!("levels of {slots} values for a chunk of {n}"));
        }
        Ok(())
    }

    /// Rows of a page without lists out of the chunks that hold them.
    fn flat(&self, chunks: Range<usize>, bytes: &Bytes, rows: Range<u64>) -> Decoded<ArrayRef> {
        let first = self.starts.get(chunks.start).map_or(0, |start| start.slot);
        let mut levels = Levels::default();
        let values = self.decode_chunks(chunks, bytes, &mut levels)?;
        let nulls = if self.levels.is_some() { self.layers.validity(&levels.def)? } else { None };
        let array = values.finish(&self.source.data_type, nulls)?;
        Ok(array.slice((rows.start - first) as usize, (rows.end - rows.start) as usize))
    }

    /// Rows of lists out of the chunks in which they begin and go on (file-format §9).
    fn nested(&self, lists: &Lists, chunks: Range<usize>, bytes: &Bytes, rows: Range<u64>) -> Decoded<ArrayRef> {
        let first = lists.first.get(chunks.start).copied().unwrap_or(0);
        let mut levels = Levels::default();
        let values = self.decode_chunks(chunks, bytes, &mut levels)?;
        let (skip, count) = ((rows.start - first) as usize, (rows.end - rows.start) as usize);
        let mut begins = levels.rep.iter().enumerate().filter(|(_, rep)| **rep == self.layers.lists).map(|(at, _)| at).skip(skip);
        let Some(from) = begins.next() else { return corrupt("fewer rows than its repetition index says") };
        let to = begins.nth(count - 1).unwrap_or(levels.rep.len());
        let def = self.levels.is_some().then_some(&levels.def[..]);
        let range = |levels: &[u16], at: Range<usize>| levels.get(at).map(<[u16]>::to_vec).unwrap_or_default();
        let slots = |at: Range<usize>| match def {
            Some(def) => self.layers.slots(def.get(at).unwrap_or_default()),
            None => at.len(),
        };
        let (before, inside) = (slots(0..from), slots(from..to));
        let nulls = def.map(|def| self.layers.validity(def)).transpose()?.flatten();
        let leaf = values.finish(&self.source.leaf_type, nulls)?;
        if before + inside > leaf.len() {
            return corrupt("levels of more values than there are");
        }
        let def = def.map(|def| range(def, from..to));
        let parts = self.layers.lists(&range(&levels.rep, from..to), def.as_deref())?;
        nesting::wrap(leaf.slice(before, inside), &self.source.lists, parts)
    }

    /// The chunks that hold rows `rows`.
    fn chunks(&self, rows: &Range<u64>) -> Range<usize> {
        let Some(lists) = &self.lists else {
            let first = self.starts.partition_point(|s| s.slot <= rows.start).saturating_sub(1);
            return first..self.starts.partition_point(|s| s.slot < rows.end);
        };
        let chunk_of = |row: u64| lists.first.partition_point(|first| *first <= row).saturating_sub(1);
        let begins = |chunk: usize| lists.first.get(chunk + 1) > lists.first.get(chunk);
        let mut last = chunk_of(rows.end.saturating_sub(1));
        if lists.first.get(last + 1) == Some(&rows.end) {
            // The last row goes on until a chunk in which another begins.
            while lists.preamble.get(last + 1) == Some(&true) {
                last += 1;
                if begins(last) {
                    break;
                }
            }
        }
        chunk_of(rows.start)..last + 1
    }
}

impl Lists {
    fn new(layout: &MiniBlockLayout, index: &[u8], chunks: usize, rows: u64) -> Decoded<Lists> {
        let Some(rep) = &layout.rep_compression else { return corrupt("a page of lists without repetition levels") };
        if layout.repetition_index_depth != 1 {
            return unsupported(format!("a repetition index of depth {}", layout.repetition_index_depth));
        }
        let (entries, rest) = index.as_chunks::<16>();
        if entries.len() != chunks || !rest.is_empty() {
            return corrupt(format!("{} bytes of repetition index for {chunks} chunks", index.len()));
        }
        let mut first = Vec::with_capacity(chunks + 1);
        let mut preamble = Vec::with_capacity(chunks);
        let (mut row, mut inside) = (0u64, false);
        for entry in entries {
            first.push(row);
            preamble.push(inside);
            let (ends, partial) = entry.split_at(8);
            let trailer = le(partial) > 0;
            let begun = le(ends).checked_add(u64::from(trailer)).and_then(|begun| begun.checked_sub(u64::from(inside)));
            row = match begun.and_then(|begun| row.checked_add(begun)) {
                Some(row) if row <= rows => row,
                _ => return corrupt(format!("a repetition index of other than {rows} rows")),
            };
            inside = trailer;
        }
        first.push(row);
        if row != rows || inside {
            return corrupt(format!("a repetition index of {row} rows for {rows}"));
        }
        Ok(Lists { rep: block_reader(Some(rep), &Physical::Fixed(2))?, first, preamble })
    }
}

fn chunk_starts(words: &[u8], large: bool, num_items: u64, size: u64) -> Decoded<Vec<ChunkStart>> {
    let width = if large { 4 } else { 2 };
    if !words.len().is_multiple_of(width) {
        return corrupt(format!("{} bytes of chunk words of {width} bytes", words.len()));
    }
    let count = words.len() / width;
    let mut starts = Vec::with_capacity(count + 1);
    let (mut byte, mut slot) = (0u64, 0u64);
    for (index, word) in words.chunks_exact(width).enumerate() {
        let word = le(word);
        starts.push(ChunkStart { byte, slot });
        byte += ((word >> 4) + 1) * 8;
        let log = word & 15;
        slot = if index + 1 == count {
            num_items
        } else if log == 0 {
            return corrupt(format!("chunk {index} of {count} does not say how many values it has"));
        } else {
            slot + (1 << log)
        };
        if slot > num_items {
            return corrupt(format!("chunks of more than {num_items} values"));
        }
    }
    if byte != size || slot != num_items {
        return corrupt(format!("chunks of {byte} bytes and {slot} values in {size} bytes and {num_items} values"));
    }
    starts.push(ChunkStart { byte, slot });
    Ok(starts)
}

fn dictionary(block: &[u8], layout: &MiniBlockLayout, physical: &Physical) -> Decoded<Values> {
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

fn gather(items: &Values, mut indices: Values, stored: &Physical, physical: &Physical) -> Decoded<Values> {
    let Physical::Fixed(width) = stored else { return corrupt("dictionary indices that are no numbers") };
    let indices = indices.fixed(*width)?;
    let wide: Vec<u32>;
    let indices: &[u32] = if *width == 4 {
        indices.typed_data()
    } else {
        wide = match *width {
            1 => indices.iter().map(|index| u32::from(*index)).collect(),
            2 => indices.typed_data::<u16>().iter().map(|index| u32::from(*index)).collect(),
            _ => indices.chunks_exact(*width).map(|index| u32::try_from(le(index)).unwrap_or(u32::MAX)).collect(),
        };
        &wide
    };
    let mut out = Values::new(physical, indices.len())?;
    gather_values(items, indices, &mut out)?;
    Ok(out)
}

#[async_trait(?Send)]
impl PageDecoder for MiniBlockPage {
    fn source(&self) -> &PageSource {
        &self.source
    }

    fn slice_end(&self, start: u64) -> u64 {
        let chunk = self.chunks(&(start..start + 1)).start;
        let Some(first) = self.starts.get(chunk) else { return u64::MAX };
        // Chunks before the first one count as fitting, so that the predicate is sorted.
        let fits = |s: &ChunkStart| {
            s.byte.saturating_sub(first.byte) <= SLICE_BYTES && s.slot.saturating_sub(first.slot) <= self.slice_rows
        };
        let last = self.starts.partition_point(fits).saturating_sub(1).max(chunk + 1);
        match &self.lists {
            None => self.starts.get(last).map_or(u64::MAX, |s| s.slot),
            Some(lists) => lists.first.get(last).map_or(u64::MAX, |row| (*row).min(start.saturating_add(SLICE_ROWS))),
        }
    }

    async fn decode(&self, rows: Range<u64>) -> Result<ArrayRef> {
        let chunks = self.chunks(&rows);
        let (Some(from), Some(to)) = (self.starts.get(chunks.start), self.starts.get(chunks.end)) else {
            return Err(self.source.corrupt("rows past its last chunk"));
        };
        let bytes = self.source.read_one(1, from.byte..to.byte).await?;
        self.source.check(match &self.lists {
            None => self.flat(chunks, &bytes, rows),
            Some(lists) => self.nested(lists, chunks, &bytes, rows),
        })
    }
}
