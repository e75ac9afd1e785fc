//! What a partition is made of while it is built: tokens, documents and compact posting lists.

use arrow::datatypes::DataType;

use super::analyze::NO_NOTE;
use super::packing::{Reader, put_varint};
use crate::error::{Error, ErrorCode, Result};
use crate::index::distinct::Distinct;

/// The posting list of one token: varints, so that ten million postings fit where vectors of numbers would not.
#[derive(Debug, Default)]
struct Compact {
    last: u32,
    documents: u32,
    /// Document deltas (the first absolute) and frequencies, alternating.
    data: Vec<u8>,
    /// Position deltas, starting anew in each document.
    spots: Vec<u8>,
}

/// A posting list in plain numbers.
#[derive(Debug, Default)]
pub(super) struct Plain {
    pub documents: Vec<u32>,
    pub frequencies: Vec<u32>,
    /// Position deltas as varints.
    pub spots: Vec<u8>,
}

/// Collects documents in any number of calls; the lists come out in the order of first occurrence.
pub(super) struct Collector {
    tokens: Distinct,
    lists: Vec<Compact>,
    rows: Vec<u64>,
    lengths: Vec<u32>,
    total_tokens: u64,
    with_position: bool,
    /// Bytes of the lists.
    held: u64,
    /// Tokens of the document at hand and their positions.
    current: Vec<(u32, u32)>,
}

impl Collector {
    pub(super) fn new(with_position: bool) -> Collector {
        Collector {
            tokens: Distinct::new(&DataType::Utf8),
            lists: Vec::new(),
            rows: Vec::new(),
            lengths: Vec::new(),
            total_tokens: 0,
            with_position,
            held: 0,
            current: Vec::new(),
        }
    }

    /// The number of a token, new or known.
    pub(super) fn token(&mut self, text: &str) -> Result<u32> {
        let id = self.tokens.number(text.as_bytes())?;
        if id as usize == self.lists.len() {
            self.lists.push(Compact::default());
        }
        Ok(id)
    }

    /// Notes a token of the document that [`Collector::end_document`] will end. `number` is that of the token in this collector
    /// if it was asked for before, and then is.
    pub(super) fn occurrence(&mut self, token: &str, position: u32, number: &mut u32) -> Result<()> {
        if *number == NO_NOTE {
            *number = self.token(token)?;
        }
        self.current.push((*number, position));
        Ok(())
    }

    /// Ends a document; one without a token is none.
    pub(super) fn end_document(&mut self, row: u64) -> Result<()> {
        let mut current = std::mem::take(&mut self.current);
        if let Ok(length) = u32::try_from(current.len()).map_err(|_| too_many("tokens of one row"))
            && length > 0
        {
            let document = self.document(row, length)?;
            current.sort_unstable();
            for group in current.chunk_by(|a, b| a.0 == b.0) {
                let Some((token, _)) = group.first() else { continue };
                let mut at = 0;
                let deltas = group.iter().map(|(_, position)| position.wrapping_sub(std::mem::replace(&mut at, *position)));
                self.posting(*token, document, group.len() as u32, deltas);
            }
        }
        current.clear();
        self.current = current;
        Ok(())
    }

    /// Adds a document of so many tokens whose postings follow; answers its number.
    pub(super) fn document(&mut self, row: u64, length: u32) -> Result<u32> {
        let document = u32::try_from(self.rows.len()).map_err(|_| too_many("documents"))?;
        self.rows.push(row);
        self.lengths.push(length);
        self.total_tokens += u64::from(length);
        Ok(document)
    }

    /// Adds a posting; the documents of a token come in ascending order.
    pub(super) fn posting(&mut self, token: u32, document: u32, frequency: u32, deltas: impl Iterator<Item = u32>) {
        let Some(list) = self.lists.get_mut(token as usize) else { return };
        let before = list.data.capacity() + list.spots.capacity();
        put_varint(&mut list.data, document.wrapping_sub(list.last));
        put_varint(&mut list.data, frequency);
        (list.last, list.documents) = (document, list.documents + 1);
        if self.with_position {
            deltas.for_each(|delta| put_varint(&mut list.spots, delta));
        }
        self.held += (list.data.capacity() + list.spots.capacity() - before) as u64;
    }

    /// Bytes held now, and what encoding will need beside them: the files are about as large as the lists and the texts.
    pub(super) fn memory_bytes(&self) -> u64 {
        let rows = 8 * self.rows.capacity() as u64 + 4 * self.lengths.capacity() as u64;
        let lists = (self.lists.capacity() * size_of::<Compact>()) as u64;
        2 * (self.held + lists + self.tokens.memory_bytes() + rows)
    }

    pub(super) fn rows(&self) -> &[u64] {
        &self.rows
    }

    pub(super) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    pub(super) fn total_tokens(&self) -> u64 {
        self.total_tokens
    }

    /// Tokens in the order of their bytes, with their numbers.
    pub(super) fn sorted_tokens(&self) -> Vec<(&[u8], u32)> {
        let ids = (0..self.lists.len() as u32).filter(|id| self.documents_of(*id) > 0);
        let mut tokens: Vec<(&[u8], u32)> = ids.map(|id| (self.tokens.get(id), id)).collect();
        tokens.sort_unstable();
        tokens
    }

    /// By number, the row of each token that has a document: merging can leave tokens without any.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let mut next = 0;
        let number = |list: &Compact| {
            let own = next;
            next += u32::from(list.documents > 0);
            own
        };
        self.lists.iter().map(number).collect()
    }

    /// Documents that have the token.
    fn documents_of(&self, token: u32) -> u32 {
        self.lists.get(token as usize).map_or(0, |list| list.documents)
    }

    /// Lists in the order of the numbers; each is let go of.
    pub(super) fn take_lists(&mut self) -> impl Iterator<Item = Plain> {
        std::mem::take(&mut self.lists).into_iter().map(|list| {
            let documents = list.documents as usize;
            let (documents, frequencies) = (Vec::with_capacity(documents), Vec::with_capacity(documents));
            let mut plain = Plain { documents, frequencies, spots: list.spots };
            let mut reader = Reader(&list.data);
            let mut document = 0u32;
            while let (Some(delta), Some(frequency)) = (reader.varint(), reader.varint()) {
                document = document.wrapping_add(delta);
                plain.documents.push(document);
                plain.frequencies.push(frequency);
            }
            plain
        })
    }
}

fn too_many(what: &str) -> Error {
    Error::new(ErrorCode::MemoryLimit, format!("a full text segment numbers {what} with 32 bits; plan more segments"))
}
