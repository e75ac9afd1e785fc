//! Finding the index a caller means, and refusing those that are not refreshed here.

use std::collections::BTreeMap;

use super::plan::Creation;
use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::format::schema::{Field, Schema};
use crate::index::{IndexMethod, method_by_name, method_by_url};
use crate::table::Table;
use crate::table::column::field_type;

/// How far back a name is followed when no planned segment is left, in versions.
const WALK: u64 = 64;
/// Names that begin so belong to entries of Lance itself.
const SYSTEM_PREFIX: &str = "__lance_";

/// The segments of one name, and what they are.
pub struct Resolved<'a> {
    /// Exact name.
    pub name: String,
    /// Its segments in section order, bitmaps as they count (carried through a version-0 history).
    pub segments: Vec<&'a IndexMetadata>,
    /// The method behind their type url.
    pub method: &'static dyn IndexMethod,
    /// Type url as the first segment spells it.
    pub type_url: String,
    /// The indexed column.
    pub field: &'a Field,
    /// Its path.
    pub column: String,
}

/// The exact name meant by `asked`: an exact match, else the only one that matches when case is ignored.
///
/// # Errors
/// `INDEX_NOT_FOUND` listing the names there are, `INDEX_AMBIGUOUS` listing the candidates, `UNSUPPORTED_METHOD` for the
/// table's own system entries.
pub fn exact_name(indices: &[IndexMetadata], asked: &str) -> Result<String> {
    if let Some(system) = indices.iter().find(|e| e.is_system() && e.name.eq_ignore_ascii_case(asked)) {
        let text =
            format!("{} is an entry of Lance itself, not an index that can be refreshed; nothing was changed", system.name);
        return Err(Error::new(ErrorCode::UnsupportedMethod, text).with("index", system.name.as_str()));
    }
    let mut names: BTreeMap<&str, ()> = BTreeMap::new();
    for entry in indices.iter().filter(|e| !e.is_system()) {
        names.insert(&entry.name, ());
    }
    if names.contains_key(asked) {
        return Ok(asked.to_owned());
    }
    let wanted = asked.to_lowercase();
    let candidates: Vec<&str> = names.keys().filter(|name| name.to_lowercase() == wanted).copied().collect();
    match candidates.as_slice() {
        [name] => Ok((*name).to_owned()),
        [] => {
            let all: Vec<&str> = names.keys().copied().collect();
            let known = if all.is_empty() { "it has none".to_owned() } else { format!("it has {}", all.join(", ")) };
            Err(Error::new(ErrorCode::IndexNotFound, format!("the table has no index {asked}; {known}"))
                .with("index", asked)
                .with("names", all))
        }
        several => Err(Error::new(
            ErrorCode::IndexAmbiguous,
            format!("{asked} names no index exactly and several when case is ignored: {}", several.join(", ")),
        )
        .with("index", asked)
        .with("candidates", several.to_vec())),
    }
}

/// Resolves `asked` among `indices`.
///
/// # Errors
/// Those of [`exact_name`]; `UNSUPPORTED_METHOD` for methods not maintained here, vector, multi-column and carrying indexes;
/// `UNSUPPORTED_FEATURE` for a format version this build does not know; `UNSUPPORTED_TYPE` for the column's type;
/// `COLUMN_NOT_FOUND` when the column has left the schema.
pub fn resolve<'a>(indices: &'a [IndexMetadata], schema: &'a Schema, asked: &str) -> Result<Resolved<'a>> {
    let name = exact_name(indices, asked)?;
    let segments: Vec<&IndexMetadata> = indices.iter().filter(|e| e.name == name).collect();
    let type_url = segments.iter().find_map(|s| s.details.as_ref()).map(|d| d.type_url.clone()).ok_or_else(|| {
        let text =
            format!("index {name} records no method (it is older than that); drop and create it anew. Nothing was changed");
        Error::new(ErrorCode::UnsupportedMethod, text).with("index", name.as_str())
    })?;
    let method = method_by_url(&type_url).map_err(|error| {
        let code = error.code();
        Error::new(code, format!("index {name}: {}", error.message()))
            .with("index", name.as_str())
            .with("type_url", type_url.as_str())
    })?;
    for segment in &segments {
        check_segment(&name, segment, method)?;
    }
    let id = segments.first().and_then(|s| s.fields.first()).copied().unwrap_or(-1);
    let field = schema.by_id(id).ok_or_else(|| {
        let text = format!("index {name} is on field {id}, which is no longer in the schema; nothing was changed");
        Error::new(ErrorCode::ColumnNotFound, text).with("index", name.as_str()).with("field_id", id)
    })?;
    let column = schema.path_of(id).unwrap_or_else(|| field.name.clone());
    check_type(&name, &column, schema, field, method)?;
    Ok(Resolved { name, segments, method, type_url, field, column })
}

