//! The only part that knows JavaScript. It is thin: it turns arguments into ours, starts a task, and turns the outcome back.
//!
//! Every asynchronous export answers a task number at once; its outcome arrives through the host's `settle` (see `task`).
//! Tables are numbers too, so that a handle JavaScript forgot, or kept after a crash, can do no harm.

#[cfg(feature = "full")]
mod audit;
mod build;
mod columns;
mod convert;
#[cfg(feature = "full")]
mod forecast;
mod host;
mod jobs;
#[cfg(feature = "full")]
mod leftovers;
mod memory;
mod objects;
#[cfg(feature = "full")]
mod rewrite;
#[cfg(feature = "full")]
mod sandbox;
#[cfg(feature = "full")]
mod sql;
mod store;
mod table;
mod task;
#[cfg(feature = "full")]
mod upkeep;
#[cfg(feature = "full")]
mod values;
