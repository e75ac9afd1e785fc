//! What is inside the segments of an index, as their method tells it.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::index::parts::PARTS_LISTED;
use crate::refresh::files::segment_files;
use crate::refresh::resolve::resolve;
use crate::table::Table;

/// How much to list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PartsOptions {
    /// Parts to leave out at the beginning.
    pub offset: u64,
    /// Most parts to list of a segment: [`PARTS_LISTED`] when absent, and never more than
    /// [`PARTS_MOST`](crate::index::parts::PARTS_MOST).
    pub limit: Option<u64>,
}

impl PartsOptions {
    fn range(&self) -> std::ops::Range<u64> {
        self.offset..self.offset.saturating_add(self.limit.unwrap_or(PARTS_LISTED))
    }
}

/// One document a segment, in the order of the manifest, with the summary and the parts (pages, zones, keys or tokens) asked
/// for; a segment that cannot be read says why.
///
/// # Errors
/// Those of finding the index; `UNSUPPORTED_METHOD` for methods that are not maintained.
pub async fn inspect(table: &Table, index: &str, options: &PartsOptions) -> Result<Vec<Value>> {
    let manifest = &table.manifest().manifest;
    let resolved = resolve(table.indices().await?, &manifest.schema, index)?;
    let mut documents = Vec::with_capacity(resolved.segments.len());
    for entry in &resolved.segments {
        let files = segment_files(table.store(), manifest, entry)?;
        let contents = resolved.method.inspect(&files).await.unwrap_or_else(failure);
        let parts = match contents.get("error") {
            Some(_) => Value::Null,
            None => resolved.method.parts(&files, options.range()).await.map_or_else(failure, |parts| parts.document()),
        };
        documents.push(json!({ "uuid": entry.uuid.to_string(), "contents": contents, "parts": parts }));
    }
    Ok(documents)
}

fn failure(error: Error) -> Value {
    json!({ "error": {
        "code": error.code().as_str(), "message": error.message(), "detail": error.detail(), "changed": error.changed(),
    } })
}

/// Parts of one segment; nothing else of it is read.
///
/// # Errors
/// Those of [`inspect`], `INVALID_ARGUMENT` for a segment the index does not have, and those of reading the files.
pub async fn parts(table: &Table, index: &str, uuid: &str, options: &PartsOptions) -> Result<Value> {
    let manifest = &table.manifest().manifest;
    let resolved = resolve(table.indices().await?, &manifest.schema, index)?;
    let Some(entry) = resolved.segments.iter().find(|entry| entry.uuid.to_string().eq_ignore_ascii_case(uuid)) else {
        let text = format!("the index {} has no segment {uuid} in version {}", resolved.name, table.version());
        return Err(Error::invalid(text).with("index", resolved.name.as_str()).with("uuid", uuid));
    };
    let files = segment_files(table.store(), manifest, entry)?;
    Ok(resolved.method.parts(&files, options.range()).await?.document())
}
