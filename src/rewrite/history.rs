//! The version-0 reuse record of a deferred compaction (fragment-reuse §2, §3.1): which rows went where, so that no index file has
//! to be written.

use prost::Message;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::moves::MovedTask;
use crate::error::{Error, Result};
use crate::format::index_metadata::{FRAG_REUSE_NAME, IndexDetails, IndexMetadata};
use crate::format::reuse_v0::{ReuseContent, ReuseHistoryV0, check_derivable, reuse_entry};
use crate::format::treemap::encode_roaring64;
use crate::format::{proto, wire};
use crate::refresh::build::create;
use crate::table::Table;
use crate::table::base::segment_part;

const DETAILS_URL: &str = "/lance.table.FragmentReuseIndexDetails";
/// Content of more bytes lies in a file of its own.
const INLINE_LIMIT: usize = 204_800;
const EXTERNAL: &str = "details.binpb";

/// The reuse entry that records these tasks as one more compaction of `latest`, and the objects it lies in. `None` = no index
/// covers a source, neither directly nor through the history: then there is nothing to carry over.
///
/// # Errors
/// `HISTORY_UNSUPPORTED` for a tagged history, and those of reading and writing.
pub(super) async fn next(latest: &Table, tasks: &[MovedTask], covered: bool) -> Result<Option<(IndexMetadata, Vec<String>)>> {
    let file = latest.manifest();
    check_derivable(&file.indices)?;
    let old = reuse_entry(&file.indices);
    let mut content = match old {
        None => Vec::new(),
        Some(entry) => stored(latest, entry).await?,
    };
    let before = ReuseHistoryV0::parse(FRAG_REUSE_NAME, &content.clone().into())?;
    let listed = old.and_then(|entry| entry.fragment_bitmap.as_ref()).map(|bitmap| before.map_bitmap(bitmap)).unwrap_or_default();
    let touches = tasks.iter().flat_map(|task| &task.sources).any(|source| listed.contains(source.fragment));
    if !covered && !touches {
        return Ok(None);
    }
    let version = proto::ReuseVersion { dataset_version: latest.version(), groups: tasks.iter().map(group).collect() };
    wire::put_len_field(&mut content, 1, &version.encode_to_vec());
    // What is written is what will be read.
    let after = ReuseHistoryV0::parse(FRAG_REUSE_NAME, &content.clone().into())?;
    let bitmap: RoaringBitmap = after.destinations();
    let uuid = latest.store().env().uuid();
    let mut value = Vec::new();
    let mut staged = Vec::new();
    if content.len() <= INLINE_LIMIT {
        wire::put_len_field(&mut value, 1, &content);
    } else {
        let size = content.len() as u64;
        let path = format!("_indices/{uuid}/{EXTERNAL}");
        create(latest.store(), &path, vec![content.into()], size).await.map_err(|error| error.of_writing(&path))?;
        staged.push(path);
        let place = proto::ExternalFile { path: EXTERNAL.to_owned(), offset: 0, size };
        wire::put_len_field(&mut value, 2, &place.encode_to_vec());
    }
    let type_url =
        old.and_then(|entry| entry.details.as_ref()).map_or(DETAILS_URL, |details| details.type_url.as_str()).to_owned();
    let entry = IndexMetadata {
        uuid,
        fields: Vec::new(),
        name: FRAG_REUSE_NAME.to_owned(),
        dataset_version: latest.version(),
        fragment_bitmap: Some(bitmap),
        details: Some(IndexDetails { type_url, value: value.into() }),
        index_version: Some(0),
        created_at_ms: None,
        base_id: None,
        files: Vec::new(),
        covering_fields: Vec::new(),
        metadata: Default::default(),
        raw: bytes::Bytes::new(),
    };
    Ok(Some((entry, staged)))
}

/// The content as stored.
async fn stored(table: &Table, entry: &IndexMetadata) -> Result<Vec<u8>> {
    let object = format!("_indices/{}", entry.uuid);
    Ok(match ReuseContent::of(&object, entry)? {
        ReuseContent::Inline(bytes) => bytes.to_vec(),
        ReuseContent::External { path, offset, size } => {
            let end = offset.checked_add(size).ok_or_else(|| Error::corrupt(&object, "the history's range overflows"))?;
            segment_part(table.store(), &table.manifest().manifest, entry, &path, offset..end).await?.to_vec()
        }
    })
}

fn group(task: &MovedTask) -> proto::ReuseGroup {
    let mut survivors = RoaringTreemap::new();
    for source in &task.sources {
        let first = u64::from(source.fragment) << 32;
        survivors.insert_range(first..first.saturating_add(source.physical_rows));
        for offset in &source.deleted {
            survivors.remove(first | u64::from(offset));
        }
    }
    let old = task.sources.iter().map(|source| proto::FragmentDigest {
        id: u64::from(source.fragment),
        physical_rows: source.physical_rows,
        num_deleted_rows: source.deleted.len(),
    });
    let new = task.outputs.iter().map(|(id, rows)| proto::FragmentDigest {
        id: u64::from(*id),
        physical_rows: *rows,
        num_deleted_rows: 0,
    });
    proto::ReuseGroup {
        changed_row_addrs: encode_roaring64(&survivors).into(),
        old_fragments: old.collect(),
        new_fragments: new.collect(),
    }
}
