//! A tagged reuse history under a plan or a commit attempt: what the segments of an index cover beside new ones, and whether
//! rows that moved since a segment was built still have the values it holds (spec fragment-reuse §7, §8.1, §10, §16).

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::files::{deletions, planned_deletions};
use crate::coverage::fate::{Fate, SegmentFate};
use crate::coverage::prune::{Change, FragmentKey, change_of, needs_deletions};
use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::ManifestFile;
use crate::index::method_by_url;
use crate::reuse::coverage::{Derived, State};
use crate::reuse::explain;
use crate::reuse::landing::{self, Landing};
use crate::reuse::ledger::Ledger;
use crate::reuse::segment::{Capability, Segment};
use crate::store::is_not_found;
use crate::table::Table;
use crate::table::history::TaggedHistory;

/// Versions between building and committing that are looked at; past them nobody reads all manifests to find out.
const WINDOW: u64 = 256;

/// Refuses to merge segments under a tagged history.
///
/// # Errors
/// `HISTORY_UNSUPPORTED`.
pub(crate) fn check_merge(table: &Table, name: &str) -> Result<()> {
    if !table.has_tagged_history() {
        return Ok(());
    }
    let text = format!(
        "index {name}: segments are not merged on a table with a tagged fragment reuse history by this build; create-index --replace \
         builds it anew in as many segments as asked for. Nothing was changed"
    );
    Err(Error::new(ErrorCode::HistoryUnsupported, text).with("index", name))
}

/// Whether readers leave a segment out because they do not know its type or format version. It is left alone.
pub(crate) fn is_foreign(entry: &IndexMetadata) -> bool {
    let method = entry.details.as_ref().and_then(|d| method_by_url(&d.type_url).ok());
    method.is_some_and(|method| entry.index_version.unwrap_or(0) > method.max_index_version())
        || Segment::of(entry).is_some_and(|s| !s.usable)
}

/// The history, and the segments of one index as they are stored.
pub(crate) struct Lineage<'a> {
    table: &'a Table,
    history: Arc<TaggedHistory>,
    live: RoaringBitmap,
    /// Those that are understood, in the order of the section.
    stored: Vec<&'a IndexMetadata>,
    /// Those that are not.
    foreign: Vec<&'a IndexMetadata>,
}

/// A segment that is to be committed: its id, what it names, the version it was built on.
pub(crate) type Incoming<'a> = (Uuid, &'a RoaringBitmap, u64);

impl<'a> Lineage<'a> {
    /// For the index called `name`; `None` = the table has no tagged history.
    ///
    /// # Errors
    /// `HISTORY_UNSUPPORTED` when it may not be interpreted, `CORRUPT_FILE` for it and for segments that do not record what they are.
    pub(crate) async fn of(table: &'a Table, name: &str) -> Result<Option<Lineage<'a>>> {
        let Some(history) = table.derivable().await? else { return Ok(None) };
        let file = table.manifest();
        let named = file.indices.iter().filter(|e| e.name == name);
        let (foreign, stored): (Vec<_>, Vec<_>) = named.partition(|e| is_foreign(e));
        let lineage = Lineage { table, history, live: file.manifest.live(), stored, foreign };
        let corrupt = lineage.stored.iter().find(|e| lineage.derived(e.uuid).is_some_and(|d| d.state == State::Corrupt));
        if let Some(segment) = corrupt {
            let what =
                format!("index {name} does not record what it is, and its rows have moved; drop the index and create it anew");
            return Err(Error::corrupt(&format!("segment {}", segment.uuid), what).with("index", name));
        }
        Ok(Some(lineage))
    }

    /// The same without any segment: of an index that is created, whatever had its name.
    pub(crate) fn alone(mut self) -> Lineage<'a> {
        self.stored = Vec::new();
        self.foreign = Vec::new();
        self
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.history.ledger
    }

    /// What the reader makes of a segment.
    pub(crate) fn derived(&self, uuid: Uuid) -> Option<&Derived> {
        self.history.of_segment(&self.table.manifest().indices, uuid)
    }

    /// The segments that are left alone.
    pub(crate) fn foreign(&self) -> &[&'a IndexMetadata] {
        &self.foreign
    }

    /// Fragments that segments name which are left alone: nothing may be committed that names them too.
    pub(crate) fn held(&self) -> RoaringBitmap {
        self.foreign.iter().filter_map(|e| e.fragment_bitmap.as_ref()).fold(RoaringBitmap::new(), |all, b| all | b)
    }

    /// What a segment names, retired fragments included.
    pub(crate) fn names(&self, uuid: Uuid) -> RoaringBitmap {
        let found = self.stored.iter().find(|e| e.uuid == uuid).and_then(|e| e.fragment_bitmap.clone());
        found.unwrap_or_default()
    }

