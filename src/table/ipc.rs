//! Columns as an Arrow IPC stream.
//!
//! Only what a column needs: a schema message and record batches, written front to back. Arrow's own writer compares
//! dictionaries of every type before it writes a number; that is four times this code in an engine that browsers download.

use arrow::array::{Array, ArrayData, ArrayRef};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, TimeUnit};

use crate::error::{Error, ErrorCode, Result};

/// A stream being written.
pub(super) struct IpcStream {
    out: Vec<u8>,
    fields: Vec<Field>,
}

impl IpcStream {
    /// Writes the schema.
    ///
    /// # Errors
    /// `UNSUPPORTED_TYPE` for types that columns of a Lance table do not have.
    pub(super) fn new(fields: Vec<Field>) -> Result<IpcStream> {
        let mut message = Flat::message(HEADER_SCHEMA, 0);
        let header = message.table(&[Slot::None, Slot::Offset]);
        message.refer(message.header, header.at);
        let places = message.offsets(header.offsets.first().copied(), fields.len());
        for (place, field) in places.into_iter().zip(&fields) {
            message.field(place, field)?;
        }
        let mut stream = IpcStream { out: Vec::new(), fields };
        stream.write(&message.bytes, &[]);
        Ok(stream)
    }

    /// Writes a batch: one array per field, all of one length.
    ///
    /// # Errors
    /// `INTERNAL` when the arrays are not those of the schema.
    pub(super) fn batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let rows = columns.first().map_or(0, |column| column.len());
        let fits = |(column, field): (&ArrayRef, &Field)| column.len() == rows && column.data_type() == field.data_type();
        if columns.len() != self.fields.len() || !columns.iter().zip(&self.fields).all(fits) {
            return Err(Error::internal("a batch of columns is not what the schema of its stream says"));
        }
        let mut body = Body::default();
        for column in columns {
            body.array(&column.to_data())?;
        }
        let mut message = Flat::message(HEADER_BATCH, body.bytes.len() as i64);
        let header = message.table(&[Slot::I64(rows as i64), Slot::Offset, Slot::Offset]);
        message.refer(message.header, header.at);
        for (offset, pairs) in header.offsets.iter().zip([&body.nodes, &body.buffers]) {
            message.pairs(*offset, pairs);
        }
        self.write(&message.bytes, &body.bytes);
        Ok(())
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Ends the stream.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(&CONTINUATION);
        self.out.extend_from_slice(&0i32.to_le_bytes());
        self.out
    }

    fn write(&mut self, message: &[u8], body: &[u8]) {
        let padded = message.len().next_multiple_of(8);
        self.out.extend_from_slice(&CONTINUATION);
        self.out.extend_from_slice(&(padded as i32).to_le_bytes());
        self.out.extend_from_slice(message);
        self.out.resize(self.out.len() + padded - message.len(), 0);
        self.out.extend_from_slice(body);
    }
}

const CONTINUATION: [u8; 4] = [0xff; 4];
const VERSION_5: i16 = 4;
const HEADER_SCHEMA: u8 = 1;
const HEADER_BATCH: u8 = 3;

/// A field of a flatbuffer table.
#[derive(Clone, Copy)]
enum Slot {
    None,
    U8(u8),
    I16(i16),
    I32(i32),
    I64(i64),
    /// Refers to something written later.
    Offset,
}

impl Slot {
    fn size(self) -> usize {
        match self {
            Slot::None => 0,
            Slot::U8(_) => 1,
            Slot::I16(_) => 2,
            Slot::I32(_) | Slot::Offset => 4,
            Slot::I64(_) => 8,
        }
    }
}

/// Where a table and its offsets are.
struct Placed {
    at: usize,
    offsets: Vec<usize>,
}

/// A flatbuffer written front to back: whatever is referred to follows, so every offset points forward.
struct Flat {
    bytes: Vec<u8>,
    /// Offset of the message's header.
    header: usize,
}

