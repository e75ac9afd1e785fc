//! The layout of a manifest.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::kinds::Kind;
use super::layout::{Cover, Index, Layout, Piece};
use crate::error::{Error, ErrorCode, Result};
use crate::format::fragment::{DataFile, Fragment};
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::Manifest;
use crate::lists::set_of;

/// Name in options (`BTREE`, …) of an entry's type; `None` = a type nobody knows. Given by the layer that knows the methods.
pub type NameOf = fn(&IndexMetadata) -> Option<&'static str>;

/// Field id of a column that is gone while its file stays.
const TOMBSTONE: i32 = -2;

impl Layout {
    /// The layout of `manifest`. `stored` are its index entries, `mapped` the same with coverage carried through a version-0
    /// reuse history, `reconstructed` what segments of unknown coverage are taken to cover; without an entry there such a
    /// segment covers nothing.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` where fragments carry overlays; `INVALID_ARGUMENT` where a fragment does not record its rows.
    pub fn of(
        manifest: &Manifest,
        stored: &[IndexMetadata],
        mapped: &[IndexMetadata],
        reconstructed: &BTreeMap<Uuid, RoaringBitmap>,
        name_of: NameOf,
    ) -> Result<Layout> {
        let present = set_of(manifest.schema.fields.iter().map(|field| field.id));
        let pieces =
            manifest.fragments.iter().map(|fragment| piece(fragment, &|id| present.contains(&id))).collect::<Result<_>>()?;
        let mut layout = Layout {
            pieces,
            stable_row_ids: manifest.has_stable_row_ids(),
            max_fragment_id: manifest.max_fragment_id,
            ..Layout::default()
        };
        for (entry, stored) in mapped.iter().zip(stored).filter(|(entry, _)| !entry.is_system()) {
            let method = name_of(entry);
            let index = layout.indexes.iter().position(|index| index.name == entry.name).unwrap_or_else(|| {
                layout.indexes.push(Index { name: entry.name.clone(), method });
                layout.indexes.len() - 1
            });
            let bitmap = entry.fragment_bitmap.as_ref().or_else(|| reconstructed.get(&entry.uuid)).cloned().unwrap_or_default();
            let carried = stored.fragment_bitmap.as_ref().map(|stored| &bitmap - stored).unwrap_or_default();
            let kind = Kind::of(method, entry.index_version.unwrap_or(0));
            layout.covers.push(Cover {
                index,
                uuid: Some(entry.uuid),
                kind,
                bitmap,
                known: entry.fragment_bitmap.is_some(),
                carried,
            });
        }
        Ok(layout)
    }
}

fn piece(fragment: &Fragment, present: &dyn Fn(i32) -> bool) -> Result<Piece> {
    let id = fragment.id;
    if fragment.has_overlays {
        let text =
            format!("fragment {id} carries overlay files, an unreleased feature: what a compaction does to it is not known here");
        return Err(Error::new(ErrorCode::UnsupportedFeature, text).with("fragment", id));
    }
    let counts = fragment.physical_rows.zip(fragment.live_rows());
    let (physical_rows, live) = counts
        .ok_or_else(|| Error::invalid(format!("fragment {id} does not record how many rows it has")).with("fragment", id))?;
    // A file whose columns are all gone is not read, so it does not count.
    let mut read = fragment.files.iter().filter(|file| file.fields.iter().any(|field| present(*field)));
    Ok(Piece {
        id,
        physical_rows,
        deleted_rows: physical_rows.saturating_sub(live),
        bytes: read.try_fold(0u64, |sum, file| sum.checked_add(file.size?)),
        lineage_only: fragment.files.iter().any(|file| lineage_only(file, present)),
    })
}

/// Whether a file is kept for hidden row lineage alone, beside columns that are gone.
fn lineage_only(file: &DataFile, present: &dyn Fn(i32) -> bool) -> bool {
    let hidden = |field: i32| field < TOMBSTONE;
    let mut dead = file.fields.iter().filter(|field| !hidden(**field)).peekable();
    file.fields.iter().any(|field| hidden(*field)) && dead.peek().is_some() && dead.all(|field| !present(*field))
}
