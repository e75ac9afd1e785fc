//! The two ends of a job: the plan, and the commit of what was built for it.

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::build::pack;
use super::convert::{error_to_js, from_js, to_js, version_from};
use super::table::{advance, ask};
use crate::error::{Error, ErrorCode};
use crate::refresh::{BuiltSegment, RefreshOptions, RefreshPlan, commit_segments, plan_refresh};

/// Settles with a refresh plan.
#[wasm_bindgen(js_name = tablePlanRefresh)]
pub fn table_plan_refresh(id: u32, index: String, options: JsValue) -> Result<u32, JsValue> {
    let options: RefreshOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&plan_refresh(&table, &index, options).await?) }))
}

/// Settles with the bytes of a version's manifest, for workers.
#[wasm_bindgen(js_name = tableManifest)]
pub fn table_manifest(id: u32, version: f64) -> Result<u32, JsValue> {
    let version = version_from(version).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let file = table.manifest_at(version).await?.ok_or_else(|| {
            let text = format!("version {version} was cleaned up: the segments of a plan are built on it, so plan again");
            Error::new(ErrorCode::StalePlan, text).with("version", version)
        })?;
        Ok(Uint8Array::from(pack(&file)?.as_slice()).into())
    }))
}

/// Commits built segments; settles with a report, and the handle is at the version it names.
#[wasm_bindgen(js_name = tableCommitSegments)]
pub fn table_commit_segments(id: u32, plan: JsValue, built: JsValue) -> Result<u32, JsValue> {
    let taken = from_js::<RefreshPlan>("the plan", plan)
        .and_then(|plan| Ok((plan, from_js::<Vec<BuiltSegment>>("the built segments", built)?)));
    let (plan, built) = taken.map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let (report, committed) = commit_segments(&table, &plan, &built).await?;
        advance(id, committed);
        to_js(&report)
    }))
}
