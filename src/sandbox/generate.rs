//! Which value a row of a column has: a pure function of the seed, the field and the row's number, so that anybody can say it again.
//!
//! Numbers are drawn with the finalizer of splitmix64: `draw(seed, field, row, salt)` below is all the randomness there is.

use std::ops::Range;

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};

use super::columns::ColumnSpec;
use crate::error::{Error, Result};
use crate::index::literal;

/// Most different values and words of a value.
const MOST_DISTINCT: u64 = 1_000_000_000;
const MOST_WORDS: u32 = 1000;
/// 2024-01-01, in seconds of 1970 and in days.
const NEW_YEAR_S: i128 = 1_704_067_200;
const NEW_YEAR_DAY: i128 = 19_723;
/// What a drawn number is for.
const NULLS: u64 = 1;
const VALUE: u64 = 2;
const LENGTH: u64 = 3;
const ITEMS: u64 = 16;

static WORDS: &str = include_str!("words.txt");

/// How the values of a column follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// `start + step * row`; of text the column's name and that number.
    Sequence,
    /// Anything from `min` to `max`; of text 16 hexadecimal digits.
    Random,
    /// One of `distinct` values: `min + step * k`; of text a word.
    Choice,
    /// One of `distinct` words.
    Words,
    /// Several words.
    Sentences,
}

/// A value in a request: a number, or text as conditions have it (`2024-01-01`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// A whole number past the largest of 63 bits.
    Large(u64),
    /// Another number.
    Real(f64),
    /// Text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
    /// Nothing.
    Null(()),
}

impl Value {
    /// As a condition would have it; `None` for a list and for nothing.
    pub(super) fn text(&self) -> Option<String> {
        Some(match self {
            Value::Bool(value) => value.to_string(),
            Value::Whole(value) => value.to_string(),
            Value::Large(value) => value.to_string(),
            Value::Real(value) => value.to_string(),
            Value::Text(text) => text.clone(),
            Value::List(_) | Value::Null(()) => return None,
        })
    }
}

/// A number of a column's kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(i64),
    Large(u64),
    Real(f64),
}

impl Number {
    fn whole(self) -> i128 {
        match self {
            Number::Whole(value) => i128::from(value),
            Number::Large(value) => i128::from(value),
            Number::Real(value) => value as i128,
        }
    }

    fn real(self) -> f64 {
        match self {
            Number::Whole(value) => value as f64,
            Number::Large(value) => value as f64,
            Number::Real(value) => value,
        }
    }
}

/// What makes the values of one column; kept with its field as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    shape: Shape,
    start: Number,
    step: Number,
    min: Number,
    max: Number,
    distinct: u64,
    words: (u32, u32),
    /// Share of nulls.
    pub(super) nulls: f64,
}

/// One column's values are of this field and seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of<'a> {
    pub(super) seed: u64,
    pub(super) field: i32,
    pub(super) name: &'a str,
}

impl Of<'_> {
    /// 64 bits that depend on nothing else.
    fn draw(&self, row: u64, salt: u64) -> u64 {
        let field = (i64::from(self.field) as u64).wrapping_add(1);
        let start = self.seed.wrapping_add(field.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mix(mix(mix(start).wrapping_add(row)).wrapping_add(salt))
    }

    /// From 0 up to, not including, `n`.
    fn below(&self, row: u64, salt: u64, n: u128) -> i128 {
        (u128::from(self.draw(row, salt)) % n.max(1)) as i128
    }
}

/// The finalizer of splitmix64.
fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn word(at: u64) -> String {
    let count = WORDS.split_whitespace().count() as u64;
    let word = WORDS.split_whitespace().nth((at % count.max(1)) as usize).unwrap_or_default();
    if at < count { word.to_owned() } else { format!("{word}{}", at / count.max(1)) }
}

