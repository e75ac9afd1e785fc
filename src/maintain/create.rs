//! CREATE INDEX: at once in as many segments as asked for, or only its definition.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Result;
use crate::format::flags::check_write_tagged;
use crate::format::index_metadata::IndexMetadata;
use crate::refresh::plan::Creation;
use crate::refresh::resolve::{check_creatable, resolve_new};
use crate::refresh::{Absorb, RefreshOptions, RefreshPlan, plan_new};
use crate::table::Table;

/// Options of `planCreateIndex`; every key is optional.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CreateOptions {
    /// Segments to build, at least 1; never more than there are fragments. Default 1.
    pub segments: Option<u64>,
    /// Most bytes one build task may hold in memory.
    pub max_bytes: Option<u64>,
    /// Parameters of the method; what is not given is its default.
    pub params: Map<String, Value>,
    /// False: commit the definition only, and leave the rows to a refresh. Default true.
    pub train: bool,
    /// Replace an index of the same name on the same column. Default false.
    pub replace: bool,
}

impl Default for CreateOptions {
    fn default() -> CreateOptions {
        CreateOptions { segments: None, max_bytes: None, params: Map::new(), train: true, replace: false }
    }
}

/// Plans an index called `name` by `method` on `column`. Nothing is written. The column is held on to by its field id: it may
/// be renamed before the plan is run.
///
/// # Errors
/// `INDEX_EXISTS`, `COLUMN_NOT_FOUND`, `UNSUPPORTED_METHOD`, `UNSUPPORTED_TYPE`, `INVALID_ARGUMENT` for the name and the options,
/// `HISTORY_UNSUPPORTED` under a reuse history that may not be interpreted, `UNSUPPORTED_FEATURE` for a table that must not be written.
pub async fn plan_create_index(
    table: &Table,
    name: &str,
    column: &str,
    method: &str,
    options: CreateOptions,
) -> Result<RefreshPlan> {
    let file = table.manifest().clone();
    let resolved = resolve_new(&file.manifest.schema, name, column, method)?;
    let creation = Creation { train: options.train, replace: options.replace };
    let named: Vec<&IndexMetadata> = file.indices.iter().filter(|e| e.name == name).collect();
    check_creatable(name, resolved.field.id, creation, &named)?;
    table.derivable().await?;
    check_write_tagged(&file.manifest, &file.indices)?;
    let CreateOptions { segments, max_bytes, params, .. } = options;
    plan_new(table, &resolved, creation, &named, &RefreshOptions { segments, absorb: Absorb::None, max_bytes, params }).await
}
