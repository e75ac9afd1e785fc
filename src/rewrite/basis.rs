//! What a compaction was planned on: the sources as they were, which every attempt to commit compares with the latest version.

use std::sync::Arc;

use bytes::Bytes;

use super::data_file::DataLayout;
use super::lineage::RowVersions;
use super::moves::Source;
use super::task::{REWRITE, RewriteTask};
use crate::compaction::Fate;
use crate::error::{Error, ErrorCode, Result};
use crate::format::flags::check_write;
use crate::format::fragment::{Fragment, RowIdSource};
use crate::format::manifest::{Manifest, ManifestFile};
use crate::format::row_ids::RowIdSequence;
use crate::format::wire;
use crate::index::method_by_url;
use crate::lists::map_of;
use crate::maintain::forecast::compaction::{COMPACTION, CompactionPlan};
use crate::refresh::files::{deletions, live_rows};
use crate::refresh::plan::FORMAT;
use crate::table::Table;

/// Numbers in a `DataFragment` that are carried over: id, files, deletions, rows, row ids, versions of the rows.
const CARRIED: [u32; 7] = [1, 2, 3, 4, 5, LAST_UPDATED_AT, CREATED_AT];
const LAST_UPDATED_AT: u32 = 7;
const CREATED_AT: u32 = 9;

/// The sources of a plan at the version it was made on.
pub(super) struct Basis {
    pub(super) manifest: Arc<ManifestFile>,
    pub(super) layout: DataLayout,
    pub(super) tasks: Vec<TaskBasis>,
}

/// The sources of one task.
pub(super) struct TaskBasis {
    pub(super) sources: Vec<Source>,
    /// Their messages as stored, which must not have changed when the compaction is committed.
    pub(super) messages: Vec<Bytes>,
    /// Stable ids of the live rows, on tables that have them.
    pub(super) row_ids: Option<Vec<u64>>,
    pub(super) created_at: Option<RowVersions>,
    pub(super) last_updated_at: Option<RowVersions>,
}

/// The documents of the work, and the manifest it is pinned to, once all that can be refused was.
pub struct Prepared {
    /// A task per group, in the order of the plan.
    pub tasks: Vec<RewriteTask>,
    /// The manifest of the version the plan was made on.
    pub manifest: Arc<ManifestFile>,
}

/// Whether the document is a plan to compact.
///
/// # Errors
/// `INVALID_ARGUMENT` when it is not.
pub fn check_compaction(plan: &CompactionPlan) -> Result<()> {
    if plan.format != FORMAT || plan.kind != COMPACTION {
        let text = format!("this is no plan of format {FORMAT} to compact (kind {:?}, format {})", plan.kind, plan.format);
        return Err(Error::invalid(text));
    }
    Ok(())
}

/// Looks at everything that keeps a plan from being run, before anything is written.
///
/// # Errors
/// `STALE_PLAN` when the version of the plan is gone or is another table's, `UNSUPPORTED_TYPE` or `UNSUPPORTED_ENCODING` naming a
/// column, `UNSUPPORTED_METHOD` naming an index, `UNSUPPORTED_FEATURE` for the rest, and those of reading.
pub async fn prepare_compaction(table: &Table, plan: &CompactionPlan) -> Result<Prepared> {
    check_compaction(plan)?;
    let manifest = planned(table, plan).await?;
    refuse(&manifest, plan)?;
    let of = |task: &crate::maintain::forecast::compaction::PlannedTask| RewriteTask {
        format: FORMAT,
        kind: REWRITE.to_owned(),
        table: plan.table.clone(),
        branch: plan.branch.clone(),
        v_plan: plan.v_plan,
        fragments: task.fragments.clone(),
        outputs: task.outputs.iter().map(|output| output.rows).collect(),
        rows: task.rows,
    };
    Ok(Prepared { tasks: plan.tasks.iter().map(of).collect(), manifest })
}

async fn planned(table: &Table, plan: &CompactionPlan) -> Result<Arc<ManifestFile>> {
    if table.manifest().manifest.branch != plan.branch {
        return Err(Error::invalid("the plan to compact is for another branch than the table given; nothing was changed"));
    }
    let version = plan.v_plan;
    table.manifest_at(version).await?.ok_or_else(|| {
        let text = format!("version {version} was cleaned up or never was: fragments are read as they were in it, so plan again");
        Error::new(ErrorCode::StalePlan, text).with("version", version)
    })
}

/// Refuses what this build would not carry over rightly.
///
/// # Errors
/// As [`prepare_compaction`].
pub fn refuse(file: &ManifestFile, plan: &CompactionPlan) -> Result<DataLayout> {
    let manifest = &file.manifest;
    check_write(manifest, &file.indices)?;
    let layout = DataLayout::of(&manifest.schema, &manifest.data_storage_version)?;
    let messages = map_of(manifest.fragment_messages()?);
    for id in plan.tasks.iter().flat_map(|task| &task.fragments) {
        let message = messages.get(id).ok_or_else(|| {
            Error::new(ErrorCode::StalePlan, format!("version {} has no fragment {id}: plan again", manifest.version))
        })?;
        let strange = wire::split("a fragment", message)?.into_iter().find(|field| !CARRIED.contains(&field.number));
        if let Some(field) = strange {
            let what = match field.number {
                12..=14 => "keeps its row lineage in a hidden column".to_owned(),
                other => format!("has the field {other}"),
            };
            let text = format!("fragment {id} {what}, which this build does not carry over; nothing was changed");
            return Err(Error::new(ErrorCode::UnsupportedFeature, text).with("fragment", *id));
        }
    }
    for effect in plan.effects.iter().filter(|effect| effect.fate == Fate::Remapped) {
        let Some(entry) = file.indices.iter().find(|e| Some(e.uuid.to_string()) == effect.uuid) else { continue };
        entry.check_touch()?;
        let url = entry.details.as_ref().map(|details| details.type_url.as_str()).unwrap_or_default();
        method_by_url(url).map_err(|error| {
            let text = format!(
                "index {} covers rewritten fragments and cannot be given their new row addresses by this build ({}); a compaction with \
                 defer_index_remap touches no index. Nothing was changed",
                entry.name,
                error.message()
            );
            Error::new(ErrorCode::UnsupportedMethod, text).with("index", entry.name.as_str())
        })?;
    }
    Ok(layout)
}

