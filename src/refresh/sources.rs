//! Which of the segments that go can be taken from their files, instead of reading their column again (refresh-and-compaction §8.4).

use arrow::datatypes::DataType;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::costs::read_bytes;
use super::files::segment_files;
use super::plan::Advice;
use super::resolve::Resolved;
use super::task::{IndexTarget, MergeOf};
use crate::coverage::prune::FragmentKey;
use crate::error::{ErrorCode, Result};
use crate::format::fragment::Fragment;
use crate::format::index_metadata::IndexMetadata;
use crate::format::reuse_v0::reuse_entry;
use crate::table::Table;

/// The segments whose files are taken.
#[derive(Default)]
pub(super) struct Sources {
    parts: Vec<(Uuid, RoaringBitmap, u64)>,
    notes: Vec<Advice>,
}

/// A segment that goes, and the live fragments it covers.
pub(super) struct Candidate<'a> {
    pub segment: &'a IndexMetadata,
    pub covers: RoaringBitmap,
    /// Fragments whose old rows it still holds.
    pub stale: &'a RoaringBitmap,
}

/// What candidates are judged by.
pub(super) struct Judge<'a> {
    pub table: &'a Table,
    pub resolved: &'a Resolved<'a>,
    pub target: &'a IndexTarget,
    pub data_type: &'a DataType,
    /// Only where the files are smaller than the column.
    pub cheaper: bool,
    pub max_bytes: Option<u64>,
}

impl Sources {
    /// What a run can take from files; `None` when it is read from the column whole.
    pub(super) fn of_run(&self, fragments: &[u32]) -> Option<MergeOf> {
        let run: RoaringBitmap = fragments.iter().copied().collect();
        let of = |(uuid, covers, bytes): &(Uuid, RoaringBitmap, u64)| (!covers.is_disjoint(&run)).then_some((*uuid, *bytes));
        let (segments, bytes): (Vec<Uuid>, Vec<u64>) = self.parts.iter().filter_map(of).unzip();
        (!segments.is_empty()).then(|| MergeOf { segments, bytes: bytes.into_iter().fold(0, u64::saturating_add) })
    }

    /// The fragments of a run that have to be read from the column.
    pub(super) fn left(&self, fragments: &[u32]) -> Vec<u32> {
        fragments.iter().copied().filter(|id| !self.parts.iter().any(|(_, covers, _)| covers.contains(*id))).collect()
    }

    /// What was decided and why, with what it costs.
    pub(super) fn notes(&mut self) -> Vec<Advice> {
        std::mem::take(&mut self.notes)
    }
}

