//! `lance.encodings21`: page layouts and compressions of 2.1 and 2.2 files (file-format §5, §6).

use bytes::Bytes;

use super::container::Empty;

/// The page message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PageLayout {
    /// Exactly one.
    #[prost(oneof = "LayoutKind", tags = "1, 2, 3, 4")]
    pub layout: Option<LayoutKind>,
}

/// Members of [`PageLayout`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum LayoutKind {
    /// Chunks of some thousand values.
    #[prost(message, tag = "1")]
    MiniBlock(MiniBlockLayout),
    /// All null, or one constant.
    #[prost(message, tag = "2")]
    Constant(ConstantLayout),
    /// Row after row.
    #[prost(message, tag = "3")]
    FullZip(FullZipLayout),
    /// Values outside any page.
    #[prost(message, tag = "4")]
    Blob(Empty),
}

/// §5.1.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MiniBlockLayout {
    /// Absent = no repetition levels.
    #[prost(message, optional, tag = "1")]
    pub rep_compression: Option<CompressiveEncoding>,
    /// Absent = no definition levels.
    #[prost(message, optional, tag = "2")]
    pub def_compression: Option<CompressiveEncoding>,
    /// Values, or dictionary indices.
    #[prost(message, optional, tag = "3")]
    pub value_compression: Option<CompressiveEncoding>,
    /// Absent = no dictionary.
    #[prost(message, optional, tag = "4")]
    pub dictionary: Option<CompressiveEncoding>,
    /// Items of the dictionary.
    #[prost(uint64, tag = "5")]
    pub num_dictionary_items: u64,
    /// Leaf first, see §4.
    #[prost(int32, repeated, tag = "6")]
    pub layers: Vec<i32>,
    /// Value buffers per chunk.
    #[prost(uint64, tag = "7")]
    pub num_buffers: u64,
    /// 0 = no repetition index.
    #[prost(uint32, tag = "8")]
    pub repetition_index_depth: u32,
    /// Value slots of the page.
    #[prost(uint64, tag = "9")]
    pub num_items: u64,
    /// Selects 32-bit words and sizes.
    #[prost(bool, tag = "10")]
    pub has_large_chunk: bool,
}

/// §5.2.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FullZipLayout {
    /// Width of the repetition level in the control word.
    #[prost(uint32, tag = "1")]
    pub bits_rep: u32,
    /// Width of the definition level in the control word.
    #[prost(uint32, tag = "2")]
    pub bits_def: u32,
    /// Fixed width or length prefix.
    #[prost(oneof = "ZipWidth", tags = "3, 4")]
    pub width: Option<ZipWidth>,
    /// Level entries.
    #[prost(uint32, tag = "5")]
    pub num_items: u32,
    /// Entries that own a value slot.
    #[prost(uint32, tag = "6")]
    pub num_visible_items: u32,
    /// Per-value form.
    #[prost(message, optional, tag = "7")]
    pub value_compression: Option<CompressiveEncoding>,
    /// Leaf first.
    #[prost(int32, repeated, tag = "8")]
    pub layers: Vec<i32>,
}

/// Width of a full-zip value.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ZipWidth {
    /// Fixed, in bits.
    #[prost(uint32, tag = "3")]
    BitsPerValue(u32),
    /// Width of the length prefix in bits.
    #[prost(uint32, tag = "4")]
    BitsPerOffset(u32),
}

/// §5.3.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ConstantLayout {
    /// Leaf first.
    #[prost(int32, repeated, tag = "5")]
    pub layers: Vec<i32>,
    /// The value, little-endian.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub inline_value: Option<Bytes>,
    /// Absent = raw u16 levels.
    #[prost(message, optional, tag = "7")]
    pub rep_compression: Option<CompressiveEncoding>,
    /// Absent = raw u16 levels.
    #[prost(message, optional, tag = "8")]
    pub def_compression: Option<CompressiveEncoding>,
    /// Count of repetition levels, with `rep_compression`.
    #[prost(uint64, tag = "9")]
    pub num_rep_values: u64,
    /// Count of definition levels, with `def_compression`.
    #[prost(uint64, tag = "10")]
    pub num_def_values: u64,
}