impl Basis {
    /// Reads what the manifest of the plan leaves in files: deletion vectors.
    pub(super) async fn of(table: &Table, plan: &CompactionPlan) -> Result<Basis> {
        let manifest = planned(table, plan).await?;
        let layout = refuse(&manifest, plan)?;
        let messages = map_of(manifest.manifest.fragment_messages()?);
        let mut tasks = Vec::with_capacity(plan.tasks.len());
        for task in &plan.tasks {
            let mut basis = TaskBasis {
                sources: Vec::new(),
                messages: Vec::new(),
                row_ids: manifest.manifest.has_stable_row_ids().then(Vec::new),
                created_at: None,
                last_updated_at: None,
            };
            for id in &task.fragments {
                let found = manifest.manifest.fragment(*id).zip(messages.get(id));
                let (fragment, message) = found.ok_or_else(|| Error::internal("a fragment that was just there is gone"))?;
                let deleted = deletions(table.store(), &manifest.manifest, fragment).await?;
                let live = live_rows(table.store(), &manifest.manifest, fragment).await?;
                let physical_rows = live.saturating_add(deleted.len());
                basis.add(fragment, message, Source { fragment: *id, physical_rows, deleted })?;
            }
            tasks.push(basis);
        }
        Ok(Basis { manifest, layout, tasks })
    }

    /// Ids of all sources.
    pub(super) fn sources(&self) -> roaring::RoaringBitmap {
        self.tasks.iter().flat_map(|task| &task.sources).map(|source| source.fragment).collect()
    }

    /// Whether the latest version still has what was rewritten, as it was rewritten.
    ///
    /// # Errors
    /// `STALE_PLAN` saying what changed.
    pub(super) fn check_current(&self, latest: &Manifest) -> Result<()> {
        let planned = &self.manifest.manifest;
        let stale = |what: String| {
            let text = format!(
                "{what} since version {}, on which the compaction was planned; it was not committed. Plan again",
                planned.version
            );
            Error::new(ErrorCode::StalePlan, text).with("version", latest.version)
        };
        if latest.version < planned.version {
            return Err(stale(format!("the table is at version {} and was reset", latest.version)));
        }
        if latest.schema != planned.schema || latest.data_storage_version != planned.data_storage_version {
            return Err(stale("the schema changed".to_owned()));
        }
        if latest.has_stable_row_ids() != planned.has_stable_row_ids() {
            return Err(stale("stable row ids were switched".to_owned()));
        }
        let messages = map_of(latest.fragment_messages()?);
        for task in &self.tasks {
            for (source, message) in task.sources.iter().zip(&task.messages) {
                match messages.get(&source.fragment) {
                    None => return Err(stale(format!("fragment {} was taken out of the table", source.fragment))),
                    // Other writers write all fragments again, and may do so with other bytes.
                    Some(now) if now != message && latest.fragment(source.fragment) != planned.fragment(source.fragment) => {
                        return Err(stale(format!("rows of fragment {} were deleted or its files changed", source.fragment)));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}

impl TaskBasis {
    fn add(&mut self, fragment: &Fragment, message: &Bytes, source: Source) -> Result<()> {
        let object = format!("fragment {}", fragment.id);
        if let Some(ids) = &mut self.row_ids {
            let Some(RowIdSource::Inline(bytes)) = &fragment.row_ids else {
                return Err(Error::corrupt(&object, "has no stable row ids on a table that has them"));
            };
            let sequence = RowIdSequence::parse(&object, bytes)?;
            if sequence.len() != source.physical_rows {
                let what = format!("{} stable row ids for {} rows", sequence.len(), source.physical_rows);
                return Err(Error::corrupt(&object, what));
            }
            let live = |(offset, _): &(usize, u64)| u32::try_from(*offset).is_ok_and(|offset| !source.deleted.contains(offset));
            ids.extend(sequence.iter().enumerate().filter(live).map(|(_, id)| id));
        }
        let fields = wire::split(&object, message)?;
        let before = self.sources.iter().fold(0u64, |sum, source| sum.saturating_add(source.live_rows()));
        for (number, versions) in [(CREATED_AT, &mut self.created_at), (LAST_UPDATED_AT, &mut self.last_updated_at)] {
            let stored = fields.iter().find(|field| field.number == number);
            match (stored, &mut *versions) {
                (None, None) => {}
                // Rows without a record are of the first version.
                (None, Some(versions)) => versions.push(source.live_rows(), 1),
                (Some(stored), versions) => {
                    let versions = versions.get_or_insert_with(|| {
                        let mut unrecorded = RowVersions::default();
                        unrecorded.push(before, 1);
                        unrecorded
                    });
                    versions.append(&object, stored.as_bytes(&object)?, source.physical_rows, &source.deleted)?;
                }
            }
        }
        self.messages.push(message.clone());
        self.sources.push(source);
        Ok(())
    }
}
