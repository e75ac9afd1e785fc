//! Dates, times and decimals as text, as Arrow's own display writes them. Written out here because Arrow's brings the
//! formatting of every type and of every calendar with it.

use arrow::datatypes::TimeUnit;

const DAY: i64 = 86_400;

/// `2024-02-29`, from days since 1970. Years of more than four digits carry a sign (ISO 8601).
pub(super) fn date(days: i64) -> String {
    let (year, month, day) = civil(days);
    if (0..=9999).contains(&year) { format!("{year:04}-{month:02}-{day:02}") } else { format!("{year:+05}-{month:02}-{day:02}") }
}

/// Proleptic Gregorian date: years begin in March, so that the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let since = days + 719_468;
    let (era, of_era) = (since.div_euclid(ERA), since.rem_euclid(ERA));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    (year_of_era + 400 * era + i64::from(month <= 2), month, day)
}

/// Units in a second, and how many digits follow the point.
fn scale(unit: TimeUnit) -> (i64, usize) {
    match unit {
        TimeUnit::Second => (1, 0),
        TimeUnit::Millisecond => (1_000, 3),
        TimeUnit::Microsecond => (1_000_000, 6),
        TimeUnit::Nanosecond => (1_000_000_000, 9),
    }
}

/// `.250`: three, six or nine digits, nothing for a whole second.
fn fraction(parts: i64, digits: usize) -> String {
    if parts == 0 {
        return String::new();
    }
    let mut text = format!("{parts:0digits$}");
    while text.len() > 3 && text.ends_with("000") {
        text.truncate(text.len() - 3);
    }
    format!(".{text}")
}

/// `13:05:00.250`, from units since midnight.
pub(super) fn time(value: i64, unit: TimeUnit) -> String {
    let (per_second, digits) = scale(unit);
    let (seconds, parts) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    format!("{:02}:{:02}:{:02}{}", seconds / 3600, seconds / 60 % 60, seconds % 60, fraction(parts, digits))
}

/// `2024-02-29T13:05:00.250`, from units since 1970.
pub(super) fn timestamp(value: i64, unit: TimeUnit) -> String {
    let (per_second, _) = scale(unit);
    let day = value.div_euclid(DAY * per_second);
    format!("{}T{}", date(day), time(value.rem_euclid(DAY * per_second), unit))
}

/// `PT3.250S`.
pub(super) fn duration(value: i64, unit: TimeUnit) -> String {
    let (per_second, digits) = scale(unit);
    let (whole, parts) = (value.unsigned_abs() / per_second as u64, value.unsigned_abs() % per_second as u64);
    format!("{}PT{whole}{}S", if value < 0 { "-" } else { "" }, fraction(parts as i64, digits))
}

/// Digits with a decimal point `scale` digits from the end; with a negative scale, as many zeros behind.
pub(super) fn decimal(digits: &str, scale: i8) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    match usize::try_from(scale) {
        Ok(0) => format!("{sign}{digits}"),
        Ok(places) => {
            let padded = format!("{digits:0>width$}", width = places + 1);
            let (whole, rest) = padded.split_at(padded.len() - places);
            format!("{sign}{whole}.{rest}")
        }
        Err(_) => format!("{sign}{digits}{}", "0".repeat(usize::from(scale.unsigned_abs()))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::*;
    use arrow::datatypes::DataType;
    use arrow::util::display::array_value_to_string;

    use super::*;

    #[test]
    fn the_texts_are_those_of_arrow() {
        let days: Vec<i32> = (-800_000..3_000_000).step_by(997).chain([0, -1, 59, 11_016, 19_782, 10_957 + 366 * 5000]).collect();
        let dates: ArrayRef = Arc::new(Date32Array::from(days.clone()));
        for (row, day) in days.iter().enumerate() {
            assert_eq!(date(i64::from(*day)), array_value_to_string(&dates, row).unwrap());
        }
        let moments: Vec<i64> =
            vec![0, 1, -1, 1_000, 999_999_999, 1_700_000_000_123_456_789, -62_135_596_800_000_000, 86_399_000_000_000];
        for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
            let (per_second, _) = scale(unit);
            let values: Vec<i64> =
                moments.iter().map(|m| if per_second < 1_000_000 { m % 100_000_000_000 } else { *m }).collect();
            let array = make_array(
                Int64Array::from(values.clone())
                    .into_data()
                    .into_builder()
                    .data_type(DataType::Timestamp(unit, None))
                    .build()
                    .unwrap(),
            );
            for (row, value) in values.iter().enumerate() {
                assert_eq!(timestamp(*value, unit), array_value_to_string(&array, row).unwrap(), "{value} {unit:?}");
            }
        }
        let times: ArrayRef =
            Arc::new(Time64NanosecondArray::from(vec![0, 1, 86_399_999_999_999, 3_600_000_000_000, 250_000_000]));
        for row in 0..times.len() {
            let value = times.as_primitive::<arrow::datatypes::Time64NanosecondType>().value(row);
            assert_eq!(time(value, TimeUnit::Nanosecond), array_value_to_string(&times, row).unwrap());
        }
        for scale in [0, 2, 9] {
            let values = vec![0, 1, -1, 12_345, -99, 123_456_789_012];
            let array: ArrayRef = Arc::new(Decimal128Array::from(values.clone()).with_precision_and_scale(38, scale).unwrap());
            for (row, value) in values.iter().enumerate() {
                assert_eq!(decimal(&value.to_string(), scale), array_value_to_string(&array, row).unwrap());
            }
        }
        assert_eq!(decimal("-12", -3), "-12000");
        assert_eq!((duration(3_250, TimeUnit::Millisecond), duration(-1, TimeUnit::Second)), ("PT3.250S".into(), "-PT1S".into()));
    }
}
