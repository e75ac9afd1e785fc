//! What a decoder can find wrong, before the page it happened in is known.

/// A decoder's complaint; the page puts file, column and page number in front of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes contradict themselves or the message that describes them.
    Corrupt(String),
    /// A legal encoding that this build does not decode.
    Unsupported(String),
    /// Legal, but larger than this build will hold in memory at once.
    TooLarge(String),
}

/// Result of a decoder.
pub(crate) type Decoded<T> = Result<T, Fault>;

/// A [`Fault::Corrupt`] as an error value.
pub(crate) fn corrupt<T>(what: impl Into<String>) -> Decoded<T> {
    Err(Fault::Corrupt(what.into()))
}

/// A [`Fault::Unsupported`] as an error value.
pub(crate) fn unsupported<T>(what: impl Into<String>) -> Decoded<T> {
    Err(Fault::Unsupported(what.into()))
}

/// `bytes[start..start + len]`, or what is missing.
pub(crate) fn part<'a>(bytes: &'a [u8], start: usize, len: usize, what: &str) -> Decoded<&'a [u8]> {
    start
        .checked_add(len)
        .and_then(|end| bytes.get(start..end))
        .ok_or_else(|| Fault::Corrupt(format!("{what} needs {len} bytes at {start} of {}", bytes.len())))
}

/// Little-endian unsigned integer of 1 to 8 bytes.
pub(crate) fn le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
