//! Sequences of positions and counts of 2.3 pages (file-format §5.6): unsigned numbers, most of them told by a formula.

use bytes::Bytes;

use super::{Scheme, block_reader, decompress, integer_bits, kind};
use crate::file::fault::{Decoded, Fault, corrupt, le, unsupported};
use crate::file::messages::encoding21::{Compressive, CompressiveEncoding, Rle};
use crate::file::values::{Physical, Values};

/// Numbers of one sequence at most: a formula of a few bytes can stand for any number of them.
const MAX_NUMBERS: usize = 1 << 24;

/// Whether the sequence takes a page buffer.
pub(crate) fn has_payload(encoding: Option<&CompressiveEncoding>) -> Decoded<bool> {
    Ok(match kind(encoding)? {
        Compressive::Constant(_) | Compressive::Range(_) => false,
        Compressive::Delta(delta) => has_payload(delta.deltas.as_deref())?,
        Compressive::Dictionary(dictionary) => {
            has_payload(dictionary.indices.as_deref())? || has_payload(dictionary.items.as_deref())?
        }
        Compressive::Rle(runs) => has_payload(runs.values.as_deref())? || has_payload(runs.run_lengths.as_deref())?,
        _ => true,
    })
}

/// The `n` numbers of a sequence; `payload` is its buffer, empty when it has none.
pub(crate) fn read(encoding: Option<&CompressiveEncoding>, n: u64, payload: &Bytes) -> Decoded<Vec<u64>> {
    let count = usize::try_from(n).ok().filter(|n| *n <= MAX_NUMBERS);
    let Some(count) = count else {
        return Err(Fault::TooLarge(format!("a sequence of {n} numbers, the limit is {MAX_NUMBERS}")));
    };
    let overflow = || Fault::Corrupt("a sequence that leaves the range of 64 bits".to_owned());
    match kind(encoding)? {
        Compressive::Constant(constant) => {
            let value = constant.value.as_deref().unwrap_or_default();
            if value.len() > 8 {
                return corrupt(format!("a constant of {} bytes in a sequence of numbers", value.len()));
            }
            Ok(vec![le(value); count])
        }
        Compressive::Range(range) => {
            (0..n).map(|i| i.checked_mul(range.step).and_then(|way| way.checked_add(range.start)).ok_or_else(overflow)).collect()
        }
        Compressive::Delta(delta) => {
            if count == 0 {
                return Ok(Vec::new());
            }
            let deltas = read(delta.deltas.as_deref(), n - 1, payload)?;
            let mut at = delta.base;
            let mut numbers = Vec::with_capacity(count);
            numbers.push(at);
            for step in deltas {
                at = at.checked_add(step).ok_or_else(overflow)?;
                numbers.push(at);
            }
            Ok(numbers)
        }
        Compressive::Dictionary(dictionary) => {
            // The sizes of two parts, then the parts; a part told by a formula has none.
            let part = |at: usize| payload.get(at..at + 8).map(le).and_then(|size| usize::try_from(size).ok());
            let sizes = part(0).zip(part(8)).filter(|(indices, items)| {
                indices.checked_add(*items).and_then(|size| size.checked_add(16)) == Some(payload.len())
            });
            let Some((size, _)) = sizes.or(payload.is_empty().then_some((0, 0))) else {
                return corrupt(format!("a sequence's dictionary of {} bytes whose parts have others", payload.len()));
            };
            let body = payload.slice(payload.len().min(16)..);
            let items = read(dictionary.items.as_deref(), dictionary.num_items, &body.slice(size..))?;
            let indices = read(dictionary.indices.as_deref(), n, &body.slice(..size))?;
            let pick = |index: u64| usize::try_from(index).ok().and_then(|index| items.get(index)).copied();
            let numbers: Option<Vec<u64>> = indices.into_iter().map(pick).collect();
            numbers.map_or_else(|| corrupt(format!("a sequence that leaves its dictionary of {}", items.len())), Ok)
        }
        Compressive::Rle(message) => runs(message, n, payload),
        _ => {
            let width = match integer_bits(encoding) {
                Some(bits @ (8 | 16 | 32 | 64)) => bits as usize / 8,
                other => return unsupported(format!("a sequence of numbers of {other:?} bits")),
            };
            let physical = Physical::Fixed(width);
            let mut values = Values::new(&physical, count)?;
            block_reader(encoding, &physical)?.read(payload, count, &mut values)?;
            let numbers: Vec<u64> = values.fixed(width)?.chunks_exact(width).map(le).collect();
            if numbers.len() != count {
                return corrupt(format!("a sequence of {} numbers, {count} were announced", numbers.len()));
            }
            Ok(numbers)
        }
    }
}

