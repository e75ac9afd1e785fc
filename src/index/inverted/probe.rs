//! Searching a segment: the documents of words, phrases and both combined. Ranking is left to Lance; which rows are found is not
//! a matter of scores.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Field, UInt32Type};
use roaring::{RoaringBitmap, RoaringTreemap};

use super::analyze::Analyzer;
use super::posting::Tail;
use super::read::{Head, List, column, documents, head, numbers, token_set, tokens};
use super::settings::Settings;
use super::{invert_file, tokens_file};
use crate::error::{Error, ErrorCode, Result};
use crate::index::SegmentFiles;
use crate::index::probe::{Matches, Op, Query};

/// What a document has to have.
enum Clause {
    Any(Vec<String>),
    All(Vec<String>),
    /// Tokens with their places relative to each other.
    Phrase(Vec<(String, u32)>),
}

pub(super) async fn probe(segment: &SegmentFiles, query: &Query) -> Result<Matches> {
    let head = head(segment).await?;
    if !head.readable() {
        let text = format!("the postings of segment {} are of a format that is not searched here", segment.entry().uuid);
        return Err(Error::new(ErrorCode::UnsupportedFeature, text));
    }
    let mut analyzer = Analyzer::new(&Settings::parse(&head.params)?)?;
    let text = String::from_utf8_lossy(&query.value);
    let (mut must, mut must_not, mut should) = (Vec::new(), Vec::new(), Vec::new());
    match query.op {
        Op::Boolean => {
            for part in parts(&text) {
                let clause = clause(&mut analyzer, part.text, if part.phrase { Op::Phrase } else { Op::Match });
                match part.sign {
                    Some('+') => must.push(clause),
                    Some(_) => must_not.push(clause),
                    None => should.push(clause),
                }
            }
            if must.is_empty() && should.is_empty() {
                return Err(Error::invalid("a boolean search names at least one word without `-`"));
            }
        }
        op => must.push(clause(&mut analyzer, &text, op)),
    }
    let phrases = must.iter().chain(&must_not).chain(&should).any(|clause| matches!(clause, Clause::Phrase(_)));
    if phrases && !head.positions {
        let name = &segment.entry().name;
        return Err(Error::invalid(format!("index {name} was built without positions, so that it finds no phrases")));
    }
    let mut rows = RoaringTreemap::new();
    for partition in &head.partitions {
        let mut lists = Lists { segment, head: &head, partition: *partition, known: HashMap::new() };
        let mut found: Option<RoaringBitmap> = None;
        for clause in &must {
            let with = lists.meet(clause).await?;
            found = Some(found.map_or_else(|| with.clone(), |found| found & &with));
        }
        if must.is_empty() {
            let mut any = RoaringBitmap::new();
            for clause in &should {
                any |= lists.meet(clause).await?;
            }
            found = Some(any);
        }
        let mut found = found.unwrap_or_default();
        for clause in &must_not {
            found -= lists.meet(clause).await?;
        }
        let documents = documents(segment, *partition).await?;
        let ids = found.iter().filter_map(|document| documents.rows.get(document as usize));
        rows.extend(ids.copied().filter(|row| !head.deleted.contains((*row >> 32) as u32)));
    }
    Ok(Matches { exact: true, rows: Some(rows), ..Matches::default() })
}

/// A word or phrase of a boolean search.
struct Part<'a> {
    sign: Option<char>,
    phrase: bool,
    text: &'a str,
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let sign = rest.chars().next().filter(|sign| matches!(sign, '+' | '-'));
        rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let (phrase, (text, after)) = match rest.strip_prefix('"') {
            Some(inside) => (true, inside.split_once('"').unwrap_or((inside, ""))),
            None => (false, rest.split_once(char::is_whitespace).unwrap_or((rest, ""))),
        };
        if !text.is_empty() {
            parts.push(Part { sign, phrase, text });
        }
        rest = after.trim_start();
    }
    parts
}

fn clause(analyzer: &mut Analyzer, text: &str, op: Op) -> Clause {
    let mut tokens: Vec<(String, u32)> = Vec::new();
    analyzer.each(text, &mut |token, position, _| tokens.push((token.to_owned(), position)));
    let words = |tokens: Vec<(String, u32)>| tokens.into_iter().map(|(token, _)| token).collect();
    match op {
        Op::Phrase => Clause::Phrase(tokens),
        Op::MatchAll => Clause::All(words(tokens)),
        _ => Clause::Any(words(tokens)),
    }
}

/// Documents of a token with the places of it, which are empty without positions.
type Postings = Arc<Vec<(u32, Vec<u32>)>>;

/// The posting lists of a partition, each read once.
struct Lists<'a> {
    segment: &'a SegmentFiles,
    head: &'a Head,
    partition: u64,
    known: HashMap<String, Postings>,
}