impl Generator {
    /// The generator a column asks for, with the defaults of its type; `list`: its values are lists of that type.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the column for what means nothing.
    pub(super) fn of(column: &ColumnSpec, list: bool, data_type: &DataType) -> Result<Generator> {
        let wrong = |what: String| Error::invalid(format!("column {}: {what}", column.name)).with("column", column.name.as_str());
        let text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8);
        let default = match data_type {
            _ if list => Shape::Words,
            DataType::Utf8 | DataType::LargeUtf8 => Shape::Words,
            DataType::Boolean | DataType::Float32 | DataType::Float64 => Shape::Random,
            _ => Shape::Sequence,
        };
        let shape = column.shape.unwrap_or(default);
        let fits = match shape {
            Shape::Words | Shape::Sentences => text && !(list && shape == Shape::Sentences),
            _ => !list,
        };
        if !fits {
            return Err(wrong(format!("values of its type are not generated as {shape:?}").to_lowercase()));
        }
        let number = |what: &str, given: &Option<Value>| -> Result<Option<Number>> {
            let Some(given) = given else { return Ok(None) };
            if text || *data_type == DataType::Boolean {
                return Err(wrong(format!("{what} is for numbers, dates and times")));
            }
            // A step is a number even where values are dates.
            let as_step = what == "step" && !data_type.is_floating();
            let of = if as_step { &DataType::Int64 } else { data_type };
            let given = given.text().ok_or_else(|| wrong(format!("{what} is one value")))?;
            let bytes = literal::plain(&given, of).map_err(|error| wrong(format!("{what}: {}", error.message())))?;
            read_number(&bytes, of)
                .filter(|number| number.real().is_finite())
                .map(Some)
                .ok_or_else(|| wrong(format!("{what} is no number")))
        };
        let (min, max, step) = limits(data_type);
        let start = number("start", &column.start)?.unwrap_or(match data_type {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => min,
            _ => Number::Whole(0),
        });
        let min = number("min", &column.min)?.unwrap_or(min);
        let max = number("max", &column.max)?.unwrap_or(max);
        let step = number("step", &column.step)?.unwrap_or(step);
        let ordered = if data_type.is_floating() { min.real() <= max.real() } else { min.whole() <= max.whole() };
        if shape == Shape::Random && !text && !ordered {
            return Err(wrong("min is larger than max".to_owned()));
        }
        let distinct = column.distinct.unwrap_or(if shape == Shape::Sentences { 64 } else { 8 });
        if distinct == 0 || distinct > MOST_DISTINCT {
            return Err(wrong(format!("distinct is from 1 to {MOST_DISTINCT}, not {distinct}")));
        }
        let words = column.words.unwrap_or(if list { (0, 3) } else { (4, 12) });
        if words.0 > words.1 || words.1 > MOST_WORDS {
            return Err(wrong(format!("words are from fewest to most, at most {MOST_WORDS}, not {} to {}", words.0, words.1)));
        }
        let nulls = column.nulls.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&nulls) {
            return Err(wrong(format!("nulls is a share from 0 to 1, not {nulls}")));
        }
        Ok(Generator { shape, start, step, min, max, distinct, words, nulls })
    }

    /// About how many bytes a value takes.
    pub(super) fn value_bytes(&self, data_type: &DataType) -> u64 {
        let word = 12;
        match data_type {
            DataType::List(_) => 8 + u64::from(self.words.1) * (8 + word),
            DataType::Utf8 | DataType::LargeUtf8 if self.shape == Shape::Sentences => 8 + u64::from(self.words.1) * word,
            DataType::Utf8 | DataType::LargeUtf8 => 8 + 24,
            other => other.primitive_width().unwrap_or(1) as u64,
        }
    }

    /// The values of some rows.
    ///
    /// # Errors
    /// `INTERNAL` for a type that has no generator.
    pub(super) fn values(&self, of: Of<'_>, data_type: &DataType, rows: Range<u64>) -> Result<ArrayRef> {
        let length =
            usize::try_from(rows.end.saturating_sub(rows.start)).map_err(|_| Error::internal("too many rows at once"))?;
        let is_null = |row: u64| self.nulls > 0.0 && fraction(of.draw(row, NULLS)) < self.nulls;
        let nulls = (self.nulls > 0.0).then(|| NullBuffer::from_iter(rows.clone().map(|row| !is_null(row))));
        let builder = ArrayData::builder(data_type.clone()).len(length).nulls(nulls.filter(|nulls| nulls.null_count() > 0));
        let builder = match data_type {
            DataType::Boolean => {
                let bits = BooleanBuffer::collect_bool(length, |at| {
                    let row = rows.start + at as u64;
                    !is_null(row) && (if self.shape == Shape::Sequence { row } else { of.draw(row, VALUE) }) & 1 == 1
                });
                builder.add_buffer(bits.into_inner())
            }
            DataType::Utf8 | DataType::LargeUtf8 => {
                let (ends, bytes) =
                    texts(rows.map(|row| if is_null(row) { String::new() } else { self.text(of, row) }), data_type)?;
                builder.add_buffer(ends).add_buffer(bytes)
            }
            DataType::List(item) => {
                let mut ends: Vec<i32> = vec![0];
                let mut labels = Vec::new();
                for row in rows {
                    if !is_null(row) {
                        labels.extend((0..self.length(of, row)).map(|at| self.item(of, row, at)));
                    }
                    ends.push(i32::try_from(labels.len()).map_err(|_| Error::internal("too many items in one page"))?);
                }
                let count = labels.len();
                let (offsets, bytes) = texts(labels.into_iter(), item.data_type())?;
                let items = ArrayData::builder(item.data_type().clone()).len(count).add_buffer(offsets).add_buffer(bytes);
                builder.add_buffer(Buffer::from_vec(ends)).add_child_data(built(items.build())?)
            }
            other => {
                let width = other.primitive_width().ok_or_else(|| Error::internal(format!("no generator for {other}")))?;
                let mut bytes = Vec::with_capacity(length.saturating_mul(width));
                for row in rows {
                    match other {
                        DataType::Float32 => bytes.extend_from_slice(&(self.real(of, row) as f32).to_le_bytes()),
                        DataType::Float64 => bytes.extend_from_slice(&self.real(of, row).to_le_bytes()),
                        // A sequence that leaves the range of its type goes on at the other end.
                        _ => bytes.extend_from_slice(self.whole(of, row).to_le_bytes().get(..width).unwrap_or_default()),
                    }
                }
                builder.add_buffer(Buffer::from_vec(bytes))
            }
        };
        Ok(make_array(built(builder.align_buffers(true).build())?))
    }

    fn whole(&self, of: Of<'_>, row: u64) -> i128 {
        let (min, step) = (self.min.whole(), self.step.whole());
        match self.shape {
            Shape::Sequence => self.start.whole() + step * i128::from(row),
            Shape::Choice => min + step * of.below(row, VALUE, u128::from(self.distinct)),
            _ => min + of.below(row, VALUE, (self.max.whole() - min).unsigned_abs() + 1),
        }
    }

    fn real(&self, of: Of<'_>, row: u64) -> f64 {
        let (min, step) = (self.min.real(), self.step.real());
        match self.shape {
            Shape::Sequence => self.start.real() + step * row as f64,
            Shape::Choice => min + step * of.below(row, VALUE, u128::from(self.distinct)) as f64,
            _ => min + fraction(of.draw(row, VALUE)) * (self.max.real() - min),
        }
    }

    fn text(&self, of: Of<'_>, row: u64) -> String {
        match self.shape {
            Shape::Sequence => format!("{}-{row:08}", of.name),
            Shape::Random => format!("{:016x}", of.draw(row, VALUE)),
            Shape::Choice | Shape::Words => word(of.below(row, VALUE, u128::from(self.distinct)) as u64),
            Shape::Sentences => {
                let words: Vec<String> = (0..self.length(of, row)).map(|at| self.item(of, row, at)).collect();
                words.join(" ")
            }
        }
    }

    fn length(&self, of: Of<'_>, row: u64) -> u64 {
        let (fewest, most) = self.words;
        u64::from(fewest) + of.below(row, LENGTH, u128::from(most - fewest) + 1) as u64
    }

    fn item(&self, of: Of<'_>, row: u64, at: u64) -> String {
        word(of.below(row, ITEMS + at, u128::from(self.distinct)) as u64)
    }
}

