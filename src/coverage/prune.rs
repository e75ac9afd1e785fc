//! What a built segment may still claim on a version it was not built on.
//!
//! [`prune_as_core`] is what Lance itself does at commit (refresh-and-compaction §2.2); [`prune`] is the stricter rule of
//! our own commit loop (§8.3), which also sees revived rows and overlays.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::format::fragment::Fragment;
use crate::format::schema::Schema;
use crate::lists::sorted_by;

/// Where the values of one field of one fragment are: equal keys = the same physical data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DataFileKey {
    /// Base path id; null = the table's own root.
    pub base: Option<u32>,
    /// Path relative to `data/` or to the base.
    pub path: String,
    /// Physical column in the file; null for format 0.1, whose files have no column indices.
    pub column: Option<i32>,
    /// File format version as the manifest states it, e.g. `2.1`.
    pub version: String,
}

/// Everything about one fragment that must not have changed for values read from it to still be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentKey {
    /// Fragment id.
    pub fragment: u32,
    /// Files of the indexed field (its subtree and packed ancestors); empty = the column is all null there.
    pub data: Vec<DataFileKey>,
    /// Deletion file relative to its root; null = nothing deleted.
    pub deletion: Option<String>,
    /// Base path id of the deletion file.
    pub deletion_base: Option<u32>,
}

impl FragmentKey {
    /// The key of `fragment` for an index on `field`.
    pub fn of(fragment: &Fragment, schema: &Schema, field: i32) -> FragmentKey {
        let mut data = Vec::new();
        for id in backing_fields(schema, field) {
            for file in &fragment.files {
                for (at, _) in file.fields.iter().enumerate().filter(|(_, f)| **f == id) {
                    data.push(DataFileKey {
                        base: file.base_id,
                        path: file.path.clone(),
                        column: file.column_indices.get(at).copied(),
                        version: format!("{}.{}", file.major, file.minor),
                    });
                }
            }
        }
        let mut data = sorted_by(data, Ord::cmp);
        data.dedup();
        FragmentKey {
            fragment: fragment.id,
            data,
            deletion: fragment.deletion_file.as_ref().map(|file| file.path(fragment.id)),
            deletion_base: fragment.deletion_file.as_ref().and_then(|file| file.base_id),
        }
    }
}

/// Ids whose files hold values of `field`: itself, everything below it, and each packed ancestor.
fn backing_fields(schema: &Schema, field: i32) -> Vec<i32> {
    let mut ids = vec![field];
    let mut at = 0;
    while let Some(id) = ids.get(at).copied() {
        ids.extend(schema.children(id).map(|child| child.id));
        at += 1;
    }
    let mut above = schema.by_id(field).map(|f| f.parent_id);
    // The schema comes from foreign bytes: a cycle of parents must end.
    for _ in 0..schema.fields.len() {
        let Some(parent) = above.and_then(|id| schema.by_id(id)) else { break };
        let packed = |key: &str| parent.metadata.get(key).is_some_and(|v| v.eq_ignore_ascii_case("true"));
        if packed("lance-encoding:packed") || packed("packed") {
            ids.push(parent.id);
        }
        above = Some(parent.parent_id);
    }
    ids
}

/// What happened to a fragment between the version it was read at and the one committed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that matters to a segment built on it.
    Unchanged,
    /// It is no longer in the manifest.
    Gone,
    /// The indexed column lies in other files.
    Rewritten,
    /// Rows that were deleted are live again: the segment never saw them.
    Revived,
    /// Its values are overlaid since.
    Overlaid,
}

impl Change {
    /// The reason in a report.
    pub fn why(self) -> &'static str {
        match self {
            Change::Unchanged => "unchanged",
            Change::Gone => "the fragment is gone",
            Change::Rewritten => "the indexed column was rewritten",
            Change::Revived => "deleted rows are live again",
            Change::Overlaid => "newer values lie over the column",
        }
    }
}

/// A fragment that was built but is not claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The fragment.
    pub fragment: u32,
    /// Why.
    pub why: String,
}

/// Compares a fragment as planned with the one of the current manifest.
///
/// `revived` is asked only when the deletion files differ and there was one: are there rows deleted then and live now?
pub fn change_of(planned: &FragmentKey, now: Option<(&Fragment, &FragmentKey)>, revived: impl FnOnce() -> bool) -> Change {
    let Some((fragment, key)) = now else { return Change::Gone };
    if planned.data != key.data {
        return Change::Rewritten;
    }
    if fragment.has_overlays {
        return Change::Overlaid;
    }
    if needs_deletions(planned, key) && revived() {
        return Change::Revived;
    }
    Change::Unchanged
}

/// Whether the two deletion files must be read to know that no row was revived.
pub fn needs_deletions(planned: &FragmentKey, now: &FragmentKey) -> bool {
    planned.deletion.is_some() && (&planned.deletion, planned.deletion_base) != (&now.deletion, now.deletion_base)
}

