//! Tables to try things on: made, appended to, deleted from and updated on any store, as Lance does it (table-format §8.2, §11.4).
//!
//! Nothing here is a model: manifests, transactions, data files and deletion vectors are real, they go through the commit loop that
//! everything goes through, and pylance opens, validates and goes on with the result.
//! `columns` turns a request into a schema, `generate` says which value a row has (the same on every machine), `choose` which
//! rows a condition means, `create` makes version 1, `change` plans what follows and `run` carries it out.

mod cell;
mod change;
mod choose;
mod columns;
mod condition;
mod create;
mod generate;
mod run;
#[cfg(test)]
mod tests;

pub use change::{CHANGE_KINDS, ChangePlan, ChangeRequest, plan_change};
pub use choose::RowChoice;
pub use columns::ColumnSpec;
pub use create::{SandboxRequest, create_sandbox};
pub use run::{ChangeReport, OnRows, count_no_rows, run_change};
