//! Row id sequences (§11.2).

use bytes::Bytes;
use prost::Message;

/// `RowIdSequence` (§11.2).
#[derive(Clone, PartialEq, Message)]
pub struct RowIdSequence {
    /// Segments in order.
    #[prost(message, repeated, tag = "1")]
    pub segments: Vec<U64Segment>,
}

/// `U64Segment`.
#[derive(Clone, PartialEq, Message)]
pub struct U64Segment {
    /// Kind.
    #[prost(oneof = "SegmentKind", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<SegmentKind>,
}

/// The five kinds of a segment.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum SegmentKind {
    /// start..end.
    #[prost(message, tag = "1")]
    Range(Range),
    /// Range minus holes.
    #[prost(message, tag = "2")]
    RangeWithHoles(RangeWithHoles),
    /// Range with a presence bitmap.
    #[prost(message, tag = "3")]
    RangeWithBitmap(RangeWithBitmap),
    /// Strictly increasing values.
    #[prost(message, tag = "4")]
    SortedArray(EncodedU64Array),
    /// Values in any order.
    #[prost(message, tag = "5")]
    Array(EncodedU64Array),
}

/// start..end, end exclusive.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Range {
    /// First.
    #[prost(uint64, tag = "1")]
    pub start: u64,
    /// Past the last.
    #[prost(uint64, tag = "2")]
    pub end: u64,
}

/// Range minus holes.
#[derive(Clone, PartialEq, Message)]
pub struct RangeWithHoles {
    /// First.
    #[prost(uint64, tag = "1")]
    pub start: u64,
    /// Past the last.
    #[prost(uint64, tag = "2")]
    pub end: u64,
    /// Missing values.
    #[prost(message, optional, tag = "3")]
    pub holes: Option<EncodedU64Array>,
}

/// Range with a bitmap.
#[derive(Clone, PartialEq, Message)]
pub struct RangeWithBitmap {
    /// First.
    #[prost(uint64, tag = "1")]
    pub start: u64,
    /// Past the last.
    #[prost(uint64, tag = "2")]
    pub end: u64,
    /// Least significant bit first.
    #[prost(bytes = "bytes", tag = "3")]
    pub bitmap: Bytes,
}

/// `EncodedU64Array`.
#[derive(Clone, PartialEq, Message)]
pub struct EncodedU64Array {
    /// Width.
    #[prost(oneof = "ArrayKind", tags = "1, 2, 3")]
    pub array: Option<ArrayKind>,
}

/// The three widths of an encoded array.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ArrayKind {
    /// u16 offsets.
    #[prost(message, tag = "1")]
    U16(OffsetArray),
    /// u32 offsets.
    #[prost(message, tag = "2")]
    U32(OffsetArray),
    /// u64 values.
    #[prost(message, tag = "3")]
    U64(ValueArray),
}

/// base + little-endian offsets.
#[derive(Clone, PartialEq, Message)]
pub struct OffsetArray {
    /// Minimum.
    #[prost(uint64, tag = "1")]
    pub base: u64,
    /// Offsets.
    #[prost(bytes = "bytes", tag = "2")]
    pub offsets: Bytes,
}

/// Little-endian values.
#[derive(Clone, PartialEq, Message)]
pub struct ValueArray {
    /// Values.
    #[prost(bytes = "bytes", tag = "2")]
    pub values: Bytes,
}
