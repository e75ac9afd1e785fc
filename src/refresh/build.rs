//! Running one task: read the column at `v_plan`, build the segment, upload its files, check what arrived.

use std::sync::Arc;

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::files::{reuse_history, segment_files};
use super::merge::merge_segments;
use super::plan::FORMAT;
use super::task::{BuildTask, BuiltFile, BuiltSegment, CopyOf, Details};
use crate::coverage::stale::in_fragments;
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::{Manifest, ManifestFile};
use crate::format::row::{RowAddress, RowDomain};
use crate::format::schema::Field;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, SegmentBuilder, method_by_name};
use crate::store::{Created, Store};
use crate::table::column::field_type;
use crate::table::scan::{FragmentScan, ScanContext};

/// Times a file is sent when the store's answers are lost.
const UPLOADS: u32 = 3;
/// Wait before sending again, in milliseconds; doubles.
const UPLOAD_WAIT_MS: u64 = 200;
/// Bytes of a file's end that are compared when it is read back.
const TAIL: usize = 64 * 1024;

/// Builds the segment of a task and uploads it under a uuid of its own. `manifest` is that of `v_plan`; `progress` hears the
/// rows done so far.
///
/// # Errors
/// `STALE_PLAN` when the manifest is not the planned one, `MEMORY_LIMIT` over the task's limit, those of reading, building
/// and uploading. Files that were written are deleted, or listed in the error's detail `staged` with `changed: staged`.
pub async fn build_segment(
    store: &Store,
    manifest: Arc<ManifestFile>,
    task: &BuildTask,
    progress: &mut dyn FnMut(u64),
) -> Result<BuiltSegment> {
    build_segment_as(store, manifest, task, store.env().uuid(), progress).await
}

/// [`build_segment`] under a uuid the caller drew, so that it knows the folder whatever happens.
pub async fn build_segment_as(
    store: &Store,
    manifest: Arc<ManifestFile>,
    task: &BuildTask,
    uuid: Uuid,
    progress: &mut dyn FnMut(u64),
) -> Result<BuiltSegment> {
    let (method, field) = check_task(&manifest.manifest, task)?;
    let copied = match &task.copy_of {
        None => None,
        Some(copy) => copy_segment(store, &manifest, method, field, copy).await?,
    };
    let copy_of = task.copy_of.as_ref().filter(|_| copied.is_some());
    let merged = match task.merge_of.as_ref().filter(|_| copied.is_none()) {
        None => None,
        Some(merge) => {
            let rest = async |rest: BuildTask| scan(store, &manifest, method, field, &rest, progress).await;
            merge_segments(store, &manifest, method, field, task, merge, rest).await?
        }
    };
    let merged_from = task.merge_of.as_ref().filter(|_| merged.is_some()).map(|merge| merge.segments.clone()).unwrap_or_default();
    let index = match copied.or(merged) {
        Some(index) => index,
        None => scan(store, &manifest, method, field, task, progress).await?,
    };
    if copy_of.is_some() || !merged_from.is_empty() {
        progress(task.rows);
    }
    let rows = index.rows;
    let stats = index.stats.clone();
    let details = Details(crate::format::index_metadata::IndexDetails {
        type_url: task.index.type_url.clone(),
        value: task.index.details()?.filter(|_| copy_of.is_none()).unwrap_or_else(|| index.details.value.clone()),
    });
    let index_version = index.index_version;
    // Not after the last of them: a machine may sleep in between, and files are as old as when they were written.
    let seen_ms = store.env().now_ms();
    let (files, staged) = upload(store, uuid, index).await?;
    Ok(BuiltSegment {
        format: FORMAT,
        uuid,
        name: task.index.name.clone(),
        field_id: task.index.field_id,
        method: task.index.method.clone(),
        row_domain: task.index.row_domain,
        params: task.index.params.clone(),
        fragments: task.fragments.clone(),
        rows,
        dataset_version: copy_of.map_or(task.v_plan, |copy| copy.dataset_version),
        index_version,
        details,
        files,
        stats,
        staged,
        seen_ms: Some(seen_ms),
        copy_of: copy_of.map(|copy| copy.uuid),
        merged_from,
    })
}

