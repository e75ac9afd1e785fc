//! Statements about indexes and layout, turned into the calls that answer them.
//!
//! `text` walks over the tokens of sqlparser and says, with a caret, what it did not expect. `statement` is the grammar.
//! `options` are those of `WITH (…)`: names in any case, each at most once, none that is not used. `run` looks at a table and
//! answers: rows for `SHOW`, a plan for everything that changes something (the caller runs it, unless it was asked to
//! `EXPLAIN` only). `show` makes the rows, `explain` those of a plan.

mod explain;
mod options;
mod run;
mod show;
mod statement;
mod text;

pub use run::{SqlAnswer, SqlPlan, answer};
pub use statement::{Listing, Statement, Verb, parse};
