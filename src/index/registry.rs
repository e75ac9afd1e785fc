//! Which methods there are, and what every index type is called.

use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::{IndexDetails, IndexMetadata};
use crate::index::IndexMethod;
use crate::index::bitmap::Bitmap;
#[cfg(feature = "full")]
use crate::index::bloomfilter::BloomFilter;
use crate::index::btree::Btree;
#[cfg(feature = "full")]
use crate::index::inverted::Inverted;
#[cfg(feature = "full")]
use crate::index::labellist::LabelList;
#[cfg(feature = "full")]
use crate::index::ngram::Ngram;
use crate::index::zonemap::ZoneMap;

/// The methods this build maintains. Those that cut text bring stemmers, stop words and tables of folded letters, a sixth of
/// the whole engine, so the core engine goes without them.
static METHODS: &[&dyn IndexMethod] = &[
    &Btree,
    &ZoneMap,
    &Bitmap,
    #[cfg(feature = "full")]
    &BloomFilter,
    #[cfg(feature = "full")]
    &LabelList,
    #[cfg(feature = "full")]
    &Ngram,
    #[cfg(feature = "full")]
    &Inverted,
];

/// What the full engine maintains and this one does not.
#[cfg(feature = "full")]
const FULL_ONLY: [&str; 0] = [];
#[cfg(not(feature = "full"))]
const FULL_ONLY: [&str; 4] = ["BLOOMFILTER", "LABEL_LIST", "NGRAM", "INVERTED"];

/// The methods this build maintains.
pub fn methods() -> &'static [&'static dyn IndexMethod] {
    METHODS
}

/// One index type Lance 14 knows: the key of its details message, the name in options, pylance's display name.
struct Kind {
    /// Last part of the `type_url`, lower case, without `indexdetails` (index-formats §2).
    key: &'static str,
    name: &'static str,
    display: &'static str,
}

const KINDS: [Kind; 13] = [
    Kind { key: "btree", name: "BTREE", display: "BTree" },
    Kind { key: "bitmap", name: "BITMAP", display: "Bitmap" },
    Kind { key: "zonemap", name: "ZONEMAP", display: "ZoneMap" },
    Kind { key: "bloomfilter", name: "BLOOMFILTER", display: "BloomFilter" },
    Kind { key: "labellist", name: "LABEL_LIST", display: "LabelList" },
    Kind { key: "ngram", name: "NGRAM", display: "NGram" },
    Kind { key: "inverted", name: "INVERTED", display: "Inverted" },
    Kind { key: "fm", name: "FM", display: "Fm" },
    Kind { key: "rtree", name: "RTREE", display: "RTree" },
    Kind { key: "json", name: "JSON", display: "Json" },
    Kind { key: "minhashlsh", name: "MINHASH", display: "MinHashLsh" },
    Kind { key: "fragmentreuse", name: "FRAGMENT_REUSE", display: "FragmentReuse" },
    Kind { key: "memwal", name: "MEM_WAL", display: "MemWal" },
];

const VECTOR: &str = "vector";

fn key_of(type_url: &str) -> String {
    let last = type_url.rsplit(['.', '/']).next().unwrap_or(type_url).to_ascii_lowercase();
    last.strip_suffix("indexdetails").unwrap_or(&last).to_owned()
}

fn kind_by_key(key: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.key == key)
}

/// The method behind a details `type_url`, in any of the spellings Lance accepts.
///
/// # Errors
/// `UNSUPPORTED_METHOD` naming the method, for those this build does not maintain.
pub fn method_by_url(type_url: &str) -> Result<&'static dyn IndexMethod> {
    let key = key_of(type_url);
    match kind_by_key(&key) {
        Some(kind) => method_of_kind(kind).map_err(|error| error.with("type_url", type_url)),
        None if key == VECTOR => Err(vector_refused().with("type_url", type_url)),
        None => Err(Error::new(
            ErrorCode::UnsupportedMethod,
            format!("index details of type {type_url} belong to no index method known here; nothing was changed"),
        )
        .with("type_url", type_url)),
    }
}

