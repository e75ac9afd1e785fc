//! Whether a version that carries our transaction is part of the history (design §8).
//!
//! Create-if-absent alone does not prove it: a writer that slept while others committed and a cleanup removed their old versions
//! finds the number it wants free again. What it then creates lies below the newest version and is nobody's basis.

use std::collections::BTreeSet;

use super::handle::{Table, transaction_of};
use super::latest::{Listed, manifests};
use super::reading::read_manifest;
use crate::error::Result;
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::{Manifest, ManifestFile};
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
    /// What it made of the table.
    pub(super) manifest: &'a Manifest,
    /// Size of its manifest in bytes; `None` = any.
    pub(super) size: Option<u64>,
}

/// Where our version, built on `base`, stands. Costs one listing when nobody else commits.
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
    let own = listed.iter().find(ours);
    let Some(above) = listed.iter().find(|l| l.version > next.version) else {
        return if own.is_some() { Ok(Place::InHistory) } else { without_listing(base, next).await };
    };
    let older = time(above).zip(own.and_then(time)).map(|(above, own)| own.saturating_sub(above));
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
    let below = next.version.saturating_sub(1);
    if base.version() == below && is_still_there(base).await? {
        return Ok(Place::InHistory);
    }
    let why = format!("the store does not list version {}, and version {below} was cleaned up meanwhile", next.version);
    Ok(Place::Unclear(why))
}

