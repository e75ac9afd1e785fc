//! Objects below one root, wherever they are: everything the engine reads or writes goes through [`Store`].
//!
//! `handle` is the store itself (ranges, retries, create-if-absent) over any `object_store::ObjectStore`, `folder` its listings;
//! `target` opens one from a `descriptor`. Back ends: `dav` (HTTP, WebDAV), `s3`, `rest` (Azure, GCS, signed addresses; `listing`
//! reads their pages), both as `verbs`, `host` (callbacks; `local` on std's files), memory. `trust` knows whether a store may decide a commit. Every HTTP
//! request passes `service`: `permits` in flight, `normalise` for what servers answer, `meter` for counts and the log, and
//! `fault` for what went wrong on the wire. `fetch` is the transport of wasm.

mod crypto;
mod dav;
mod descriptor;
mod fault;
#[cfg(target_arch = "wasm32")]
mod fetch;
mod folder;
mod handle;
mod host;
mod listing;
#[cfg(not(target_arch = "wasm32"))]
mod local;
mod meter;
mod normalise;
mod permits;
mod plain;
mod rest;
mod retry;
mod s3;
mod service;
mod target;
mod trust;
mod verbs;

pub use dav::DavStore;
pub use descriptor::{StoreDescriptor, TargetKind};
pub use fault::{Fault, FaultKind, is_listing_refused, is_not_found};
pub use folder::Entry;
pub use handle::{Created, Payload, Store, StoreKind};
pub use host::{HostEntry, HostIo, HostRead, HostStore};
#[cfg(not(target_arch = "wasm32"))]
pub use local::LocalIo;
pub use meter::{Meter, RequestCounts, RequestHook, RequestRecord};
pub use rest::{ContainerAddress, RequestSigner, RestStore, Service, TokenSource, Unsigned};
pub use s3::{BucketAddress, S3Store};
pub use service::StoreService;
pub use target::{Surroundings, open_target};
pub use trust::Commits;