/// The method called `name` in options, in any case and with or without underscores.
///
/// # Errors
/// `UNSUPPORTED_METHOD` naming the method, for those this build does not maintain.
pub fn method_by_name(name: &str) -> Result<&'static dyn IndexMethod> {
    let key: String = name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect();
    let key = if key == "minhash" { "minhashlsh".to_owned() } else { key };
    match kind_by_key(&key) {
        Some(kind) => method_of_kind(kind),
        None if key == VECTOR || key.starts_with("ivf") => Err(vector_refused()),
        None => {
            Err(Error::new(ErrorCode::UnsupportedMethod, format!("there is no index method called {name}; nothing was changed"))
                .with("method", name))
        }
    }
}

fn method_of_kind(kind: &Kind) -> Result<&'static dyn IndexMethod> {
    METHODS.iter().find(|method| method.name() == kind.name).copied().ok_or_else(|| {
        let known: Vec<&str> = METHODS.iter().map(|method| method.name()).collect();
        let known = known.join(", ");
        let text = if FULL_ONLY.contains(&kind.name) {
            format!(
                "{} indexes are maintained by the full engine, and this is the core engine (it maintains {known}): \
                 import \"whetstone\" instead of \"whetstone/core\"; nothing was changed",
                kind.name
            )
        } else {
            format!("{} indexes are not maintained by this build ({known} are); nothing was changed", kind.name)
        };
        Error::new(ErrorCode::UnsupportedMethod, text).with("method", kind.name)
    })
}

fn vector_refused() -> Error {
    Error::new(
        ErrorCode::UnsupportedMethod,
        "vector indexes are not refreshed here: Lance's SDK (optimize_indices) refreshes them, not a rebuild; nothing was changed",
    )
    .with("method", "VECTOR")
}

/// The name `describe_indices` of pylance shows for a segment's index type, also for types that are not maintained here.
/// Without details (very old tables) the type is guessed from the file names as Lance does (index-formats §2).
pub fn display_name(details: Option<&IndexDetails>, file_names: &[&str]) -> String {
    let Some(details) = details else {
        return guess_from_files(file_names).to_owned();
    };
    let key = key_of(&details.type_url);
    match kind_by_key(&key) {
        Some(kind) => kind.display.to_owned(),
        None if key == VECTOR => vector_display_name(&details.value),
        None => "Unknown".to_owned(),
    }
}

/// The name in options (`BTREE`, …, `VECTOR`) of an entry's type, also for types that are not maintained here; `None` = a type
/// nobody knows.
pub fn option_name(entry: &IndexMetadata) -> Option<&'static str> {
    let key = match &entry.details {
        Some(details) => key_of(&details.type_url),
        None => {
            let names: Vec<&str> = entry.files.iter().map(|file| file.path.as_str()).collect();
            guess_from_files(&names).to_ascii_lowercase()
        }
    };
    if key == VECTOR { Some("VECTOR") } else { kind_by_key(&key).map(|kind| kind.name) }
}

fn guess_from_files(names: &[&str]) -> &'static str {
    let has = |wanted: &str| names.contains(&wanted);
    if has("metadata.lance") {
        "Inverted"
    } else if has("bitmap_page_lookup.lance") {
        "Bitmap"
    } else if has("index.idx") {
        "Vector"
    } else {
        "BTree"
    }
}

/// The parts of `VectorIndexDetails` that make up the name.
#[derive(Clone, PartialEq, prost::Message)]
struct VectorParts {
    #[prost(bytes = "vec", optional, tag = "3")]
    hnsw: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pq: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    sq: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "6")]
    rq: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "8")]
    flat: Option<Vec<u8>>,
}

