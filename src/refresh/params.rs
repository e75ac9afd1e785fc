//! Where the build parameters of a refresh come from: the caller, the existing segments, or the method's defaults.

use super::files::Segments;
use super::plan::Advice;
use super::resolve::Resolved;
use crate::error::{ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::index::Params;
use crate::lists::sorted_by_key;
use crate::table::Table;

/// Complete parameters and their origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Inherited {
    /// What to build with.
    pub params: Params,
    /// Uuid of the segment they were read from, `defaults`, or `options` when the caller gave every one.
    pub from: String,
    /// What could not be read back, or was overridden.
    pub notes: Vec<Advice>,
}

/// Parameters for further segments: those of the newest segment that tells them, with the caller's over them.
///
/// # Errors
/// `INVALID_ARGUMENT` for the caller's; transport errors. A segment that cannot be read is only a note.
pub async fn inherit(table: &Table, resolved: &Resolved<'_>, segments: &Segments, given: &Params) -> Result<Inherited> {
    let (store, manifest) = (table.store(), &table.manifest().manifest);
    let method = resolved.method;
    let defaults = method.default_params();
    // Before anything is read: a typo must not depend on what the segments say.
    let complete = method.merge_params(defaults.clone(), given)?;
    if !given.is_empty() && defaults.keys().all(|key| given.contains_key(key)) {
        return Ok(Inherited { params: complete, from: "options".to_owned(), notes: Vec::new() });
    }
    let mut notes = Vec::new();
    for segment in newest_first(&resolved.segments) {
        match method.recover_params(&segments.files(store, manifest, segment)?).await {
            Ok(recovered) => {
                let mut base = defaults.clone();
                let missing: Vec<&str> =
                    defaults.keys().filter(|key| !recovered.contains_key(*key)).map(String::as_str).collect();
                if !missing.is_empty() {
                    let text = format!(
                        "segment {} of {} does not record {}; the default of the method is used",
                        segment.uuid,
                        resolved.name,
                        missing.join(", ")
                    );
                    notes.push(Advice::info("params_not_recorded", text));
                }
                note_differences(&mut notes, &recovered, given, &segment.uuid.to_string());
                base.extend(recovered);
                return Ok(Inherited { params: method.merge_params(base, given)?, from: segment.uuid.to_string(), notes });
            }
            Err(error) if lost(error.code()) => {
                let text = format!("the parameters of segment {} could not be read back: {}", segment.uuid, error.message());
                notes.push(Advice::warning("params_not_recovered", text));
            }
            Err(error) => return Err(error),
        }
    }
    if !defaults.is_empty() {
        let text =
            format!("no segment of {} tells what it was built with; the defaults of {} are used", resolved.name, method.name());
        notes.push(Advice::warning("params_defaulted", text));
    }
    Ok(Inherited { params: complete, from: "defaults".to_owned(), notes })
}

/// Parameters of an index that is not there yet: the method's defaults with the caller's over them.
///
/// # Errors
/// `INVALID_ARGUMENT` for the caller's.
pub fn from_defaults(resolved: &Resolved<'_>, given: &Params) -> Result<Inherited> {
    let defaults = resolved.method.default_params();
    let all = !given.is_empty() && defaults.keys().all(|key| given.contains_key(key));
    let from = if all { "options" } else { "defaults" };
    let params = resolved.method.merge_params(defaults, given)?;
    Ok(Inherited { params, from: from.to_owned(), notes: Vec::new() })
}

fn note_differences(notes: &mut Vec<Advice>, recovered: &Params, given: &Params, uuid: &str) {
    for (key, value) in given {
        if let Some(old) = recovered.get(key).filter(|old| *old != value) {
            let text = format!("{key} is {value} by option; segment {uuid} was built with {old}");
            notes.push(Advice::info("params_overridden", text));
        }
    }
}

/// The file is damaged or of a kind that is not read: its parameters are lost, the refresh is not.
fn lost(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::CorruptFile | ErrorCode::UnsupportedEncoding | ErrorCode::UnsupportedFeature)
}

fn newest_first<'a>(segments: &[&'a IndexMetadata]) -> Vec<&'a IndexMetadata> {
    let mut list = segments.to_vec();
    list.reverse();
    sorted_by_key(list, |s| std::cmp::Reverse((s.created_at_ms, s.dataset_version)))
}