fn check_task<'a>(manifest: &'a Manifest, task: &BuildTask) -> Result<(&'static dyn IndexMethod, &'a Field)> {
    if task.format != FORMAT || task.kind != "build" {
        let text = format!("this is not a build task of format {FORMAT} (kind {:?}, format {})", task.kind, task.format);
        return Err(Error::invalid(text));
    }
    let target = &task.index;
    if manifest.version != task.v_plan || manifest.branch != task.branch {
        let text = format!(
            "the task of index {} reads version {}, the manifest given is of version {}",
            target.name, task.v_plan, manifest.version
        );
        return Err(Error::new(ErrorCode::StalePlan, text));
    }
    let field =
        manifest.schema.by_id(target.field_id).filter(|field| field.logical_type == target.logical_type).ok_or_else(|| {
            let text = format!(
                "version {} has no column {} (field {}) of type {}: the plan is for another table",
                task.v_plan, target.column, target.field_id, target.logical_type
            );
            Error::new(ErrorCode::StalePlan, text)
        })?;
    if let Some(missing) = task.fragments.iter().find(|id| manifest.fragment(**id).is_none()) {
        let text = format!("version {} has no fragment {missing}: the plan is for another table", task.v_plan);
        return Err(Error::new(ErrorCode::StalePlan, text));
    }
    Ok((method_by_name(&target.method)?, field))
}

/// Most passes over a column that building one segment may take.
const PASSES: u64 = 64;

/// Reads the fragments in order into a builder; more than once where the task's limit does not let it hold everything.
async fn scan(
    store: &Store,
    manifest: &Arc<ManifestFile>,
    method: &'static dyn IndexMethod,
    field: &Field,
    task: &BuildTask,
    progress: &mut dyn FnMut(u64),
) -> Result<BuiltIndex> {
    let spec = BuildSpec {
        data_type: field_type(&manifest.manifest.schema, field)?,
        logical_type: field.logical_type.clone(),
        params: task.index.params.clone(),
        index_version: task.index.index_version,
        rows_hint: Some(task.rows),
    };
    let context = ScanContext::new(store.clone(), manifest.clone(), field.id, task.index.row_domain);
    let mut builder = method.builder(spec)?;
    let (mut passes, mut most) = (1, 0);
    loop {
        let mut done = 0u64;
        for id in &task.fragments {
            let fragment = manifest.manifest.fragment(*id).ok_or_else(|| Error::internal("the fragment was checked before"))?;
            let mut rows = FragmentScan::open(&context, fragment).await?;
            while let Some(batch) = rows.next().await? {
                done += batch.values.len() as u64;
                builder.push(batch)?;
                if let Some(limit) = task.max_bytes {
                    while builder.memory_bytes() > limit {
                        if !builder.narrow()? {
                            return Err(too_little(task, &*builder, limit, done, passes));
                        }
                    }
                }
                // Further passes have nothing to add.
                most = done.max(most);
                progress(most);
            }
        }
        if !builder.again()? {
            break;
        }
        passes += 1;
        if let Some(limit) = task.max_bytes.filter(|_| passes > PASSES) {
            return Err(too_little(task, &*builder, limit, done, passes));
        }
    }
    let mut built = builder.finish()?;
    if passes > 1 {
        built.stats.insert("passes".to_owned(), passes.into());
    }
    Ok(built)
}

/// `MEMORY_LIMIT`: not even in passes. The files of a segment are held until they are stored, so they and what one more
/// pass needs are the least that would do.
fn too_little(task: &BuildTask, builder: &dyn SegmentBuilder, limit: u64, done: u64, passes: u64) -> Error {
    let held = builder.memory_bytes();
    let reckoned = builder.file_bytes();
    let files = if passes > 1 || done == 0 {
        reckoned
    } else {
        u64::try_from(u128::from(reckoned) * u128::from(task.rows) / u128::from(done)).unwrap_or(u64::MAX)
    };
    let needed = held.max(files.saturating_add(files / 4)).max(limit.saturating_add(1));
    let (whole, advice) = match builder.indivisible() {
        None => (", even in passes over the column".to_owned(), String::new()),
        Some(why) => (format!(" and is not divided into passes ({})", task.index.method), format!(": {why}")),
    };
    let text = format!(
        "building {} fragments of index {} needs more than {limit} bytes{whole} (reached after {done} of {} rows); about {needed} \
         would do. Plan more segments or allow more memory{advice}. Nothing was changed",
        task.fragments.len(),
        task.index.name,
        task.rows
    );
    let error = Error::new(ErrorCode::MemoryLimit, text).with("max_bytes", limit).with("rows", done);
    error.with("needed_bytes", needed).with("divisible", builder.indivisible().is_none())
}