impl Flat {
    fn message(kind: u8, body: i64) -> Flat {
        let mut flat = Flat { bytes: vec![0; 4], header: 0 };
        let root = flat.table(&[Slot::I16(VERSION_5), Slot::U8(kind), Slot::Offset, Slot::I64(body)]);
        flat.refer(0, root.at);
        flat.header = root.offsets.first().copied().unwrap_or(0);
        flat
    }

    fn pad(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(slot) = self.bytes.get_mut(at..at + bytes.len()) {
            slot.copy_from_slice(bytes);
        }
    }

    /// Writes the distance to `target` into the offset at `from`.
    fn refer(&mut self, from: usize, target: usize) {
        self.put(from, &((target - from) as u32).to_le_bytes());
    }

    fn table(&mut self, slots: &[Slot]) -> Placed {
        self.pad(2);
        let vtable = self.bytes.len();
        self.bytes.resize(vtable + 4 + 2 * slots.len(), 0);
        // Eight-byte fields are aligned when the table is.
        self.pad(8);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&((at - vtable) as i32).to_le_bytes());
        let mut offsets = Vec::new();
        for (number, slot) in slots.iter().enumerate() {
            if slot.size() == 0 {
                continue;
            }
            self.pad(slot.size());
            let place = self.bytes.len();
            self.put(vtable + 4 + 2 * number, &((place - at) as u16).to_le_bytes());
            match slot {
                Slot::None => {}
                Slot::U8(value) => self.bytes.push(*value),
                Slot::I16(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                Slot::I32(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                Slot::I64(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                Slot::Offset => {
                    offsets.push(place);
                    self.bytes.extend_from_slice(&[0; 4]);
                }
            }
        }
        let (vtable_size, size) = (4 + 2 * slots.len(), self.bytes.len() - at);
        self.put(vtable, &(vtable_size as u16).to_le_bytes());
        self.put(vtable + 2, &(size as u16).to_le_bytes());
        Placed { at, offsets }
    }

    /// A vector of `count` offsets, referred to by the offset at `from`; returns where they are.
    fn offsets(&mut self, from: Option<usize>, count: usize) -> Vec<usize> {
        self.pad(4);
        let at = self.bytes.len();
        if let Some(from) = from {
            self.refer(from, at);
        }
        self.bytes.extend_from_slice(&(count as u32).to_le_bytes());
        self.bytes.resize(at + 4 + 4 * count, 0);
        (0..count).map(|index| at + 4 + 4 * index).collect()
    }

    /// A vector of structs of two 64-bit numbers.
    fn pairs(&mut self, from: usize, pairs: &[(i64, i64)]) {
        self.pad(8);
        self.bytes.extend_from_slice(&[0; 4]);
        let at = self.bytes.len();
        self.refer(from, at);
        self.bytes.extend_from_slice(&(pairs.len() as u32).to_le_bytes());
        for (first, second) in pairs {
            self.bytes.extend_from_slice(&first.to_le_bytes());
            self.bytes.extend_from_slice(&second.to_le_bytes());
        }
    }

    fn text(&mut self, from: usize, text: &str) {
        self.pad(4);
        let at = self.bytes.len();
        self.refer(from, at);
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    /// A field of the schema, referred to by the offset at `from`.
    fn field(&mut self, from: usize, field: &Field) -> Result<()> {
        let (kind, slots) = type_of(field.data_type())?;
        let name_nullable_kind = [Slot::Offset, Slot::U8(u8::from(field.is_nullable())), Slot::U8(kind)];
        let table = self.table(&[&name_nullable_kind[..], &[Slot::Offset, Slot::None, Slot::Offset]].concat());
        self.refer(from, table.at);
        let [name, ty, children] = table.offsets.as_slice() else { return Err(Error::internal("a field without its parts")) };
        self.text(*name, field.name());
        let placed = self.table(&slots);
        self.refer(*ty, placed.at);
        if let (DataType::Timestamp(_, Some(zone)), Some(at)) = (field.data_type(), placed.offsets.first()) {
            self.text(*at, zone);
        }
        let nested = children_of(field.data_type());
        let places = self.offsets(Some(*children), nested.len());
        for (place, child) in places.into_iter().zip(nested) {
            self.field(place, child)?;
        }
        Ok(())
    }
}

fn children_of(data_type: &DataType) -> Vec<&Field> {
    match data_type {
        DataType::List(child) | DataType::LargeList(child) | DataType::FixedSizeList(child, _) => vec![child],
        DataType::Struct(fields) => fields.iter().map(|field| &**field).collect(),
        _ => Vec::new(),
    }
}

fn unit_of(unit: TimeUnit) -> Slot {
    Slot::I16(match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    })
}

/// Number of a type in Arrow's schema, and the fields of its table.
fn type_of(data_type: &DataType) -> Result<(u8, Vec<Slot>)> {
    let int = |bits: i32, signed: bool| (2, vec![Slot::I32(bits), Slot::U8(u8::from(signed))]);
    let decimal = |precision: u8, scale: i8, bits: i32| {
        (7, vec![Slot::I32(i32::from(precision)), Slot::I32(i32::from(scale)), Slot::I32(bits)])
    };
    Ok(match data_type {
        DataType::Null => (1, vec![]),
        DataType::Int8 => int(8, true),
        DataType::Int16 => int(16, true),
        DataType::Int32 => int(32, true),
        DataType::Int64 => int(64, true),
        DataType::UInt8 => int(8, false),
        DataType::UInt16 => int(16, false),
        DataType::UInt32 => int(32, false),
        DataType::UInt64 => int(64, false),
        DataType::Float16 => (3, vec![Slot::I16(0)]),
        DataType::Float32 => (3, vec![Slot::I16(1)]),
        DataType::Float64 => (3, vec![Slot::I16(2)]),
        DataType::Binary => (4, vec![]),
        DataType::Utf8 => (5, vec![]),
        DataType::Boolean => (6, vec![]),
        DataType::Decimal128(precision, scale) => decimal(*precision, *scale, 128),
        DataType::Decimal256(precision, scale) => decimal(*precision, *scale, 256),
        DataType::Date32 => (8, vec![Slot::I16(0)]),
        DataType::Date64 => (8, vec![Slot::I16(1)]),
        DataType::Time32(unit) => (9, vec![unit_of(*unit), Slot::I32(32)]),
        DataType::Time64(unit) => (9, vec![unit_of(*unit), Slot::I32(64)]),
        DataType::Timestamp(unit, None) => (10, vec![unit_of(*unit)]),
        DataType::Timestamp(unit, Some(_)) => (10, vec![unit_of(*unit), Slot::Offset]),
        DataType::List(_) => (12, vec![]),
        DataType::Struct(_) => (13, vec![]),
        DataType::FixedSizeBinary(width) => (15, vec![Slot::I32(*width)]),
        DataType::FixedSizeList(_, size) => (16, vec![Slot::I32(*size)]),
        DataType::Duration(unit) => (18, vec![unit_of(*unit)]),
        DataType::LargeBinary => (19, vec![]),
        DataType::LargeUtf8 => (20, vec![]),
        DataType::LargeList(_) => (21, vec![]),
        other => {
            return Err(Error::new(ErrorCode::UnsupportedType, format!("values of type {other} cannot be handed out as Arrow")));
        }
    })
}

/// The buffers of a batch.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    /// Rows and nulls of every array, parents first.
    nodes: Vec<(i64, i64)>,
    /// Position and size of every buffer.
    buffers: Vec<(i64, i64)>,
}

fn outside() -> Error {
    Error::internal("an array reaches past its buffers")
}

impl Body {
    fn buffer(&mut self, bytes: &[u8]) {
        self.buffers.push((self.bytes.len() as i64, bytes.len() as i64));
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(64), 0);
    }

