//! The version-0 reuse record of a deferred compaction (fragment-reuse §2, §3.1): which rows went where, so that no index file has
//! to be written.

use prost::Message;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::moves::MovedTask;
use crate::error::Result;
use crate::format::index_metadata::{FRAG_REUSE_NAME, IndexMetadata};
use crate::format::reuse_v0::{ReuseHistoryV0, check_derivable, reuse_entry};
use crate::format::treemap::encode_roaring64;
use crate::format::{proto, wire};
use crate::refresh::build::create;
use crate::reuse::content::{INLINE_LIMIT, external_details, external_path, inline_details};
use crate::table::{Table, history};

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
        Some(entry) => history::content(latest.store(), &file.manifest, entry).await?.1.to_vec(),
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
    let mut staged = Vec::new();
    let mut details = if content.len() <= INLINE_LIMIT {
        inline_details(&content)
    } else {
        let (size, path) = (content.len() as u64, external_path(uuid));
        create(latest.store(), &path, vec![content.into()], size).await.map_err(|error| error.of_writing(&path))?;
        staged.push(path);
        external_details(size)
    };
    if let Some(before) = old.and_then(|entry| entry.details.as_ref()) {
        details.type_url.clone_from(&before.type_url);
    }
    let entry = IndexMetadata {
        uuid,
        fields: Vec::new(),
        name: FRAG_REUSE_NAME.to_owned(),
        dataset_version: latest.version(),
        fragment_bitmap: Some(bitmap),
        details: Some(details),
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
