//! What the retained manifests of a table name: its segments, transaction files and row maps.

use std::collections::BTreeSet;

use futures::StreamExt;
use uuid::Uuid;

use crate::error::Result;
use crate::format::manifest::ManifestFile;
use crate::format::naming::{Naming, parse_name};
use crate::reuse::transition::Mapping;
use crate::store::{Store, is_not_found};
use crate::table::history::TaggedHistory;
use crate::table::{Table, read_manifest};

/// Manifests read at once.
const IN_FLIGHT: usize = 6;

/// Everything that must stay.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// Segments, also those of Lance's own entries.
    pub segments: BTreeSet<Uuid>,
    /// Names inside `_transactions/`.
    pub transactions: BTreeSet<String>,
    /// Row maps below `_fri` that a reuse history names.
    pub row_maps: BTreeSet<String>,
    /// Some retained version has a reuse history that is not understood, and may name any row map.
    pub unread_history: bool,
    /// Manifests read.
    pub manifests: u64,
}

impl References {
    /// Reads every retained manifest of the main branch and of all other branches, detached ones too. A tag needs no look of its
    /// own: it keeps a manifest.
    ///
    /// # Errors
    /// Those of listing and reading: with one manifest unread nothing may be called unreferenced.
    pub async fn of(table: &Table) -> Result<References> {
        let mut all = References::default();
        all.add_root(table.main_store()).await?;
        for branch in table.branches().await?.keys() {
            all.add_root(&table.main_store().child(&format!("tree/{branch}"))?).await?;
        }
        // A branch whose entry under `_refs` is gone is still the table that was asked about.
        if table.store().root() != table.main_store().root() {
            all.add_root(table.store()).await?;
        }
        Ok(all)
    }

    /// What cannot be read keeps every row map, as it does for Lance.
    async fn add_history(&mut self, root: &Store, file: &ManifestFile) {
        match TaggedHistory::read(root, &file.manifest, &file.indices).await {
            Ok(None) => {}
            Ok(Some(history)) if history.index_version == 1 && history.ledger.supported => {
                let maps = history.ledger.transitions.iter().filter_map(|transition| match &transition.mapping {
                    Mapping::StablePartition(map) => Some(map.map_id.to_string()),
                    _ => None,
                });
                self.row_maps.extend(maps);
            }
            Ok(Some(_)) | Err(_) => self.unread_history = true,
        }
    }

    async fn add_root(&mut self, root: &Store) -> Result<()> {
        let names: Vec<(Naming, u64, u64)> = root
            .list("_versions")
            .await?
            .into_iter()
            .filter_map(|entry| parse_name(&entry.name).map(|(naming, version)| (naming, version, entry.size)))
            .collect();
        let read = futures::stream::iter(names).map(|(naming, version, size)| read_manifest(root, naming, version, Some(size)));
        let mut read = read.buffered(IN_FLIGHT);
        while let Some(fetched) = read.next().await {
            let file = match fetched {
                Ok(fetched) => fetched.file,
                // Cleaned up since it was listed: it names nothing any more.
                Err(error) if is_not_found(&error) => continue,
                Err(error) => return Err(error),
            };
            self.manifests += 1;
            self.segments.extend(file.indices.iter().map(|e| e.uuid));
            self.add_history(root, &file).await;
            self.transactions.extend(file.manifest.transaction_file);
        }
        Ok(())
    }
}
