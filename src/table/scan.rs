//! Reading one column of a fragment: live rows only, in physical order, with the row ids an index stores.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::datatypes::{DataType, UInt64Type};
use roaring::RoaringBitmap;

use crate::error::{Error, ErrorCode, Result};
use crate::file::gather::filter;
use crate::file::{ColumnScan, LanceFile};
use crate::format::deletion::decode_deletions;
use crate::format::fragment::{DataFile, Fragment, RowIdSource};
use crate::format::manifest::ManifestFile;
use crate::format::row::{RowAddress, RowDomain};
use crate::format::row_ids::RowIdSequence;
use crate::format::schema::Field;
use crate::store::Store;

use super::base::{data_file, deletion_file};
use super::column::{ReadColumn, file_with};

/// Reserved field id of the hidden row id column (table-format §4.4).
const ROW_ID_FIELD: i32 = -3;
/// Rows of a batch when nothing has to be read.
const NULL_BATCH: u64 = 512 * 1024;

/// What is read: a column of a version of a table.
#[derive(Clone)]
pub struct ScanContext {
    /// The table's root.
    pub store: Store,
    /// The version.
    pub manifest: Arc<ManifestFile>,
    /// Field id of the column, which may lie inside structs.
    pub field: i32,
    /// Whether batches carry row addresses or stable row ids.
    pub domain: RowDomain,
}

impl ScanContext {
    /// A column of a version of the table at `store`.
    pub fn new(store: Store, manifest: Arc<ManifestFile>, field: i32, domain: RowDomain) -> ScanContext {
        ScanContext { store, manifest, field, domain }
    }

    /// How the column is read; `COLUMN_NOT_FOUND`, `UNSUPPORTED_TYPE` or `UNSUPPORTED_ENCODING` naming the column.
    pub fn read_column(&self) -> Result<ReadColumn> {
        ReadColumn::new(&self.manifest.manifest.schema, self.field)
    }

    /// The field and the Arrow type of its values (of a dictionary type, that of the values in it); errors as above.
    pub fn column(&self) -> Result<(&Field, DataType)> {
        let column = self.read_column()?;
        let field = self.manifest.manifest.schema.by_id(column.field);
        field.map(|field| (field, column.data_type)).ok_or_else(|| Error::internal("a field that was just found is gone"))
    }
}

/// Rows of one batch.
#[derive(Clone, Debug)]
pub struct ColumnBatch {
    /// Fragment the rows are in.
    pub fragment: u32,
    /// Values of the live rows, in physical order.
    pub values: ArrayRef,
    /// Their ids, as many as values.
    pub rows: BatchRows,
}

/// Row addresses or stable row ids, whichever the scan was opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchRows {
    /// `start, start + 1, …`.
    Range {
        /// Id of the first row.
        start: u64,
    },
    /// One id per row.
    List(Vec<u64>),
}

impl BatchRows {
    /// Id of the row at `index` of the batch; `None` past the end of a list.
    pub fn get(&self, index: usize) -> Option<u64> {
        match self {
            BatchRows::Range { start } => start.checked_add(index as u64),
            BatchRows::List(ids) => ids.get(index).copied(),
        }
    }
}

/// Where the ids come from.
enum Ids {
    Addresses,
    Sequence(RowIdSequence),
    Column(Vec<u64>),
}

/// The live rows of one column of one fragment.
pub struct FragmentScan {
    fragment: u32,
    data_type: DataType,
    /// Type in the schema.
    asked: DataType,
    /// The file and its column; `None`: the fragment has no such column, all its rows are null.
    source: Option<OpenedColumn>,
    values: Option<ColumnScan>,
    deleted: RoaringBitmap,
    ids: Ids,
    at: u64,
    end: u64,
    physical_rows: u64,
}

impl std::fmt::Debug for FragmentScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FragmentScan({}, at {} of {})", self.fragment, self.at, self.physical_rows)
    }
}

