//! Runs: values and lengths of one byte each (file-format §6.1, §6.2).

use arrow::buffer::MutableBuffer;
use arrow::datatypes::ArrowNativeType;

use super::{BlockReader, ChunkReader, kind, name, plain, word_width};
use crate::file::fault::{Decoded, corrupt, le, part, unsupported};
use crate::file::messages::encoding21::{self as message, Compressive, CompressiveEncoding};
use crate::file::values::{Physical, Values};

/// Runs of at most 255 equal values.
pub(crate) struct Rle {
    bytes: usize,
}

impl Rle {
    pub(crate) fn new(message: &message::Rle, physical: Physical) -> Decoded<Rle> {
        let bits = flat_bits(message.values.as_deref())?;
        let lengths = flat_bits(message.run_lengths.as_deref())?;
        if lengths != 8 {
            return unsupported(format!("Rle with {lengths}-bit run lengths"));
        }
        Ok(Rle { bytes: word_width(bits, physical, "Rle")? })
    }

    fn runs(&self, values: &[u8], lengths: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        let total: usize = lengths.iter().map(|length| usize::from(*length)).sum();
        if values.len() != lengths.len().saturating_mul(self.bytes) || total < n {
            return corrupt(format!(
                "{} bytes of run values, {} runs of {total} values in all, {n} were announced",
                values.len(),
                lengths.len()
            ));
        }
        let out = out.fixed(self.bytes)?;
        match self.bytes {
            1 => fill(values.as_chunks().0.iter().map(|v| u8::from_le_bytes(*v)), lengths, n, out),
            2 => fill(values.as_chunks().0.iter().map(|v| u16::from_le_bytes(*v)), lengths, n, out),
            4 => fill(values.as_chunks().0.iter().map(|v| u32::from_le_bytes(*v)), lengths, n, out),
            _ => fill(values.as_chunks().0.iter().map(|v| u64::from_le_bytes(*v)), lengths, n, out),
        }
        Ok(())
    }
}

/// Appends `n` values; the last run may be longer than what is left of `n`.
fn fill<T: ArrowNativeType>(values: impl Iterator<Item = T>, lengths: &[u8], n: usize, out: &mut MutableBuffer) {
    let start = out.len() / size_of::<T>();
    out.resize(out.len() + n * size_of::<T>(), 0);
    let mut rest = out.typed_data_mut::<T>().get_mut(start..).unwrap_or_default();
    for (value, length) in values.zip(lengths) {
        let here = usize::from(*length).min(rest.len());
        let (run, after) = rest.split_at_mut(here);
        run.fill(value);
        rest = after;
    }
}

fn flat_bits(encoding: Option<&CompressiveEncoding>) -> Decoded<u64> {
    match kind(encoding)? {
        Compressive::Flat(flat) => {
            plain(flat.data.as_ref(), "Flat")?;
            Ok(flat.bits_per_value)
        }
        other => unsupported(format!("Rle over {}", name(other))),
    }
}

impl ChunkReader for Rle {
    fn buffers(&self) -> usize {
        2
    }

    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        match buffers {
            [values, lengths] => self.runs(values, lengths, n, out),
            other => corrupt(format!("{} value buffers where runs need two", other.len())),
        }
    }
}

impl BlockReader for Rle {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        let size = usize::try_from(le(part(block, 0, 8, "runs")?)).unwrap_or(usize::MAX);
        let values = part(block, 8, size, "run values")?;
        self.runs(values, block.get(8 + size..).unwrap_or_default(), n, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(bits: u64) -> Option<Box<CompressiveEncoding>> {
        let flat = message::Flat { bits_per_value: bits, data: None };
        Some(Box::new(CompressiveEncoding { kind: Some(Compressive::Flat(flat)) }))
    }

    fn rle() -> Rle {
        Rle::new(&message::Rle { values: flat(16), run_lengths: flat(8) }, Physical::Fixed(2)).unwrap()
    }

    fn read(block: &[u8], n: usize) -> Decoded<Vec<u8>> {
        let mut out = Values::new(Physical::Fixed(2), n).unwrap();
        BlockReader::read(&rle(), block, n, &mut out)?;
        Ok(out.fixed(2).unwrap().to_vec())
    }

    #[test]
    fn the_levels_of_the_worked_example() {
        let block = [2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 10];
        assert_eq!(read(&block, 10).unwrap(), [2, 0].repeat(10));
        assert_eq!(read(&block, 7).unwrap(), [2, 0].repeat(7));
        assert!(read(&block, 11).is_err());
        assert!(read(&block[..9], 1).is_err());
        assert!(read(&[9, 0, 0, 0, 0, 0, 0, 0, 2, 0, 10], 1).is_err());
    }

    #[test]
    fn chunks_have_two_buffers() {
        let mut out = Values::new(Physical::Fixed(2), 5).unwrap();
        ChunkReader::read(&rle(), &[&[1, 0, 7, 7], &[2, 3]], 5, &mut out).unwrap();
        assert_eq!(out.fixed(2).unwrap().as_slice(), [1, 0, 1, 0, 7, 7, 7, 7, 7, 7]);
        assert!(ChunkReader::read(&rle(), &[&[1, 0, 7], &[2, 3]], 5, &mut out).is_err());
        assert!(Rle::new(&message::Rle { values: flat(16), run_lengths: flat(16) }, Physical::Fixed(2)).is_err());
    }
}
