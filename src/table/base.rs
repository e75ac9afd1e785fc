//! Files of other roots (table-format §4.7): where a data file, a deletion vector or a segment really is.

use crate::error::{Error, Result};
use crate::format::fragment::{DataFile, DeletionFile};
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::{BasePath, Manifest};
use crate::store::Store;

/// Path of a data file and the store it is below.
pub fn data_file(store: &Store, manifest: &Manifest, file: &DataFile) -> Result<(Store, String)> {
    let Some(base) = base_of(manifest, file.base_id)? else { return Ok((store.clone(), format!("data/{}", file.path))) };
    let path = if base.is_dataset_root { format!("data/{}", file.path) } else { file.path.clone() };
    Ok((root(store, manifest, base)?, path))
}

/// Path of a fragment's deletion vector and the store it is below.
pub fn deletion_file(store: &Store, manifest: &Manifest, fragment: u32, file: &DeletionFile) -> Result<(Store, String)> {
    let path = file.path(fragment);
    let Some(base) = base_of(manifest, file.base_id)? else { return Ok((store.clone(), path)) };
    if !base.is_dataset_root {
        return Err(Error::corrupt(&path, format!("lies in base path {}, which holds data files only", base.id)));
    }
    Ok((root(store, manifest, base)?, path))
}

/// The folder of a segment's files and the store it is below.
pub fn segment_folder(store: &Store, manifest: &Manifest, entry: &IndexMetadata) -> Result<(Store, String)> {
    let folder = format!("_indices/{}", entry.uuid);
    Ok(match base_of(manifest, entry.base_id)? {
        None => (store.clone(), folder),
        Some(base) if base.is_dataset_root => (root(store, manifest, base)?, folder),
        Some(base) => (root(store, manifest, base)?, entry.uuid.to_string()),
    })
}

/// The store of a base path id; `None` = the table's own root.
pub fn base_store(store: &Store, manifest: &Manifest, id: Option<u32>) -> Result<Store> {
    match base_of(manifest, id)? {
        None => Ok(store.clone()),
        Some(base) => root(store, manifest, base),
    }
}

fn base_of(manifest: &Manifest, id: Option<u32>) -> Result<Option<&BasePath>> {
    id.map(|id| manifest.base(id)).transpose()
}

fn root(store: &Store, manifest: &Manifest, base: &BasePath) -> Result<Store> {
    match family(store, manifest, &base.path) {
        Some(path) => store.at_root(&path),
        None => store.base(&base.path),
    }
}

/// The root, in the store of a branch, that the branch's base path means when it names the main table or another of its
/// branches: the address it was written under need not be the one it is read at. Data files have unique names, so that a
/// wrong guess finds nothing rather than something else.
fn family(store: &Store, manifest: &Manifest, base: &str) -> Option<String> {
    let branch = manifest.branch.as_deref()?;
    let main = store.root().as_ref().strip_suffix(&format!("tree/{branch}"))?.trim_end_matches('/');
    let base = base.trim_end_matches('/');
    let (base_main, base_branch) = match base.split_once("/tree/") {
        Some((main, branch)) => (main, Some(branch)),
        None => (base, None),
    };
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned).filter(|n| !n.is_empty());
    // A store that begins at the table does not know the table's name.
    if name(main).is_some() && name(main) != name(base_main) {
        return None;
    }
    Some(match base_branch {
        Some(branch) if main.is_empty() => format!("tree/{branch}"),
        Some(branch) => format!("{main}/tree/{branch}"),
        None => main.to_owned(),
    })
}

/// The main root of a branch root, when the store's path says that it is one.
pub fn main_root(store: &Store, branch: &str) -> Result<Option<Store>> {
    match store.root().as_ref().strip_suffix(&format!("tree/{branch}")) {
        Some(main) if main.is_empty() || main.ends_with('/') => store.at_root(main.trim_end_matches('/')).map(Some),
        _ => Ok(None),
    }
}