impl FragmentScan {
    /// Opens the data file that holds the column, reads the deletion vector and, for stable ids, the id sequence.
    pub async fn open(context: &ScanContext, fragment: &Fragment) -> Result<FragmentScan> {
        let column = context.read_column()?;
        let opened = OpenedColumn::open(context, fragment, &column, None).await?;
        let physical_rows = physical_rows(fragment, opened.as_ref())?;
        if physical_rows > 1 << 32 {
            return Err(Error::corrupt(
                &format!("fragment {}", fragment.id),
                format!("{physical_rows} rows, more than addresses reach"),
            ));
        }
        let source = opened.filter(|opened| opened.column.is_some());
        let values = source.as_ref().and_then(|source| source.scan(&column.asked, 0..physical_rows));
        let deleted = deletions(context, fragment, physical_rows).await?;
        let ids = ids(context, fragment, physical_rows).await?;
        let fragment = fragment.id;
        let ReadColumn { asked, data_type, .. } = column;
        Ok(FragmentScan { fragment, data_type, asked, source, values, deleted, ids, at: 0, end: physical_rows, physical_rows })
    }

    /// The same fragment, for another column of the table at the same version, by address: its deletion vector, and the head of its
    /// file where the column lies in the same one, are not read again.
    pub async fn another(&self, context: &ScanContext, fragment: &Fragment) -> Result<FragmentScan> {
        let column = context.read_column()?;
        let opened = OpenedColumn::open(context, fragment, &column, self.source.as_ref()).await?;
        physical_rows(fragment, opened.as_ref())?;
        let source = opened.filter(|opened| opened.column.is_some());
        let values = source.as_ref().and_then(|source| source.scan(&column.asked, 0..self.physical_rows));
        let ReadColumn { asked, data_type, .. } = column;
        let (deleted, ids, end) = (self.deleted.clone(), Ids::Addresses, self.physical_rows);
        Ok(FragmentScan { data_type, asked, source, values, deleted, ids, at: 0, end, ..*self })
    }

    /// Live rows of the whole fragment.
    pub fn live_rows(&self) -> u64 {
        self.physical_rows.saturating_sub(self.deleted.len())
    }

    /// Rows of the fragment, deleted ones included.
    pub fn physical_rows(&self) -> u64 {
        self.physical_rows
    }

    /// Goes on with the physical rows `rows` and ends behind them; rows past the fragment's are none.
    pub fn seek(&mut self, rows: Range<u64>) {
        self.end = rows.end.min(self.physical_rows);
        self.at = rows.start.min(self.end);
        let range = self.at..self.end;
        self.values = self.source.as_ref().and_then(|source| source.scan(&self.asked, range));
    }

    /// The values at some physical rows, in the order given, deleted rows included; where the scan stands does not matter.
    ///
    /// Only the pages and chunks that hold them are read. The result is held whole: callers bound how many they ask for.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a row past the fragment's, and those of reading.
    pub async fn take(&self, rows: &[u32]) -> Result<ArrayRef> {
        let rows: Vec<u64> = rows.iter().map(|row| u64::from(*row)).collect();
        if let Some(row) = rows.iter().find(|row| **row >= self.physical_rows) {
            let message = format!("fragment {} has {} rows, row {row} was asked for", self.fragment, self.physical_rows);
            return Err(Error::new(ErrorCode::InvalidArgument, message).with("fragment", self.fragment));
        }
        match &self.source {
            Some(OpenedColumn { file, column: Some(at), member: Some(member), .. }) => {
                file.take_member(*at, *member, &self.asked, &rows).await
            }
            Some(OpenedColumn { file, column: Some(at), member: None, .. }) => file.take(*at, &self.asked, true, &rows).await,
            _ => Ok(new_null_array(&self.data_type, rows.len())),
        }
    }

    /// Whether there is such a physical row and it is not deleted.
    pub fn is_live(&self, row: u64) -> bool {
        row < self.physical_rows && u32::try_from(row).is_ok_and(|row| !self.deleted.contains(row))
    }

