//! Running one build task, and clearing away what an abandoned one left.

use std::sync::Arc;

use bytes::Bytes;
use js_sys::{Function, Reflect};
use serde_json::json;
use uuid::Uuid;
use wasm_bindgen::prelude::*;

use super::convert::{error_to_js, from_js, to_js};
use super::{store, task};
use crate::env;
use crate::error::{Error, Result};
use crate::format::index_metadata::encode_index_section;
use crate::format::manifest::ManifestFile;
use crate::refresh::{BuildTask, build_segment_as};
use crate::store::{Store, is_not_found};
use crate::table::base::main_root;
use crate::table::{At, Table};

const PACKED: &str = "the manifest posted with the task";

/// A manifest with its index section, as it is posted to workers: a `u32` length, the manifest message, the section.
pub(super) fn pack(file: &ManifestFile) -> Result<Vec<u8>> {
    let manifest = &file.manifest.raw;
    let length = u32::try_from(manifest.len()).map_err(|_| Error::internal("a manifest message over 4 GiB"))?;
    Ok([&length.to_le_bytes()[..], manifest, &encode_index_section(&file.indices)].concat())
}

fn unpack(packed: Vec<u8>) -> Result<ManifestFile> {
    let packed = Bytes::from(packed);
    let cut_off = || Error::corrupt(PACKED, "is cut off");
    let length = packed.get(..4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes).ok_or_else(cut_off)?;
    let end =
        usize::try_from(length).ok().and_then(|n| n.checked_add(4)).filter(|end| *end <= packed.len()).ok_or_else(cut_off)?;
    ManifestFile::parse_parts(PACKED, packed.slice(4..end), Some(packed.slice(end..)), None)
}

/// The root of the branch, given the root of the table or already that of the branch.
pub(super) fn branch_store(store: Store, branch: Option<&str>) -> Result<Store> {
    match branch {
        None | Some("main") => Ok(store),
        Some(branch) if main_root(&store, branch)?.is_some() => Ok(store),
        Some(branch) => store.child(&format!("tree/{branch}")),
    }
}

/// Builds the segment of a task and uploads it; settles with a `BuiltSegment`. `manifest` is what `tablePlannedManifest` gave;
/// without it the manifest of the task's version is read. `hooks.onUuid` hears the segment's uuid before anything is written.
#[wasm_bindgen(js_name = buildSegment)]
pub fn build_segment(spec: JsValue, build: JsValue, manifest: Option<Vec<u8>>, hooks: JsValue) -> Result<u32, JsValue> {
    let prepare = || -> Result<_> {
        let order: BuildTask = from_js("the task", build)?;
        let env = env::system();
        let store = store::open(&spec, env.clone())?;
        Ok((order, env.uuid(), store))
    };
    let (order, uuid, store) = prepare().map_err(|error| error_to_js(&error))?;
    let on_uuid = hook(&hooks, "onUuid");
    let on_progress = hook(&hooks, "onProgress");
    Ok(task::spawn(async move {
        let (store, manifest) = planned_manifest(store, manifest, order.v_plan, order.branch.as_deref()).await?;
        call(on_uuid.as_ref(), &JsValue::from_str(&uuid.to_string()));
        let mut progress = |rows: u64| call(on_progress.as_ref(), &JsValue::from_f64(rows as f64));
        let built = build_segment_as(&store, manifest, &order, uuid, &mut progress).await?;
        to_js(&built)
    }))
}

/// The root of a task's branch, and the manifest of the version it is pinned to: as it was posted, else read.
pub(super) async fn planned_manifest(
    store: Store,
    posted: Option<Vec<u8>>,
    version: u64,
    branch: Option<&str>,
) -> Result<(Store, Arc<ManifestFile>)> {
    if let Some(posted) = posted {
        return Ok((branch_store(store, branch)?, Arc::new(unpack(posted)?)));
    }
    let at_branch = match branch {
        Some(branch) if main_root(&store, branch)?.is_some() => None,
        other => other,
    };
    let table = Table::open(store, At::Version(version), at_branch).await?;
    Ok((table.store().clone(), table.manifest().clone()))
}

pub(super) fn hook(hooks: &JsValue, name: &str) -> Option<Function> {
    if !hooks.is_object() {
        return None;
    }
    Reflect::get(hooks, &JsValue::from_str(name)).ok()?.dyn_into().ok()
}

pub(super) fn call(function: Option<&Function>, value: &JsValue) {
    if let Some(function) = function {
        // A hook that throws does not stop the build.
        let _ = function.call1(&JsValue::UNDEFINED, value);
    }
}

/// Removes the files of segments that were never committed; settles with `{ removed, left }`, paths relative to the branch.
#[wasm_bindgen(js_name = discardSegments)]
pub fn discard_segments(spec: JsValue, branch: Option<String>, uuids: Vec<String>) -> Result<u32, JsValue> {
    discard(&spec, branch, uuids, async |store: &Store, uuid: Uuid| {
        let folder = format!("_indices/{uuid}");
        match store.list(&folder).await {
            Ok(entries) => Ok(entries.into_iter().map(|entry| format!("{folder}/{}", entry.name)).collect()),
            Err(error) if is_not_found(&error) => Ok(Vec::new()),
            Err(_) => Err(format!("{folder}/")),
        }
    })
}

/// Removes what attempts with these uuids wrote: `paths_of` tells what that can be, or what cannot even be listed.
pub(super) fn discard(
    spec: &JsValue,
    branch: Option<String>,
    uuids: Vec<String>,
    paths_of: impl AsyncFn(&Store, Uuid) -> Result<Vec<String>, String> + 'static,
) -> Result<u32, JsValue> {
    let store = store::open(spec, env::system()).and_then(|store| branch_store(store, branch.as_deref()));
    let store = store.map_err(|error| error_to_js(&error))?;
    Ok(task::spawn(async move {
        let (mut removed, mut left) = (Vec::new(), Vec::new());
        for uuid in uuids {
            // Only a uuid may become part of a path here.
            let uuid = Uuid::parse_str(&uuid).map_err(|_| Error::invalid(format!("{uuid} is no uuid")))?;
            let paths = paths_of(&store, uuid).await.unwrap_or_else(|unlisted| {
                left.push(unlisted);
                Vec::new()
            });
            for path in paths {
                match store.delete(&path).await {
                    Ok(()) => removed.push(path),
                    Err(error) if is_not_found(&error) => {}
                    // Who may not delete was perhaps not let write either.
                    Err(_) if store.get_range(&path, 0..1).await.is_err_and(|error| is_not_found(&error)) => {}
                    Err(_) => left.push(path),
                }
            }
        }
        to_js(&json!({ "removed": removed, "left": left }))
    }))
}
