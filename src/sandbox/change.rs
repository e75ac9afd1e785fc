//! What a change of data would do: rows that come, go, or move.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::choose::{RowChoice, choose};
use super::columns::generator_of;
use super::generate::{Value, repeated};
use super::run::next_row;
use crate::error::{Error, ErrorCode, Result};
use crate::format::flags::check_write;
use crate::format::fragment::Fragment;
use crate::format::schema::Schema;
use crate::refresh::plan::FORMAT;
use crate::rewrite::data_file::DataLayout;
use crate::table::Table;
use crate::table::column::field_type;

/// The kinds of plans made here.
pub const CHANGE_KINDS: [&str; 3] = ["append", "delete", "update"];
/// Rows of a fragment, when nothing is said: as many as Lance puts into one.
pub(super) const ROWS_PER_FRAGMENT: u64 = 1 << 20;
/// Most rows and fragments of one change.
pub(super) const MOST_ROWS: u64 = 20_000_000;
const MOST_FRAGMENTS: u64 = 10_000;
/// A fragment is held in memory until it is stored.
const MOST_BYTES: u64 = 512 << 20;
/// Rows that one update moves.
const MOST_MOVED: u64 = 1 << 20;

/// A change as it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRequest {
    /// `append`, `delete` or `update`.
    pub kind: String,
    /// Append: rows to add.
    #[serde(default)]
    pub rows: Option<u64>,
    /// Append: rows of a fragment.
    #[serde(default)]
    pub rows_per_fragment: Option<u64>,
    /// Delete, update: which rows.
    #[serde(default)]
    pub choice: Option<RowChoice>,
    /// Update: the new value of columns.
    #[serde(default)]
    pub set: Option<BTreeMap<String, Value>>,
}

/// One fragment that loses rows, and what it was when that was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Touched {
    /// Its id.
    pub fragment: u32,
    /// Rows it loses.
    pub rows: u64,
    /// Live rows it keeps; with none it goes.
    pub left: u64,
    /// Its data files.
    pub files: Vec<String>,
    /// Its deletion vector; null = nothing was deleted.
    pub deletion: Option<String>,
}

impl Touched {
    /// Whether the fragment is still what it was.
    pub(super) fn is(&self, fragment: &Fragment) -> bool {
        self.files == file_names(fragment) && self.deletion == deletion_name(fragment)
    }
}

fn file_names(fragment: &Fragment) -> Vec<String> {
    fragment.files.iter().map(|file| file.path.clone()).collect()
}

fn deletion_name(fragment: &Fragment) -> Option<String> {
    fragment.deletion_file.as_ref().map(|file| file.path(fragment.id))
}

/// A plan to change the data of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePlan {
    /// Format of this document.
    pub format: u32,
    /// `append`, `delete` or `update`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version the plan was made on.
    pub v_plan: u64,
    /// Rows that are added, deleted or updated.
    pub rows: u64,
    /// Append: number of the first row, which its generated values depend on.
    pub first_row: Option<u64>,
    /// Most rows of a new fragment.
    pub rows_per_fragment: u64,
    /// New fragments.
    pub new_fragments: u64,
    /// Delete, update: which rows were asked for.
    pub choice: Option<RowChoice>,
    /// Update: the new values.
    pub set: Option<BTreeMap<String, Value>>,
    /// Fragments that lose rows.
    pub touched: Vec<Touched>,
    /// About as many bytes of values are written.
    pub write_bytes: u64,
}

