//! Protobuf messages inside a Lance file (file-format §2.4–2.6, §3, §5, §6), as far as this build understands them.
//!
//! Unknown fields are skipped; an unknown member of a oneof decodes to `None`, which every reader refuses.

pub mod container;
pub mod encoding20;
pub mod encoding21;
pub mod encoding23;

pub use container::{Any, ColumnMetadata, DirectEncoding, Encoding, EncodingKind, Field, FileDescriptor, Page, SchemaMessage};