/// Runs, either part of which may be told by a formula: the size of the values, the values, the lengths.
fn runs(message: &Rle, n: u64, payload: &Bytes) -> Decoded<Vec<u64>> {
    let (values, lengths) = (message.values.as_deref(), message.run_lengths.as_deref());
    let (values_part, lengths_part) = match payload.split_first_chunk::<8>() {
        _ if payload.is_empty() => (Bytes::new(), Bytes::new()),
        Some((size, rest)) => match usize::try_from(u64::from_le_bytes(*size)) {
            Ok(size) if size <= rest.len() => (payload.slice(8..8 + size), payload.slice(8 + size..)),
            _ => return corrupt(format!("run values that are longer than the {} bytes of their runs", payload.len())),
        },
        None => return corrupt(format!("runs of {} bytes", payload.len())),
    };
    let count = match (told(lengths, &lengths_part)?, told(values, &values_part)?) {
        (Some(count), _) | (None, Some(count)) => count,
        (None, None) => formula_runs(lengths, n)?,
    };
    if count > n {
        return corrupt(format!("{count} runs of a sequence of {n} numbers"));
    }
    let values = read(values, count, &values_part)?;
    let lengths = read(lengths, count, &lengths_part)?;
    let total = lengths.iter().fold(0u64, |sum, length| sum.saturating_add(*length));
    if total != n {
        return corrupt(format!("runs of {total} numbers in a sequence of {n}"));
    }
    let mut numbers = Vec::with_capacity(usize::try_from(n).unwrap_or(0).min(MAX_NUMBERS));
    for (value, length) in values.into_iter().zip(lengths) {
        numbers.resize(numbers.len() + usize::try_from(length).unwrap_or(0), value);
    }
    Ok(numbers)
}

/// How many numbers a part holds, where its size tells.
fn told(encoding: Option<&CompressiveEncoding>, part: &[u8]) -> Decoded<Option<u64>> {
    let size = match kind(encoding)? {
        Compressive::Flat(_) => part.len(),
        Compressive::General(general) if matches!(kind(general.values.as_deref())?, Compressive::Flat(_)) => {
            decompress(Scheme::new(general)?, part)?.len()
        }
        _ => return Ok(None),
    };
    Ok(integer_bits(encoding).filter(|bits| *bits >= 8).map(|bits| size as u64 / (bits / 8)))
}

