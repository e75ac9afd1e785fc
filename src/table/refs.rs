//! Tags and branches (table-format §1.1); they always live at the main root.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorCode, Result};
use crate::format::refs::{Branch, Tag, branch_of_file_name};
use crate::lists::map_of;
use crate::store::{Store, is_not_found};

const TAGS: &str = "_refs/tags";
const BRANCHES: &str = "_refs/branches";
/// Reads in flight.
const IN_FLIGHT: usize = 6;

/// A tag in the public interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagInfo {
    /// Branch the version belongs to; null = main.
    pub branch: Option<String>,
    /// The tagged version.
    pub version: u64,
    /// RFC 3339; null in old files.
    pub created_at: Option<String>,
    /// RFC 3339; null in old files.
    pub updated_at: Option<String>,
    /// Size of the tagged manifest in bytes; null when not recorded.
    pub manifest_size: Option<u64>,
    /// Free metadata.
    pub metadata: BTreeMap<String, Value>,
}

/// A branch in the public interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BranchInfo {
    /// Branch it was made from; null = main.
    pub parent_branch: Option<String>,
    /// Version it was made from.
    pub parent_version: u64,
    /// Unix seconds; null when not recorded.
    pub create_at: Option<u64>,
    /// Size in bytes of the manifest it was made from; null when not recorded.
    pub manifest_size: Option<u64>,
    /// Free metadata.
    pub metadata: BTreeMap<String, Value>,
}

/// One tag by name.
pub async fn tag(main: &Store, name: &str) -> Result<Tag> {
    let missing = || Error::new(ErrorCode::VersionNotFound, format!("{} has no tag {name:?}", main.uri())).with("tag", name);
    // A tag is one file name: anything else would leave the folder.
    if name.is_empty() || name.contains('/') {
        return Err(missing());
    }
    let path = format!("{TAGS}/{name}.json");
    match main.get(&path, None).await {
        Ok(bytes) => Tag::parse(&path, &bytes),
        Err(error) if is_not_found(&error) => Err(missing()),
        Err(error) => Err(error),
    }
}

async fn read_all<T>(
    main: &Store,
    dir: &str,
    name: impl Fn(&str) -> Option<String>,
    parse: impl Fn(&str, &[u8]) -> Result<T>,
) -> Result<BTreeMap<String, T>> {
    let entries = main.list(dir).await?;
    let named = entries.into_iter().filter_map(|entry| Some((name(&entry.name)?, entry)));
    let read = futures::stream::iter(named).map(|(name, entry)| {
        let parse = &parse;
        async move {
            let path = format!("{dir}/{}", entry.name);
            match main.get(&path, None).await {
                Ok(bytes) => Ok(Some((name, parse(&path, &bytes)?))),
                // Deleted since it was listed.
                Err(error) if is_not_found(&error) => Ok(None),
                Err(error) => Err(error),
            }
        }
    });
    let found: Vec<Option<(String, T)>> = read.buffered(IN_FLIGHT).try_collect().await?;
    Ok(map_of(found.into_iter().flatten()))
}

/// All tags by name.
pub async fn tags(main: &Store) -> Result<BTreeMap<String, TagInfo>> {
    let name = |file: &str| file.strip_suffix(".json").map(str::to_owned);
    let tags = read_all(main, TAGS, name, Tag::parse).await?;
    let info = |tag: Tag| TagInfo {
        branch: tag.branch,
        version: tag.version,
        created_at: tag.created_at,
        updated_at: tag.updated_at,
        manifest_size: tag.manifest_size,
        metadata: tag.metadata.unwrap_or_default(),
    };
    Ok(map_of(tags.into_iter().map(|(name, tag)| (name, info(tag)))))
}

/// All branches by name.
pub async fn branches(main: &Store) -> Result<BTreeMap<String, BranchInfo>> {
    let branches = read_all(main, BRANCHES, branch_of_file_name, Branch::parse).await?;
    let info = |branch: Branch| BranchInfo {
        parent_branch: branch.parent_branch,
        parent_version: branch.parent_version,
        create_at: branch.create_at,
        manifest_size: branch.manifest_size,
        metadata: branch.metadata.unwrap_or_default(),
    };
    Ok(map_of(branches.into_iter().map(|(name, branch)| (name, info(branch)))))
}
