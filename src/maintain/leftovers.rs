//! Removing files that no manifest names: what both `discard` and `orphans` do in the end, and how they look at a folder.

use futures::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::store::{RequestCounts, Store};

/// Folders in folders that are followed: index files lie one or two deep.
const DEPTH: u32 = 4;

/// What a removal did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Removal {
    /// Kind of the plan that was run: `discard` or `orphans`.
    pub kind: String,
    /// Objects removed, relative to the branch's root.
    pub removed: Vec<String>,
    /// Bytes of these.
    pub bytes: u64,
    /// What was to be removed and is still there.
    pub left: Vec<Left>,
    /// Requests of the table's store since the handle was made.
    pub requests: RequestCounts,
}

/// Something that was not removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Object or folder.
    pub path: String,
    /// Why.
    pub why: String,
}

/// The files below a folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folder {
    /// Path and size of each.
    pub files: Vec<(String, u64)>,
    /// When the youngest was written, Unix milliseconds; `None` when the store does not tell for one of them.
    pub youngest_ms: Option<i64>,
}

impl Folder {
    /// Lists everything below `path`.
    pub async fn read(store: &Store, path: &str) -> Result<Folder> {
        let mut folder = Folder { files: Vec::new(), youngest_ms: Some(i64::MIN) };
        folder.add(store, path.to_owned(), DEPTH).await?;
        Ok(folder)
    }

    fn add<'a>(&'a mut self, store: &'a Store, path: String, depth: u32) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for entry in store.list(&path).await? {
                self.files.push((format!("{path}/{}", entry.name), entry.size));
                self.youngest_ms = self.youngest_ms.zip(entry.modified_ms).map(|(a, b)| a.max(b));
            }
            if depth > 0 {
                for name in store.folders(&path).await? {
                    self.add(store, format!("{path}/{name}"), depth - 1).await?;
                }
            }
            Ok(())
        })
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, (_, size)| sum.saturating_add(*size))
    }
}

impl Removal {
    /// Nothing yet.
    pub fn new(kind: &str) -> Removal {
        Removal { kind: kind.to_owned(), removed: Vec::new(), bytes: 0, left: Vec::new(), requests: RequestCounts::default() }
    }

    /// Deletes one object and takes down what became of it.
    pub async fn delete(&mut self, store: &Store, path: &str, size: u64) {
        match store.delete(path).await {
            Ok(()) => {
                self.removed.push(path.to_owned());
                self.bytes = self.bytes.saturating_add(size);
            }
            Err(error) => self.keep(path, error.message()),
        }
    }

    /// Takes down what stays.
    pub fn keep(&mut self, path: &str, why: &str) {
        self.left.push(Left { path: path.to_owned(), why: why.to_owned() });
    }
}