/// Plans a change. Nothing is written.
///
/// # Errors
/// `INVALID_ARGUMENT` for a request that means nothing, `MEMORY_LIMIT` for a fragment that would not fit, `UNSUPPORTED_FEATURE` for a
/// table that must not be written or has stable row ids, `UNSUPPORTED_TYPE` and `COLUMN_NOT_FOUND` naming columns, those of reading.
pub async fn plan_change(table: &Table, request: ChangeRequest) -> Result<ChangePlan> {
    let file = table.manifest();
    let manifest = &file.manifest;
    check_changeable(table)?;
    let mut plan = ChangePlan {
        format: FORMAT,
        kind: request.kind,
        table: table.store().uri(),
        branch: manifest.branch.clone(),
        v_plan: manifest.version,
        rows: 0,
        first_row: None,
        rows_per_fragment: request.rows_per_fragment.unwrap_or(ROWS_PER_FRAGMENT),
        new_fragments: 0,
        choice: None,
        set: None,
        touched: Vec::new(),
        write_bytes: 0,
    };
    let unused = |what: &str, given: bool| match given {
        true => Err(Error::invalid(format!("{what} means nothing for {}", plan.kind))),
        false => Ok(()),
    };
    match plan.kind.as_str() {
        "append" => {
            unused("choice", request.choice.is_some())?;
            unused("set", request.set.is_some())?;
            let rows = request.rows.filter(|rows| *rows > 0 && *rows <= MOST_ROWS).ok_or_else(|| {
                let given = request.rows.map_or("none".to_owned(), |rows| rows.to_string());
                Error::invalid(format!("an append adds 1 to {MOST_ROWS} rows, not {given}; nothing was changed"))
            })?;
            check_rows(&manifest.schema, rows, plan.rows_per_fragment)?;
            DataLayout::of(&manifest.schema, &manifest.data_storage_version)?;
            plan.first_row = Some(next_row(manifest));
            plan.rows = rows;
            plan.new_fragments = rows.div_ceil(plan.rows_per_fragment.max(1));
            plan.write_bytes = row_bytes(&manifest.schema)?.saturating_mul(rows);
        }
        "delete" | "update" => {
            unused("rows", request.rows.is_some())?;
            let choice = request.choice.unwrap_or_default();
            if plan.kind == "update" {
                let set = request.set.unwrap_or_default();
                check_set(table, &set)?;
                plan.set = Some(set);
            } else {
                unused("set", request.set.is_some())?;
            }
            for chosen in choose(table, &choice).await? {
                plan.rows = plan.rows.saturating_add(chosen.rows.len());
                plan.touched.push(Touched {
                    fragment: chosen.fragment.id,
                    rows: chosen.rows.len(),
                    left: chosen.physical.saturating_sub(chosen.gone().len()),
                    files: file_names(&chosen.fragment),
                    deletion: deletion_name(&chosen.fragment),
                });
            }
            plan.choice = Some(choice);
            if plan.kind == "update" {
                if plan.rows > MOST_MOVED {
                    let text =
                        format!("an update moves at most {MOST_MOVED} rows at once, not {}; nothing was changed", plan.rows);
                    return Err(Error::new(ErrorCode::MemoryLimit, text).with("rows", plan.rows));
                }
                plan.new_fragments = plan.rows.div_ceil(plan.rows_per_fragment.max(1));
                plan.write_bytes = written_bytes(&manifest.schema).saturating_mul(plan.rows);
            }
        }
        other => return Err(Error::invalid(format!("a change is one of {}, not {other:?}", CHANGE_KINDS.join(", ")))),
    }
    if plan.rows_per_fragment == 0 {
        return Err(Error::invalid("rows_per_fragment is at least 1"));
    }
    Ok(plan)
}

/// Refuses tables whose data is not changed here.
pub(super) fn check_changeable(table: &Table) -> Result<()> {
    let file = table.manifest();
    check_write(&file.manifest, &file.indices)?;
    if file.manifest.has_stable_row_ids() {
        let text =
            "the table has stable row ids: this build does not append to, delete from or update such tables; nothing was changed";
        return Err(Error::new(ErrorCode::UnsupportedFeature, text));
    }
    Ok(())
}

/// Refuses numbers of rows that nobody means, and fragments that do not fit into memory.
pub(super) fn check_rows(schema: &Schema, rows: u64, per_fragment: u64) -> Result<()> {
    if per_fragment == 0 || per_fragment > u64::from(u32::MAX) {
        return Err(Error::invalid(format!("a fragment has 1 to {} rows, not {per_fragment}", u32::MAX)));
    }
    let fragments = rows.div_ceil(per_fragment);
    if fragments > MOST_FRAGMENTS {
        return Err(Error::invalid(format!("at most {MOST_FRAGMENTS} fragments are added at once, not {fragments}")));
    }
    let bytes = row_bytes(schema)?.saturating_mul(rows.min(per_fragment));
    if bytes > MOST_BYTES {
        let text = format!(
            "a fragment of {} rows takes about {bytes} bytes, over {MOST_BYTES}: give fewer rows_per_fragment",
            rows.min(per_fragment)
        );
        return Err(Error::new(ErrorCode::MemoryLimit, text).with("bytes", bytes));
    }
    Ok(())
}

/// About how many bytes a generated row takes; refuses columns that have no generator.
fn row_bytes(schema: &Schema) -> Result<u64> {
    let mut sum = 0u64;
    for field in schema.children(-1) {
        sum = sum.saturating_add(generator_of(schema, field)?.value_bytes(&field_type(schema, field)?));
    }
    Ok(sum)
}

/// The same of rows that are only moved: any column has some width.
fn written_bytes(schema: &Schema) -> u64 {
    let width = |field| field_type(schema, field).ok().and_then(|ty| ty.primitive_width()).unwrap_or(32) as u64;
    schema.children(-1).map(width).sum()
}

fn check_set(table: &Table, set: &BTreeMap<String, Value>) -> Result<()> {
    let manifest = &table.manifest().manifest;
    if set.is_empty() {
        return Err(Error::invalid("an update says what is set: set = { column: value }"));
    }
    let layout = DataLayout::of(&manifest.schema, &manifest.data_storage_version)?;
    for (path, value) in set {
        let field = manifest.schema.resolve(path)?;
        let column = layout.columns().iter().find(|column| column.field == field.id).ok_or_else(|| {
            Error::new(
                ErrorCode::UnsupportedFeature,
                format!("column {path} lies inside another one: only whole columns are set"),
            )
        })?;
        if *value == Value::Null(()) && !column.nullable {
            return Err(Error::invalid(format!("column {path} takes no nulls")).with("column", path.as_str()));
        }
        repeated(value, &column.data_type, 1).map_err(|error| {
            Error::new(error.code(), format!("column {path}: {}", error.message())).with("column", path.as_str())
        })?;
    }
    Ok(())
}
