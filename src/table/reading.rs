//! Fetching one manifest file (table-format §3): small ones whole, big ones by the parts that are needed.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::flags::check_read;
use crate::format::manifest::{ManifestFile, ManifestFooter, SectionPositions, section};
use crate::format::naming::{Naming, file_name};
use crate::store::Store;

/// Up to this size in bytes one GET of the whole file is cheaper than finding out what is in it.
pub const SMALL: u64 = 1024 * 1024;

/// A manifest as fetched.
pub struct Fetched {
    /// The decoded file.
    pub file: ManifestFile,
    /// Its bytes, when they were read whole.
    pub bytes: Option<Bytes>,
    /// Entity tag and size under which a listing named it.
    pub listed: Option<(String, u64)>,
}

/// Path of a version's manifest below the root.
pub fn manifest_path(naming: Naming, version: u64) -> String {
    format!("_versions/{}", file_name(naming, version))
}

/// Reads and checks the manifest of `version`. `size` comes from a listing, when there was one. A missing file is an error
/// that `is_not_found` recognises.
pub async fn read_manifest(store: &Store, naming: Naming, version: u64, size: Option<u64>) -> Result<Fetched> {
    let path = manifest_path(naming, version);
    let fetched = match size {
        Some(size) if size > SMALL => Fetched { file: read_parts(store, &path, size).await?, bytes: None, listed: None },
        _ => {
            let bytes = store.get(&path, size).await?;
            Fetched { file: ManifestFile::parse(&path, &bytes)?, bytes: Some(bytes), listed: None }
        }
    };
    let stated = fetched.file.manifest.version;
    if stated != version {
        return Err(Error::corrupt(&path, format!("is named as version {version} and says it is version {stated}")));
    }
    check_read(&fetched.file.manifest, &fetched.file.indices)?;
    Ok(fetched)
}

/// The tail first; then only what the tail did not hold. The inline transaction is left out: whoever wants it has the file.
async fn read_parts(store: &Store, path: &str, size: u64) -> Result<ManifestFile> {
    let tail_start = size.saturating_sub(SMALL);
    let tail = store.get_range(path, tail_start..size).await?;
    let footer = ManifestFooter::parse(path, &tail, size)?;
    let message = fetch(store, path, footer.manifest_range(), tail_start, &tail).await?;
    let message = footer.manifest_message(path, &message)?;
    let positions = SectionPositions::parse(path, &message)?;
    let indices = match positions.index_range(path, &footer)? {
        None => None,
        Some(range) => {
            let bytes = fetch(store, path, range, tail_start, &tail).await?;
            Some(section(path, "index section", &bytes, 0)?)
        }
    };
    ManifestFile::parse_parts(path, message, indices, None)
}

/// `range` of the file, reusing what `tail` (from `tail_start` on) holds of it.
async fn fetch(store: &Store, path: &str, range: Range<u64>, tail_start: u64, tail: &Bytes) -> Result<Bytes> {
    let within = |at: u64| usize::try_from(at.saturating_sub(tail_start)).ok().filter(|at| *at <= tail.len());
    let (Some(start), Some(end)) = (within(range.start), within(range.end)) else {
        return Err(Error::corrupt(path, "a section lies outside of the file"));
    };
    if range.end <= tail_start {
        return store.get_range(path, range).await;
    }
    if range.start >= tail_start {
        return Ok(tail.slice(start..end));
    }
    let front = store.get_range(path, range.start..tail_start).await?;
    Ok([front.as_ref(), tail.get(..end).unwrap_or_default()].concat().into())
}