impl Judge<'_> {
    pub(super) async fn sources(&self, candidates: Vec<Candidate<'_>>) -> Result<Sources> {
        let mut sources = Sources::default();
        let (mut bytes, mut column) = (0u64, Some(0u64));
        for candidate in candidates {
            let Candidate { segment, covers, .. } = &candidate;
            if covers.is_empty() {
                continue;
            }
            let manifest = &self.table.manifest().manifest;
            let own = read_bytes(manifest, covers, self.target.field_id, self.data_type);
            let size = segment.files.iter().map(|file| file.size_bytes).fold(0, u64::saturating_add);
            match self.why_not(&candidate, size, own).await? {
                None => {
                    bytes = bytes.saturating_add(size);
                    column = column.zip(own).map(|(sum, own)| sum.saturating_add(own));
                    sources.parts.push((segment.uuid, candidate.covers, size));
                }
                Some(why) => {
                    let cost = own.map_or("an unknown number of".to_owned(), |own| own.to_string());
                    let text = format!("the column is read again for segment {} ({cost} bytes): {why}", segment.uuid);
                    sources.notes.push(Advice::info("merge_from_column", text));
                }
            }
        }
        if self.max_bytes.is_some_and(|limit| bytes > limit) {
            // A build from the column keeps to the limit; the files would be held beside what they become.
            let text = format!("the column is read again, as the files of the segments ({bytes} bytes) pass the bytes allowed");
            return Ok(Sources { parts: Vec::new(), notes: vec![Advice::info("merge_from_column", text)] });
        }
        if !sources.parts.is_empty() {
            let cost = column.map_or("unknown".to_owned(), |column| column.to_string());
            let text = format!(
                "{} segments are taken from their files ({bytes} bytes), their column is not read ({cost} bytes)",
                sources.parts.len()
            );
            sources.notes.push(Advice::info("merge_from_files", text));
        }
        Ok(sources)
    }

    /// Why the files of a segment are not enough; `None` when they are.
    async fn why_not(&self, candidate: &Candidate<'_>, size: u64, column: Option<u64>) -> Result<Option<String>> {
        let Candidate { segment, covers, stale } = candidate;
        let (manifest, method) = (&self.table.manifest().manifest, self.resolved.method);
        if !stale.is_empty() {
            return Ok(Some("it still holds old rows of fragments that it does not cover".to_owned()));
        }
        if reuse_entry(&self.table.manifest().indices).is_some() {
            return Ok(Some("a deferred compaction moved rows since".to_owned()));
        }
        if segment.files.is_empty() {
            return Ok(Some("the sizes of its files are not recorded".to_owned()));
        }
        if self.cheaper && column.is_none_or(|column| size >= column) {
            return Ok(Some(format!("its files are not smaller ({size} bytes)")));
        }
        let version = segment.index_version.unwrap_or(0);
        if method.row_domain(version, manifest.has_stable_row_ids()) != self.target.row_domain {
            return Ok(Some("it names rows otherwise than the new segments".to_owned()));
        }
        match method.recover_params(&segment_files(self.table.store(), manifest, segment)?).await {
            Ok(own) => {
                let mut params = method.default_params();
                params.extend(own);
                if params != self.target.params {
                    return Ok(Some("it was built with other parameters".to_owned()));
                }
            }
            Err(error) if error.code() == ErrorCode::CorruptFile || crate::store::is_not_found(&error) => {
                return Ok(Some("its files cannot be read".to_owned()));
            }
            Err(error) => return Err(error),
        }
        self.changed_since(segment, covers).await
    }

    /// What happened to its fragments that its bitmap does not tell (refresh-and-compaction §1.3, §8.1).
    async fn changed_since(&self, segment: &IndexMetadata, covers: &RoaringBitmap) -> Result<Option<String>> {
        let manifest = &self.table.manifest().manifest;
        let version = segment.dataset_version;
        let built_at = if version == manifest.version { None } else { self.table.manifest_at(version).await? };
        if built_at.is_none()
            && version != manifest.version
            && matches!(self.data_type, DataType::List(_) | DataType::LargeList(_))
        {
            let text =
                format!("version {version}, which it was built on, is gone, so that nothing tells whether lists were rewritten");
            return Ok(Some(text));
        }
        let deleted = |fragment: &Fragment| fragment.deletion_file.as_ref().map_or(Some(0), |file| file.num_deleted_rows);
        for fragment in covers.iter().filter_map(|id| manifest.fragment(id)) {
            let id = fragment.id;
            if fragment.has_overlays {
                return Ok(Some(format!("newer values lie over fragment {id}")));
            }
            let Some(then) = built_at.as_ref().and_then(|file| Some((file, file.manifest.fragment(id)?))) else { continue };
            let key = FragmentKey::of(fragment, &manifest.schema, self.target.field_id);
            if FragmentKey::of(then.1, &then.0.manifest.schema, self.target.field_id).data != key.data {
                return Ok(Some(format!("the column of fragment {id} was rewritten since it was built")));
            }
            if deleted(then.1) > deleted(fragment) {
                return Ok(Some(format!("deleted rows of fragment {id} are live again")));
            }
        }
        Ok(None)
    }
}