/// Smallest and largest value and step of a type, when nothing is said.
fn limits(data_type: &DataType) -> (Number, Number, Number) {
    let whole = |min: i128, max: i128, step: i128| {
        let number = |value: i128| i64::try_from(value).map_or(Number::Large(value as u64), Number::Whole);
        (number(min), number(max), number(step))
    };
    match data_type {
        DataType::Int8 => whole(0, 127, 1),
        DataType::UInt8 => whole(0, 255, 1),
        DataType::Int16 | DataType::UInt16 => whole(0, 32_767, 1),
        DataType::Float32 | DataType::Float64 => (Number::Real(0.0), Number::Real(1.0), Number::Real(1.0)),
        DataType::Date32 => whole(NEW_YEAR_DAY, NEW_YEAR_DAY + 365, 1),
        DataType::Date64 => whole(NEW_YEAR_DAY * 86_400_000, (NEW_YEAR_DAY + 365) * 86_400_000, 86_400_000),
        DataType::Timestamp(unit, _) => {
            let second = match unit {
                TimeUnit::Second => 1,
                TimeUnit::Millisecond => 1000,
                TimeUnit::Microsecond => 1_000_000,
                TimeUnit::Nanosecond => 1_000_000_000,
            };
            whole(NEW_YEAR_S * second, (NEW_YEAR_S + 366 * 86_400) * second, 60 * second)
        }
        _ => whole(0, 1_000_000, 1),
    }
}