fn vector_display_name(value: &[u8]) -> String {
    let Ok(parts) = <VectorParts as prost::Message>::decode(value) else {
        return "Vector".to_owned();
    };
    let storage = match &parts {
        VectorParts { pq: Some(_), .. } => "PQ",
        VectorParts { sq: Some(_), .. } => "SQ",
        VectorParts { rq: Some(_), .. } => "RQ",
        VectorParts { flat: Some(_), .. } => "FLAT",
        _ => return "Vector".to_owned(),
    };
    format!("IVF_{}{storage}", if parts.hnsw.is_some() { "HNSW_" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(type_url: &str, value: &[u8]) -> IndexDetails {
        IndexDetails { type_url: type_url.to_owned(), value: value.to_vec().into() }
    }

    fn refusal(method: Result<&'static dyn IndexMethod>) -> Error {
        match method {
            Ok(method) => panic!("{} was not refused", method.name()),
            Err(error) => error,
        }
    }

    #[test]
    fn both_packages_and_any_case_name_the_same_method() {
        for url in ["/lance.table.BTreeIndexDetails", "/lance.index.pb.BTreeIndexDetails", "/lance.table.btreeindexdetails"] {
            assert_eq!(method_by_url(url).unwrap().name(), "BTREE");
        }
        assert_eq!(method_by_url("/lance.table.ZoneMapIndexDetails").unwrap().name(), "ZONEMAP");
        assert_eq!(method_by_url("/lance.index.pb.BloomFilterIndexDetails").unwrap().name(), "BLOOMFILTER");
        assert_eq!(method_by_name("bloom_filter").unwrap().name(), "BLOOMFILTER");
        assert_eq!(method_by_name("btree").unwrap().name(), "BTREE");
        assert_eq!(method_by_name("zone_map").unwrap().name(), "ZONEMAP");
    }

    #[test]
    fn other_methods_are_refused_by_name() {
        for (url, name) in [("/lance.index.pb.FMIndexDetails", "FM"), ("/lance.index.pb.MinHashLshIndexDetails", "MINHASH")] {
            let error = refusal(method_by_url(url));
            assert_eq!(error.code(), ErrorCode::UnsupportedMethod);
            assert!(error.message().starts_with(name), "{}", error.message());
            assert_eq!(refusal(method_by_name(name)).code(), ErrorCode::UnsupportedMethod);
        }
        let vector = refusal(method_by_url("/lance.index.pb.VectorIndexDetails"));
        assert!(vector.message().contains("optimize_indices"), "{}", vector.message());
        assert_eq!(refusal(method_by_name("IVF_PQ")).message(), vector.message());
        assert!(refusal(method_by_url("/x.y.NewIndexDetails")).message().contains("/x.y.NewIndexDetails"));
    }

    #[test]
    fn names_are_those_pylance_shows() {
        for (url, name) in [
            ("/lance.table.BTreeIndexDetails", "BTree"),
            ("/lance.index.pb.BloomFilterIndexDetails", "BloomFilter"),
            ("/lance.table.FragmentReuseIndexDetails", "FragmentReuse"),
            ("/lance.index.pb.MinHashLshIndexDetails", "MinHashLsh"),
            ("/lance.index.pb.FMIndexDetails", "Fm"),
        ] {
            assert_eq!(display_name(Some(&details(url, b"")), &[]), name);
        }
        let vector = "/lance.index.pb.VectorIndexDetails";
        // Field 8 alone; HNSW (3) with scalar quantisation (5).
        assert_eq!(display_name(Some(&details(vector, &[0x42, 0])), &[]), "IVF_FLAT");
        assert_eq!(display_name(Some(&details(vector, &[0x1a, 0, 0x2a, 2, 8, 8])), &[]), "IVF_HNSW_SQ");
        assert_eq!(display_name(None, &["page_data.lance", "page_lookup.lance"]), "BTree");
        assert_eq!(display_name(None, &["metadata.lance"]), "Inverted");
    }
}