    /// What becomes of the segments when others come in.
    pub(crate) fn land(&self, new: &[Incoming<'_>]) -> Landing {
        let existing: Vec<Segment<'_>> = self.stored.iter().filter_map(|e| Segment::of(e)).collect();
        landing::land(self.ledger(), &self.live, &existing, &self.facts(new))
    }

    fn facts<'b>(&'b self, new: &[Incoming<'b>]) -> Vec<Segment<'b>> {
        let fact = |(uuid, names, version): &Incoming<'b>| Segment {
            index: self.stored.first().map_or("", |e| e.name.as_str()),
            uuid: *uuid,
            dataset_version: *version,
            stored: Some(*names),
            usable: true,
            capability: Capability::Translates,
            described: true,
            vector: false,
        };
        new.iter().map(fact).collect()
    }

    /// The segment that [`Landing::loser`] stands for.
    pub(crate) fn loser(&self, landing: &Landing) -> Option<Uuid> {
        self.stored.get(landing.loser?).map(|e| e.uuid)
    }

    /// Says of segments that are read through the history, or cover nothing because of it, how that is.
    pub(crate) fn explain(&self, fates: &mut [SegmentFate]) {
        for fate in fates {
            let Some((derived, entry)) = self.derived(fate.uuid).zip(self.stored.iter().find(|e| e.uuid == fate.uuid)) else {
                continue;
            };
            let Some(how) = Segment::of(entry).and_then(|s| explain::state(self.ledger(), &self.live, &s, derived)) else {
                continue;
            };
            fate.why = match fate.fate {
                Fate::Removed if derived.state == State::Withdrawn => {
                    "its values were rewritten in place and its coverage was withdrawn; what it covered is built anew".to_owned()
                }
                Fate::Removed if derived.coverage.is_empty() => format!("it covers nothing: {how}"),
                Fate::Kept if derived.state == State::Translated => format!("{}; {how}", fate.why),
                _ => continue,
            };
        }
    }

    /// The fragments of `gone`, built on at `v_plan`, whose rows a recorded transition moved since: they may stay named, and are
    /// read through the history.
    pub(crate) fn moved(&self, gone: &RoaringBitmap) -> RoaringBitmap {
        gone & &self.history.lineage
    }

    /// The fragments among `moved` and those their rows went to where the values are others by now. `planned` has the files
    /// every fragment of `moved` was built from.
    pub(crate) async fn rewritten(
        &self,
        v_plan: u64,
        field: i32,
        moved: &RoaringBitmap,
        planned: &BTreeMap<u32, &FragmentKey>,
    ) -> Result<Rewritten> {
        let Some(window) = self.window(v_plan).await? else { return Ok(Rewritten::Unknown) };
        let mut rewritten = RoaringBitmap::new();
        for fragment in moved {
            let last = window.iter().rev().find(|file| file.manifest.fragment(fragment).is_some());
            let Some(planned) = planned.get(&fragment) else { return Ok(Rewritten::Unknown) };
            // It went with the first version after the plan: then it was as planned.
            let Some(last) = last else { continue };
            if self.changed(planned, last, fragment, field).await? {
                rewritten.insert(fragment);
            }
        }
        let key = |file: &ManifestFile, fragment: u32| {
            let found = file.manifest.fragment(fragment)?;
            Some((FragmentKey::of(found, &file.manifest.schema, field).data, found.has_overlays))
        };
        for fragment in self.ledger().reach(moved) {
            let mut seen = window.iter().filter_map(|file| key(file, fragment));
            let (first, last) = (seen.next(), seen.next_back());
            let same = match (&first, &last) {
                (Some(first), last) => !first.1 && last.as_ref().is_none_or(|last| last.0 == first.0 && !last.1),
                // No version shows it: nobody knows what was in it.
                (None, _) => false,
            };
            if !same {
                rewritten.insert(fragment);
            }
        }
        Ok(Rewritten::Fragments(rewritten))
    }

    /// Whether a fragment was no longer as planned in the last version that has it.
    async fn changed(&self, planned: &FragmentKey, last: &ManifestFile, fragment: u32, field: i32) -> Result<bool> {
        let (store, manifest) = (self.table.store(), &last.manifest);
        let now = manifest.fragment(fragment);
        let key = now.map(|found| FragmentKey::of(found, &manifest.schema, field));
        let revived = match (now, &key) {
            (Some(found), Some(key)) if needs_deletions(planned, key) && planned.data == key.data => {
                let after = match deletions(store, manifest, found).await {
                    Ok(after) => Some(after),
                    Err(error) if is_not_found(&error) => None,
                    Err(error) => return Err(error),
                };
                let before = planned_deletions(store, manifest, planned).await?;
                before.zip(after).is_none_or(|(before, after)| !before.is_subset(&after))
            }
            _ => false,
        };
        Ok(change_of(planned, now.zip(key.as_ref()), || revived) != Change::Unchanged)
    }

    /// Every version after the plan up to this one; `None` = some are gone, or there are too many.
    async fn window(&self, v_plan: u64) -> Result<Option<Vec<Arc<ManifestFile>>>> {
        let latest = self.table.version();
        if latest.saturating_sub(v_plan) > WINDOW {
            return Ok(None);
        }
        let mut files = Vec::new();
        for version in v_plan.saturating_add(1)..=latest {
            let Some(file) = self.table.manifest_at(version).await? else { return Ok(None) };
            files.push(file);
        }
        Ok(Some(files))
    }
}

/// What is known about the values of rows that moved.
pub(crate) enum Rewritten {
    /// In these fragments the column was rewritten in place.
    Fragments(RoaringBitmap),
    /// Versions in between were cleaned up.
    Unknown,
}
