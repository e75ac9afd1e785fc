//! Whether a version that carries our transaction is part of the history (design §8).
//!
//! Create-if-absent alone does not prove it: a writer that slept while others committed and a cleanup removed their old versions
//! finds the number it wants free again. What it then creates lies below the newest version and is nobody's basis.

use super::handle::{Table, transaction_of};
use super::latest::{Listed, manifests};
use super::reading::{manifest_path, read_manifest};
use crate::error::{Error, Result};
use crate::format::manifest::ManifestFile;
use crate::format::naming::Naming;
use crate::format::transaction::{Operation, Transaction};
use crate::lists::set_of;
use crate::store::{is_listing_refused, is_not_found};

/// Looks before the answer is that it cannot be known.
const TRIES: u32 = 3;
/// Wait before looking again, milliseconds.
const WAIT_MS: u64 = 300;
/// Names asked for at once: the newest come first on an ordered store.
const PAGE: usize = 10;
/// By so much a store's times must differ to prove an order, milliseconds: many record whole seconds, some have several clocks.
const MARGIN_MS: i64 = 5000;

/// Where a version stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the newest, or what comes after it was built on it.
    InHistory,
    /// This higher version was there before it.
    Overtaken(u64),
    /// It cannot be told.
    Unclear(String),
}

/// A version that carries our transaction.
pub(super) struct Ours<'a> {
    /// Its number.
    pub(super) version: u64,
    /// The transaction.
    pub(super) transaction: &'a Transaction,
    /// Size of its manifest in bytes; `None` = any.
    pub(super) size: Option<u64>,
}

/// Where our version of the table of `base` (at any version) stands. Costs one listing when nobody else commits.
pub(super) async fn place_of(base: &Table, next: &Ours<'_>) -> Place {
    let mut why = String::new();
    for attempt in 0..TRIES {
        if attempt > 0 {
            base.store().env().sleep(WAIT_MS << attempt).await;
        }
        match look(base, next).await {
            Ok(Place::Unclear(what)) => why = what,
            Ok(place) => return place,
            Err(error) => why = error.message().to_owned(),
        }
    }
    Place::Unclear(why)
}

/// Whether a listing ends with `version` as the object of that size and entity tag: its tag as listed. Any doubt is `None`.
pub(super) async fn created_newest(base: &Table, version: u64, size: u64, tag: &str) -> Option<String> {
    let newest = listed(base, version).await.ok()??.pop()?;
    let there =
        newest.entry.etag.filter(|listed| newest.version == version && newest.entry.size == size && same_tag(listed, tag));
    there.filter(|_| newest.naming == base.naming())
}

/// Whether two entity tags are strong and the same. Azure's listings leave the quotes out.
fn same_tag(a: &str, b: &str) -> bool {
    is_strong(a) && is_strong(b) && bare(a) == bare(b)
}

/// Whether an entity tag stands for these very bytes: a weak one may stay while they change.
pub(super) fn is_strong(tag: &str) -> bool {
    !tag.starts_with("W/") && !bare(tag).is_empty()
}

fn bare(tag: &str) -> &str {
    tag.trim_matches('"')
}

async fn look(base: &Table, next: &Ours<'_>) -> Result<Place> {
    let Some(listed) = listed(base, next.version).await? else { return without_listing(base, next).await };
    let time = |found: &Listed| found.entry.modified_ms;
    // A version of that number and another size is the one that was there before: the listing is older than ours.
    let ours = |l: &&Listed| l.version == next.version && next.size.is_none_or(|size| l.entry.size == size);
    let Some(own) = listed.iter().find(ours) else { return without_listing(base, next).await };
    let Some(above) = listed.iter().find(|l| l.version > next.version) else { return Ok(Place::InHistory) };
    let older = time(above).zip(time(own)).map(|(above, own)| own.saturating_sub(above));
    let fetched = read_manifest(base.store(), base.naming(), above.version, Some(above.entry.size)).await?;
    judge(base, next, &fetched.file, older).await
}

