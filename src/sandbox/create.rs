//! A table is made: its first manifest, and the rows it begins with.

use std::collections::HashMap;

use prost::Message;
use serde::Deserialize;

use super::change::{MOST_ROWS, ROWS_PER_FRAGMENT, check_rows};
use super::columns::{ColumnSpec, fields_of};
use super::run::{NEXT_ROW, OnRows, SEED, Staged, append_rows, give_up};
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::fragment_change::FragmentChange;
use crate::format::manifest::{Manifest, ManifestFile};
use crate::format::next_manifest::NextManifest;
use crate::format::proto;
use crate::format::transaction::Transaction;
use crate::format::wire;
use crate::rewrite::data_file::DataLayout;
use crate::store::Store;
use crate::table::commit::{CommitOutcome, NextVersion};
use crate::table::{At, Table};

/// `Overwrite` (table-format §8.2) and its fields.
const OVERWRITE: u32 = 102;
const FRAGMENTS: u32 = 1;
const SCHEMA: u32 = 2;

/// A table to be made.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxRequest {
    /// Its columns, in order.
    pub columns: Vec<ColumnSpec>,
    /// Rows it begins with; 0 when absent.
    #[serde(default)]
    pub rows: u64,
    /// Rows of a fragment; about a million when absent.
    #[serde(default)]
    pub rows_per_fragment: Option<u64>,
    /// What the generated values depend on besides column and row; 0 when absent.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Version of its data files, `2.0`, `2.1` or `2.2`; `2.0` when absent, the one in which lists are written.
    #[serde(default)]
    pub data_storage_version: Option<String>,
}

/// Makes a table at `store`, where there must be none, and opens it. `on_rows` is told while rows are written.
///
/// # Errors
/// `INVALID_ARGUMENT` for a request that means nothing and where there is a table already, `UNSUPPORTED_TYPE` for a column that
/// cannot be generated or written, those of the store. What was written is removed again, as far as it is certain that nothing was
/// committed.
pub async fn create_sandbox(store: &Store, request: &SandboxRequest, on_rows: &OnRows<'_>) -> Result<Table> {
    let base = empty_table(request)?;
    let schema = base.manifest.schema.clone();
    let layout = DataLayout::of(&schema, &base.manifest.data_storage_version)?;
    let per_fragment = request.rows_per_fragment.unwrap_or(ROWS_PER_FRAGMENT);
    check_rows(&schema, request.rows, per_fragment)?;
    if request.rows > MOST_ROWS {
        return Err(Error::invalid(format!("at most {MOST_ROWS} rows are generated at once, not {}", request.rows)));
    }
    match Table::open(store.clone(), At::Latest, None).await {
        Ok(table) => {
            let text =
                format!("there is a table at {} already, at version {}; nothing was changed", store.uri(), table.version());
            return Err(Error::invalid(text).with("version", table.version()));
        }
        Err(error) if error.code() == ErrorCode::TableNotFound => {}
        Err(error) => return Err(error),
    }
    store.may_commit()?;
    let unborn = Table::unborn(store.clone(), base);
    let mut staged = Staged::default();
    let written = append_rows(&unborn, &layout, 0..request.rows, per_fragment, &mut staged, on_rows).await;
    let fragments = match written {
        Ok(fragments) => fragments,
        Err(error) => return Err(give_up(store, error, &staged).await),
    };
    let mut body = Vec::new();
    for fragment in &fragments {
        wire::put_len_field(&mut body, FRAGMENTS, &fragment.encode());
    }
    for field in wire::split("the schema", &unborn.manifest().manifest.raw)?.iter().filter(|field| field.number == 1) {
        wire::put_len_field(&mut body, SCHEMA, &field.value);
    }
    let transaction = Transaction::of_operation(0, store.env().uuid(), OVERWRITE, &body)?;
    let change = FragmentChange {
        added: fragments.iter().map(|fragment| fragment.encode()).collect(),
        metadata: [(NEXT_ROW.to_owned(), request.rows.to_string())].into(),
        ..FragmentChange::default()
    };
    let manifest = NextManifest {
        base: unborn.manifest(),
        indices: Vec::new(),
        transaction: &transaction,
        transaction_file: transaction.file_name(),
        now_ms: store.env().now_ms(),
        fragments: Some(&change),
    }
    .encode()?;
    let lost = |why: String| Error::new(ErrorCode::CommitConflict, format!("the table at {} was not made: {why}", store.uri()));
    match unborn.put_next(NextVersion { version: 1, manifest, transaction: &transaction }).await {
        Ok(CommitOutcome::Landed(table)) => Ok(table),
        Ok(CommitOutcome::Lost { why, .. }) => Err(give_up(store, lost(why), &staged).await),
        Ok(CommitOutcome::Overtaken { .. }) => Err(give_up(store, lost("there was one before".to_owned()), &staged).await),
        Ok(CommitOutcome::Unknown(error)) => Err(error.with_changed(Changed::Unknown)),
        Err(error) => Err(give_up(store, error, &staged).await),
    }
}

/// Version 0 of the table: its schema and nothing else.
fn empty_table(request: &SandboxRequest) -> Result<ManifestFile> {
    let version = request.data_storage_version.clone().unwrap_or_else(|| "2.0".to_owned());
    let message = proto::Manifest {
        fields: fields_of(&request.columns)?,
        data_format: Some(proto::DataFormat { file_format: "lance".to_owned(), version }),
        table_metadata: HashMap::from([(SEED.to_owned(), request.seed.unwrap_or(0).to_string())]),
        ..proto::Manifest::default()
    };
    if !["2.0", "2.1", "2.2"].contains(&message.data_format.as_ref().map_or("", |format| format.version.as_str())) {
        return Err(Error::invalid("data_storage_version is 2.0, 2.1 or 2.2"));
    }
    let manifest = Manifest::parse("the new table", message.encode_to_vec().into())?;
    Ok(ManifestFile { manifest, ..ManifestFile::default() })
}
