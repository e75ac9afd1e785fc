//! The tagged reuse history of a table at one version, and what it makes of its segments (spec fragment-reuse §2, §7).

use bytes::Bytes;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::base::segment_folder;
use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::{FRAG_REUSE_NAME, IndexMetadata};
use crate::format::manifest::Manifest;
use crate::format::reuse_v0::{ReuseContent, is_tagged};
use crate::reuse::coverage::{Derived, derive};
use crate::reuse::ledger::Ledger;
use crate::reuse::retention::check_supported;
use crate::reuse::segment::Segment;
use crate::store::Store;

/// A tagged history as stored, decoded, and applied to the segments of its version.
pub struct TaggedHistory {
    /// Id of its entry.
    pub uuid: Uuid,
    /// 1, or what a newer writer wrote: then nothing of it is decoded.
    pub index_version: i32,
    /// Name for errors: where the content is.
    pub object: String,
    /// What it says; empty and unsupported for a newer version.
    pub ledger: Ledger,
    /// Fragments the entry itself names: everything the history ever named since it was last trimmed.
    pub lineage: RoaringBitmap,
    /// Per segment of a user index, in the order of the section: its place in the section, and what it covers.
    pub derived: Vec<(usize, Derived)>,
}

impl TaggedHistory {
    /// Reads the history of an index section; `None` = there is no tagged one.
    ///
    /// # Errors
    /// `CORRUPT_FILE` for a second entry or faulty content, and those of reading content that is kept in a file.
    pub async fn read(store: &Store, manifest: &Manifest, indices: &[IndexMetadata]) -> Result<Option<TaggedHistory>> {
        let Some(entry) = indices.iter().find(|e| is_tagged(e)) else { return Ok(None) };
        if indices.iter().filter(|e| e.name == FRAG_REUSE_NAME).count() > 1 {
            return Err(Error::corrupt("the index section", format!("{FRAG_REUSE_NAME} is there twice")));
        }
        let index_version = entry.index_version.unwrap_or(0);
        let (object, ledger) = if index_version == 1 {
            let (object, content) = content(store, manifest, entry).await?;
            let ledger = Ledger::decode(&object, &content)?;
            (object, ledger)
        } else {
            (format!("_indices/{}", entry.uuid), Ledger::default())
        };
        let segments = Segment::all(indices);
        let facts: Vec<Segment<'_>> = segments.iter().map(|(_, segment)| segment.clone()).collect();
        let derived = derive(&ledger, &manifest.live(), &facts);
        Ok(Some(TaggedHistory {
            uuid: entry.uuid,
            index_version,
            object,
            ledger,
            lineage: entry.fragment_bitmap.clone().unwrap_or_default(),
            derived: segments.iter().map(|(at, _)| *at).zip(derived).collect(),
        }))
    }

    /// What the reader makes of the entry at a place of the section; `None` for entries of Lance itself.
    pub fn of(&self, at: usize) -> Option<&Derived> {
        let found = self.derived.binary_search_by(|(place, _)| place.cmp(&at)).ok()?;
        self.derived.get(found).map(|(_, derived)| derived)
    }

    /// What the reader makes of the segment with this id.
    pub fn of_segment(&self, indices: &[IndexMetadata], uuid: Uuid) -> Option<&Derived> {
        self.of(indices.iter().position(|entry| entry.uuid == uuid)?)
    }

    /// Refuses a history with something in it that this build does not know.
    ///
    /// # Errors
    /// `HISTORY_UNSUPPORTED`.
    pub fn check_supported(&self) -> Result<()> {
        if self.index_version == 1 {
            return check_supported(&self.object, &self.ledger);
        }
        let text = format!(
            "fragment reuse history {FRAG_REUSE_NAME} ({}) has version {}; only 0 and 1 are interpreted. Nothing was changed",
            self.uuid, self.index_version
        );
        let error = Error::new(ErrorCode::HistoryUnsupported, text).with("index", FRAG_REUSE_NAME);
        Err(error.with("index_version", self.index_version))
    }

    /// The section with coverage in place of what is stored; `raw` stays. Without a bitmap nothing can be derived and coverage
    /// stays unknown, which is not zero.
    pub fn covered(&self, indices: &[IndexMetadata]) -> Vec<IndexMetadata> {
        let with = |(at, entry): (usize, &IndexMetadata)| match (self.of(at), &entry.fragment_bitmap) {
            (Some(derived), Some(_)) => IndexMetadata { fragment_bitmap: Some(derived.coverage.clone()), ..entry.clone() },
            _ => entry.clone(),
        };
        indices.iter().enumerate().map(with).collect()
    }
}

/// The content of a reuse entry, inline or from its file, and its name for errors.
pub async fn content(store: &Store, manifest: &Manifest, entry: &IndexMetadata) -> Result<(String, Bytes)> {
    let object = format!("_indices/{}", entry.uuid);
    match ReuseContent::locate(&object, entry)? {
        ReuseContent::Inline(content) => Ok((object, content)),
        ReuseContent::External { path, offset, size } => {
            let (store, folder) = segment_folder(store, manifest, entry)?;
            // `locate` refuses a place whose end is no number.
            let content = store.get_range(&format!("{folder}/{path}"), offset..offset.saturating_add(size)).await?;
            Ok((format!("{object}/{path}"), content))
        }
    }
}
