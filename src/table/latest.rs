//! Which version is the newest (table-format §2.2, design §6).

use serde::Deserialize;

use super::reading::{Fetched, manifest_path, read_manifest};
use crate::document;
use crate::error::{Error, ErrorCode, Result};
use crate::format::naming::{Naming, parse_name};
use crate::lists::sorted_by_key;
use crate::store::{Entry, Store, is_listing_refused, is_not_found};

/// Names asked for on the first page: the newest is the first that is a manifest, and few others sort before it.
const PAGE: usize = 10;
const VERSIONS: &str = "_versions";
const HINT: &str = "_versions/latest_version_hint.json";

/// A version that a listing names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Scheme of the name.
    pub naming: Naming,
    /// Version.
    pub version: u64,
    /// What the listing says about the file.
    pub entry: Entry,
}

/// The manifests of a listing, oldest version first; staging leftovers and detached ones are left out. Both naming schemes
/// in one folder are an error, as they are for every reader that looks at all of it.
pub fn manifests(entries: Vec<Entry>) -> Result<Vec<Listed>> {
    let found = entries
        .into_iter()
        .filter_map(|entry| {
            let (naming, version) = parse_name(&entry.name)?;
            (naming != Naming::Detached).then_some(Listed { naming, version, entry })
        })
        .collect();
    let found = sorted_by_key(found, |listed: &Listed| listed.version);
    if let Some(first) = found.first()
        && let Some(other) = found.iter().find(|listed| listed.naming != first.naming)
    {
        return Err(Error::corrupt(
            VERSIONS,
            format!("{} and {} follow different naming schemes; a table has one", first.entry.name, other.entry.name),
        ));
    }
    Ok(found)
}

/// The newest version that the store lists; `None` = no manifest at all.
pub async fn listed_latest(store: &Store) -> Result<Option<Listed>> {
    if store.lists_in_order() {
        let (page, complete) = store.list_page(VERSIONS, PAGE).await?;
        let found = manifests(page)?;
        // V1 names are not in version order, and a page without a manifest says nothing.
        if complete || found.first().is_some_and(|listed| listed.naming == Naming::V2) {
            return Ok(found.into_iter().next_back());
        }
    }
    Ok(all_versions(store).await?.into_iter().next_back())
}

/// Every listed version, oldest first.
pub async fn all_versions(store: &Store) -> Result<Vec<Listed>> {
    manifests(store.list(VERSIONS).await?)
}

/// A manifest that was read before: its version, and the entity tag and size under which it was listed.
pub type Known<'a> = (u64, &'a (String, u64));

/// What a look at the newest version found.
enum Found {
    /// No manifest at all.
    None,
    /// The one that was known; it was not read again.
    Same,
    Other(Naming, Box<Fetched>),
}

/// The newest version of a store and its manifest. Tries the ways of design §6 in order and says which store answered.
/// `None` = it is the `known` one.
pub async fn open_latest(store: &Store, known: Option<Known<'_>>) -> Result<Option<(Store, Naming, Fetched)>> {
    let refused = if store.can_list() {
        match list_and_read(store, known).await {
            Ok(Found::Other(naming, fetched)) => return Ok(Some((store.clone(), naming, *fetched))),
            Ok(Found::Same) => return Ok(None),
            Ok(Found::None) => None,
            Err(error) if is_listing_refused(&error) => Some(error),
            Err(error) => return Err(error),
        }
    } else {
        None
    };
    if let Some(other) = store.alternative()
        && let Ok(Found::Other(naming, fetched)) = list_and_read(other, None).await
    {
        return Ok(Some((other.clone(), naming, *fetched)));
    }
    if (refused.is_some() || !store.can_list())
        && let Some((naming, fetched)) = climb(store).await?
    {
        return Ok(Some((store.clone(), naming, fetched)));
    }
    Err(match refused {
        Some(error) if error.code() == ErrorCode::StoreDenied => error,
        None if store.can_list() => not_a_table(store),
        _ => Error::new(
            ErrorCode::TableNotFound,
            format!(
                "{}: the store does not list {VERSIONS}/ and has no version hint there, so that the latest version cannot be \
                 found; give a version, or a store that lists",
                store.uri()
            ),
        )
        .with("listing", "refused"),
    })
}

/// There is no manifest where a table would have one.
pub fn not_a_table(store: &Store) -> Error {
    let uri = store.uri();
    Error::new(ErrorCode::TableNotFound, format!("{uri} is not a Lance table: {VERSIONS}/ holds no manifest")).with("uri", uri)
}