impl Lists<'_> {
    /// The documents that a clause finds; one without a token finds none.
    async fn meet(&mut self, clause: &Clause) -> Result<RoaringBitmap> {
        match clause {
            Clause::Any(words) => {
                let mut any = RoaringBitmap::new();
                for word in words {
                    any |= self.documents(word).await?;
                }
                Ok(any)
            }
            Clause::All(words) => self.all(words.iter().map(String::as_str).collect()).await,
            Clause::Phrase(words) => {
                let mut found = self.all(words.iter().map(|(word, _)| word.as_str()).collect()).await?;
                let Some((_, first)) = words.first() else { return Ok(found) };
                let mut starts: HashMap<u32, Vec<u32>> = HashMap::new();
                for (at, (word, place)) in words.iter().enumerate() {
                    let list = self.list(word).await?;
                    let mut next = HashMap::new();
                    for (document, places) in list.iter() {
                        if !found.contains(*document) {
                            continue;
                        }
                        let begins = places.iter().filter_map(|here| here.checked_sub(place.wrapping_sub(*first)));
                        let begins: Vec<u32> = match starts.get(document) {
                            Some(before) => begins.filter(|start| before.binary_search(start).is_ok()).collect(),
                            None if at == 0 => begins.collect(),
                            None => Vec::new(),
                        };
                        if begins.is_empty() {
                            found.remove(*document);
                        } else {
                            next.insert(*document, begins);
                        }
                    }
                    starts = next;
                }
                Ok(found)
            }
        }
    }

    async fn all(&mut self, words: Vec<&str>) -> Result<RoaringBitmap> {
        let mut found: Option<RoaringBitmap> = None;
        for word in words {
            let with = self.documents(word).await?;
            found = Some(found.map_or_else(|| with.clone(), |found| found & &with));
        }
        Ok(found.unwrap_or_default())
    }

    async fn documents(&mut self, word: &str) -> Result<RoaringBitmap> {
        Ok(self.list(word).await?.iter().map(|(document, _)| *document).collect())
    }

    /// The posting list of a token; only its row of the file is read.
    async fn list(&mut self, word: &str) -> Result<Postings> {
        if let Some(known) = self.known.get(word) {
            return Ok(known.clone());
        }
        let list = match self.number(word).await? {
            Some(token) => self.read(word, token).await?,
            None => Vec::new(),
        };
        let list = Arc::new(list);
        self.known.insert(word.to_owned(), list.clone());
        Ok(list)
    }

    async fn number(&self, word: &str) -> Result<Option<u64>> {
        let name = tokens_file(self.partition);
        if self.head.tokens == "fst" {
            let file = self.segment.open(&name).await?;
            return Ok(token_set(self.segment, &name, &file).await?.get(word));
        }
        let count = self.segment.open(&invert_file(self.partition)).await?.rows();
        let texts = tokens(self.segment, self.head, self.partition, count).await?;
        Ok(texts.iter().position(|text| text == word).map(|at| at as u64))
    }

    async fn read(&self, word: &str, token: u64) -> Result<Vec<(u32, Vec<u32>)>> {
        let name = invert_file(self.partition);
        let file = self.segment.open(&name).await?;
        let corrupt = |what: String| Error::corrupt(&self.segment.label(&name), what);
        if token >= file.rows() {
            return Err(corrupt(format!("there is no list of token {token}")));
        }
        let blobs = DataType::List(Arc::new(Field::new("item", DataType::LargeBinary, true)));
        let at = file.list_column("_posting").ok_or_else(|| corrupt("has no lists `_posting`".to_owned()))?;
        let row = token..token + 1;
        let lists = file.scan(at, &blobs, false, row.clone()).next().await?;
        let counts = numbers::<UInt32Type>(self.segment, &name, &file, "_length").await?;
        let spots = match self.head.positions {
            true => {
                let at = column(self.segment, &name, &file, "_compressed_position")?;
                file.scan(at, &DataType::LargeBinary, false, row).next().await?
            }
            false => None,
        };
        let blocks = lists.as_ref().and_then(|lists| lists.as_list_opt::<i32>()).filter(|lists| lists.len() == 1);
        let blocks = blocks.map(|lists| lists.value(0));
        let (Some(blocks), Some(length)) =
            (blocks.as_ref().and_then(|blocks| blocks.as_binary_opt::<i64>()), counts.get(token as usize))
        else {
            return Err(corrupt(format!("the postings of token {token} are damaged")));
        };
        let positions = spots.as_ref().and_then(|spots| spots.as_binary_opt::<i64>()).map(|spots| spots.value(0));
        let tail = Tail::Varint;
        let list = List { text: word, token: token as usize, file: &name, length: *length as usize, blocks, tail, positions };
        let mut found = Vec::new();
        let read = list.each(&mut |document, _, deltas| {
            let mut at = 0u32;
            let places = deltas.iter().map(|delta| {
                at = at.wrapping_add(*delta);
                at
            });
            found.push((document, places.collect()));
        });
        read.map(|()| found).ok_or_else(|| list.damaged(self.segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_boolean_search() {
        let found: Vec<_> = parts(r#" +fox -"lazy dog"  quick "a b"#).into_iter().map(|p| (p.sign, p.phrase, p.text)).collect();
        let expected = [(Some('+'), false, "fox"), (Some('-'), true, "lazy dog"), (None, false, "quick"), (None, true, "a b")];
        assert_eq!(found, expected);
        assert!(parts(" + - \"\" ").is_empty());
    }
}
