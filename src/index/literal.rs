//! Values written as text, into plain bytes of a column type.

use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use crate::error::{Error, Result};

/// The plain bytes of a value of a type: numbers, `true`, text, hexadecimal for binaries, decimals with their point, dates
/// and times as ISO 8601 or as the number that is stored.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the text and the type.
pub fn plain(text: &str, data_type: &DataType) -> Result<Vec<u8>> {
    parse(text, data_type).ok_or_else(|| {
        Error::invalid(format!("{text:?} is no value of type {data_type}"))
            .with("value", text)
            .with("type", data_type.to_string())
    })
}

fn parse(text: &str, data_type: &DataType) -> Option<Vec<u8>> {
    macro_rules! number {
        ($t:ty) => {
            text.trim().parse::<$t>().ok()?.to_le_bytes().to_vec()
        };
    }
    let whole = |number: Option<i64>| -> Option<Vec<u8>> {
        Some(text.trim().parse().ok().or(number)?).map(|number: i64| number.to_le_bytes().to_vec())
    };
    Some(match data_type {
        DataType::Boolean => vec![u8::from(text.trim().parse::<bool>().ok()?)],
        DataType::Int8 => number!(i8),
        DataType::Int16 => number!(i16),
        DataType::Int32 => number!(i32),
        DataType::Int64 => number!(i64),
        DataType::UInt8 => number!(u8),
        DataType::UInt16 => number!(u16),
        DataType::UInt32 => number!(u32),
        DataType::UInt64 => number!(u64),
        DataType::Float16 => half::f16::from_f64(text.trim().parse().ok()?).to_le_bytes().to_vec(),
        DataType::Float32 => number!(f32),
        DataType::Float64 => number!(f64),
        DataType::Utf8 | DataType::LargeUtf8 => text.as_bytes().to_vec(),
        DataType::Binary | DataType::LargeBinary => hex(text)?,
        DataType::FixedSizeBinary(width) => hex(text).filter(|bytes| Ok(bytes.len()) == usize::try_from(*width))?,
        DataType::Decimal128(_, scale) => decimal(text, *scale)?.to_le_bytes().to_vec(),
        DataType::Decimal256(_, scale) => arrow::datatypes::i256::from_i128(decimal(text, *scale)?).to_le_bytes().to_vec(),
        DataType::Date32 => {
            let days = text.trim().parse().ok().or_else(|| i32::try_from(days(text)?).ok())?;
            i32::to_le_bytes(days).to_vec()
        }
        DataType::Date64 => whole(days(text).and_then(|days| days.checked_mul(86_400_000)))?,
        DataType::Time32(unit) => {
            let number = text.trim().parse().ok().or_else(|| i32::try_from(time(text, unit)?).ok())?;
            i32::to_le_bytes(number).to_vec()
        }
        DataType::Time64(unit) => whole(time(text, unit))?,
        DataType::Timestamp(unit, _) => whole(instant(text, unit))?,
        DataType::Duration(_) => whole(None)?,
        _ => return None,
    })
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim().trim_start_matches("0x").as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect()).flatten()
}

/// The unscaled number of a decimal; digits past its scale must be zeros.
fn decimal(text: &str, scale: i8) -> Option<i128> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = usize::try_from(scale).ok()?;
    let (kept, rest) = fraction.split_at_checked(scale).unwrap_or((fraction, ""));
    if !rest.bytes().all(|digit| digit == b'0') || !kept.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    format!("{whole}{kept:0<scale$}").parse().ok()
}

fn days(text: &str) -> Option<i64> {
    let date = text.trim().parse::<NaiveDate>().ok()?;
    Some(date.signed_duration_since(NaiveDate::default()).num_days())
}

fn in_unit(seconds: i64, nanoseconds: u32, unit: &TimeUnit) -> Option<i64> {
    let (per_second, divisor) = match unit {
        TimeUnit::Second => (1, 1_000_000_000),
        TimeUnit::Millisecond => (1000, 1_000_000),
        TimeUnit::Microsecond => (1_000_000, 1000),
        TimeUnit::Nanosecond => (1_000_000_000, 1),
    };
    seconds.checked_mul(per_second)?.checked_add(i64::from(nanoseconds) / divisor)
}

fn time(text: &str, unit: &TimeUnit) -> Option<i64> {
    let time = text.trim().parse::<NaiveTime>().ok()?;
    in_unit(i64::from(time.num_seconds_from_midnight()), time.nanosecond(), unit)
}

fn instant(text: &str, unit: &TimeUnit) -> Option<i64> {
    let text = text.trim().replacen(' ', "T", 1);
    let instant = DateTime::parse_from_rfc3339(&text)
        .map(|instant| instant.naive_utc())
        .or_else(|_| text.parse::<NaiveDateTime>())
        .or_else(|_| text.parse::<NaiveDate>().map(|date| date.and_time(NaiveTime::MIN)))
        .ok()?
        .and_utc();
    in_unit(instant.timestamp(), instant.timestamp_subsec_nanos(), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_kind() {
        let of = |text: &str, data_type: DataType| plain(text, &data_type).unwrap();
        assert_eq!(of("-7", DataType::Int16), (-7i16).to_le_bytes());
        assert_eq!(of("NaN", DataType::Float64), f64::NAN.to_le_bytes());
        assert_eq!(of("true", DataType::Boolean), [1]);
        assert_eq!(of(" é ", DataType::Utf8), " é ".as_bytes());
        assert_eq!(of("0x00ff", DataType::Binary), [0, 255]);
        assert_eq!(of("-1.5", DataType::Decimal128(9, 2)), (-150i128).to_le_bytes());
        assert_eq!(of("7", DataType::Decimal128(9, 2)), 700i128.to_le_bytes());
        assert_eq!(of("1970-01-11", DataType::Date32), 10i32.to_le_bytes());
        assert_eq!(of("1969-12-31", DataType::Date64), (-86_400_000i64).to_le_bytes());
        assert_eq!(of("00:00:01.5", DataType::Time32(TimeUnit::Millisecond)), 1500i32.to_le_bytes());
        let stamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(of("1970-01-01T01:00:00.25+01:00", stamp.clone()), 250_000i64.to_le_bytes());
        assert_eq!(of("1970-01-01 00:00:01", stamp.clone()), 1_000_000i64.to_le_bytes());
        assert_eq!(of("-3", stamp), (-3i64).to_le_bytes());
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let stamp = DataType::Timestamp(TimeUnit::Second, None);
        for (text, data_type) in [
            ("300", DataType::Int8),
            ("x", DataType::Float32),
            ("abc", DataType::Binary),
            ("00", DataType::FixedSizeBinary(2)),
            ("1.234", DataType::Decimal128(9, 2)),
            ("1.-5", DataType::Decimal128(9, 2)),
            ("tomorrow", stamp),
            ("1", DataType::new_list(DataType::Int8, true)),
        ] {
            assert!(plain(text, &data_type).is_err(), "{text} {data_type}");
        }
    }
}