/// Whether `basis` is there, which then says that no later version was cleaned up so far: a cleanup takes older ones first. It has
/// to be the very same manifest: the number of one that was cleaned up is free, and a writer that slept may have taken it.
pub(super) async fn is_still_there(basis: &Table) -> Result<bool> {
    match read_manifest(basis.store(), basis.naming(), basis.version(), None).await {
        Ok(fetched) => Ok(fetched.file.manifest.raw == basis.manifest().manifest.raw),
        Err(error) if is_not_found(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Was the version `above` built on ours? `older` = by how much it is older, by the store's clock.
async fn judge(base: &Table, next: &Ours<'_>, above: &ManifestFile, older: Option<i64>) -> Result<Place> {
    let version = above.manifest.version;
    let operation = transaction_of(base.store(), base.naming(), above).await?.map(|t: Transaction| t.operation);
    let traces = match &next.transaction.operation {
        Operation::CreateIndex { new, removed } => Traces::of_entries(new, removed, above, operation.as_ref()),
        _ => Traces::of_files(&base.manifest().manifest, next, above, operation.as_ref()),
    };
    if traces.carried {
        return Ok(Place::InHistory);
    }
    let adjacent = Some(version) == next.version.checked_add(1);
    let restored = matches!(operation, Some(Operation::Restore { .. }));
    if older.is_some_and(|ms| ms >= MARGIN_MS) || (adjacent && traces.undone && !restored) {
        return Ok(Place::Overtaken(version));
    }
    let after = older.is_some_and(|ms| ms <= 0);
    if adjacent && traces.explained && after {
        return Ok(Place::InHistory);
    }
    Ok(Place::Unclear(format!("version {version} is there too and does not show whether it was built on it")))
}

/// What a later version shows of ours.
struct Traces {
    /// It has what only ours brought.
    carried: bool,
    /// It has what ours took away.
    undone: bool,
    /// That it has nothing of ours proves nothing: ours brought nothing, or such an operation takes it out without naming it.
    explained: bool,
}

impl Traces {
    fn of_entries(
        new: &[IndexMetadata],
        removed: &[IndexMetadata],
        above: &ManifestFile,
        operation: Option<&Operation>,
    ) -> Traces {
        let (new, removed) = (set_of(new.iter().map(|e| e.uuid)), set_of(removed.iter().map(|e| e.uuid)));
        let replaced = match operation {
            Some(Operation::CreateIndex { removed, .. }) => removed.iter().any(|e| new.contains(&e.uuid)),
            _ => false,
        };
        Traces {
            carried: replaced || above.indices.iter().any(|e| new.contains(&e.uuid)),
            undone: above.indices.iter().any(|e| removed.contains(&e.uuid) && !new.contains(&e.uuid)),
            explained: new.is_empty() || replaces_data(operation) || matches!(operation, Some(Operation::Project)),
        }
    }

    fn of_files(before: &Manifest, next: &Ours<'_>, above: &ManifestFile, operation: Option<&Operation>) -> Traces {
        let is_basis = before.version.checked_add(1) == Some(next.version);
        Traces::between(&names(before), &names(next.manifest), &names(&above.manifest), is_basis, operation)
    }

    /// By the names of files, of which every writer draws its own. All that ours brought must be there, since `before` may be older
    /// than what ours was built on; of what it took away only a basis knows.
    fn between(
        before: &BTreeSet<String>,
        ours: &BTreeSet<String>,
        later: &BTreeSet<String>,
        is_basis: bool,
        operation: Option<&Operation>,
    ) -> Traces {
        let mut brought = ours.difference(before).peekable();
        let any = brought.peek().is_some();
        Traces {
            carried: any && brought.all(|name| later.contains(name)),
            undone: is_basis && before.difference(ours).any(|name| later.contains(name)),
            explained: !any || replaces_data(operation) || matches!(operation, Some(Operation::DataReplacement { .. })),
        }
    }
}

/// Takes fragments, files and index entries out without naming them.
fn replaces_data(operation: Option<&Operation>) -> bool {
    use Operation::{Delete, Merge, Overwrite, Restore, Rewrite, Update};
    matches!(operation, Some(Overwrite | Restore { .. } | Rewrite { .. } | Merge | Update(_) | Delete))
}

/// Data and deletion files of all fragments.
fn names(manifest: &Manifest) -> BTreeSet<String> {
    let files = manifest.fragments.iter().flat_map(|f| f.files.iter().map(|file| file.path.clone()));
    let deletions = manifest.fragments.iter().filter_map(|f| f.deletion_file.as_ref().map(|file| file.path(f.id)));
    set_of(files.chain(deletions))
}

#[cfg(test)]
mod tests {
    use super::{BTreeSet, Operation, Traces, same_tag};

    fn set(names: &str) -> BTreeSet<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_later_version_shows_the_files_of_ours() {
        let traces = |basis: &str, ours: &str, later: &str, is_basis: bool, operation: Option<Operation>| {
            let traces = Traces::between(&set(basis), &set(ours), &set(later), is_basis, operation.as_ref());
            (traces.carried, traces.undone, traces.explained)
        };
        // A compaction of a and b, then an append on it; the same append on what was there before.
        assert_eq!(traces("a b", "ab", "ab c", true, Some(Operation::Append)), (true, false, false));
        assert_eq!(traces("a b", "ab", "a b c", true, Some(Operation::Append)), (false, true, false));
        // What ours was built on is not known: nothing can be said of what it took away, and a part of the new is no proof.
        assert_eq!(traces("a", "ab c", "a b c", false, Some(Operation::Append)), (false, false, false));
        // All of it was rewritten, or replaced, once more.
        assert_eq!(traces("a b", "ab", "abc", true, Some(Operation::Rewrite { groups: Vec::new() })), (false, false, true));
        // Reserved ids and dropped fragments bring no file.
        assert_eq!(traces("a b", "a b", "a b", true, Some(Operation::Append)), (false, false, true));
        assert_eq!(traces("a b", "a", "a c", true, None), (false, false, true));
    }

    #[test]
    fn tags_are_the_same_with_or_without_quotes_and_never_when_weak() {
        assert!(same_tag("\"abc\"", "\"abc\"") && same_tag("0x8D", "\"0x8D\""));
        assert!(!same_tag("\"abc\"", "\"abd\"") && !same_tag("W/\"abc\"", "W/\"abc\"") && !same_tag("", "\"\""));
    }
}