    /// Physical position of the `n`th live row, counted from 0; the number of physical rows when there are not so many.
    pub fn nth_live(&self, n: u64) -> u64 {
        let (mut low, mut high) = (0, self.physical_rows);
        // The first position up to which, itself included, there are more than `n` live rows.
        while low < high {
            let middle = low + (high - low) / 2;
            let live = middle + 1 - u32::try_from(middle).map_or(0, |last| self.deleted.rank(last));
            if live > n { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// The next batch of live rows; `None` at the end. A batch is never empty.
    pub async fn next(&mut self) -> Result<Option<ColumnBatch>> {
        while self.at < self.end {
            let values = match &mut self.values {
                Some(scan) => match scan.next().await? {
                    Some(values) => values,
                    None => return Err(Error::internal("a column ended before its fragment")),
                },
                None => new_null_array(&self.data_type, (self.end - self.at).min(NULL_BATCH) as usize),
            };
            let range = self.at..self.at + values.len() as u64;
            self.at = range.end;
            if let Some(batch) = self.live(values, range)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Drops deleted rows and attaches ids.
    fn live(&self, values: ArrayRef, range: Range<u64>) -> Result<Option<ColumnBatch>> {
        let offsets = range.start as u32..=(range.end - 1) as u32;
        let deleted = if self.deleted.is_empty() { 0 } else { self.deleted.range_cardinality(offsets.clone()) };
        if deleted == range.end - range.start {
            return Ok(None);
        }
        let ids: Option<Vec<u64>> = match &self.ids {
            Ids::Addresses => None,
            Ids::Sequence(sequence) => Some(range.clone().filter_map(|offset| sequence.get(offset)).collect()),
            Ids::Column(ids) => Some(ids.get(range.start as usize..range.end as usize).unwrap_or_default().to_vec()),
        };
        let first = RowAddress::new(self.fragment, range.start as u32).0;
        if deleted == 0 {
            let rows = ids.map_or(BatchRows::Range { start: first }, compact);
            return Ok(Some(ColumnBatch { fragment: self.fragment, values, rows }));
        }
        let mut keep = vec![true; values.len()];
        for offset in self.deleted.range(offsets) {
            if let Some(slot) = keep.get_mut((u64::from(offset) - range.start) as usize) {
                *slot = false;
            }
        }
        let ids = ids.unwrap_or_else(|| (first..first + values.len() as u64).collect());
        let ids = ids.into_iter().zip(&keep).filter_map(|(id, keep)| keep.then_some(id)).collect();
        let values = filter(&values, &keep)?;
        Ok(Some(ColumnBatch { fragment: self.fragment, values, rows: compact(ids) }))
    }
}

/// A range when the ids are consecutive.
fn compact(ids: Vec<u64>) -> BatchRows {
    match ids.first() {
        Some(start) if ids.iter().zip(*start..).all(|(id, expected)| *id == expected) => BatchRows::Range { start: *start },
        _ => BatchRows::List(ids),
    }
}

/// A column of a fragment in its opened file.
struct OpenedColumn {
    file: LanceFile,
    /// As the manifest names it.
    entry: DataFile,
    /// `None` = the file was opened for its row count only.
    column: Option<usize>,
    member: Option<usize>,
}

impl OpenedColumn {
    /// `None` when no file has the column and the row count is known.
    /// A file that is open already is taken as it is.
    async fn open(
        context: &ScanContext,
        fragment: &Fragment,
        column: &ReadColumn,
        known: Option<&OpenedColumn>,
    ) -> Result<Option<OpenedColumn>> {
        if fragment.has_overlays {
            let message = format!("fragment {} has data overlays, which this build does not read", fragment.id);
            return Err(Error::new(ErrorCode::UnsupportedFeature, message).with("fragment", fragment.id));
        }
        if let Some(place) = column.place(&context.manifest.manifest.schema, fragment)? {
            let file = match known.filter(|known| known.entry == *place.file) {
                Some(known) => known.file.clone(),
                None => open_file(context, place.file).await?,
            };
            if place.column.is_none() {
                return Err(Error::corrupt(file.path(), format!("the manifest gives field {} no column in it", column.field)));
            }
            let entry = place.file.clone();
            return Ok(Some(OpenedColumn { file, entry, column: place.column, member: place.member }));
        }
        match (fragment.files.first(), fragment.physical_rows) {
            (Some(file), None) => {
                let (entry, file) = (file.clone(), open_file(context, file).await?);
                Ok(Some(OpenedColumn { file, entry, column: None, member: None }))
            }
            _ => Ok(None),
        }
    }

    fn scan(&self, asked: &DataType, rows: Range<u64>) -> Option<ColumnScan> {
        Some(match self.member {
            Some(member) => self.file.scan_member(self.column?, member, asked, rows),
            None => self.file.scan(self.column?, asked, true, rows),
        })
    }
}

/// Rows of the fragment, deleted ones included: what the manifest records and the opened file has must agree.
fn physical_rows(fragment: &Fragment, opened: Option<&OpenedColumn>) -> Result<u64> {
    match (fragment.physical_rows, opened.map(|opened| (opened.file.rows(), opened.file.path()))) {
        (Some(recorded), Some((rows, path))) if recorded != rows => {
            let what = format!("has {rows} rows, the manifest records {recorded} for fragment {}", fragment.id);
            Err(Error::corrupt(path, what).with("fragment", fragment.id))
        }
        (Some(rows), _) | (None, Some((rows, _))) => Ok(rows),
        (None, None) => Err(Error::corrupt(&format!("fragment {}", fragment.id), "has neither files nor a row count")),
    }
}

async fn open_file(context: &ScanContext, file: &DataFile) -> Result<LanceFile> {
    let (store, path) = data_file(&context.store, &context.manifest.manifest, file)?;
    LanceFile::open(&store, &path, file.size).await
}

async fn deletions(context: &ScanContext, fragment: &Fragment, physical_rows: u64) -> Result<RoaringBitmap> {
    let Some(file) = &fragment.deletion_file else { return Ok(RoaringBitmap::new()) };
    let (store, path) = deletion_file(&context.store, &context.manifest.manifest, fragment.id, file)?;
    let bytes = store.get(&path, None).await?;
    let deleted = decode_deletions(file.kind, &path, &bytes)?;
    if let Some(recorded) = file.num_deleted_rows.filter(|recorded| *recorded != deleted.len()) {
        return Err(Error::corrupt(&path, format!("{} deleted rows, the manifest records {recorded}", deleted.len())));
    }
    if let Some(last) = deleted.max().filter(|last| u64::from(*last) >= physical_rows) {
        return Err(Error::corrupt(&path, format!("deletes row {last} of a fragment of {physical_rows}")));
    }
    Ok(deleted)
}

async fn ids(context: &ScanContext, fragment: &Fragment, physical_rows: u64) -> Result<Ids> {
    if context.domain == RowDomain::Address {
        return Ok(Ids::Addresses);
    }
    let object = format!("fragment {}", fragment.id);
    match &fragment.row_ids {
        Some(RowIdSource::Inline(bytes)) => {
            let sequence = RowIdSequence::parse(&object, bytes)?;
            if sequence.len() != physical_rows {
                return Err(Error::corrupt(&object, format!("{} stable row ids for {physical_rows} rows", sequence.len())));
            }
            Ok(Ids::Sequence(sequence))
        }
        Some(RowIdSource::Column) => {
            let Some((file, Some(column))) = file_with(fragment, |_| ROW_ID_FIELD)? else {
                return Err(Error::corrupt(&object, "its stable row ids are in a column that no file has"));
            };
            let file = open_file(context, file).await?;
            let mut scan = file.scan(column, &DataType::UInt64, false, 0..physical_rows);
            let mut ids: Vec<u64> = Vec::new();
            while let Some(values) = scan.next().await? {
                ids.extend_from_slice(values.as_primitive::<UInt64Type>().values());
            }
            Ok(Ids::Column(ids))
        }
        None => Err(Error::corrupt(&object, "has no stable row ids, on a table that has them")),
    }
}
