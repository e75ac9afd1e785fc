//! The I/O half of the stale rule (refresh-and-compaction §2.5): does a segment hold rows of fragments it does not cover?

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::{RoaringBitmap, RoaringTreemap};
use uuid::Uuid;

use super::files::{Segments, live_row_ids, reuse_history};
use crate::coverage::stale::{Claimed, Witness, cleared_by_manifest, held_by_address, held_by_id};
use crate::error::{ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::ManifestFile;
use crate::format::reuse_v0::ReuseHistoryV0;
use crate::format::row::{RowAddress, RowDomain};
use crate::index::IndexMethod;
use crate::reuse::coverage::State;
use crate::table::Table;
use crate::table::history::TaggedHistory;

/// What the check found about one segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Fragments it certainly or possibly holds rows of.
    pub stale: RoaringBitmap,
    /// How that was found, for the plan.
    pub evidence: String,
    /// The rows could be read, so `stale` is exact and a copy can leave them out.
    pub exact: bool,
}

/// Checks segments of one index on one version; remembers what it read.
pub struct Freshness<'a> {
    table: &'a Table,
    method: &'static dyn IndexMethod,
    history: Option<ReuseHistoryV0>,
    inside: Segments,
    tagged: Option<Arc<TaggedHistory>>,
    manifests: BTreeMap<u64, Option<Arc<ManifestFile>>>,
    /// Retained versions, listed once.
    versions: Option<Vec<u64>>,
    ids: BTreeMap<u32, Option<Arc<Vec<u64>>>>,
    stored: BTreeMap<Uuid, std::result::Result<Arc<RoaringTreemap>, String>>,
}

