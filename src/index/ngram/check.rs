//! Trigrams of rows and entries of the file, for an audit.

use arrow::array::{Array, ArrayRef};
use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::check::{KeyCheck, key};
use crate::index::keyed::entries;
use crate::index::ngram::build::text;
use crate::index::ngram::trigram::{Folder, NULL};
use crate::index::ngram::{FILE, NAMES};

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

    async fn entries(&self, segment: &SegmentFiles, each: &mut dyn FnMut(u64, u64)) -> Result<()> {
        entries(segment, FILE, NAMES, each).await
    }
}
