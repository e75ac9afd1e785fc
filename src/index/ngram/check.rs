//! Trigrams of rows and entries of the file, for an audit, and the rows of a needle, for a probe.

use arrow::array::{Array, ArrayRef};
use async_trait::async_trait;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::check::{KeyCheck, key};
use crate::index::keyed::{Keys, entries};
use crate::index::ngram::build::text;
use crate::index::ngram::read::tokens;
use crate::index::ngram::trigram::{Folder, NULL};
use crate::index::ngram::{FILE, NAMES};
use crate::index::probe::{Matches, Query};

pub(super) struct Entries;

#[async_trait(?Send)]
impl KeyCheck for Entries {
    fn keys(&self, values: &ArrayRef, each: &mut dyn FnMut(u64)) -> Result<()> {
        let mut folder = Folder::new();
        let mut codes: Vec<u32> = Vec::new();
        for slot in 0..values.len() {
            codes.clear();
            if values.is_null(slot) {
                codes.push(NULL);
            } else {
                let text = text(values, slot).ok_or_else(|| Error::internal("an array of texts has no readable values"))?;
                folder.codes(text, |code| codes.push(code));
                codes.sort_unstable();
                codes.dedup();
            }
            each(codes.iter().fold(0, |sum, code| sum.wrapping_add(key(&code.to_le_bytes()))));
        }
        Ok(())
    }

    fn exact(&self) -> bool {
        false
    }

    async fn entries(&self, segment: &SegmentFiles, each: &mut dyn FnMut(usize, u64, u64)) -> Result<()> {
        entries(segment, FILE, NAMES, each).await
    }
}

pub(super) async fn probe(segment: &SegmentFiles, query: &Query) -> Result<Matches> {
    let mut wanted: Vec<u32> = Vec::new();
    Folder::new().codes(&String::from_utf8_lossy(&query.value), |code| wanted.push(code));
    wanted.sort_unstable();
    wanted.dedup();
    if wanted.is_empty() {
        // The index tells nothing of a needle without a trigram: every row has to be looked at.
        return Ok(Matches::default());
    }
    let mut keys = Keys::open(segment, FILE, &segment.open(FILE).await?, NAMES)?;
    let (mut found, mut rows) = (0, None::<RoaringTreemap>);
    while let Some((values, bitmaps)) = keys.next().await? {
        for (row, token) in tokens(segment, &values)?.values().iter().enumerate() {
            if wanted.binary_search(token).is_ok() {
                found += 1;
                let with = keys.rows(&bitmaps, row)?;
                rows = Some(rows.map_or_else(|| with.clone(), |rows| rows & &with));
            }
        }
    }
    // A trigram that no row has leaves none.
    let rows = rows.filter(|_| found == wanted.len()).unwrap_or_default();
    Ok(Matches { exact: false, rows: Some(rows), ..Matches::default() })
}
