//! The values of a column with their row addresses, so that anybody can check what is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::datatypes::{DataType, Field};
use serde::Deserialize;

use super::Table;
use super::ipc::IpcStream;
use super::scan::{BatchRows, ColumnBatch, FragmentScan, ScanContext};
use crate::error::{Error, ErrorCode, Result};
use crate::format::fragment::Fragment;
use crate::format::row::{RowAddress, RowDomain};

/// Addresses looked up at a time: what they hold is in memory at once.
const TAKEN: usize = 4096;
/// Most bytes of one answer; the rest is asked for with `offset` and `limit`.
const MOST_BYTES: usize = 1 << 30;

/// Which rows of a column; everything by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnRequest {
    /// Only rows of this fragment.
    pub fragment: Option<u32>,
    /// Live rows to leave out at the beginning.
    pub offset: u64,
    /// Most rows.
    pub limit: Option<u64>,
    /// Only these row addresses (decimal text, since JSON numbers would round them). They come back ascending, each once.
    pub addresses: Option<Vec<String>>,
}

/// The rows of a request, read as they are asked for.
pub struct ColumnValues {
    context: ScanContext,
    /// Dotted path of the column, spelled as the schema does.
    pub path: String,
    /// Arrow type of the values.
    pub data_type: DataType,
    /// May hold nulls, by itself or because a parent may.
    pub nullable: bool,
    request: ColumnRequest,
    /// Offsets wanted per fragment, ascending.
    wanted: Option<BTreeMap<u32, Vec<u32>>>,
}

impl ColumnValues {
    /// Finds the column; reads nothing.
    ///
    /// # Errors
    /// `COLUMN_NOT_FOUND`, `UNSUPPORTED_TYPE`, `UNSUPPORTED_ENCODING` naming the column; `INVALID_ARGUMENT` for a request that
    /// means nothing on this version.
    pub fn new(table: &Table, path: &str, request: ColumnRequest) -> Result<ColumnValues> {
        let manifest = table.manifest().clone();
        let schema = &manifest.manifest.schema;
        let id = schema.resolve(path)?.id;
        let context = ScanContext::new(table.store().clone(), manifest.clone(), id, RowDomain::Address);
        let (field, data_type) = context.column()?;
        let mut nullable = field.nullable;
        let mut at = field;
        for _ in 0..schema.fields.len() {
            let Some(parent) = schema.by_id(at.parent_id) else { break };
            nullable |= parent.nullable;
            at = parent;
        }
        let path = schema.path_of(id).unwrap_or_else(|| path.to_owned());
        let wanted = request.addresses.as_deref().map(by_fragment).transpose()?;
        if request.addresses.is_some() && (request.fragment.is_some() || request.offset > 0 || request.limit.is_some()) {
            return Err(Error::invalid("give addresses, or a fragment with offset and limit, not both"));
        }
        let named = request.fragment.iter().chain(wanted.iter().flat_map(BTreeMap::keys));
        if let Some(missing) = named.copied().find(|id| manifest.manifest.fragment(*id).is_none()) {
            let text = format!("version {} has no fragment {missing}", table.version());
            return Err(Error::invalid(text).with("fragment", missing));
        }
        Ok(ColumnValues { context, path, data_type, nullable, request, wanted })
    }

    /// Reads the rows and hands them over batch by batch, in the order of fragments and rows.
    pub async fn read(&self, sink: &mut dyn FnMut(ColumnBatch) -> Result<()>) -> Result<()> {
        let manifest = self.context.manifest.clone();
        let fragments = &manifest.manifest.fragments;
        if let Some(wanted) = &self.wanted {
            for (id, offsets) in wanted {
                let Some(fragment) = manifest.manifest.fragment(*id) else { continue };
                self.read_addresses(fragment, offsets, sink).await?;
            }
            return Ok(());
        }
        let mut skip = self.request.offset;
        let mut left = self.request.limit.unwrap_or(u64::MAX);
        for fragment in fragments.iter().filter(|f| self.request.fragment.is_none_or(|id| id == f.id)) {
            if left == 0 {
                break;
            }
            if let Some(live) = fragment.live_rows().filter(|live| skip >= *live) {
                skip -= live;
                continue;
            }
            let mut scan = FragmentScan::open(&self.context, fragment).await?;
            let rows = scan.live_rows();
            if skip >= rows {
                skip -= rows;
                continue;
            }
            let take = left.min(rows - skip);
            scan.seek(scan.nth_live(skip)..scan.nth_live(skip + take - 1) + 1);
            while let Some(batch) = scan.next().await? {
                sink(batch)?;
            }
            left -= take;
            skip = 0;
        }
        Ok(())
    }

    async fn read_addresses(
        &self,
        fragment: &Fragment,
        offsets: &[u32],
        sink: &mut dyn FnMut(ColumnBatch) -> Result<()>,
    ) -> Result<()> {
        let scan = FragmentScan::open(&self.context, fragment).await?;
        if let Some(dead) = offsets.iter().find(|offset| !scan.is_live(u64::from(**offset))) {
            let address = RowAddress::new(fragment.id, *dead).0.to_string();
            let text = format!("there is no live row {address} (row {dead} of fragment {})", fragment.id);
            return Err(Error::invalid(text).with("address", address));
        }
        for rows in offsets.chunks(TAKEN) {
            let ids = rows.iter().map(|offset| RowAddress::new(fragment.id, *offset).0).collect();
            let values = scan.take(rows).await?;
            sink(ColumnBatch { fragment: fragment.id, values, rows: BatchRows::List(ids) })?;
        }
        Ok(())
    }

    /// Decodes the rows and throws them away: how many there are, and the bytes their arrays took.
    pub async fn count(&self) -> Result<(u64, u64)> {
        let (mut rows, mut bytes) = (0u64, 0u64);
        self.read(&mut |batch| {
            rows += batch.values.len() as u64;
            bytes += batch.values.get_buffer_memory_size() as u64;
            Ok(())
        })
        .await?;
        Ok((rows, bytes))
    }

    /// The rows as an Arrow IPC stream of two columns: the values, named by the column's path, and `_rowaddr` (u64).
    ///
    /// # Errors
    /// Those of reading; `MEMORY_LIMIT` when the answer would be over 1 GiB.
    pub async fn ipc(&self) -> Result<Vec<u8>> {
        let mut stream = IpcStream::new(vec![
            Field::new(&self.path, self.data_type.clone(), self.nullable),
            Field::new("_rowaddr", DataType::UInt64, false),
        ])?;
        self.read(&mut |batch| {
            let ids = (0..batch.values.len()).map(|at| batch.rows.get(at));
            let ids: ArrayRef = Arc::new(UInt64Array::from_iter(ids));
            stream.batch(&[batch.values, ids])?;
            if stream.len() > MOST_BYTES {
                let text = format!(
                    "the values of {} are more than {MOST_BYTES} bytes: read them in parts, with offset and limit",
                    self.path
                );
                return Err(Error::new(ErrorCode::MemoryLimit, text));
            }
            Ok(())
        })
        .await?;
        Ok(stream.finish())
    }
}

fn by_fragment(addresses: &[String]) -> Result<BTreeMap<u32, Vec<u32>>> {
    let mut wanted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for text in addresses {
        let address = text.parse().map(RowAddress).map_err(|_| Error::invalid(format!("{text:?} is no row address")))?;
        wanted.entry(address.fragment()).or_default().push(address.offset());
    }
    for offsets in wanted.values_mut() {
        offsets.sort_unstable();
        offsets.dedup();
    }
    Ok(wanted)
}