/// One node of a compression tree.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompressiveEncoding {
    /// Exactly one.
    #[prost(oneof = "Compressive", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15")]
    pub kind: Option<Compressive>,
}

/// Members of [`CompressiveEncoding`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Compressive {
    /// Plain values.
    #[prost(message, tag = "1")]
    Flat(Flat),
    /// Offsets and bytes.
    #[prost(message, boxed, tag = "2")]
    Variable(Box<Variable>),
    /// One value (2.3 sequences).
    #[prost(message, tag = "3")]
    Constant(Constant),
    /// Packed groups whose width is in the message.
    #[prost(message, boxed, tag = "4")]
    OutOfLineBitpacking(Box<OutOfLineBitpacking>),
    /// Packed groups that begin with their width.
    #[prost(message, tag = "5")]
    InlineBitpacking(InlineBitpacking),
    /// String symbols.
    #[prost(message, boxed, tag = "6")]
    Fsst(Box<Fsst>),
    /// 2.3 sequences.
    #[prost(message, boxed, tag = "7")]
    Dictionary(Box<Dictionary>),
    /// Runs.
    #[prost(message, boxed, tag = "8")]
    Rle(Box<Rle>),
    /// Byte planes.
    #[prost(message, boxed, tag = "9")]
    ByteStreamSplit(Box<ByteStreamSplit>),
    /// LZ4 or ZSTD around another.
    #[prost(message, boxed, tag = "10")]
    General(Box<General>),
    /// Fixed-size lists.
    #[prost(message, boxed, tag = "11")]
    FixedSizeList(Box<FixedSizeList>),
    /// Packed struct rows.
    #[prost(message, boxed, tag = "12")]
    PackedStruct(Box<PackedStruct>),
    /// Packed struct rows with variable fields.
    #[prost(message, tag = "13")]
    VariablePackedStruct(VariablePackedStruct),
    /// 2.3 sequences.
    #[prost(message, tag = "14")]
    Range(Range),
    /// 2.3 sequences.
    #[prost(message, boxed, tag = "15")]
    Delta(Box<Delta>),
}

/// Plain values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Flat {
    /// 1 or a multiple of 8; the inner width for packed children.
    #[prost(uint64, tag = "1")]
    pub bits_per_value: u64,
    /// Never set by Lance 14; refused when it is.
    #[prost(message, optional, tag = "2")]
    pub data: Option<BufferCompression>,
}

/// Offsets and bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Variable {
    /// Flat 32 or Flat 64.
    #[prost(message, optional, boxed, tag = "1")]
    pub offsets: Option<Box<CompressiveEncoding>>,
    /// Never set by Lance 14; refused when it is.
    #[prost(message, optional, tag = "2")]
    pub values: Option<BufferCompression>,
}

/// Packed groups.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OutOfLineBitpacking {
    /// Word width.
    #[prost(uint64, tag = "1")]
    pub uncompressed_bits: u64,
    /// Flat of the packed width; an absent width is 0.
    #[prost(message, optional, boxed, tag = "3")]
    pub values: Option<Box<CompressiveEncoding>>,
}

/// Packed groups that begin with their width.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InlineBitpacking {
    /// Word width.
    #[prost(uint64, tag = "1")]
    pub uncompressed_bits: u64,
    /// Never set by Lance 14; refused when it is.
    #[prost(message, optional, tag = "2")]
    pub values: Option<BufferCompression>,
}

/// String symbols.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Fsst {
    /// 2312 bytes, see §7.3.
    #[prost(bytes = "bytes", tag = "1")]
    pub symbol_table: Bytes,
    /// Variable.
    #[prost(message, optional, boxed, tag = "2")]
    pub values: Option<Box<CompressiveEncoding>>,
}