async fn list_and_read(store: &Store, known: Option<Known<'_>>) -> Result<Found> {
    let Some(listed) = listed_latest(store).await? else { return Ok(Found::None) };
    let seen = listed.entry.etag.clone().map(|etag| (etag, listed.entry.size));
    // A weak tag may stay while the bytes change.
    let strong = seen.as_ref().filter(|(etag, _)| !etag.starts_with("W/"));
    if known.is_some_and(|(version, before)| version == listed.version && Some(before) == strong) {
        return Ok(Found::Same);
    }
    match read_manifest(store, listed.naming, listed.version, Some(listed.entry.size)).await {
        Ok(fetched) => Ok(Found::Other(listed.naming, Box::new(Fetched { listed: seen, ..fetched }))),
        Err(error) if is_not_found(&error) => {
            // Cleaned up, dropped or made anew between the two requests: look once more.
            let Some(again) = listed_latest(store).await? else { return Ok(Found::None) };
            let fetched = read_manifest(store, again.naming, again.version, Some(again.entry.size))
                .await
                .map_err(|error| if is_not_found(&error) { vanished(store, again.version) } else { error })?;
            Ok(Found::Other(again.naming, Box::new(fetched)))
        }
        Err(error) => Err(error),
    }
}

fn vanished(store: &Store, version: u64) -> Error {
    Error::new(
        ErrorCode::TableNotFound,
        format!("{}: version {version} is listed and cannot be read; the table is being deleted or made anew", store.uri()),
    )
    .with("version", version)
}

/// The hint file.
#[derive(Deserialize)]
struct Hint {
    version: u64,
}

/// Without a listing: from the version of the hint file upwards until there is none. The hint is never trusted to be new.
async fn climb(store: &Store) -> Result<Option<(Naming, Fetched)>> {
    let hint = match store.get(HINT, None).await {
        Ok(bytes) => bytes,
        Err(error) if is_not_found(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    // Some servers answer every path with a page; that is no hint.
    let Ok(hint) = document::read::<Hint>(&hint) else { return Ok(None) };
    let Some((naming, mut newest)) = find_version(store, hint.version).await? else { return Ok(None) };
    let mut version = hint.version;
    while let Some(next) = version.checked_add(1) {
        match read_manifest(store, naming, next, None).await {
            Ok(fetched) => (version, newest) = (next, fetched),
            Err(error) if is_not_found(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Some((naming, newest)))
}

/// A version by number under either naming scheme; `None` = neither file is there.
pub async fn find_version(store: &Store, version: u64) -> Result<Option<(Naming, Fetched)>> {
    let detached = crate::format::naming::is_detached(version);
    let schemes: &[Naming] = if detached { &[Naming::Detached] } else { &[Naming::V2, Naming::V1] };
    for naming in schemes {
        match read_manifest(store, *naming, version, None).await {
            Ok(fetched) => return Ok(Some((*naming, fetched))),
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The error of a version that is not there.
pub async fn no_such_version(store: &Store, version: u64) -> Error {
    let path = manifest_path(Naming::V2, version);
    if store.can_list()
        && let Ok(versions) = all_versions(store).await
    {
        let (Some(first), Some(last)) = (versions.first(), versions.last()) else { return not_a_table(store) };
        return Error::new(
            ErrorCode::VersionNotFound,
            format!("{} has no version {version}; it has {} to {}", store.uri(), first.version, last.version),
        )
        .with("version", version)
        .with("first", first.version)
        .with("latest", last.version);
    }
    Error::new(ErrorCode::VersionNotFound, format!("{} has no version {version}: there is no {path}", store.uri()))
        .with("version", version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &[&str]) -> Vec<Entry> {
        names.iter().map(|n| Entry { name: (*n).to_owned(), size: 1, etag: None, modified_ms: None }).collect()
    }

    #[test]
    fn leftovers_are_skipped_and_schemes_never_mixed() {
        let found = manifests(entries(&[
            ".tmp_18446744073709551612.manifest",
            "18446744073709551613.manifest",
            "18446744073709551614.manifest",
            "18446744073709551611.manifest-0c606674-fdce-4c00-a3c4-270b1e19f84e",
            "d9223372036854775809.manifest",
            "latest_version_hint.json",
        ]))
        .unwrap();
        assert_eq!(found.iter().map(|l| l.version).collect::<Vec<_>>(), [1, 2]);
        let v1 = manifests(entries(&["10.manifest", "2.manifest", "9.manifest"])).unwrap();
        assert_eq!(v1.last().unwrap().version, 10);
        let error = manifests(entries(&["1.manifest", "18446744073709551613.manifest"])).unwrap_err();
        assert_eq!(error.code(), ErrorCode::CorruptFile);
    }
}