/// The versions around and above `version`, ascending; `None` = this store does not list.
async fn listed(base: &Table, version: u64) -> Result<Option<Vec<Listed>>> {
    let store = base.store();
    if !store.can_list() {
        return Ok(None);
    }
    let (page, complete) = match store.list_page("_versions", PAGE).await {
        Ok((page, complete)) => (manifests(page)?, complete),
        Err(error) if is_listing_refused(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    // V1 names are not in version order: a page of them says nothing of the rest.
    if complete || (base.naming() == Naming::V2 && page.iter().any(|l| l.version == version)) {
        return Ok(Some(page));
    }
    Ok(Some(manifests(store.list("_versions").await?)?))
}

/// Without a listing, or with one that is older than our own version: what can be read decides.
async fn without_listing(base: &Table, next: &Ours<'_>) -> Result<Place> {
    let Some(above) = next.version.checked_add(1) else { return Ok(Place::InHistory) };
    match read_manifest(base.store(), base.naming(), above, None).await {
        Ok(fetched) => return judge(base, next, &fetched.file, None).await,
        Err(error) if is_not_found(&error) => {}
        Err(error) => return Err(error),
    }
    // A cleanup takes older versions first: while the one below is there, none above it was cleaned up.
    let below = next.version.saturating_sub(1);
    let path = manifest_path(base.naming(), below);
    match base.store().get_range(&path, 0..1).await {
        Ok(_) => Ok(Place::InHistory),
        Err(error) if is_not_found(&error) => Ok(Place::Unclear(format!(
            "the store does not list version {}, and version {below} was cleaned up meanwhile",
            next.version
        ))),
        Err(error) => Err(error),
    }
}

/// Was the version `above` built on ours? `older` = by how much it is older, by the store's clock.
async fn judge(base: &Table, next: &Ours<'_>, above: &ManifestFile, older: Option<i64>) -> Result<Place> {
    let version = above.manifest.version;
    let operation = transaction_of(base.store(), base.naming(), above).await?.map(|t: Transaction| t.operation);
    let (new, removed) = match &next.transaction.operation {
        Operation::CreateIndex { new, removed } => (set_of(new.iter().map(|e| e.uuid)), set_of(removed.iter().map(|e| e.uuid))),
        _ => return Err(Error::internal("only changes of the index section are committed here")),
    };
    if above.indices.iter().any(|e| new.contains(&e.uuid)) {
        return Ok(Place::InHistory);
    }
    if let Some(Operation::CreateIndex { removed, .. }) = &operation
        && removed.iter().any(|e| new.contains(&e.uuid))
    {
        return Ok(Place::InHistory);
    }
    let adjacent = Some(version) == next.version.checked_add(1);
    let restored = matches!(operation, Some(Operation::Restore { .. }));
    let still_there = above.indices.iter().any(|e| removed.contains(&e.uuid) && !new.contains(&e.uuid));
    if older.is_some_and(|ms| ms >= MARGIN_MS) || (adjacent && still_there && !restored) {
        return Ok(Place::Overtaken(version));
    }
    // These take entries out without naming them.
    let explained = new.is_empty()
        || matches!(
            operation,
            Some(
                Operation::Overwrite
                    | Operation::Restore { .. }
                    | Operation::Rewrite { .. }
                    | Operation::Project
                    | Operation::Merge
                    | Operation::Update(_)
                    | Operation::Delete
            )
        );
    let after = older.is_some_and(|ms| ms <= 0);
    if adjacent && explained && after {
        return Ok(Place::InHistory);
    }
    Ok(Place::Unclear(format!("version {version} is there too and does not show whether it was built on it")))
}

#[cfg(test)]
mod tests {
    use super::same_tag;

    #[test]
    fn tags_are_the_same_with_or_without_quotes_and_never_when_weak() {
        assert!(same_tag("\"abc\"", "\"abc\"") && same_tag("0x8D", "\"0x8D\""));
        assert!(!same_tag("\"abc\"", "\"abd\"") && !same_tag("W/\"abc\"", "W/\"abc\"") && !same_tag("", "\"\""));
    }
}
