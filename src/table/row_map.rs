//! Row maps of stable partitions: the label of every row of the sources, read block by block (spec fragment-reuse §5, §6).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, UInt16Type};
use roaring::RoaringBitmap;

use super::base::base_store;
use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::format::manifest::Manifest;
use crate::format::row::RowAddress;
use crate::lists::sorted_by_key;
use crate::reuse::ledger::Ledger;
use crate::reuse::row_map::{COLUMN, COUNTS_KEY, Counts, FILE_NAME};
use crate::reuse::transition::{Mapping, RowMapRef, Transition};
use crate::reuse::walk::Walk;
use crate::store::Store;

/// Rows that are carried along at once.
const BATCH: usize = 65_536;

/// Folder of a row map, below the root it belongs to.
pub fn folder(map: &RowMapRef) -> String {
    format!("_fri/{}", map.map_id)
}

/// An opened row map, held against its transition.
struct RowMap {
    object: String,
    file: LanceFile,
    counts: Counts,
}

impl RowMap {
    async fn open(store: &Store, manifest: &Manifest, transition: &Transition) -> Result<RowMap> {
        let Mapping::StablePartition(map) = &transition.mapping else {
            return Err(Error::internal("a compaction has no row map"));
        };
        let object = format!("{}/{FILE_NAME}", folder(map));
        let store = base_store(store, manifest, map.base_id)?;
        let file = LanceFile::open(&store, &object, Some(map.size)).await?;
        match file.fields() {
            [field] if field.name == COLUMN && field.logical_type == "uint16" && field.nullable && file.columns() == 1 => {}
            _ => return Err(Error::corrupt(&object, "a row map has one nullable column `label` of uint16, and nothing else")),
        }
        let index = file.metadata().get(COUNTS_KEY).and_then(|text| text.parse().ok());
        let index = index.ok_or_else(|| Error::corrupt(&object, format!("its metadata has no {COUNTS_KEY}")))?;
        let counts = Counts::parse(&object, &file.global_buffer(index).await?)?;
        if counts.total_rows() != file.rows() {
            return Err(Error::corrupt(&object, format!("{} labels, its counts are for {}", file.rows(), counts.total_rows())));
        }
        counts.bind(&object, transition)?;
        Ok(RowMap { object, file, counts })
    }

    /// Where rows of the sources went, in the order they are asked for. Blocks are read one at a time.
    async fn places(&self, transition: &Transition, addresses: &[RowAddress]) -> Result<Vec<Option<RowAddress>>> {
        let mut starts = BTreeMap::new();
        let mut rows = 0u64;
        for source in &transition.sources {
            starts.insert(source.id, (rows, source.physical_rows));
            rows += u64::from(source.physical_rows);
        }
        let mut wanted = Vec::with_capacity(addresses.len());
        for (slot, address) in addresses.iter().enumerate() {
            let row = starts.get(&address.fragment()).filter(|(_, rows)| address.offset() < *rows);
            let (start, _) = row.ok_or_else(|| {
                Error::invalid(format!("row {} of fragment {} is no row of a source", address.offset(), address.fragment()))
            })?;
            wanted.push((start + u64::from(address.offset()), slot));
        }
        let mut wanted = sorted_by_key(wanted, |(row, _)| *row).into_iter().peekable();
        let mut places = vec![None; addresses.len()];
        while let Some((row, _)) = wanted.peek() {
            let block = self.counts.block_of(*row);
            let mut labels = self.counts.enter(block);
            let mut at = self.counts.rows_of(block).start;
            let mut scan = self.file.scan(0, &DataType::UInt16, true, self.counts.rows_of(block));
            while let Some(part) = scan.next().await? {
                let part = part.as_primitive_opt::<UInt16Type>().ok_or_else(|| Error::internal("labels are no uint16"))?;
                for label in part {
                    let place = labels.next(&self.object, label)?;
                    while let Some((_, slot)) = wanted.next_if(|(row, _)| *row == at) {
                        let to = place.and_then(|(label, offset)| {
                            Some(RowAddress::new(transition.destinations.get(usize::from(label))?.id, offset))
                        });
                        if let Some(slot) = places.get_mut(slot) {
                            *slot = to;
                        }
                    }
                    at += 1;
                }
            }
            labels.finish(&self.object)?;
        }
        Ok(places)
    }
}

/// The row maps of a history, each opened once, when it is first needed.
pub struct RowMaps<'a> {
    store: &'a Store,
    manifest: &'a Manifest,
    ledger: &'a Ledger,
    opened: RefCell<BTreeMap<usize, Rc<RowMap>>>,
}

impl<'a> RowMaps<'a> {
    /// The row maps that the transitions of `ledger` name.
    pub fn new(store: &'a Store, manifest: &'a Manifest, ledger: &'a Ledger) -> RowMaps<'a> {
        RowMaps { store, manifest, ledger, opened: RefCell::default() }
    }

    async fn open(&self, position: usize, transition: &Transition) -> Result<Rc<RowMap>> {
        if let Some(opened) = self.opened.borrow().get(&position) {
            return Ok(opened.clone());
        }
        let opened = Rc::new(RowMap::open(self.store, self.manifest, transition).await?);
        self.opened.borrow_mut().insert(position, opened.clone());
        Ok(opened)
    }

    /// Where rows are now, in their order; `None` = deleted, or in no live fragment that a reader with these exclusions would
    /// take them from.
    ///
    /// # Errors
    /// Those of reading row maps; `CORRUPT_FILE` when one contradicts the history, `INVALID_ARGUMENT` for an address past the
    /// end of its fragment.
    pub async fn translate(
        &self,
        live: &RoaringBitmap,
        excluded: &RoaringBitmap,
        addresses: &[RowAddress],
    ) -> Result<Vec<Option<RowAddress>>> {
        let mut all = Vec::with_capacity(addresses.len());
        for batch in addresses.chunks(BATCH) {
            let mut walk = Walk::new(self.ledger, live, excluded, batch);
            while let Some(question) = walk.ask()? {
                let transition = self.ledger.transitions.get(question.position);
                let transition = transition.ok_or_else(|| Error::internal("a transition is not there"))?;
                let map = self.open(question.position, transition).await?;
                let places = map.places(transition, &question.addresses).await?;
                walk.answer(&question, &places);
            }
            all.extend(walk.finish());
        }
        Ok(all)
    }
}
