//! The rows of `SHOW`.

use serde_json::{Value, json};

use super::statement::Listing;
use crate::error::Result;
use crate::index::display_name;
use crate::table::Table;
use crate::table::describe::{IndexInfo, indexes};
use crate::table::show::fragments;

type Rows = (&'static str, Vec<&'static str>, Vec<Vec<Value>>);

/// Name of the statement, columns and rows.
pub async fn rows(table: &Table, listing: Listing) -> Result<Rows> {
    match listing {
        Listing::Indexes => {
            let columns = vec![
                "name",
                "fields",
                "type",
                "num_indexed_fragments",
                "num_indexed_rows",
                "num_unindexed_fragments",
                "num_unindexed_rows",
                "indexed_percent",
                "num_segments",
                "size_bytes",
            ];
            let rows = indexes(table, display_name).await?.iter().map(index_row).collect();
            Ok(("SHOW INDEXES", columns, rows))
        }
        Listing::Segments => {
            let columns = vec![
                "index",
                "uuid",
                "type",
                "num_fragments",
                "num_live_fragments",
                "num_retired_fragments",
                "dataset_version",
                "created_at",
                "size_bytes",
                "status",
            ];
            let mut rows = Vec::new();
            for index in indexes(table, display_name).await? {
                rows.extend(index.segments.iter().map(|segment| {
                    let count = |ids: &Option<Vec<u32>>| json!(ids.as_ref().map(Vec::len));
                    vec![
                        json!(index.name),
                        json!(segment.uuid),
                        json!(index.kind),
                        count(&segment.fragment_ids),
                        count(&segment.effective_fragment_ids),
                        count(&segment.retired_fragment_ids),
                        json!(segment.dataset_version),
                        json!(segment.created_at),
                        json!(segment.size_bytes),
                        json!(segment.status),
                    ]
                }));
            }
            Ok(("SHOW SEGMENTS", columns, rows))
        }
        Listing::Fragments => {
            let columns = vec!["id", "rows", "deleted_rows", "physical_rows", "files", "size_bytes", "indexes"];
            let rows = fragments(table, None).await?.into_iter().map(|fragment| {
                let bytes = fragment.data_files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.size?));
                let covering: Vec<String> = fragment.covered_by.into_keys().collect();
                vec![
                    json!(fragment.id),
                    json!(fragment.rows),
                    json!(fragment.num_deletions),
                    json!(fragment.physical_rows),
                    json!(fragment.data_files.len()),
                    json!(bytes),
                    json!(covering.join(", ")),
                ]
            });
            Ok(("SHOW FRAGMENTS", columns, rows.collect()))
        }
        Listing::Versions => {
            let rows = table.versions().await?.into_iter();
            let rows = rows.map(|version| vec![json!(version.version), json!(version.modified), json!(version.size)]).collect();
            Ok(("SHOW VERSIONS", vec!["version", "modified", "manifest_bytes"], rows))
        }
    }
}

fn index_row(index: &IndexInfo) -> Vec<Value> {
    vec![
        json!(index.name),
        json!(index.field_names.join(", ")),
        json!(index.kind),
        json!(index.covered_live_fragments.len()),
        json!(index.num_rows_indexed),
        json!(index.unindexed_fragments.len()),
        json!(index.num_rows_unindexed),
        json!(index.indexed_percent),
        json!(index.num_segments),
        json!(index.size_bytes),
    ]
}