/// An index called `name` by `method` on the column called `column`, as if it were there without a segment.
///
/// # Errors
/// `INVALID_ARGUMENT` for a name no index may have, `COLUMN_NOT_FOUND`, `UNSUPPORTED_METHOD`, also for several columns at once,
/// `UNSUPPORTED_TYPE`.
pub fn resolve_new<'a>(schema: &'a Schema, name: &str, column: &str, method: &str) -> Result<Resolved<'a>> {
    if name.is_empty() || name.starts_with(SYSTEM_PREFIX) {
        let text = format!("an index cannot be called {name:?}: names are not empty and do not begin with {SYSTEM_PREFIX}");
        return Err(Error::invalid(format!("{text}. Nothing was changed")).with("index", name));
    }
    let method = method_by_name(method)?;
    let field = schema.resolve(column).map_err(|error| several_columns(schema, name, column).unwrap_or(error))?;
    let column = schema.path_of(field.id).unwrap_or_else(|| field.name.clone());
    check_type(name, &column, schema, field, method)?;
    let type_url = method.type_url().to_owned();
    Ok(Resolved { name: name.to_owned(), segments: Vec::new(), method, type_url, field, column })
}

/// The refusal of an index on several columns; `None` where `columns` is not a list of columns that are there.
fn several_columns(schema: &Schema, name: &str, columns: &str) -> Option<Error> {
    let listed: Vec<&str> = columns.split(',').map(str::trim).collect();
    if listed.len() < 2 || listed.iter().any(|column| schema.resolve(column).is_err()) {
        return None;
    }
    let text = format!(
        "index {name} would be on {} columns ({}); an index is on one column: make one for each. Nothing was changed",
        listed.len(),
        listed.join(", ")
    );
    Some(Error::new(ErrorCode::UnsupportedMethod, text).with("index", name).with("columns", listed))
}

/// Whether an index of that name may be made where `named` are the segments that have it now.
///
/// # Errors
/// `INDEX_EXISTS` unless it is to be replaced; also then when it is on another column.
pub fn check_creatable(name: &str, field: i32, creation: Creation, named: &[&IndexMetadata]) -> Result<()> {
    let exists =
        |what: String| Err(Error::new(ErrorCode::IndexExists, format!("{what}; nothing was committed")).with("index", name));
    match named.iter().find(|e| e.fields != [field]) {
        Some(other) => exists(format!("the table has an index {name} already, on another column (fields {:?})", other.fields)),
        None if !creation.replace && !named.is_empty() => exists(format!("the table has an index {name} already")),
        None => Ok(()),
    }
}