/// Writes an existing segment again without the rows of some fragments; `None` when its layout does not allow that.
async fn copy_segment(
    store: &Store,
    manifest: &Arc<ManifestFile>,
    method: &'static dyn IndexMethod,
    field: &Field,
    copy: &CopyOf,
) -> Result<Option<BuiltIndex>> {
    let file = manifest.as_ref();
    let entry = file.indices.iter().find(|e| e.uuid == copy.uuid).ok_or_else(|| {
        let text = format!("version {} does not list segment {}, which was to be copied", file.manifest.version, copy.uuid);
        Error::new(ErrorCode::StalePlan, text)
    })?;
    let without: RoaringBitmap = copy.without.iter().copied().collect();
    let drop = dropped_rows(store, file, method, entry, without).await?;
    let files = segment_files(store, &file.manifest, entry)?;
    method.copy_placed(&files, &field_type(&file.manifest.schema, field)?, &|row| (!drop(row)).then_some(row)).await
}

/// Which stored rows belong to the fragments to leave out.
async fn dropped_rows(
    store: &Store,
    file: &ManifestFile,
    method: &'static dyn IndexMethod,
    entry: &IndexMetadata,
    without: RoaringBitmap,
) -> Result<Box<dyn Fn(u64) -> bool>> {
    let stable = file.manifest.has_stable_row_ids();
    match method.row_domain(entry.index_version.unwrap_or(0), stable) {
        RowDomain::Address => {
            let history = reuse_history(store, &file.manifest, &file.indices).await?;
            Ok(Box::new(move |stored| match &history {
                None => in_fragments(stored, &without),
                Some(history) => {
                    history.map_address(RowAddress(stored)).is_some_and(|address| without.contains(address.fragment()))
                }
            }))
        }
        RowDomain::StableId => {
            let mut ids = roaring::RoaringTreemap::new();
            for id in &without {
                let fragment = file
                    .manifest
                    .fragment(id)
                    .ok_or_else(|| Error::new(ErrorCode::StalePlan, format!("there is no fragment {id} any more")))?;
                let live = super::files::live_row_ids(store, &file.manifest, fragment).await?.ok_or_else(|| {
                    Error::new(ErrorCode::UnsupportedFeature, format!("the row ids of fragment {id} lie in a hidden column"))
                })?;
                ids.extend(live);
            }
            Ok(Box::new(move |stored| ids.contains(stored)))
        }
    }
}

/// Creates every file of the segment and compares the folder with what was sent, where the store lists.
pub(crate) async fn upload(store: &Store, uuid: Uuid, index: BuiltIndex) -> Result<(Vec<BuiltFile>, Vec<String>)> {
    let folder = format!("_indices/{uuid}");
    let mut staged = Vec::new();
    let mut files = Vec::new();
    for (name, file) in index.files {
        let path = format!("{folder}/{name}");
        files.push(BuiltFile { path: name, size: file.size });
        let outcome = create(store, &path, file.chunks, file.size).await;
        if may_be_ours(&outcome) {
            staged.push(path);
        }
        if let Err(error) = outcome {
            return Err(withdraw(store, error, &staged).await);
        }
    }
    if let Err(error) = check_sizes(store, &folder, &files).await {
        return Err(withdraw(store, error, &staged).await);
    }
    Ok((files, staged))
}

/// Whether an upload that ended like this may have left its object: not when the store refused it for certain, nor when one was
/// there already, which belongs to somebody else and must not be cleaned up.
pub(crate) fn may_be_ours(outcome: &Result<()>) -> bool {
    outcome.as_ref().err().is_none_or(|error| error.changed() != Changed::Nothing)
}

