//! The stored files of one segment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::file::LanceFile;
use crate::format::index_metadata::{IndexFile, IndexMetadata};
use crate::store::{Entry, Store};

/// A segment folder together with the manifest entry that names it.
#[derive(Clone)]
pub struct SegmentFiles {
    store: Store,
    /// Below the store's root, so that every error names a file as it lies in the table; empty when the store begins here.
    folder: String,
    entry: IndexMetadata,
    /// Files that were opened, where several questions are asked about one segment.
    opened: Option<Arc<Mutex<BTreeMap<String, LanceFile>>>>,
}

impl SegmentFiles {
    /// A segment whose folder `store` is rooted at.
    pub fn new(store: Store, entry: IndexMetadata) -> SegmentFiles {
        SegmentFiles::within(store, String::new(), entry)
    }

    /// A segment in `folder` of `store` (`_indices/{uuid}` of the base the entry points to).
    pub fn within(store: Store, folder: String, entry: IndexMetadata) -> SegmentFiles {
        SegmentFiles { store, folder, entry, opened: None }
    }

    /// Keeps the heads of files that it opened, for itself and its clones.
    #[must_use]
    pub fn remembering(mut self) -> SegmentFiles {
        self.opened = Some(Arc::default());
        self
    }

    /// Whether its folder can be listed.
    pub fn can_list(&self) -> bool {
        self.store.can_list()
    }

    /// What lies in its folder.
    ///
    /// # Errors
    /// Those of listing.
    pub async fn list(&self) -> Result<Vec<Entry>> {
        self.store.list(&self.folder).await
    }

    /// The manifest entry.
    pub fn entry(&self) -> &IndexMetadata {
        &self.entry
    }

    /// Format version; one that was never recorded reads as 0.
    pub fn index_version(&self) -> i32 {
        self.entry.index_version.unwrap_or(0)
    }

    /// `{uuid}/{name}`, for messages.
    pub fn label(&self, name: &str) -> String {
        format!("_indices/{}/{name}", self.entry.uuid)
    }

    /// Names and, where recorded, sizes: the entry's list, or the folder's listing when the entry has none.
    ///
    /// # Errors
    /// Those of listing.
    pub async fn files(&self) -> Result<Vec<IndexFile>> {
        if !self.entry.files.is_empty() {
            return Ok(self.entry.files.clone());
        }
        let listed = self.list().await?;
        Ok(listed.into_iter().map(|entry| IndexFile { path: entry.name, size_bytes: entry.size }).collect())
    }

    /// Opens a file of the segment, with its recorded size when there is one.
    ///
    /// # Errors
    /// Those of [`LanceFile::open`].
    pub async fn open(&self, name: &str) -> Result<LanceFile> {
        if let Some(opened) = &self.opened
            && let Some(file) = opened.lock().unwrap_or_else(PoisonError::into_inner).get(name)
        {
            return Ok(file.clone());
        }
        let size = self.entry.files.iter().find(|file| file.path == name).map(|file| file.size_bytes);
        let path = if self.folder.is_empty() { name.to_owned() } else { format!("{}/{name}", self.folder) };
        let file = LanceFile::open(&self.store, &path, size).await?;
        if let Some(opened) = &self.opened {
            opened.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), file.clone());
        }
        Ok(file)
    }
}
