//! Protobuf messages as sequences of raw fields, for what a typed decoder loses: unknown numbers, order, repetition.

use bytes::Bytes;

use crate::error::{Error, Result};

/// Wire type of a length-delimited field.
pub const LEN: u8 = 2;
/// Wire type of a varint field.
pub const VARINT: u8 = 0;

/// One field of a message, still encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawField {
    /// Field number.
    pub number: u32,
    /// Wire type: 0 varint, 1 fixed64, 2 length-delimited, 5 fixed32.
    pub wire: u8,
    /// Key and value as they stand in the message.
    pub raw: Bytes,
    /// The value: payload without its length for wire type 2, the encoded bytes otherwise.
    pub value: Bytes,
}

/// Splits a message into its top-level fields, in order; groups, field number 0 and lengths past the end are `CORRUPT_FILE`.
pub fn split(object: &str, message: &Bytes) -> Result<Vec<RawField>> {
    let mut out = Vec::new();
    let mut at = 0usize;
    while at < message.len() {
        let start = at;
        let (key, after_key) = varint(object, message, at)?;
        let number = u32::try_from(key >> 3)
            .ok()
            .filter(|n| *n > 0 && *n < 1 << 29)
            .ok_or_else(|| Error::corrupt(object, format!("field number {} at byte {start} of a message", key >> 3)))?;
        let wire = (key & 7) as u8;
        let (value_start, value_end) = match wire {
            0 => (after_key, varint(object, message, after_key)?.1),
            1 => (after_key, after_key.saturating_add(8)),
            5 => (after_key, after_key.saturating_add(4)),
            LEN => {
                let (length, after_length) = varint(object, message, after_key)?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                (after_length, after_length.saturating_add(length))
            }
            other => {
                return Err(Error::corrupt(
                    object,
                    format!("field {number} has wire type {other}, which no field of the format has"),
                ));
            }
        };
        if value_end > message.len() {
            return Err(Error::corrupt(
                object,
                format!("field {number} at byte {start} ends at {value_end}, past the {} bytes of its message", message.len()),
            ));
        }
        out.push(RawField { number, wire, raw: message.slice(start..value_end), value: message.slice(value_start..value_end) });
        at = value_end;
    }
    Ok(out)
}

/// Reads the varint at `at`; returns its value and the position after it.
fn varint(object: &str, message: &[u8], at: usize) -> Result<(u64, usize)> {
    let mut value = 0u64;
    for (i, byte) in message.get(at..).unwrap_or_default().iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * i as u32).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok((value, at + i + 1));
        }
    }
    Err(Error::corrupt(object, format!("unfinished varint at byte {at} of a message")))
}

/// Appends a varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a varint field.
pub fn put_varint_field(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3 | u64::from(VARINT));
    put_varint(out, value);
}

/// Appends a length-delimited field.
pub fn put_len_field(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_varint(out, u64::from(number) << 3 | u64::from(LEN));
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

impl RawField {
    /// The value of a varint field; `CORRUPT_FILE` for another wire type.
    pub fn as_varint(&self, object: &str) -> Result<u64> {
        if self.wire != VARINT {
            return Err(Error::corrupt(object, format!("field {} has wire type {}, not a varint", self.number, self.wire)));
        }
        Ok(varint(object, &self.value, 0)?.0)
    }

    /// The payload of a length-delimited field; `CORRUPT_FILE` for another wire type.
    pub fn as_bytes(&self, object: &str) -> Result<&Bytes> {
        if self.wire != LEN {
            return Err(Error::corrupt(
                object,
                format!("field {} has wire type {}, not length-delimited", self.number, self.wire),
            ));
        }
        Ok(&self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_and_keeps_every_byte() {
        let mut message = Vec::new();
        put_varint_field(&mut message, 3, u64::MAX);
        put_len_field(&mut message, 200, b"abc");
        message.extend_from_slice(&[0x0d, 1, 2, 3, 4]); // field 1, fixed32
        let message = Bytes::from(message);
        let fields = split("m", &message).unwrap();
        assert_eq!(fields.iter().map(|f| (f.number, f.wire)).collect::<Vec<_>>(), [(3, 0), (200, 2), (1, 5)]);
        assert_eq!(fields[0].as_varint("m").unwrap(), u64::MAX);
        assert_eq!(fields[1].value, "abc");
        assert_eq!(fields.iter().flat_map(|f| f.raw.to_vec()).collect::<Vec<u8>>(), message);
        assert!(fields[1].as_varint("m").is_err());
        assert!(fields[0].as_bytes("m").is_err());
    }

    #[test]
    fn refuses_what_does_not_fit() {
        for bad in [&[0x0au8, 5, 1][..], &[0x80], &[0x08], &[0x0b], &[0x00, 0x00], &[0x09, 1, 2], &[0xff; 11]] {
            assert!(split("m", &Bytes::copy_from_slice(bad)).is_err(), "{bad:?}");
        }
        let huge = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert!(split("m", &Bytes::copy_from_slice(&huge)).unwrap_err().message().starts_with("m: field 1"));
    }
}