/// Plain bytes as a number.
fn read_number(bytes: &[u8], data_type: &DataType) -> Option<Number> {
    Some(match data_type {
        DataType::Float32 => Number::Real(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        DataType::Float64 => Number::Real(f64::from_le_bytes(bytes.try_into().ok()?)),
        other => {
            let value = super::cell::whole(bytes, other)?;
            i64::try_from(value)
                .map_or_else(|_| u64::try_from(value).ok().map(Number::Large), |value| Some(Number::Whole(value)))?
        }
    })
}

/// Offsets and bytes of texts.
fn texts(values: impl Iterator<Item = String>, data_type: &DataType) -> Result<(Buffer, Buffer)> {
    let (mut ends, mut bytes): (Vec<i64>, Vec<u8>) = (vec![0], Vec::new());
    for value in values {
        bytes.extend_from_slice(value.as_bytes());
        ends.push(bytes.len() as i64);
    }
    if *data_type == DataType::LargeUtf8 {
        return Ok((Buffer::from_vec(ends), Buffer::from_vec(bytes)));
    }
    let narrow: std::result::Result<Vec<i32>, _> = ends.into_iter().map(i32::try_from).collect();
    let narrow = narrow.map_err(|_| Error::internal("too much text in one page"))?;
    Ok((Buffer::from_vec(narrow), Buffer::from_vec(bytes)))
}

fn built(data: std::result::Result<ArrayData, arrow::error::ArrowError>) -> Result<ArrayData> {
    data.map_err(|error| Error::internal(format!("generated values make no array: {error}")))
}

/// An array of one value again and again; `None` for a value that is none of the type.
pub(super) fn repeated(value: &Value, data_type: &DataType, rows: usize) -> Result<ArrayRef> {
    let builder = ArrayData::builder(data_type.clone()).len(rows);
    let data = match (value, data_type) {
        (Value::Null(()), _) => return Ok(arrow::array::new_null_array(data_type, rows)),
        (Value::List(items), DataType::List(item)) => {
            let (offsets, bytes) = texts(std::iter::repeat_n(items, rows).flatten().cloned(), item.data_type())?;
            let each = i32::try_from(items.len()).unwrap_or(i32::MAX);
            let ends: Vec<i32> = (0..=i32::try_from(rows).unwrap_or(i32::MAX)).map(|at| at.saturating_mul(each)).collect();
            let child = ArrayData::builder(item.data_type().clone()).len(items.len().saturating_mul(rows));
            let child = built(child.add_buffer(offsets).add_buffer(bytes).build())?;
            builder.add_buffer(Buffer::from_vec(ends)).add_child_data(child)
        }
        (value, DataType::Utf8 | DataType::LargeUtf8) => {
            let Value::Text(text) = value else { return Err(Error::invalid("a value of a column of text is text")) };
            let (offsets, bytes) = texts(std::iter::repeat_n(text.clone(), rows), data_type)?;
            builder.add_buffer(offsets).add_buffer(bytes)
        }
        (value, other) => {
            let text = value.text().ok_or_else(|| Error::invalid(format!("a list is no value of type {other}")))?;
            let bytes = literal::plain(&text, other)?;
            if *other == DataType::Boolean {
                let bit = bytes.first() == Some(&1);
                builder.add_buffer(BooleanBuffer::collect_bool(rows, |_| bit).into_inner())
            } else {
                builder.add_buffer(Buffer::from_vec(bytes.repeat(rows)))
            }
        }
    };
    Ok(make_array(built(data.align_buffers(true).build())?))
}
