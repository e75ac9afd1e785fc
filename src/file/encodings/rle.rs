//! Runs: values and lengths (file-format §6.1, §6.2). Lengths are one byte each up to 2.2; from 2.3 on they are wider, and
//! either part may itself be compressed.

use std::borrow::Cow;

use arrow::buffer::MutableBuffer;
use arrow::datatypes::ArrowNativeType;

use super::{
    BlockReader, ChunkReader, MAX_BLOCK_VALUES, Scheme, block_reader, decompress, integer_bits, kind, plain, word_width,
};
use crate::file::fault::{Decoded, Fault, corrupt, le, part, unsupported};
use crate::file::messages::encoding21::{self as message, Compressive, CompressiveEncoding};
use crate::file::values::{Physical, Values};

/// Values or lengths of runs, so many bytes each.
struct Half {
    bytes: usize,
    form: Form,
}

enum Form {
    Plain,
    /// One compressed unit of plain ones: how many there are is known once it is unpacked.
    Unit(Scheme),
    /// Something that must be told how many there are.
    Packed(Box<dyn BlockReader>),
}

impl Half {
    fn new(encoding: Option<&CompressiveEncoding>) -> Decoded<Half> {
        let bytes = match integer_bits(encoding) {
            Some(bits @ (8 | 16 | 32 | 64)) => bits as usize / 8,
            other => return unsupported(format!("Rle over values of {other:?} bits")),
        };
        let form = match kind(encoding)? {
            Compressive::Flat(flat) => {
                plain(flat.data.as_ref(), "Flat")?;
                Form::Plain
            }
            Compressive::General(general) if matches!(kind(general.values.as_deref())?, Compressive::Flat(_)) => {
                Form::Unit(Scheme::new(general)?)
            }
            _ => Form::Packed(block_reader(encoding, &Physical::Fixed(bytes))?),
        };
        Ok(Half { bytes, form })
    }

    /// The bytes as far as they can be unpacked without knowing how many values there are, and that number.
    fn open<'a>(&self, bytes: &'a [u8]) -> Decoded<(Cow<'a, [u8]>, Option<usize>)> {
        let plain = match &self.form {
            Form::Plain => Cow::Borrowed(bytes),
            Form::Unit(scheme) => Cow::Owned(decompress(*scheme, bytes)?),
            Form::Packed(_) => return Ok((Cow::Borrowed(bytes), None)),
        };
        let count = plain.len() / self.bytes;
        Ok((plain, Some(count)))
    }

    fn finish<'a>(&self, bytes: Cow<'a, [u8]>, count: usize) -> Decoded<Cow<'a, [u8]>> {
        let Form::Packed(reader) = &self.form else { return Ok(bytes) };
        if count > MAX_BLOCK_VALUES {
            return Err(Fault::TooLarge(format!("{count} runs, the limit is {MAX_BLOCK_VALUES}")));
        }
        let mut values = Values::new(&Physical::Fixed(self.bytes), count)?;
        reader.read(&bytes, count, &mut values)?;
        Ok(Cow::Owned(values.fixed(self.bytes)?.to_vec()))
    }
}

/// Runs of equal values.
pub(crate) struct Rle {
    values: Half,
    lengths: Half,
}

impl Rle {
    pub(crate) fn new(message: &message::Rle, physical: &Physical) -> Decoded<Rle> {
        let values = Half::new(message.values.as_deref())?;
        word_width(8 * values.bytes as u64, physical, "Rle")?;
        let lengths = Half::new(message.run_lengths.as_deref())?;
        if matches!((&values.form, &lengths.form), (Form::Packed(_), Form::Packed(_))) {
            return unsupported("Rle whose values and lengths are both packed");
        }
        Ok(Rle { values, lengths })
    }

