//! What is inside the segments of an index, as their method tells it.

use serde_json::{Value, json};

use crate::error::Result;
use crate::refresh::files::segment_files;
use crate::refresh::resolve::resolve;
use crate::table::Table;

/// One document a segment, in the order of the manifest; a segment that cannot be read says why.
///
/// # Errors
/// Those of finding the index; `UNSUPPORTED_METHOD` for methods that are not maintained.
pub async fn inspect(table: &Table, index: &str) -> Result<Vec<Value>> {
    let manifest = &table.manifest().manifest;
    let resolved = resolve(table.indices().await?, &manifest.schema, index)?;
    let mut documents = Vec::with_capacity(resolved.segments.len());
    for entry in &resolved.segments {
        let files = segment_files(table.store(), manifest, entry)?;
        let contents = match resolved.method.inspect(&files).await {
            Ok(contents) => contents,
            Err(error) => json!({ "error": { "code": error.code().as_str(), "message": error.message() } }),
        };
        documents.push(json!({ "uuid": entry.uuid.to_string(), "contents": contents }));
    }
    Ok(documents)
}
