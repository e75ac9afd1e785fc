//! Writing the outputs of one group of fragments: rows are read column by column, deleted ones are left out, and nothing names
//! the new files until the compaction is committed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::data_file::{DataLayout, WrittenFile};
use crate::error::{Error, ErrorCode, Result};
use crate::format::fragment::Fragment;
use crate::format::manifest::{Manifest, ManifestFile};
use crate::format::row::RowDomain;
use crate::refresh::build::{create, may_be_ours, withdraw};
use crate::refresh::files::live_rows;
use crate::refresh::plan::FORMAT;
use crate::store::Store;
use crate::table::scan::{FragmentScan, ScanContext};

/// The `kind` of a task that rewrites fragments.
pub const REWRITE: &str = "rewrite";
/// A file is held in memory until it is stored; more than this is asking for trouble where addresses have 32 bits.
const MOST_BYTES: u64 = 1 << 30;

/// One group of fragments to be rewritten. The attempt that runs it draws the uuid its files are named by, so a task delivered
/// twice overwrites nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewriteTask {
    /// Format of this document.
    pub format: u32,
    /// Always `rewrite`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version that is read.
    pub v_plan: u64,
    /// Fragments, ascending.
    pub fragments: Vec<u32>,
    /// Rows of each file to be written.
    pub outputs: Vec<u64>,
    /// Live rows.
    pub rows: u64,
}

/// What was written for a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuiltRewrite {
    /// Format of this document.
    pub format: u32,
    /// Always `rewrite`.
    pub kind: String,
    /// Names the files.
    pub uuid: Uuid,
    /// Fragments whose rows are in them.
    pub fragments: Vec<u32>,
    /// The files, in the order of their rows.
    pub files: Vec<RewrittenFile>,
    /// Rows of all files.
    pub rows: u64,
    /// Paths on the store, named by no manifest yet.
    pub staged: Vec<String>,
}

/// One data file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewrittenFile {
    /// Name in `data/`.
    pub path: String,
    /// Exact size in bytes.
    pub size: u64,
    /// Rows.
    pub rows: u64,
}

/// Name of the `n`th file that an attempt writes.
pub fn file_name(uuid: Uuid, n: usize) -> String {
    format!("{uuid}-{n}.lance")
}

/// Writes the files of a task. `manifest` is that of `v_plan`; `progress` hears the rows done so far.
///
/// # Errors
/// `STALE_PLAN` when the manifest is not the planned one, `UNSUPPORTED_…` naming a column that cannot be written, `MEMORY_LIMIT`
/// for a file past 1 GiB, those of reading and uploading. Files that were written are deleted, or listed in the error's detail
/// `staged` with `changed: staged`.
pub async fn rewrite_fragments(
    store: &Store,
    manifest: Arc<ManifestFile>,
    task: &RewriteTask,
    uuid: Uuid,
    progress: &mut dyn FnMut(u64),
) -> Result<BuiltRewrite> {
    let layout = DataLayout::of(&manifest.manifest.schema, &manifest.manifest.data_storage_version)?;
    let sources = Sources::of(store, &manifest, task).await?;
    let (mut files, mut staged, mut first) = (Vec::new(), Vec::new(), 0u64);
    for (n, rows) in task.outputs.iter().enumerate() {
        let range = first..first.saturating_add(*rows);
        let path = file_name(uuid, n);
        let written = match write_file(&sources, &layout, range, path.clone(), &mut |rows| progress(first + rows)).await {
            Ok(written) => written,
            Err(error) => return Err(withdraw(store, error, &staged).await),
        };
        let object = format!("data/{path}");
        let size = written.file.size;
        let stored = create(store, &object, written.file.chunks, size).await;
        if may_be_ours(&stored) {
            staged.push(object);
        }
        if let Err(error) = stored {
            return Err(withdraw(store, error, &staged).await);
        }
        files.push(RewrittenFile { path, size, rows: *rows });
        first = first.saturating_add(*rows);
    }
    progress(task.rows);
    let fragments = task.fragments.clone();
    Ok(BuiltRewrite { format: FORMAT, kind: REWRITE.to_owned(), uuid, fragments, files, rows: task.rows, staged })
}

/// The fragments of a task, with their live rows.
struct Sources<'a> {
    store: &'a Store,
    manifest: &'a Arc<ManifestFile>,
    fragments: Vec<(&'a Fragment, u64)>,
    /// Fragments that were opened for a column before.
    opened: RefCell<BTreeMap<u32, FragmentScan>>,
}