/// Whether every version from `v_plan` to that of `table` is there and lists an entry for which `is_it` holds (§8.2 b).
pub async fn never_gone(table: &Table, v_plan: u64, is_it: &dyn Fn(&IndexMetadata) -> bool) -> Result<bool> {
    let latest = table.version();
    if latest.saturating_sub(v_plan) > WALK {
        return Ok(false);
    }
    for version in v_plan.saturating_add(1)..latest {
        let Some(file) = table.manifest_at(version).await? else { return Ok(false) };
        if !file.indices.iter().any(is_it) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn check_type(name: &str, column: &str, schema: &Schema, field: &Field, method: &'static dyn IndexMethod) -> Result<()> {
    match field_type(schema, field) {
        Ok(data_type) if method.accepts(&data_type) => Ok(()),
        _ => Err(unsupported_type(name, column, &field.logical_type, method)),
    }
}

fn check_segment(name: &str, segment: &IndexMetadata, method: &'static dyn IndexMethod) -> Result<()> {
    let uuid = segment.uuid.to_string();
    let refused =
        |text: String| Err(Error::new(ErrorCode::UnsupportedMethod, text).with("index", name).with("segment", uuid.as_str()));
    if !segment.covering_fields.is_empty() {
        return refused(format!(
            "index {name} carries further columns (fields {:?}), which is not maintained here",
            segment.covering_fields
        ));
    }
    if segment.fields.len() != 1 {
        return refused(format!(
            "index {name} is on {} columns (fields {:?}); only indexes on one column are refreshed",
            segment.fields.len(),
            segment.fields
        ));
    }
    let version = segment.index_version.unwrap_or(0);
    if version > method.max_index_version() || version < 0 {
        let text = format!(
            "segment {uuid} of index {name} has format version {version}; this build knows {} up to {}",
            method.name(),
            method.max_index_version()
        );
        return Err(Error::new(ErrorCode::UnsupportedFeature, text).with("index", name).with("segment", uuid.as_str()));
    }
    Ok(())
}

fn unsupported_type(name: &str, column: &str, logical_type: &str, method: &'static dyn IndexMethod) -> Error {
    let text = format!(
        "index {name}: column {column} is of type {logical_type}, which this build does not take into {} indexes; nothing was changed",
        method.name()
    );
    Error::new(ErrorCode::UnsupportedType, text).with("index", name).with("column", column).with("logical_type", logical_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn entry(name: &str, url: &str, fields: &[i32]) -> IndexMetadata {
        IndexMetadata {
            uuid: Uuid::from_u128(1),
            fields: fields.to_vec(),
            name: name.into(),
            dataset_version: 1,
            fragment_bitmap: None,
            details: Some(crate::format::index_metadata::IndexDetails { type_url: url.into(), value: Default::default() }),
            index_version: Some(0),
            created_at_ms: None,
            base_id: None,
            files: vec![],
            covering_fields: vec![],
            metadata: Default::default(),
            raw: Default::default(),
        }
    }

    fn schema() -> Schema {
        let field = |id: i32, ty: &str| Field {
            id,
            parent_id: -1,
            name: format!("c{id}"),
            logical_type: ty.into(),
            nullable: true,
            metadata: Default::default(),
            has_dictionary: false,
        };
        Schema { fields: vec![field(0, "int64"), field(1, "struct")], metadata: Default::default() }
    }

    const BTREE: &str = "/lance.table.BTreeIndexDetails";

    #[test]
    fn names_resolve_exactly_first() {
        let indices = [entry("Ix", BTREE, &[0]), entry("ix", BTREE, &[0]), entry("other", BTREE, &[0])];
        assert_eq!(exact_name(&indices, "ix").unwrap(), "ix");
        assert_eq!(exact_name(&indices, "OTHER").unwrap(), "other");
        let ambiguous = exact_name(&indices, "IX").unwrap_err();
        assert_eq!(ambiguous.code(), ErrorCode::IndexAmbiguous);
        assert_eq!(ambiguous.detail().get("candidates"), Some(&serde_json::json!(["Ix", "ix"])));
        let missing = exact_name(&indices, "nope").unwrap_err();
        assert_eq!(missing.code(), ErrorCode::IndexNotFound);
        assert!(missing.message().contains("other"), "{}", missing.message());
    }

    #[test]
    fn an_index_is_made_on_one_column() {
        let refused = |column: &str| resolve_new(&schema(), "n", column, "BTREE").err().expect("refused");
        for columns in ["c0,c1", "c0, c0", " c1 , c0 "] {
            let error = refused(columns);
            assert_eq!(error.code(), ErrorCode::UnsupportedMethod, "{columns}");
            assert!(
                error.message().contains("2 columns") && error.message().contains("Nothing was changed"),
                "{}",
                error.message()
            );
        }
        for columns in ["c0,c9", ",", "c0,", "c9"] {
            assert_eq!(refused(columns).code(), ErrorCode::ColumnNotFound, "{columns}");
        }
        let mut odd = schema();
        odd.fields[0].name = "a,b".into();
        assert!(resolve_new(&odd, "n", "`a,b`", "BTREE").is_ok() || resolve_new(&odd, "n", "a,b", "BTREE").is_ok());
    }

    #[test]
    fn what_is_not_refreshed_is_refused_by_name() {
        let refusal = |entry: IndexMetadata| {
            let name = entry.name.clone();
            resolve(&[entry], &schema(), &name).err().expect("refused")
        };
        let vector = refusal(entry("v", "/lance.index.pb.VectorIndexDetails", &[0]));
        assert_eq!(vector.code(), ErrorCode::UnsupportedMethod);
        assert!(vector.message().contains("optimize_indices"), "{}", vector.message());
        assert!(refusal(entry("b", "/lance.index.pb.FMIndexDetails", &[0])).message().contains("FM"));
        assert!(refusal(entry("m", BTREE, &[0, 1])).message().contains("2 columns"));
        let system = refusal(entry("__lance_frag_reuse", "/lance.table.FragmentReuseIndexDetails", &[]));
        assert_eq!(system.code(), ErrorCode::UnsupportedMethod);
        assert_eq!(refusal(entry("s", BTREE, &[1])).code(), ErrorCode::UnsupportedType);
        assert_eq!(refusal(entry("g", BTREE, &[9])).code(), ErrorCode::ColumnNotFound);
        let newer = IndexMetadata { index_version: Some(99), ..entry("n", BTREE, &[0]) };
        assert_eq!(refusal(newer).code(), ErrorCode::UnsupportedFeature);
    }
}
