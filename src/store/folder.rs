//! What is in a folder: listings of a [`Store`], in pages where the store lists in order.

use std::cmp::Ordering;

use object_store::ObjectMeta;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;

use super::fault::{FaultKind, fault_of, store_error};
use super::handle::{Store, status_of};
use super::retry::with_retries;
use crate::error::{Error, ErrorCode, Result};
use crate::lists::sorted_by;

/// Most names of one folder.
const LISTED: usize = 5_000_000;
/// One name of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Last path segment.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Entity tag, where the listing has one.
    pub etag: Option<String>,
    /// Modification time in Unix milliseconds, where the listing has one.
    pub modified_ms: Option<i64>,
}

impl Store {
    /// The objects directly below `dir` (not folders), sorted by name. A folder that does not exist is empty.
    pub async fn list(&self, dir: &str) -> Result<Vec<Entry>> {
        if self.pages.is_some() {
            let mut entries = Vec::new();
            let mut token = None;
            loop {
                let (page, next) = with_retries(&self.env, || self.page(dir, None, token.clone())).await?;
                entries.extend(page);
                if next.is_none() {
                    return Ok(each_once(entries));
                }
                if next == token || entries.len() > LISTED {
                    let text =
                        format!("the listing of {dir} does not end: its pages repeat themselves, or name over {LISTED} objects");
                    return Err(Error::new(ErrorCode::StoreUnreachable, text).with("object", dir));
                }
                token = next;
            }
        }
        with_retries(&self.env, || self.list_folder(dir)).await
    }

    /// Names of the folders directly below `dir`, sorted.
    pub async fn folders(&self, dir: &str) -> Result<Vec<String>> {
        let location = self.locate(dir)?;
        let below = |path: &Path| Some(path.as_ref().strip_prefix(location.as_ref())?.trim_matches('/').to_owned());
        let mut names = Vec::new();
        let mut token = None;
        loop {
            let (found, next) = match &self.pages {
                Some(pages) => {
                    with_retries(&self.env, || async {
                        let options =
                            PaginatedListOptions { delimiter: Some("/".into()), page_token: token.clone(), ..Default::default() };
                        let timer = self.start();
                        let listed = pages.list_paginated(Some(&format!("{location}/")), options).await;
                        self.finish(timer, "LIST", dir, None, 0, 0, status_of("LIST", &listed));
                        let page = listed.map_err(|error| listing_error(dir, &error))?;
                        Ok((page.result.common_prefixes, page.page_token))
                    })
                    .await?
                }
                None => {
                    with_retries(&self.env, || async {
                        let timer = self.start();
                        let listed = self.object.list_with_delimiter(Some(&location)).await;
                        self.finish(timer, "LIST", dir, None, 0, 0, status_of("LIST", &listed));
                        match listed {
                            Ok(list) => Ok((list.common_prefixes, None)),
                            Err(object_store::Error::NotFound { .. }) => Ok((Vec::new(), None)),
                            Err(error) => Err(listing_error(dir, &error)),
                        }
                    })
                    .await?
                }
            };
            names.extend(found.iter().filter_map(below).filter(|name| !name.is_empty() && !name.contains('/')));
            token = next;
            if token.is_none() {
                return Ok(sorted_by(names, Ord::cmp));
            }
        }
    }

    /// The first `max` objects below `dir` in name order and whether they are all. Stores that do not list in order give
    /// everything.
    pub async fn list_page(&self, dir: &str, max: usize) -> Result<(Vec<Entry>, bool)> {
        if self.pages.is_none() {
            return Ok((self.list(dir).await?, true));
        }
        let (entries, next) = with_retries(&self.env, || self.page(dir, Some(max), None)).await?;
        Ok((entries, next.is_none()))
    }

    async fn list_folder(&self, dir: &str) -> Result<Vec<Entry>> {
        let location = self.locate(dir)?;
        let timer = self.start();
        let listed = self.object.list_with_delimiter(Some(&location)).await;
        let status = status_of("LIST", &listed);
        self.finish(timer, "LIST", dir, None, 0, 0, status);
        let entries: Vec<Entry> = match listed {
            Ok(list) => list.objects.into_iter().filter_map(|meta| entry(&location, meta)).collect(),
            Err(object_store::Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(listing_error(dir, &error)),
        };
        Ok(each_once(entries))
    }

    async fn page(&self, dir: &str, max: Option<usize>, token: Option<String>) -> Result<(Vec<Entry>, Option<String>)> {
        let location = self.locate(dir)?;
        let pages = self.pages.as_ref().ok_or_else(|| Error::internal("the store does not list in pages"))?;
        let options =
            PaginatedListOptions { delimiter: Some("/".into()), max_keys: max, page_token: token, ..Default::default() };
        let timer = self.start();
        let listed = pages.list_paginated(Some(&format!("{location}/")), options).await;
        let status = status_of("LIST", &listed);
        self.finish(timer, "LIST", dir, None, 0, 0, status);
        let page = listed.map_err(|error| listing_error(dir, &error))?;
        let entries = page.result.objects.into_iter().filter_map(|meta| entry(&location, meta)).collect();
        Ok((entries, page.page_token))
    }
}

fn entry(folder: &Path, meta: ObjectMeta) -> Option<Entry> {
    let below = meta.location.as_ref().strip_prefix(folder.as_ref())?;
    let name = below.strip_prefix('/').unwrap_or(below);
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let modified_ms = Some(meta.last_modified.timestamp_millis()).filter(|ms| *ms != 0);
    Some(Entry { name: name.to_owned(), size: meta.size, etag: meta.e_tag, modified_ms })
}

fn listing_error(dir: &str, error: &object_store::Error) -> Error {
    let refused = match fault_of("LIST", error) {
        Some(fault) => matches!(fault.kind, FaultKind::Status(400..=499 | 501) | FaultKind::Listing),
        // An answer that is no listing: a server that serves the folder's page instead.
        None => true,
    };
    let found = store_error("LIST", dir, error);
    if refused { found.with("listing_refused", true) } else { found }
}

/// In name order; a listing that repeats a name has it once.
fn each_once(entries: Vec<Entry>) -> Vec<Entry> {
    let mut entries = sorted_by(entries, by_name);
    entries.dedup_by(|later, first| later.name == first.name);
    entries
}

fn by_name(a: &Entry, b: &Entry) -> Ordering {
    a.name.cmp(&b.name)
}