impl<'a> Sources<'a> {
    async fn of(store: &'a Store, manifest: &'a Arc<ManifestFile>, task: &RewriteTask) -> Result<Sources<'a>> {
        check_task(&manifest.manifest, task)?;
        let mut fragments = Vec::with_capacity(task.fragments.len());
        let mut rows = 0u64;
        for id in &task.fragments {
            let fragment = manifest.manifest.fragment(*id).ok_or_else(|| {
                let text = format!("version {} has no fragment {id}: the plan is for another table", task.v_plan);
                Error::new(ErrorCode::StalePlan, text)
            })?;
            let live = live_rows(store, &manifest.manifest, fragment).await?;
            rows = rows.saturating_add(live);
            fragments.push((fragment, live));
        }
        let outputs = task.outputs.iter().fold(0u64, |sum, rows| sum.saturating_add(*rows));
        if rows != task.rows || outputs != task.rows {
            let text = format!("the task is to write {outputs} of {} rows, its fragments have {rows}", task.rows);
            return Err(Error::new(ErrorCode::StalePlan, text));
        }
        Ok(Sources { store, manifest, fragments, opened: RefCell::default() })
    }

    /// Hands the live rows `rows` of a column, counted over all fragments, to `each`, in order.
    async fn read(
        &self,
        field: i32,
        rows: &Range<u64>,
        each: &mut dyn FnMut(arrow::array::ArrayRef) -> Result<()>,
    ) -> Result<()> {
        let context = ScanContext::new(self.store.clone(), self.manifest.clone(), field, RowDomain::Address);
        let mut before = 0u64;
        for (fragment, live) in &self.fragments {
            let inside = rows.start.max(before)..rows.end.min(before.saturating_add(*live));
            if inside.start < inside.end {
                let known = self.opened.borrow_mut().remove(&fragment.id);
                let mut scan = match known {
                    Some(known) => known.another(&context, fragment).await?,
                    None => FragmentScan::open(&context, fragment).await?,
                };
                scan.seek(scan.nth_live(inside.start - before)..scan.nth_live(inside.end - before));
                let mut left = inside.end - inside.start;
                while let Some(batch) = scan.next().await? {
                    left = left.checked_sub(batch.values.len() as u64).ok_or_else(|| changed(fragment.id))?;
                    each(batch.values)?;
                }
                if left > 0 {
                    return Err(changed(fragment.id));
                }
                self.opened.borrow_mut().insert(fragment.id, scan);
            }
            before = before.saturating_add(*live);
        }
        Ok(())
    }
}

fn changed(fragment: u32) -> Error {
    Error::corrupt(&format!("fragment {fragment}"), "has another number of live rows than its manifest records")
}

/// Writes live rows of the sources into one file.
async fn write_file(
    sources: &Sources<'_>,
    layout: &DataLayout,
    rows: Range<u64>,
    path: String,
    progress: &mut dyn FnMut(u64),
) -> Result<WrittenFile> {
    let mut writer = layout.writer();
    let columns = layout.columns().len() as u64;
    let mut cells = 0u64;
    for (at, column) in layout.columns().iter().enumerate() {
        sources
            .read(column.field, &rows, &mut |values| {
                writer.push(at, &values)?;
                if writer.memory_bytes() > MOST_BYTES {
                    let wanted = rows.end - rows.start;
                    let text = format!(
                        "a data file of {wanted} rows would be larger than {MOST_BYTES} bytes, and is held in memory until it is stored; \
                         compact with a smaller target_rows_per_fragment. Nothing was changed"
                    );
                    return Err(Error::new(ErrorCode::MemoryLimit, text).with("max_bytes", MOST_BYTES));
                }
                cells = cells.saturating_add(values.len() as u64);
                progress(cells / columns.max(1));
                Ok(())
            })
            .await?;
    }
    let written = writer.finish(path)?;
    if written.rows != rows.end - rows.start {
        return Err(Error::internal(format!("{} rows were written where {} were to be", written.rows, rows.end - rows.start)));
    }
    Ok(written)
}

fn check_task(manifest: &Manifest, task: &RewriteTask) -> Result<()> {
    if task.format != FORMAT || task.kind != REWRITE {
        let text = format!("this is no rewrite task of format {FORMAT} (kind {:?}, format {})", task.kind, task.format);
        return Err(Error::invalid(text));
    }
    if manifest.version != task.v_plan || manifest.branch != task.branch {
        let text = format!(
            "the task rewrites fragments of version {}, the manifest given is of version {}",
            task.v_plan, manifest.version
        );
        return Err(Error::new(ErrorCode::StalePlan, text));
    }
    Ok(())
}