    fn runs(&self, values: &[u8], lengths: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        let ((values, runs), (lengths, other)) = (self.values.open(values)?, self.lengths.open(lengths)?);
        let count = other.or(runs).unwrap_or(0);
        let (values, lengths) = (self.values.finish(values, count)?, self.lengths.finish(lengths, count)?);
        let total = lengths.chunks_exact(self.lengths.bytes).fold(0u64, |sum, length| sum.saturating_add(le(length)));
        let sound = Some(values.len()) == count.checked_mul(self.values.bytes)
            && Some(lengths.len()) == count.checked_mul(self.lengths.bytes);
        if !sound || total < n as u64 {
            return corrupt(format!(
                "{} bytes of run values, {} bytes of run lengths, {total} values in all, {n} were announced",
                values.len(),
                lengths.len()
            ));
        }
        if n > MAX_BLOCK_VALUES {
            return Err(Fault::TooLarge(format!("runs of {n} values, the limit is {MAX_BLOCK_VALUES}")));
        }
        let width = self.values.bytes;
        let out = out.fixed(width)?;
        let lengths = lengths.chunks_exact(self.lengths.bytes).map(le);
        match width {
            1 => fill(values.as_chunks().0.iter().map(|v| u8::from_le_bytes(*v)), lengths, n, out),
            2 => fill(values.as_chunks().0.iter().map(|v| u16::from_le_bytes(*v)), lengths, n, out),
            4 => fill(values.as_chunks().0.iter().map(|v| u32::from_le_bytes(*v)), lengths, n, out),
            _ => fill(values.as_chunks().0.iter().map(|v| u64::from_le_bytes(*v)), lengths, n, out),
        }
        Ok(())
    }
}

/// Appends `n` values; the last run may be longer than what is left of `n`.
fn fill<T: ArrowNativeType>(
    values: impl Iterator<Item = T>,
    lengths: impl Iterator<Item = u64>,
    n: usize,
    out: &mut MutableBuffer,
) {
    let start = out.len() / size_of::<T>();
    out.resize(out.len() + n * size_of::<T>(), 0);
    let mut rest = out.typed_data_mut::<T>().get_mut(start..).unwrap_or_default();
    for (value, length) in values.zip(lengths) {
        let here = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
        let (run, after) = rest.split_at_mut(here);
        run.fill(value);
        rest = after;
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

    fn count(&self, block: &[u8]) -> Option<u64> {
        if !matches!(self.lengths.form, Form::Plain) {
            return None;
        }
        let size = usize::try_from(le(block.get(..8)?)).ok()?;
        let lengths = block.get(size.checked_add(8)?..)?;
        Some(lengths.chunks_exact(self.lengths.bytes).fold(0u64, |sum, length| sum.saturating_add(le(length))))
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
        Rle::new(&message::Rle { values: flat(16), run_lengths: flat(8) }, &Physical::Fixed(2)).unwrap()
    }

    fn read(block: &[u8], n: usize) -> Decoded<Vec<u8>> {
        let mut out = Values::new(&Physical::Fixed(2), n).unwrap();
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
        let mut out = Values::new(&Physical::Fixed(2), 5).unwrap();
        ChunkReader::read(&rle(), &[&[1, 0, 7, 7], &[2, 3]], 5, &mut out).unwrap();
        assert_eq!(out.fixed(2).unwrap().as_slice(), [1, 0, 1, 0, 7, 7, 7, 7, 7, 7]);
        assert!(ChunkReader::read(&rle(), &[&[1, 0, 7], &[2, 3]], 5, &mut out).is_err());
        assert!(Rle::new(&message::Rle { values: flat(32), run_lengths: flat(8) }, &Physical::Fixed(2)).is_err());
        assert!(Rle::new(&message::Rle { values: flat(16), run_lengths: flat(1) }, &Physical::Fixed(2)).is_err());
    }

    #[test]
    fn lengths_of_two_bytes() {
        let wide = Rle::new(&message::Rle { values: flat(16), run_lengths: flat(16) }, &Physical::Fixed(2)).unwrap();
        let mut out = Values::new(&Physical::Fixed(2), 300).unwrap();
        ChunkReader::read(&wide, &[&[1, 0, 7, 7], &[44, 1, 3, 0]], 302, &mut out).unwrap();
        let expected = [[1u8, 0].repeat(300), vec![7, 7, 7, 7]].concat();
        assert_eq!(out.fixed(2).unwrap().as_slice(), expected);
        assert!(ChunkReader::read(&wide, &[&[1, 0, 7, 7], &[44, 1, 3]], 300, &mut out).is_err());
    }
}
