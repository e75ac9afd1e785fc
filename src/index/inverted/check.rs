//! Tokens of rows and of documents, for an audit.
//!
//! A row is under the keys of its tokens. How often it has each, where, and how many it has in all are held against it apart,
//! as a wrong one of these leaves the row found, with another score or not by a phrase.

use arrow::array::{Array, ArrayRef};
use async_trait::async_trait;

use super::analyze::Analyzer;
use super::build::text_at;
use super::read::{documents, each_list, head};
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::check::{Aspect, KeyCheck, key};

/// Numbers of the sums.
const TOKENS: usize = 0;
const FREQUENCIES: usize = 1;
const POSITIONS: usize = 2;
const LENGTH: usize = 3;

static ASPECTS: [Aspect; 3] = [
    Aspect { code: "WRONG_FREQUENCY", text: "has its tokens counted otherwise than its text has them: it is ranked wrongly" },
    Aspect { code: "WRONG_POSITION", text: "has its tokens at other places than its text: phrases find it wrongly" },
    Aspect { code: "WRONG_LENGTH", text: "is recorded with another number of tokens than its text has: it is ranked wrongly" },
];

/// The documents of segments that were built with the same settings.
pub(super) struct Documents(pub Settings);

fn frequency(token: u64, frequency: u32) -> u64 {
    token.wrapping_mul(u64::from(frequency))
}

fn spot(token: u64, position: u32) -> u64 {
    mixed(token, position)
}

fn length(tokens: u32) -> u64 {
    mixed(u64::MAX, tokens)
}

fn mixed(a: u64, b: u32) -> u64 {
    let mut bytes = [0; 12];
    bytes.iter_mut().zip(a.to_le_bytes().into_iter().chain(b.to_le_bytes())).for_each(|(slot, byte)| *slot = byte);
    key(&bytes)
}

#[async_trait(?Send)]
impl KeyCheck for Documents {
    fn keys(&self, values: &ArrayRef, each: &mut dyn FnMut(u64)) -> Result<()> {
        let mut analyzer = Analyzer::new(&self.0)?;
        let mut joined = String::new();
        let mut tokens: Vec<u64> = Vec::new();
        for row in 0..values.len() {
            tokens.clear();
            let mut sums = [0u64; 4];
            if let Some(text) = text_at(values, row, &mut joined)? {
                let [_, frequencies, positions, _] = &mut sums;
                analyzer.each(text, &mut |token, position, _| {
                    let token = key(token.as_bytes());
                    tokens.push(token);
                    *frequencies = frequencies.wrapping_add(frequency(token, 1));
                    if self.0.with_position {
                        *positions = positions.wrapping_add(spot(token, position));
                    }
                });
            }
            if let Ok(count) = u32::try_from(tokens.len())
                && count > 0
            {
                tokens.sort_unstable();
                tokens.dedup();
                let [distinct, _, _, own] = &mut sums;
                *distinct = tokens.iter().fold(0, |sum, token| sum.wrapping_add(*token));
                *own = length(count);
            }
            sums.into_iter().for_each(&mut *each);
        }
        Ok(())
    }

    fn aspects(&self) -> &'static [Aspect] {
        &ASPECTS
    }

    async fn entries(&self, segment: &SegmentFiles, each: &mut dyn FnMut(usize, u64, u64)) -> Result<()> {
        let head = head(segment).await?;
        for partition in &head.partitions {
            let documents = documents(segment, *partition).await?;
            // A reader passes over documents of fragments that are marked as deleted.
            let row = |document: u32| {
                let row = documents.rows.get(document as usize)?;
                Some((*row, head.deleted.contains((*row >> 32) as u32)))
            };
            for (row, tokens) in documents.rows.iter().zip(&documents.lengths) {
                if !head.deleted.contains((*row >> 32) as u32) {
                    each(LENGTH, length(*tokens), *row);
                }
            }
            each_list(segment, &head, *partition, &mut |list| {
                let token = key(list.text.as_bytes());
                let mut outside = false;
                let read = list.each(&mut |document, count, deltas| match row(document) {
                    None => outside = true,
                    Some((_, true)) => {}
                    Some((row, false)) => {
                        each(TOKENS, token, row);
                        each(FREQUENCIES, frequency(token, count), row);
                        let mut at = 0u32;
                        for delta in deltas {
                            at = at.wrapping_add(*delta);
                            each(POSITIONS, spot(token, at), row);
                        }
                    }
                });
                match read {
                    Some(()) if !outside => Ok(()),
                    Some(()) => Err(Error::corrupt(&segment.label(list.file), "a posting of no document")),
                    None => Err(list.damaged(segment)),
                }
            })
            .await?;
        }
        Ok(())
    }
}
