//! Layers and definition levels of pages without lists (file-format §4, §4.1).

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};

use super::encodings::BlockReader;
use super::fault::{Decoded, corrupt, unsupported};
use super::values::{Physical, Values};

/// What the layers of a page own; only pages without lists get here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layers {
    /// Definition levels owned: 0 = nothing can be null; otherwise any level from 1 up to it is a null.
    pub(crate) levels: u16,
}

impl Layers {
    /// Reads the layer list of a page, leaf first.
    pub(crate) fn parse(layers: &[i32]) -> Decoded<Layers> {
        if layers.is_empty() {
            return corrupt("a page without layers");
        }
        let mut levels = 0u16;
        for layer in layers {
            match layer {
                1 => {}
                3 => levels = levels.saturating_add(1),
                2 | 4 | 5 | 6 => return unsupported("repetition levels (values inside lists)"),
                other => return unsupported(format!("layer kind {other}")),
            }
        }
        Ok(Layers { levels })
    }

    /// Validity of rows with these levels: valid iff the level is 0.
    pub(crate) fn validity(self, levels: &[u16]) -> Decoded<Option<NullBuffer>> {
        if levels.iter().fold(0, |most, level| most.max(*level)) > self.levels {
            return corrupt(format!("a definition level above {}", self.levels));
        }
        let words: Vec<u64> = levels
            .chunks(64)
            .map(|chunk| chunk.iter().rev().fold(0u64, |word, level| word << 1 | u64::from(*level == 0)))
            .collect();
        Ok(Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, levels.len()))))
    }
}

/// Appends `n` levels decoded from a block.
pub(crate) fn read_levels(reader: &dyn BlockReader, block: &[u8], n: usize, out: &mut Vec<u16>) -> Decoded<()> {
    let mut values = Values::new(Physical::Fixed(2), n)?;
    reader.read(block, n, &mut values)?;
    raw_levels(values.fixed(2)?.as_slice(), n, out)
}

/// Appends `n` levels stored as plain u16.
pub(crate) fn raw_levels(bytes: &[u8], n: usize, out: &mut Vec<u16>) -> Decoded<()> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if pairs.len() != n || !rest.is_empty() {
        return corrupt(format!("{} bytes of definition levels for {n} rows", bytes.len()));
    }
    out.extend(pairs.iter().map(|pair| u16::from_le_bytes(*pair)));
    Ok(())
}
