//! LZ4 and ZSTD around another encoding (file-format §7.4).

use std::borrow::Cow;
use std::io::Read;

use super::{BlockReader, ChunkReader, ItemReader, block_reader, chunk_reader, item_reader};
use crate::file::fault::{Decoded, Fault, corrupt, le, part, unsupported};
use crate::file::messages::encoding21 as message;
use crate::file::values::{Physical, Values};

/// No compressed unit is unpacked to more bytes than this.
const MAX_UNPACKED: u64 = 256 << 20;
/// First bytes of a bare ZSTD frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Which compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// u32 plain size, one raw block.
    Lz4,
    /// u64 plain size, one frame; or a bare frame.
    Zstd,
}

impl Scheme {
    pub(crate) fn new(message: &message::General) -> Decoded<Scheme> {
        match message.compression.as_ref().map(|compression| compression.scheme) {
            Some(1) => Ok(Scheme::Lz4),
            Some(2) => Ok(Scheme::Zstd),
            other => unsupported(format!("General compression with scheme {other:?}")),
        }
    }
}

/// Unpacks one compressed unit.
pub(crate) fn decompress(scheme: Scheme, unit: &[u8]) -> Decoded<Vec<u8>> {
    match scheme {
        Scheme::Lz4 => {
            let size = bounded(le(part(unit, 0, 4, "an LZ4 unit")?), unit.len())?;
            let block = unit.get(4..).unwrap_or_default();
            if size == 0 {
                return Ok(Vec::new());
            }
            // No LZ4 sequence expands a byte to more than 255.
            if size > block.len().saturating_mul(255) {
                return corrupt(format!("an LZ4 unit of {} bytes that claims {size}", unit.len()));
            }
            match lz4_flex::block::decompress(block, size) {
                Ok(plain) if plain.len() == size => Ok(plain),
                Ok(plain) => corrupt(format!("an LZ4 unit of {} bytes that claims {size}", plain.len())),
                Err(error) => corrupt(format!("an LZ4 unit that does not unpack: {error}")),
            }
        }
        Scheme::Zstd => {
            if unit.starts_with(&ZSTD_MAGIC) {
                return zstd(unit, None);
            }
            let size = bounded(le(part(unit, 0, 8, "a ZSTD unit")?), unit.len())?;
            if size == 0 {
                return Ok(Vec::new());
            }
            zstd(unit.get(8..).unwrap_or_default(), Some(size))
        }
    }
}

fn bounded(size: u64, packed: usize) -> Decoded<usize> {
    if size > MAX_UNPACKED {
        return Err(Fault::TooLarge(format!(
            "a compressed unit of {packed} bytes that claims {size}, the limit is {MAX_UNPACKED}"
        )));
    }
    usize::try_from(size).map_err(|_| Fault::TooLarge(format!("a compressed unit that claims {size} bytes")))
}

fn zstd(frame: &[u8], size: Option<usize>) -> Decoded<Vec<u8>> {
    let limit = size.map_or(MAX_UNPACKED, |size| size as u64);
    let mut plain = Vec::new();
    let unpacked = ruzstd::decoding::StreamingDecoder::new(frame)
        .map_err(|error| error.to_string())
        .and_then(|decoder| decoder.take(limit + 1).read_to_end(&mut plain).map_err(|error| error.to_string()));
    match (unpacked, size) {
        (Err(error), _) => corrupt(format!("a ZSTD unit that does not unpack: {error}")),
        (Ok(_), Some(size)) if plain.len() != size => {
            corrupt(format!("a ZSTD unit of {} bytes or more that claims {size}", plain.len()))
        }
        (Ok(_), None) if plain.len() as u64 > limit => Err(Fault::TooLarge(format!("a ZSTD frame of more than {limit} bytes"))),
        _ => Ok(plain),
    }
}

/// The first buffer of every chunk is compressed, the others are not.
pub(crate) struct GeneralChunks {
    scheme: Scheme,
    inner: Box<dyn ChunkReader>,
}

impl GeneralChunks {
    pub(crate) fn new(message: &message::General, physical: &Physical) -> Decoded<GeneralChunks> {
        Ok(GeneralChunks { scheme: Scheme::new(message)?, inner: chunk_reader(message.values.as_deref(), physical)? })
    }
}

impl ChunkReader for GeneralChunks {
    fn buffers(&self) -> usize {
        self.inner.buffers()
    }

    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        let Some((first, rest)) = buffers.split_first() else { return corrupt("a compressed chunk without buffers") };
        let plain: Cow<'_, [u8]> = decompress(self.scheme, first)?.into();
        let mut all: Vec<&[u8]> = vec![&plain];
        all.extend(rest);
        self.inner.read(&all, n, out)
    }
}

/// The whole block is one compressed unit.
pub(crate) struct GeneralBlock {
    scheme: Scheme,
    inner: Box<dyn BlockReader>,
}

impl GeneralBlock {
    pub(crate) fn new(message: &message::General, physical: &Physical) -> Decoded<GeneralBlock> {
        Ok(GeneralBlock { scheme: Scheme::new(message)?, inner: block_reader(message.values.as_deref(), physical)? })
    }
}

impl BlockReader for GeneralBlock {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        self.inner.read(&decompress(self.scheme, block)?, n, out)
    }
}

/// Every value is one compressed unit.
pub(crate) struct GeneralItem {
    scheme: Scheme,
    inner: Box<dyn ItemReader>,
}

impl GeneralItem {
    pub(crate) fn new(message: &message::General, physical: &Physical) -> Decoded<GeneralItem> {
        Ok(GeneralItem { scheme: Scheme::new(message)?, inner: item_reader(message.values.as_deref(), physical)? })
    }
}

impl ItemReader for GeneralItem {
    fn read(&self, value: &[u8], out: &mut Values) -> Decoded<()> {
        self.inner.read(&decompress(self.scheme, value)?, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lz4_units() {
        let plain: Vec<u8> = (0..5000u32).flat_map(|i| (i / 100).to_le_bytes()).collect();
        let unit = lz4_flex::block::compress_prepend_size(&plain);
        assert_eq!(decompress(Scheme::Lz4, &unit).unwrap(), plain);
        assert!(decompress(Scheme::Lz4, &unit[..unit.len() - 1]).is_err());
        assert!(decompress(Scheme::Lz4, &unit[..3]).is_err());
        let mut wrong = unit.clone();
        wrong[0] ^= 1;
        assert!(decompress(Scheme::Lz4, &wrong).is_err());
        let mut bomb = unit;
        bomb[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(decompress(Scheme::Lz4, &bomb), Err(Fault::TooLarge(_))));
        assert!(decompress(Scheme::Lz4, &[0; 4]).unwrap().is_empty());
    }

    #[test]
    fn zstd_units_with_and_without_size() {
        // One raw block of three bytes in a single-segment frame.
        let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x20, 3, 0x19, 0, 0, b'a', b'b', b'c'];
        assert_eq!(decompress(Scheme::Zstd, &frame).unwrap(), b"abc");
        let sized = |size: u64| [&size.to_le_bytes()[..], &frame].concat();
        assert_eq!(decompress(Scheme::Zstd, &sized(3)).unwrap(), b"abc");
        assert!(decompress(Scheme::Zstd, &sized(4)).is_err());
        assert!(decompress(Scheme::Zstd, &sized(2)).is_err());
        assert!(matches!(decompress(Scheme::Zstd, &sized(1 << 40)), Err(Fault::TooLarge(_))));
        assert!(decompress(Scheme::Zstd, &sized(3)[..14]).is_err());
    }
}
