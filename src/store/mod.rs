//! Objects below one root, wherever they are: everything the engine reads or writes goes through [`Store`].
//!
//! `handle` is the store itself (ranges, retries, create-if-absent) over any `object_store::ObjectStore`; `meter` counts and
//! reports requests; `fault` is what went wrong on the wire and which error that makes.

mod fault;
mod handle;
mod meter;
mod retry;

pub use fault::{Fault, FaultKind, is_listing_refused, is_not_found};
pub use handle::{Created, Entry, Payload, Store, StoreKind};
pub use meter::{Meter, RequestCounts, RequestHook, RequestRecord};