/// Runs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Rle {
    /// Flat of the value width.
    #[prost(message, optional, boxed, tag = "1")]
    pub values: Option<Box<CompressiveEncoding>>,
    /// Flat 8.
    #[prost(message, optional, boxed, tag = "2")]
    pub run_lengths: Option<Box<CompressiveEncoding>>,
}

/// LZ4 or ZSTD around another.
#[derive(Clone, PartialEq, prost::Message)]
pub struct General {
    /// Which.
    #[prost(message, optional, tag = "1")]
    pub compression: Option<BufferCompression>,
    /// What is inside.
    #[prost(message, optional, boxed, tag = "3")]
    pub values: Option<Box<CompressiveEncoding>>,
}

/// A general purpose compression.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BufferCompression {
    /// 1 LZ4, 2 ZSTD.
    #[prost(int32, tag = "1")]
    pub scheme: i32,
}

/// The same value everywhere.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Constant {
    /// Little-endian; absent = 0.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub value: Option<Bytes>,
}

/// Indices into items (2.3 sequences).
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dictionary {
    /// Indices from 0.
    #[prost(message, optional, boxed, tag = "1")]
    pub indices: Option<Box<CompressiveEncoding>>,
    /// Items.
    #[prost(message, optional, boxed, tag = "2")]
    pub items: Option<Box<CompressiveEncoding>>,
    /// How many items.
    #[prost(uint64, tag = "3")]
    pub num_items: u64,
}

/// Byte planes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ByteStreamSplit {
    /// Flat of the value width.
    #[prost(message, optional, boxed, tag = "1")]
    pub values: Option<Box<CompressiveEncoding>>,
}

/// Values of so many items each.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FixedSizeList {
    /// Items per value.
    #[prost(uint64, tag = "1")]
    pub items_per_value: u64,
    /// The items.
    #[prost(message, optional, boxed, tag = "2")]
    pub values: Option<Box<CompressiveEncoding>>,
    /// Items can be null.
    #[prost(bool, tag = "3")]
    pub has_validity: bool,
}

/// Struct rows, the members back to back.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PackedStruct {
    /// Width of each member.
    #[prost(uint64, repeated, tag = "1")]
    pub bits_per_value: Vec<u64>,
    /// Flat of a row.
    #[prost(message, optional, boxed, tag = "2")]
    pub values: Option<Box<CompressiveEncoding>>,
}

/// Struct rows with members of any length.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VariablePackedStruct {
    /// In the order of the members.
    #[prost(message, repeated, tag = "1")]
    pub fields: Vec<PackedField>,
}

/// A member of a [`VariablePackedStruct`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct PackedField {
    /// Its values.
    #[prost(message, optional, tag = "1")]
    pub value: Option<CompressiveEncoding>,
    /// Fixed width or length prefix.
    #[prost(oneof = "PackedWidth", tags = "2, 3")]
    pub width: Option<PackedWidth>,
}

/// Width of a packed member.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum PackedWidth {
    /// Fixed, in bits.
    #[prost(uint64, tag = "2")]
    BitsPerValue(u64),
    /// Width of the length prefix in bits.
    #[prost(uint64, tag = "3")]
    BitsPerLength(u64),
}

/// `start, start + step, …` (2.3 sequences).
#[derive(Clone, PartialEq, prost::Message)]
pub struct Range {
    /// Width of a value.
    #[prost(uint64, tag = "1")]
    pub bits: u64,
    /// First value.
    #[prost(uint64, tag = "2")]
    pub start: u64,
    /// From one to the next.
    #[prost(uint64, tag = "3")]
    pub step: u64,
}

/// A first value and differences (2.3 sequences).
#[derive(Clone, PartialEq, prost::Message)]
pub struct Delta {
    /// Width of a value.
    #[prost(uint64, tag = "1")]
    pub bits: u64,
    /// First value.
    #[prost(uint64, tag = "2")]
    pub base: u64,
    /// One less than values.
    #[prost(message, optional, boxed, tag = "3")]
    pub deltas: Option<Box<CompressiveEncoding>>,
}