impl<'a> Freshness<'a> {
    /// A checker for segments of `method` on the version of `table`.
    ///
    /// # Errors
    /// Those of reading the reuse history; `HISTORY_UNSUPPORTED` for a tagged one that may not be interpreted.
    pub async fn new(table: &'a Table, method: &'static dyn IndexMethod) -> Result<Freshness<'a>> {
        let file = table.manifest();
        let tagged = table.derivable().await?;
        let history = match &tagged {
            Some(_) => None,
            None => reuse_history(table.store(), &file.manifest, &file.indices).await?,
        };
        let manifests = BTreeMap::from([(file.manifest.version, Some(file.clone()))]);
        let (ids, stored) = (BTreeMap::new(), BTreeMap::new());
        Ok(Freshness { table, method, history, tagged, inside: Segments::default(), manifests, versions: None, ids, stored })
    }

    /// Looks into segments by way of `inside`, which others have looked into, too.
    #[must_use]
    pub fn inside(mut self, inside: &Segments) -> Freshness<'a> {
        self.inside = inside.clone();
        self
    }

    /// Whether readers carry the rows of a segment through a tagged history. They drop what comes to fragments it does not
    /// cover then; a segment that is read as it is hands out every row of its files.
    fn is_translated(&self, segment: &IndexMetadata) -> bool {
        let derived = self.tagged.as_ref().and_then(|h| h.of_segment(&self.table.manifest().indices, segment.uuid));
        derived.is_some_and(|derived| derived.state == State::Translated)
    }

    /// What a segment stores about a row.
    pub fn domain(&self, segment: &IndexMetadata) -> RowDomain {
        let stable = self.table.manifest().manifest.has_stable_row_ids();
        self.method.row_domain(segment.index_version.unwrap_or(0), stable)
    }

    /// The fragments of `suspects` (none of them in the segment's bitmap) that the segment holds rows of.
    ///
    /// The manifests come first: the earliest retained one that lists the segment proves most fragments clean. Only what it
    /// cannot prove costs a look into the segment's files.
    pub async fn check(&mut self, segment: &IndexMetadata, suspects: &RoaringBitmap) -> Result<Verdict> {
        if suspects.is_empty() || self.is_translated(segment) {
            return Ok(Verdict { exact: true, ..Verdict::default() });
        }
        let domain = self.domain(segment);
        let claimed = self.claimed(domain, suspects).await?;
        let mut open = self.not_cleared(domain, &claimed, self.known_witnesses(segment));
        if !open.is_empty() {
            let earliest = self.earliest_witness(segment).await?;
            open = self.not_cleared(domain, &claimed, vec![earliest]);
        }
        if open.is_empty() {
            return Ok(Verdict { exact: true, ..Verdict::default() });
        }
        self.look_inside(domain, segment, &open).await
    }

    fn not_cleared(&self, domain: RowDomain, claimed: &[Claimed], witnesses: Vec<Witness>) -> RoaringBitmap {
        claimed
            .iter()
            .filter(|claim| !witnesses.iter().any(|witness| cleared_by_manifest(domain, witness, claim)))
            .map(|claim| claim.fragment)
            .collect()
    }

    async fn claimed(&mut self, domain: RowDomain, suspects: &RoaringBitmap) -> Result<Vec<Claimed>> {
        let destinations = self.history.as_ref().map(ReuseHistoryV0::destinations).unwrap_or_default();
        let mut claimed = Vec::with_capacity(usize::try_from(suspects.len()).unwrap_or(0));
        for fragment in suspects {
            let mut claim = Claimed {
                fragment,
                reuse_destination: destinations.contains(fragment),
                smallest_row_id: None,
                without_rows: false,
            };
            if domain == RowDomain::StableId
                && let Some(ids) = self.live_ids(fragment).await?
            {
                claim.smallest_row_id = ids.iter().copied().min();
                claim.without_rows = ids.is_empty();
            }
            claimed.push(claim);
        }
        Ok(claimed)
    }

    async fn live_ids(&mut self, fragment: u32) -> Result<Option<Arc<Vec<u64>>>> {
        if let Some(known) = self.ids.get(&fragment) {
            return Ok(known.clone());
        }
        let manifest = &self.table.manifest().manifest;
        let ids = match manifest.fragment(fragment) {
            Some(found) => live_row_ids(self.table.store(), manifest, found).await?.map(Arc::new),
            None => Some(Arc::new(Vec::new())),
        };
        self.ids.insert(fragment, ids.clone());
        Ok(ids)
    }

    /// Manifests that were read already and list the segment.
    fn known_witnesses(&self, segment: &IndexMetadata) -> Vec<Witness> {
        self.manifests.values().flatten().filter_map(|file| witness_of(file, segment.uuid)).collect()
    }

    /// The earliest retained manifest that lists the segment, found by bisecting; the current one always does.
    async fn earliest_witness(&mut self, segment: &IndexMetadata) -> Result<Witness> {
        let current = self.table.manifest().clone();
        let mut found = witness_of(&current, segment.uuid).unwrap_or(Witness {
            version: current.manifest.version,
            max_fragment_id: highest_fragment(&current),
            next_row_id: current.manifest.next_row_id,
        });
        // It was published after the version it was built on: where that one is at hand it is the answer at once.
        let first = segment.dataset_version.saturating_add(1);
        if first < current.manifest.version
            && let Some(file) = self.manifest(first).await?
            && let Some(witness) = witness_of(&file, segment.uuid)
        {
            return Ok(witness);
        }
        let versions: Vec<u64> =
            self.retained().await?.iter().copied().filter(|v| *v > first && *v < current.manifest.version).collect();
        let (mut low, mut high) = (0, versions.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(version) = versions.get(middle).copied() else { break };
            match self.manifest(version).await?.and_then(|file| witness_of(&file, segment.uuid)) {
                Some(witness) => {
                    found = witness;
                    high = middle;
                }
                None => low = middle + 1,
            }
        }
        Ok(found)
    }

    async fn manifest(&mut self, version: u64) -> Result<Option<Arc<ManifestFile>>> {
        if let Some(known) = self.manifests.get(&version) {
            return Ok(known.clone());
        }
        let file = self.table.manifest_at(version).await?;
        self.manifests.insert(version, file.clone());
        Ok(file)
    }

    async fn retained(&mut self) -> Result<&[u64]> {
        if self.versions.is_none() {
            let mut versions: Vec<u64> = self.table.versions().await?.iter().map(|v| v.version).collect();
            versions.sort_unstable();
            self.versions = Some(versions);
        }
        Ok(self.versions.as_deref().unwrap_or_default())
    }

    /// The segment's own rows.
    async fn look_inside(&mut self, domain: RowDomain, segment: &IndexMetadata, suspects: &RoaringBitmap) -> Result<Verdict> {
        let stored = match self.stored(segment).await? {
            Ok(stored) => stored,
            Err(why) => {
                let evidence = format!("its rows could not be read to prove otherwise ({why})");
                return Ok(Verdict { stale: suspects.clone(), evidence, exact: false });
            }
        };
        let mut exact = true;
        let mut stale = RoaringBitmap::new();
        match domain {
            RowDomain::Address => stale = held_by_address(&self.carried(&stored), suspects),
            RowDomain::StableId => {
                for fragment in suspects {
                    match self.live_ids(fragment).await? {
                        Some(ids) if !held_by_id(&stored, ids.iter().copied()) => {}
                        Some(_) => {
                            stale.insert(fragment);
                        }
                        None => {
                            exact = false;
                            stale.insert(fragment);
                        }
                    }
                }
            }
        }
        let evidence = if exact {
            "its files still hold rows of them".to_owned()
        } else {
            "the row ids of some of them could not be compared with its files".to_owned()
        };
        Ok(Verdict { stale, evidence, exact })
    }

    async fn stored(&mut self, segment: &IndexMetadata) -> Result<std::result::Result<Arc<RoaringTreemap>, String>> {
        if let Some(known) = self.stored.get(&segment.uuid) {
            return Ok(known.clone());
        }
        let files = self.inside.files(self.table.store(), &self.table.manifest().manifest, segment)?;
        let read = match self.method.stored_rows(&files).await {
            Ok(rows) => Ok(Arc::new(rows)),
            Err(error) if unreadable(error.code()) => Err(error.message().to_owned()),
            Err(error) => return Err(error),
        };
        self.stored.insert(segment.uuid, read.clone());
        Ok(read)
    }

    /// Stored addresses after every compaction of the reuse history.
    fn carried(&self, stored: &RoaringTreemap) -> RoaringTreemap {
        match &self.history {
            None => stored.clone(),
            Some(history) => stored.iter().filter_map(|a| history.map_address(RowAddress(a))).map(|a| a.0).collect(),
        }
    }
}

/// The segment is damaged or of a kind that is not read: that proves nothing, so the safe cure applies.
fn unreadable(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::CorruptFile | ErrorCode::UnsupportedEncoding | ErrorCode::UnsupportedFeature | ErrorCode::UnsupportedType
    )
}

fn highest_fragment(file: &ManifestFile) -> Option<u32> {
    file.manifest.max_fragment_id.or_else(|| file.manifest.fragments.last().map(|f| f.id))
}

/// What a manifest proves about a segment it lists: its files name no fragment that came later.
fn witness_of(file: &ManifestFile, uuid: Uuid) -> Option<Witness> {
    let listed = file.indices.iter().any(|e| e.uuid == uuid);
    listed.then(|| Witness {
        version: file.manifest.version,
        max_fragment_id: highest_fragment(file),
        next_row_id: file.manifest.next_row_id,
    })
}