/// Our own prune: keeps the fragments that did not change, names the others.
pub fn prune(built: &RoaringBitmap, change: impl Fn(u32) -> Change) -> (RoaringBitmap, Vec<LeftOut>) {
    let mut kept = RoaringBitmap::new();
    let mut left_out = Vec::new();
    for fragment in built {
        match change(fragment) {
            Change::Unchanged => {
                kept.insert(fragment);
            }
            other => left_out.push(LeftOut { fragment, why: other.why().to_owned() }),
        }
    }
    (kept, left_out)
}

/// Core's prune of a segment built on an older version: `then` and `now` map each live fragment to its data file key.
///
/// `then == None` = that version was cleaned up: core silently claims nothing any more. A fragment that was not live when
/// the segment was built is taken on faith.
pub fn prune_as_core<K: PartialEq>(
    declared: &RoaringBitmap,
    then: Option<&BTreeMap<u32, K>>,
    now: &BTreeMap<u32, K>,
) -> RoaringBitmap {
    let Some(then) = then else { return RoaringBitmap::new() };
    declared
        .iter()
        .filter(|fragment| match then.get(fragment) {
            None => true,
            Some(key) => now.get(fragment) == Some(key),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::fragment::{DataFile, DeletionFile, DeletionKind};
    use crate::format::schema::Field;

    fn field(id: i32, parent_id: i32, packed: bool) -> Field {
        let metadata = if packed { [("lance-encoding:packed".to_owned(), "true".to_owned())].into() } else { BTreeMap::new() };
        Field {
            id,
            parent_id,
            name: format!("f{id}"),
            logical_type: "struct".into(),
            nullable: true,
            metadata,
            has_dictionary: false,
        }
    }

    fn fragment(path: &str, fields: &[i32], deletion: Option<u64>) -> Fragment {
        Fragment {
            id: 1,
            files: vec![DataFile {
                path: path.into(),
                fields: fields.to_vec(),
                column_indices: (0..fields.len() as i32).collect(),
                major: 2,
                minor: 1,
                ..DataFile::default()
            }],
            deletion_file: deletion.map(|id| DeletionFile {
                kind: DeletionKind::Arrow,
                read_version: 2,
                id,
                num_deleted_rows: Some(1),
                base_id: None,
            }),
            physical_rows: Some(10),
            ..Fragment::default()
        }
    }

    fn schema() -> Schema {
        Schema { fields: vec![field(0, -1, false), field(1, -1, true), field(2, 1, false)], ..Schema::default() }
    }

    fn change(planned: &Fragment, now: Option<&Fragment>, field: i32, revived: bool) -> Change {
        let schema = schema();
        let key = now.map(|f| FragmentKey::of(f, &schema, field));
        change_of(&FragmentKey::of(planned, &schema, field), now.zip(key.as_ref()), || revived)
    }

    #[test]
    fn the_key_follows_the_column_not_the_fragment() {
        let a = fragment("a", &[0, 1, 2], None);
        let other_column = Fragment { files: vec![fragment("a", &[0], None).files.remove(0)], ..a.clone() };
        assert_eq!(change(&a, Some(&other_column), 0, false), Change::Unchanged);
        assert_eq!(change(&a, Some(&fragment("b", &[0], None)), 0, false), Change::Rewritten);
        assert_eq!(change(&a, None, 0, false), Change::Gone);
    }

    #[test]
    fn a_packed_ancestor_counts() {
        let a = fragment("a", &[1, 2], None);
        let mut moved = a.clone();
        moved.files[0].fields = vec![-2, 2];
        assert_eq!(change(&a, Some(&moved), 2, false), Change::Rewritten);
    }

    #[test]
    fn deletions_may_grow_but_not_shrink() {
        let (none, some, more) = (fragment("a", &[0], None), fragment("a", &[0], Some(1)), fragment("a", &[0], Some(2)));
        assert_eq!(change(&none, Some(&some), 0, true), Change::Unchanged, "nothing was deleted: nothing can revive");
        assert_eq!(change(&some, Some(&some), 0, true), Change::Unchanged, "the same file needs no look");
        assert_eq!(change(&some, Some(&more), 0, false), Change::Unchanged);
        assert_eq!(change(&some, Some(&more), 0, true), Change::Revived);
        assert_eq!(change(&some, Some(&none), 0, true), Change::Revived);
    }

    #[test]
    fn overlays_leave_a_fragment_out() {
        let a = fragment("a", &[0], None);
        let overlaid = Fragment { has_overlays: true, ..a.clone() };
        assert_eq!(change(&a, Some(&overlaid), 0, false), Change::Overlaid);
    }

    #[test]
    fn what_is_left_out_says_why() {
        let built: RoaringBitmap = [1, 2].into_iter().collect();
        let (kept, left) = prune(&built, |f| if f == 1 { Change::Unchanged } else { Change::Gone });
        assert_eq!(kept.iter().collect::<Vec<_>>(), [1]);
        assert_eq!(left, [LeftOut { fragment: 2, why: "the fragment is gone".into() }]);
    }
}
