//! Values of index files and of columns as JSON, for inspection.

use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, TimeUnit};
use serde_json::{Map, Value};

use super::order::numbers;
use super::times;

/// Largest whole number every JSON reader keeps exactly.
const EXACT: u64 = 1 << 53;

/// Slot `row` as JSON: whole numbers past 2^53 as decimal text, floats that JSON lacks as text, binary as hex, decimals
/// and times as Arrow writes them.
pub fn scalar(array: &ArrayRef, row: usize) -> Value {
    if row >= array.len() || array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Float16 => float(f64::from(array.as_primitive::<Float16Type>().value(row))),
        DataType::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::List(_) => items(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => items(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(_, _) => items(&array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let mut object = Map::new();
            object.extend(fields.iter().zip(columns).map(|(field, column)| (field.name().clone(), scalar(column, row))));
            Value::Object(object)
        }
        DataType::Binary => hex(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => hex(array.as_binary::<i64>().value(row)),
        DataType::FixedSizeBinary(_) => hex(array.as_fixed_size_binary().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Decimal128(_, scale) => decimal(array.as_primitive::<Decimal128Type>().value(row), *scale),
        DataType::Decimal256(_, scale) => decimal(array.as_primitive::<Decimal256Type>().value(row), *scale),
        other => match whole(array, row) {
            Some(number) => number_or_time(number, other),
            None => Value::String(format!("(a value of type {other})")),
        },
    }
}

/// The stored number of an integer, date, time, timestamp or duration.
fn whole(array: &ArrayRef, row: usize) -> Option<i128> {
    Some(match array.data_type() {
        DataType::UInt8 => i128::from(*numbers::<u8>(array)?.get(row)?),
        DataType::UInt16 => i128::from(*numbers::<u16>(array)?.get(row)?),
        DataType::UInt32 => i128::from(*numbers::<u32>(array)?.get(row)?),
        DataType::UInt64 => i128::from(*numbers::<u64>(array)?.get(row)?),
        other => match other.primitive_width()? {
            1 => i128::from(numbers::<u8>(array)?.get(row)?.cast_signed()),
            2 => i128::from(numbers::<u16>(array)?.get(row)?.cast_signed()),
            4 => i128::from(numbers::<u32>(array)?.get(row)?.cast_signed()),
            8 => i128::from(numbers::<u64>(array)?.get(row)?.cast_signed()),
            _ => return None,
        },
    })
}

fn number_or_time(number: i128, data_type: &DataType) -> Value {
    // All but u64 fit, and that is no time.
    let stored = i64::try_from(number).unwrap_or(i64::MAX);
    Value::String(match data_type {
        DataType::Date32 => times::date(stored),
        DataType::Date64 => times::timestamp(stored, TimeUnit::Millisecond),
        DataType::Time32(unit) | DataType::Time64(unit) => times::time(stored, *unit),
        DataType::Timestamp(unit, None) => times::timestamp(stored, *unit),
        // Stored in UTC, whatever the zone; names of zones are not known here.
        DataType::Timestamp(unit, Some(_)) => format!("{}Z", times::timestamp(stored, *unit)),
        DataType::Duration(unit) => times::duration(stored, *unit),
        _ if number.unsigned_abs() <= u128::from(EXACT) => return stored.into(),
        _ => number.to_string(),
    })
}

fn decimal(value: impl std::fmt::Display, scale: i8) -> Value {
    Value::String(times::decimal(&value.to_string(), scale))
}

fn items(list: &ArrayRef) -> Value {
    (0..list.len()).map(|at| scalar(list, at)).collect()
}

fn float(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number)
}

fn hex(bytes: &[u8]) -> Value {
    Value::String(bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, Decimal128Array, Float16Array, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray,
    };
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_has_a_json_form() {
        let show = |array: ArrayRef| (0..array.len()).map(|row| scalar(&array, row)).collect::<Vec<_>>();
        assert_eq!(
            show(Arc::new(Int64Array::from(vec![Some(-3), None, Some(i64::MAX), Some(1 << 53)]))),
            [json!(-3), Value::Null, json!("9223372036854775807"), json!(9007199254740992i64)]
        );
        assert_eq!(
            show(Arc::new(Float64Array::from(vec![1.5, f64::NAN, f64::NEG_INFINITY]))),
            [json!(1.5), json!("NaN"), json!("-inf")]
        );
        let halves = [half::f16::from_f32(0.5), half::f16::INFINITY];
        assert_eq!(show(Arc::new(Float16Array::from_iter_values(halves))), [json!(0.5), json!("inf")]);
        let decimals = Decimal128Array::from(vec![-12345]).with_precision_and_scale(9, 2).unwrap();
        assert_eq!(show(Arc::new(decimals)), [json!("-123.45")]);
        assert_eq!(show(Arc::new(StringArray::from(vec!["12"]))), [json!("12")]);
        assert_eq!(show(Arc::new(BinaryArray::from(vec![&[1u8, 0xff][..]]))), [json!("01ff")]);
        assert_eq!(show(Arc::new(TimestampMicrosecondArray::from(vec![0]))), [json!("1970-01-01T00:00:00")]);
    }
}
