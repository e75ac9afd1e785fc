//! `lance.encodings23`: the page message of 2.3 files (file-format §5.6), an unstable format.

use bytes::Bytes;

use super::container::Empty;
use super::encoding21::CompressiveEncoding;

/// The page message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PlanarLayout {
    /// Nulls and lists.
    #[prost(message, optional, tag = "1")]
    pub structure: Option<Structure>,
    /// Values.
    #[prost(message, optional, tag = "2")]
    pub values: Option<PlanarValues>,
}

/// How nulls and lists are told.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Structure {
    /// Exactly one.
    #[prost(oneof = "StructureKind", tags = "1, 2")]
    pub kind: Option<StructureKind>,
}

/// Members of [`Structure`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum StructureKind {
    /// Levels, as in 2.2.
    #[prost(message, tag = "1")]
    Dense(Dense),
    /// Positions.
    #[prost(message, tag = "2")]
    Sparse(Sparse),
}

/// Levels as in 2.2.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dense {
    /// Leaf first, see §4.
    #[prost(int32, repeated, tag = "1")]
    pub layers: Vec<i32>,
}

/// Positions of nulls and of lists that have items.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sparse {
    /// Outermost first.
    #[prost(message, repeated, tag = "1")]
    pub layers: Vec<SparseLayer>,
}

/// One layer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseLayer {
    /// Exactly one.
    #[prost(oneof = "SparseKind", tags = "1, 2, 3")]
    pub kind: Option<SparseKind>,
}

/// Members of [`SparseLayer`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum SparseKind {
    /// Nulls.
    #[prost(message, tag = "1")]
    Validity(Validity),
    /// Lists.
    #[prost(message, tag = "2")]
    List(SparseList),
    /// Fixed-size lists of structs.
    #[prost(message, tag = "3")]
    FixedSizeList(Empty),
}

/// Which slots are null.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Validity {
    /// 1 = the positions are null, 2 = the positions are valid.
    #[prost(int32, tag = "1")]
    pub meaning: i32,
    /// A sequence.
    #[prost(message, optional, tag = "2")]
    pub positions: Option<CompressiveEncoding>,
    /// Its length.
    #[prost(uint64, tag = "3")]
    pub num_positions: u64,
}

/// Which slots are lists with items, and how many.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseList {
    /// Items in all.
    #[prost(uint64, tag = "1")]
    pub num_child_slots: u64,
    /// A sequence.
    #[prost(message, optional, tag = "2")]
    pub non_empty_positions: Option<CompressiveEncoding>,
    /// Its length, and that of `counts`.
    #[prost(uint64, tag = "3")]
    pub num_non_empty: u64,
    /// A sequence.
    #[prost(message, optional, tag = "4")]
    pub counts: Option<CompressiveEncoding>,
    /// Which lists are null.
    #[prost(message, optional, tag = "5")]
    pub validity: Option<Validity>,
}

/// Where the values are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PlanarValues {
    /// Exactly one.
    #[prost(oneof = "ValuesKind", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<ValuesKind>,
}

/// Members of [`PlanarValues`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ValuesKind {
    /// As a mini-block page.
    #[prost(message, tag = "1")]
    Chunked(Chunked),
    /// As a full-zip page.
    #[prost(message, tag = "2")]
    Zipped(Zipped),
    /// One value.
    #[prost(message, tag = "3")]
    Constant(Scalar),
    /// Everything is null.
    #[prost(message, tag = "4")]
    None(Empty),
    /// A dictionary.
    #[prost(message, tag = "5")]
    Indexed(Empty),
}

/// A constant.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scalar {
    /// Little-endian.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub scalar: Option<Bytes>,
}

/// §5.1 under other numbers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Chunked {
    /// Values, or dictionary indices.
    #[prost(message, optional, tag = "1")]
    pub compression: Option<CompressiveEncoding>,
    /// Levels; absent under a sparse structure.
    #[prost(message, optional, tag = "2")]
    pub levels: Option<ChunkedLevels>,
    /// Absent = no dictionary.
    #[prost(message, optional, tag = "3")]
    pub dictionary: Option<CompressiveEncoding>,
    /// Items of the dictionary.
    #[prost(uint64, tag = "4")]
    pub num_dictionary_items: u64,
    /// Value buffers per chunk.
    #[prost(uint64, tag = "5")]
    pub num_buffers: u64,
    /// Value slots of the page.
    #[prost(uint64, tag = "6")]
    pub num_items: u64,
}

/// Levels of chunked values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ChunkedLevels {
    /// Absent = no repetition levels.
    #[prost(message, optional, tag = "1")]
    pub rep: Option<CompressiveEncoding>,
    /// Absent = no definition levels.
    #[prost(message, optional, tag = "2")]
    pub def: Option<CompressiveEncoding>,
    /// 0 = no repetition index.
    #[prost(uint32, tag = "3")]
    pub depth: u32,
}

/// §5.2 under other numbers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Zipped {
    /// Per-value form.
    #[prost(message, optional, tag = "1")]
    pub compression: Option<CompressiveEncoding>,
    /// Level widths; absent under a sparse structure.
    #[prost(message, optional, tag = "2")]
    pub levels: Option<ZippedLevels>,
    /// Fixed width or length prefix.
    #[prost(oneof = "super::encoding21::ZipWidth", tags = "3, 4")]
    pub width: Option<super::encoding21::ZipWidth>,
    /// Level entries.
    #[prost(uint32, tag = "5")]
    pub num_items: u32,
    /// Entries that own a value slot.
    #[prost(uint32, tag = "6")]
    pub num_visible: u32,
}

/// Level widths of zipped values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ZippedLevels {
    /// Of the repetition level, in bits.
    #[prost(uint32, tag = "1")]
    pub bits_rep: u32,
    /// Of the definition level, in bits.
    #[prost(uint32, tag = "2")]
    pub bits_def: u32,
}