/// Creates one file. Its folder is named by a uuid of this build alone, so after an answer that was lost whatever lies there was
/// sent by us: it is read back, and sent again (only if absent) when it is not there.
pub(crate) async fn create(store: &Store, path: &str, chunks: Vec<bytes::Bytes>, size: u64) -> Result<()> {
    let tail = tail_of(&chunks);
    let mut lost: Option<Error> = None;
    for attempt in 0..UPLOADS {
        if attempt > 0 {
            store.env().sleep(UPLOAD_WAIT_MS << attempt).await;
        }
        let created = match store.put_create(path, chunks.clone()).await {
            // Refused now; a request before that got no answer may yet arrive.
            Err(error) if lost.is_some() => return Err(error.with_changed(Changed::Unknown)),
            Err(error) => return Err(error),
            Ok(created) => created,
        };
        let error = match created {
            Created::Yes(_) => return Ok(()),
            Created::Exists if lost.is_none() => {
                let text = format!("{path} is there already; it was not overwritten");
                return Err(Error::new(ErrorCode::UuidInUse, text).with("object", path));
            }
            Created::Exists => lost.take().unwrap_or_else(|| Error::internal("an upload that was never lost")),
            Created::Unclear(error) => error,
        };
        match store.get_range(path, size.saturating_sub(tail.len() as u64)..size).await {
            Ok(there) if there == tail => return Ok(()),
            // Fewer bytes than were sent, or others: it is there for good, and of no use.
            Ok(_) => return Err(error),
            // Silence again: waiting a third time would take minutes.
            Err(read) if read.code() == ErrorCode::Timeout => return Err(error),
            Err(_) => lost = Some(error),
        }
    }
    Err(lost.unwrap_or_else(|| Error::internal("no upload was tried")))
}

/// The last bytes of an upload, at most 64 KiB: an object that ends with them is whole.
fn tail_of(chunks: &[bytes::Bytes]) -> Vec<u8> {
    let mut tail = Vec::new();
    for chunk in chunks.iter().rev() {
        let missing = TAIL.saturating_sub(tail.len());
        let from = chunk.len().saturating_sub(missing);
        let part = chunk.get(from..).unwrap_or_default();
        tail.splice(0..0, part.iter().copied());
        if tail.len() >= TAIL {
            break;
        }
    }
    tail
}

/// Compares a segment's folder with the sizes recorded for it, and answers when the youngest of its files was written, in
/// milliseconds since 1970, where the listing tells. A store that cannot list is believed.
pub async fn check_sizes(store: &Store, folder: &str, files: &[BuiltFile]) -> Result<Option<i64>> {
    if !store.can_list() {
        return Ok(None);
    }
    let listed = match store.list(folder).await {
        Ok(listed) => listed,
        Err(error) if crate::store::is_listing_refused(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut youngest = None;
    for file in files {
        let entry = listed.iter().find(|entry| entry.name == file.path);
        youngest = youngest.max(entry.and_then(|entry| entry.modified_ms));
        let found = entry.map(|entry| entry.size);
        if found != Some(file.size) {
            let found = found.map_or("is not there".to_owned(), |size| format!("has {size} bytes"));
            let path = format!("{folder}/{}", file.path);
            return Err(Error::corrupt(&path, format!("{found}, {} were written", file.size)));
        }
    }
    Ok(youngest)
}

/// Deletes what an attempt staged; the paths that could not be deleted.
pub async fn discard(store: &Store, staged: &[String]) -> Vec<String> {
    let mut left = Vec::new();
    for path in staged {
        if store.delete(path).await.is_err() {
            left.push(path.clone());
        }
    }
    left
}

/// The error after cleaning up: what is left is listed in it, beside what it listed already.
pub async fn withdraw(store: &Store, error: Error, staged: &[String]) -> Error {
    let left = discard(store, staged).await;
    let others = error.staged().filter(|path| !staged.iter().any(|tried| tried == path)).map(str::to_owned);
    let left = others.chain(left).collect();
    error.with_staged(left)
}