/// How many runs there are when their lengths are told by a formula.
fn formula_runs(lengths: Option<&CompressiveEncoding>, n: u64) -> Decoded<u64> {
    let (mut length, step) = match kind(lengths)? {
        Compressive::Constant(constant) => (constant.value.as_deref().filter(|value| value.len() <= 8).map_or(0, le), 0),
        Compressive::Range(range) => (range.start, range.step),
        _ => return unsupported("runs of a sequence whose parts do not tell how many they are"),
    };
    let (mut left, mut count) = (n, 0u64);
    while left > 0 {
        if length == 0 {
            return corrupt("runs of a sequence that have no length");
        }
        left = left.saturating_sub(length);
        length = length.saturating_add(step);
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::messages::encoding21::{Constant, Delta, Dictionary, Flat, InlineBitpacking, Range};

    fn of(kind: Compressive) -> Option<CompressiveEncoding> {
        Some(CompressiveEncoding { kind: Some(kind) })
    }

    fn boxed(kind: Compressive) -> Option<Box<CompressiveEncoding>> {
        of(kind).map(Box::new)
    }

    #[test]
    fn formulas() {
        let none = Bytes::new();
        let range = Compressive::Range(Range { bits: 64, start: 3, step: 5 });
        assert_eq!(read(of(range.clone()).as_ref(), 3, &none).unwrap(), [3, 8, 13]);
        assert!(read(of(range).as_ref(), u64::MAX, &none).is_err());
        let constant = Compressive::Constant(Constant { value: Some(Bytes::from_static(&[7, 1])) });
        assert_eq!(read(of(constant).as_ref(), 2, &none).unwrap(), [263, 263]);
        assert!(!has_payload(of(Compressive::Constant(Constant::default())).as_ref()).unwrap());
        let flat = |bits| Compressive::Flat(Flat { bits_per_value: bits, data: None });
        let delta = Compressive::Delta(Box::new(Delta { bits: 64, base: 1, deltas: boxed(flat(8)) }));
        assert!(has_payload(of(delta.clone()).as_ref()).unwrap());
        assert_eq!(read(of(delta.clone()).as_ref(), 3, &Bytes::from_static(&[2, 4])).unwrap(), [1, 3, 7]);
        assert!(read(of(delta.clone()).as_ref(), 4, &Bytes::from_static(&[2, 4])).is_err());
        assert!(read(of(delta).as_ref(), 0, &none).unwrap().is_empty());
        let runs =
            |values, run_lengths| of(Compressive::Rle(Box::new(Rle { values: boxed(values), run_lengths: boxed(run_lengths) })));
        let one_to = Compressive::Range(Range { bits: 64, start: 1, step: 1 });
        let two = Compressive::Constant(Constant { value: Some(Bytes::from_static(&[2, 0, 0, 0])) });
        let formulas = runs(one_to.clone(), two.clone());
        assert!(!has_payload(formulas.as_ref()).unwrap());
        assert_eq!(read(formulas.as_ref(), 6, &none).unwrap(), [1, 1, 2, 2, 3, 3]);
        assert!(read(formulas.as_ref(), 5, &none).is_err());
        let falling = runs(two.clone(), one_to.clone());
        assert_eq!(read(falling.as_ref(), 6, &none).unwrap(), [2; 6]);
        assert!(read(runs(two.clone(), Compressive::Constant(Constant::default())).as_ref(), 6, &none).is_err());
        let counted = runs(one_to, flat(8));
        let lengths = Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 3, 1]);
        assert_eq!(read(counted.as_ref(), 4, &lengths).unwrap(), [1, 1, 1, 2]);
        assert!(read(counted.as_ref(), 5, &lengths).is_err());
        assert!(read(counted.as_ref(), 4, &Bytes::from_static(&[9, 0, 0, 0, 0, 0, 0, 0, 3, 1])).is_err());
        let named = runs(flat(8), two);
        assert_eq!(read(named.as_ref(), 4, &Bytes::from_static(&[2, 0, 0, 0, 0, 0, 0, 0, 7, 9])).unwrap(), [7, 7, 9, 9]);
        // A group of values of one bit, all set, behind its width.
        let packed = Compressive::InlineBitpacking(InlineBitpacking { uncompressed_bits: 64, values: None });
        let group = [&1u64.to_le_bytes()[..], &[0xff; 128]].concat();
        assert_eq!(read(of(packed.clone()).as_ref(), 5, &group.clone().into()).unwrap(), [1; 5]);
        assert!(read(of(packed).as_ref(), 5, &group[..100].to_vec().into()).is_err());
        let far = Compressive::Range(Range { bits: 64, start: u64::MAX, step: 1 });
        assert!(read(of(far).as_ref(), 2, &none).is_err());
        let items = boxed(Compressive::Range(Range { bits: 64, start: 10, step: 10 }));
        let dictionary = Compressive::Dictionary(Box::new(Dictionary { indices: boxed(flat(8)), items, num_items: 3 }));
        let payload = [&[4u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &[2, 0, 1, 1]].concat();
        assert_eq!(read(of(dictionary.clone()).as_ref(), 4, &payload.clone().into()).unwrap(), [30, 10, 20, 20]);
        assert!(read(of(dictionary.clone()).as_ref(), 4, &payload[..18].to_vec().into()).is_err());
        let lies = [&payload[..19], &[3][..]].concat();
        assert!(read(of(dictionary).as_ref(), 4, &lies.into()).is_err());
    }
}
