//! `lance.encodings.ArrayEncoding`: the page grammar of 2.0 files (file-format §3).

use super::container::Empty;

/// One node of a page's encoding tree.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ArrayEncoding {
    /// Exactly one.
    #[prost(oneof = "ArrayKind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12")]
    pub kind: Option<ArrayKind>,
}

/// Members of [`ArrayEncoding`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ArrayKind {
    /// Plain values.
    #[prost(message, tag = "1")]
    Flat(Flat),
    /// Validity around values.
    #[prost(message, boxed, tag = "2")]
    Nullable(Box<Nullable>),
    /// Fixed-size lists.
    #[prost(message, boxed, tag = "3")]
    FixedSizeList(Box<FixedSizeList>),
    /// Offsets column of a list.
    #[prost(message, boxed, tag = "4")]
    List(Box<List>),
    /// Header column of a struct.
    #[prost(message, tag = "5")]
    Struct(Empty),
    /// End offsets and bytes.
    #[prost(message, boxed, tag = "6")]
    Binary(Box<Binary>),
    /// Indices and items.
    #[prost(message, boxed, tag = "7")]
    Dictionary(Box<Dictionary>),
    /// FSST strings (needs field metadata).
    #[prost(message, boxed, tag = "8")]
    Fsst(Box<Fsst>),
    /// Struct rows packed in one buffer.
    #[prost(message, tag = "9")]
    PackedStruct(PackedStruct),
    /// Old bit packing.
    #[prost(message, tag = "10")]
    Bitpacked(Bitpacked),
    /// Old fixed-length strings.
    #[prost(message, boxed, tag = "11")]
    FixedSizeBinary(Box<FixedSizeBinary>),
    /// Old bit packing of non-negative values.
    #[prost(message, tag = "12")]
    BitpackedForNonNeg(BitpackedForNonNeg),
}

/// A reference to a buffer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Buffer {
    /// Index into the page's buffers.
    #[prost(uint32, tag = "1")]
    pub buffer_index: u32,
    /// 0 page, 1 column, 2 file; only page buffers occur.
    #[prost(uint32, tag = "2")]
    pub buffer_type: u32,
}

/// Compression of a whole buffer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Compression {
    /// `zstd`, `lz4` or `none`.
    #[prost(string, tag = "1")]
    pub scheme: String,
}

/// Plain values of `bits_per_value` bits.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Flat {
    /// 1 or a multiple of 8.
    #[prost(uint64, tag = "1")]
    pub bits_per_value: u64,
    /// Where; must be present even when it is buffer 0.
    #[prost(message, optional, tag = "2")]
    pub buffer: Option<Buffer>,
    /// Absent = plain.
    #[prost(message, optional, tag = "3")]
    pub compression: Option<Compression>,
}

/// Validity.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Nullable {
    /// Exactly one.
    #[prost(oneof = "Nullability", tags = "1, 2, 3")]
    pub nullability: Option<Nullability>,
}

/// Members of [`Nullable`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Nullability {
    /// Nothing is null.
    #[prost(message, boxed, tag = "1")]
    NoNulls(Box<NoNulls>),
    /// A bitmap says what is.
    #[prost(message, boxed, tag = "2")]
    SomeNulls(Box<SomeNulls>),
    /// Everything is null; no buffers.
    #[prost(message, tag = "3")]
    AllNulls(Empty),
}

/// Values without nulls.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NoNulls {
    /// The values.
    #[prost(message, optional, boxed, tag = "1")]
    pub values: Option<Box<ArrayEncoding>>,
}

/// Values with a bitmap.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SomeNulls {
    /// Flat 1; a set bit is a value.
    #[prost(message, optional, boxed, tag = "1")]
    pub validity: Option<Box<ArrayEncoding>>,
    /// As many values as rows; null slots hold filler.
    #[prost(message, optional, boxed, tag = "2")]
    pub values: Option<Box<ArrayEncoding>>,
}

/// Variable-width values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Binary {
    /// u64 end offsets.
    #[prost(message, optional, boxed, tag = "1")]
    pub indices: Option<Box<ArrayEncoding>>,
    /// The bytes, Flat 8.
    #[prost(message, optional, boxed, tag = "2")]
    pub bytes: Option<Box<ArrayEncoding>>,
    /// Added to the offset of a null.
    #[prost(uint64, tag = "3")]
    pub null_adjustment: u64,
}

/// Dictionary-coded values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dictionary {
    /// Flat; 1-based for strings, 0 = null.
    #[prost(message, optional, boxed, tag = "1")]
    pub indices: Option<Box<ArrayEncoding>>,
    /// The items.
    #[prost(message, optional, boxed, tag = "2")]
    pub items: Option<Box<ArrayEncoding>>,
    /// How many items.
    #[prost(uint32, tag = "3")]
    pub num_dictionary_items: u32,
}

/// Rows of `dimension` items each.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FixedSizeList {
    /// Items per row.
    #[prost(uint32, tag = "1")]
    pub dimension: u32,
    /// `rows * dimension` items.
    #[prost(message, optional, boxed, tag = "2")]
    pub items: Option<Box<ArrayEncoding>>,
    /// Never set.
    #[prost(bool, tag = "3")]
    pub has_validity: bool,
}

/// Offsets column of a list; the items are the next column.
#[derive(Clone, PartialEq, prost::Message)]
pub struct List {
    /// u64 end offsets, counted from the page's first item.
    #[prost(message, optional, boxed, tag = "1")]
    pub offsets: Option<Box<ArrayEncoding>>,
    /// Added to the offset of a null.
    #[prost(uint64, tag = "2")]
    pub null_offset_adjustment: u64,
    /// Items of the page.
    #[prost(uint64, tag = "3")]
    pub num_items: u64,
}

/// Strings of symbols.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Fsst {
    /// The codes.
    #[prost(message, optional, boxed, tag = "1")]
    pub binary: Option<Box<ArrayEncoding>>,
    /// 2312 bytes, see §7.3.
    #[prost(bytes = "bytes", tag = "2")]
    pub symbol_table: bytes::Bytes,
}

/// Struct rows, the members back to back.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PackedStruct {
    /// One per member; only their widths count.
    #[prost(message, repeated, tag = "1")]
    pub inner: Vec<ArrayEncoding>,
    /// All rows.
    #[prost(message, optional, tag = "2")]
    pub buffer: Option<Buffer>,
}

/// One stream of values of `compressed_bits`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Bitpacked {
    /// Width in the stream.
    #[prost(uint64, tag = "1")]
    pub compressed_bits: u64,
    /// Width of the type.
    #[prost(uint64, tag = "2")]
    pub uncompressed_bits: u64,
    /// The stream.
    #[prost(message, optional, tag = "3")]
    pub buffer: Option<Buffer>,
    /// Values are sign-extended.
    #[prost(bool, tag = "4")]
    pub signed: bool,
}

/// Strings of one length.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FixedSizeBinary {
    /// All bytes.
    #[prost(message, optional, boxed, tag = "1")]
    pub bytes: Option<Box<ArrayEncoding>>,
    /// Bytes per value.
    #[prost(uint32, tag = "2")]
    pub byte_width: u32,
}

/// Groups of 1024 packed values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BitpackedForNonNeg {
    /// Width in the groups.
    #[prost(uint64, tag = "1")]
    pub compressed_bits: u64,
    /// Width of the type.
    #[prost(uint64, tag = "2")]
    pub uncompressed_bits: u64,
    /// The groups.
    #[prost(message, optional, tag = "3")]
    pub buffer: Option<Buffer>,
}
