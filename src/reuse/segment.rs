//! What matters about an index segment when its coverage is derived (spec fragment-reuse §7.3, §20).

use roaring::RoaringBitmap;
use uuid::Uuid;

use crate::format::index_metadata::IndexMetadata;

/// Whether segments of a type can be read through a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Stored addresses are carried through as pages are read.
    Translates,
    /// Only usable when nothing it names has moved.
    IdentityOnly,
    /// The type is not known.
    Unknown,
}

/// A segment of a user index.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Its index.
    pub index: &'a str,
    /// Its id.
    pub uuid: Uuid,
    /// Version whose rows it reflects.
    pub dataset_version: u64,
    /// The bitmap in the manifest: what it was built from. `None` = not recorded, which is not empty.
    pub stored: Option<&'a RoaringBitmap>,
    /// Whether Lance 14 knows its type and format version.
    pub usable: bool,
    /// Whether it can be read through a history.
    pub capability: Capability,
    /// Whether it records what type it has.
    pub described: bool,
    /// Whether it is of a vector index with files.
    pub vector: bool,
}

/// Highest `index_version` Lance 14 reads, and whether the type translates, by the last part of the type's name.
const TYPES: [(&str, i32, Capability); 12] = [
    ("btreeindexdetails", 1, Capability::Translates),
    ("bitmapindexdetails", 0, Capability::Translates),
    ("labellistindexdetails", 1, Capability::Translates),
    ("ngramindexdetails", 0, Capability::Translates),
    ("zonemapindexdetails", 0, Capability::Translates),
    ("bloomfilterindexdetails", 0, Capability::Translates),
    ("invertedindexdetails", 3, Capability::Translates),
    ("rtreeindexdetails", 0, Capability::Translates),
    ("jsonindexdetails", 0, Capability::IdentityOnly),
    ("fmindexdetails", 10, Capability::IdentityOnly),
    ("minhashlshindexdetails", 0, Capability::IdentityOnly),
    ("vectorindexdetails", 2, Capability::Translates),
];

impl<'a> Segment<'a> {
    /// The facts of a manifest entry; `None` for entries of Lance itself.
    pub fn of(entry: &'a IndexMetadata) -> Option<Segment<'a>> {
        if entry.is_system() {
            return None;
        }
        let name = entry.type_name().map(|name| name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase());
        let known = name.as_ref().and_then(|name| TYPES.iter().find(|(key, ..)| key == name));
        let version = entry.index_version.unwrap_or(0);
        let usable = match (&name, known) {
            (None, _) => version <= 0,
            (Some(_), Some((_, most, _))) => version <= *most,
            (Some(_), None) => false,
        };
        let capability = known.map_or(Capability::Unknown, |(_, _, capability)| *capability);
        // Full text files that no merge or commit has promoted yet are in the old layout, which does not translate.
        let staging = entry.files.iter().any(|f| f.path.starts_with("staging/"));
        Some(Segment {
            index: &entry.name,
            uuid: entry.uuid,
            dataset_version: entry.dataset_version,
            stored: entry.fragment_bitmap.as_ref(),
            usable,
            capability: if staging { Capability::IdentityOnly } else { capability },
            described: name.is_some(),
            vector: name.as_deref() == Some("vectorindexdetails") && !entry.files.is_empty(),
        })
    }

    /// All segments of user indexes, in the order of the entries, with their places among them.
    pub fn all(entries: &'a [IndexMetadata]) -> Vec<(usize, Segment<'a>)> {
        entries.iter().enumerate().filter_map(|(at, entry)| Some((at, Segment::of(entry)?))).collect()
    }
}