    fn array(&mut self, data: &ArrayData) -> Result<()> {
        // An array of nulls has no buffers at all, so nothing that could be counted.
        if data.data_type() == &DataType::Null {
            self.nodes.push((data.len() as i64, data.len() as i64));
            return Ok(());
        }
        self.nodes.push((data.len() as i64, data.null_count() as i64));
        match data.nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => self.buffer(nulls.inner().sliced().as_slice()),
            None => self.buffer(&[]),
        }
        match data.data_type() {
            DataType::Boolean => {
                let bits = data.buffers().first().ok_or_else(outside)?;
                self.buffer(BooleanBuffer::new(bits.clone(), data.offset(), data.len()).sliced().as_slice());
            }
            DataType::Utf8 | DataType::Binary => self.texts::<4>(data)?,
            DataType::LargeUtf8 | DataType::LargeBinary => self.texts::<8>(data)?,
            DataType::List(_) => self.list::<4>(data)?,
            DataType::LargeList(_) => self.list::<8>(data)?,
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).map_err(|_| outside())?;
                let items = data.child_data().first().ok_or_else(outside)?;
                self.array(&items.slice(data.offset() * size, data.len() * size))?;
            }
            DataType::Struct(_) => {
                for child in data.child_data() {
                    self.array(&child.slice(data.offset(), data.len()))?;
                }
            }
            other => {
                let width = match other {
                    DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
                    other => other.primitive_width(),
                };
                let width = width.ok_or_else(outside)?;
                let values = data.buffers().first().ok_or_else(outside)?;
                let from = data.offset() * width;
                self.buffer(values.get(from..from + data.len() * width).ok_or_else(outside)?);
            }
        }
        Ok(())
    }

    /// Offsets counted from 0, and the range of what they refer to.
    fn offsets<const N: usize>(&mut self, data: &ArrayData) -> Result<(usize, usize)> {
        let offsets = data.buffers().first().ok_or_else(outside)?;
        let slots = offsets.as_chunks::<N>().0;
        // An array without rows may have no offsets either.
        let slots = slots.get(data.offset()..data.offset() + data.len() + 1).unwrap_or_default();
        let number = |slot: &[u8; N]| slot.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let (first, last) = (slots.first().map_or(0, number), slots.last().map_or(0, number));
        if slots.is_empty() && !data.is_empty() {
            return Err(outside());
        }
        let mut rebased = Vec::with_capacity(N * (data.len() + 1));
        for slot in slots.iter().map(number).chain((slots.is_empty()).then_some(first)) {
            rebased.extend_from_slice((slot - first).to_le_bytes().get(..N).unwrap_or_default());
        }
        self.buffer(&rebased);
        Ok((usize::try_from(first).map_err(|_| outside())?, usize::try_from(last).map_err(|_| outside())?))
    }

    fn texts<const N: usize>(&mut self, data: &ArrayData) -> Result<()> {
        let (first, last) = self.offsets::<N>(data)?;
        let bytes = data.buffers().get(1).ok_or_else(outside)?;
        self.buffer(bytes.get(first..last).ok_or_else(outside)?);
        Ok(())
    }

    fn list<const N: usize>(&mut self, data: &ArrayData) -> Result<()> {
        let (first, last) = self.offsets::<N>(data)?;
        let items = data.child_data().first().ok_or_else(outside)?;
        if last < first || items.len() < last {
            return Err(outside());
        }
        self.array(&items.slice(first, last - first))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::*;
    use arrow::buffer::NullBuffer;
    use arrow::datatypes::{Fields, Int32Type};
    use arrow::ipc::reader::StreamReader;

    use super::*;

    fn round_trip(columns: Vec<ArrayRef>) {
        let fields: Vec<Field> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| Field::new(format!("c{at}"), column.data_type().clone(), true))
            .collect();
        let mut stream = IpcStream::new(fields).unwrap();
        let rows = columns[0].len();
        stream.batch(&columns).unwrap();
        // Slices begin inside bytes, offsets and children.
        let part: Vec<ArrayRef> = columns.iter().map(|column| column.slice(rows / 3, rows - rows / 3)).collect();
        stream.batch(&part).unwrap();
        let empty: Vec<ArrayRef> = columns.iter().map(|column| column.slice(rows, 0)).collect();
        stream.batch(&empty).unwrap();
        let bytes = stream.finish();
        let read: Vec<RecordBatch> = StreamReader::try_new(bytes.as_slice(), None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), 3);
        for (expected, batch) in [columns, part, empty].iter().zip(&read) {
            for (expected, column) in expected.iter().zip(batch.columns()) {
                assert_eq!(expected, column);
            }
        }
    }

    #[test]
    fn arrow_reads_every_type_back() {
        let texts = vec![Some("a"), None, Some(""), Some("längeres"), Some("z"), None, Some("x")];
        let numbers = Int64Array::from(vec![Some(1), None, Some(-3), Some(4), None, Some(6), Some(7)]);
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
            Some(vec![Some(2)]),
            Some(vec![Some(3), Some(4), Some(5)]),
            None,
            Some(vec![None]),
        ]);
        let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
            (0..7).map(|row| (row % 3 != 0).then(|| vec![Some(row), None])),
            2,
        );
        let retyped = |data_type: DataType| make_array(numbers.to_data().into_builder().data_type(data_type).build().unwrap());
        let inner: ArrayRef = Arc::new(StringArray::from(texts.clone()));
        let fields = Fields::from(vec![Field::new("n", DataType::Int64, true), Field::new("t", DataType::Utf8, true)]);
        let nulls = NullBuffer::from(vec![true, false, true, true, true, true, false]);
        let nested = StructArray::new(fields, vec![Arc::new(numbers.clone()), inner.clone()], Some(nulls));
        round_trip(vec![
            Arc::new(numbers.clone()),
            inner,
            Arc::new(LargeStringArray::from(texts.clone())),
            Arc::new(BinaryArray::from_iter(texts.iter().map(|text| text.map(str::as_bytes)))),
            Arc::new(LargeBinaryArray::from_iter(texts.iter().map(|text| text.map(str::as_bytes)))),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), Some(true), None, Some(false)])),
            Arc::new(UInt8Array::from_iter_values(0..7)),
            Arc::new(Float16Array::from_iter_values((0..7).map(|v| half::f16::from_f32(v as f32)))),
            Arc::new(Float32Array::from_iter_values((0..7).map(|v| v as f32))),
            Arc::new(Float64Array::from_iter_values((0..7).map(f64::from))),
            Arc::new(Date32Array::from_iter_values(0..7)),
            retyped(DataType::Date64),
            retyped(DataType::Time64(TimeUnit::Nanosecond)),
            retyped(DataType::Timestamp(TimeUnit::Second, None)),
            retyped(DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into()))),
            retyped(DataType::Duration(TimeUnit::Millisecond)),
            Arc::new(Time32SecondArray::from_iter_values(0..7)),
            Arc::new(Decimal128Array::from_iter_values(0..7).with_precision_and_scale(20, 3).unwrap()),
            Arc::new(
                Decimal256Array::from_iter_values((0..7).map(arrow::datatypes::i256::from))
                    .with_precision_and_scale(60, -2)
                    .unwrap(),
            ),
            Arc::new(FixedSizeBinaryArray::try_from_iter((0..7u8).map(|v| [v; 3])).unwrap()),
            Arc::new(lists),
            Arc::new(fixed),
            Arc::new(nested),
            Arc::new(NullArray::new(7)),
        ]);
    }

    #[test]
    fn what_is_no_column_is_refused() {
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let error = IpcStream::new(vec![Field::new("d", dictionary, true)]).err().unwrap();
        assert_eq!(error.code(), ErrorCode::UnsupportedType);
        let mut stream = IpcStream::new(vec![Field::new("n", DataType::Int32, true)]).unwrap();
        let other: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        assert_eq!(stream.batch(&[other]).unwrap_err().code(), ErrorCode::Internal);
    }
}
