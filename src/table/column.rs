//! Which column of a data file holds a field, and as what it is read (file-format §2.5, §2.8).

use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField};

use crate::error::{Error, ErrorCode, Result};
use crate::file::decoded_type;
use crate::format::fragment::{DataFile, Fragment};
use crate::format::schema::{Field, Schema, scalar_type};

/// A field that can be read as a column of its own: a scalar, lists of scalars, or a member of a packed struct.
#[derive(Clone, Debug)]
pub struct ReadColumn {
    /// The field.
    pub field: i32,
    /// Its type in the schema; dictionary types are still there.
    pub asked: DataType,
    /// Type of the arrays read: of a dictionary type they are its values.
    pub data_type: DataType,
    /// The innermost field of nested lists, else the field itself.
    leaf: i32,
    /// The packed struct whose column the field shares, and the field's place in it.
    packed: Option<(i32, usize)>,
}

/// Where a fragment has a column.
pub(super) struct Place<'a> {
    pub(super) file: &'a DataFile,
    /// `None` in files of format 0.1, which have no numbered columns.
    pub(super) column: Option<usize>,
    pub(super) member: Option<usize>,
}

impl ReadColumn {
    /// How the field with that id is read; `COLUMN_NOT_FOUND`, `UNSUPPORTED_TYPE` or `UNSUPPORTED_ENCODING` naming the column.
    pub fn new(schema: &Schema, field: i32) -> Result<ReadColumn> {
        let Some(field) = schema.by_id(field) else {
            return Err(Error::new(ErrorCode::ColumnNotFound, format!("this version has no field {field}")));
        };
        let path = schema.path_of(field.id).unwrap_or_else(|| field.name.clone());
        let refuse = |what: String, code| Error::new(code, format!("column {path} {what}")).with("column", path.as_str());
        if is_blob(field) {
            return Err(refuse("is a blob column, which this build does not read".to_owned(), ErrorCode::UnsupportedEncoding));
        }
        let Some((asked, leaf)) = type_of(schema, field, 0) else {
            let what = format!("is of type {}, which this build does not read", field.logical_type);
            return Err(refuse(what, ErrorCode::UnsupportedType));
        };
        let mut packed = None;
        for (depth, parent) in ancestors(schema, field).into_iter().enumerate() {
            if parent.logical_type != "struct" {
                let what = format!("lies inside {} of type {}, which this build does not read", parent.name, parent.logical_type);
                return Err(refuse(what, ErrorCode::UnsupportedType));
            }
            if is_packed(parent) {
                let index = schema.children(parent.id).position(|child| child.id == field.id);
                packed = match index {
                    Some(index) if depth == 0 && leaf == field.id => Some((parent.id, index)),
                    _ => {
                        let what = format!("lies deep inside the packed struct {}, which this build does not read", parent.name);
                        return Err(refuse(what, ErrorCode::UnsupportedEncoding));
                    }
                };
            }
        }
        Ok(ReadColumn { field: field.id, data_type: decoded_type(&asked), asked, leaf, packed })
    }

    /// The file and column of a fragment; `None` when no file of it has the field: all its rows are null.
    pub(super) fn place<'a>(&self, schema: &Schema, fragment: &'a Fragment) -> Result<Option<Place<'a>>> {
        let id_in = |file: &DataFile| match self.packed {
            Some((parent, _)) => parent,
            // From 2.1 on a column holds the structure around its values too, and only leaves have one.
            None if (file.major, file.minor) >= (2, 1) => self.leaf,
            None => self.field,
        };
        let found = file_with(fragment, id_in)?;
        if found.is_none() {
            self.refuse_packed(schema, fragment)?;
        }
        let member = self.packed.map(|(_, index)| index);
        Ok(found.map(|(file, column)| Place { file, column, member }))
    }

    /// A leaf without a column of its own may be stored inside an ancestor's: then it is not null, it is unreadable here.
    fn refuse_packed(&self, schema: &Schema, fragment: &Fragment) -> Result<()> {
        let Some(field) = schema.by_id(self.field) else { return Ok(()) };
        let ancestors = ancestors(schema, field);
        // From 2.1 on a file lists leaves only, besides structs packed into one column.
        let leaves_only = |file: &&DataFile| (file.major, file.minor) >= (2, 1);
        for file in fragment.files.iter().filter(leaves_only) {
            if let Some(parent) = ancestors.iter().find(|parent| file.fields.contains(&parent.id)) {
                let message =
                    format!("{}: {} is stored as one packed column, which this build does not read", file.path, parent.name);
                return Err(Error::new(ErrorCode::UnsupportedEncoding, message).with("object", file.path.as_str()));
            }
        }
        Ok(())
    }
}

fn is_packed(field: &Field) -> bool {
    field.metadata.contains_key("packed") || field.metadata.contains_key("lance-encoding:packed")
}

fn is_blob(field: &Field) -> bool {
    field.metadata.contains_key("lance-encoding:blob")
}

/// The structs and lists around a field, the nearest first.
fn ancestors<'a>(schema: &'a Schema, field: &'a Field) -> Vec<&'a Field> {
    let mut found = Vec::new();
    let mut at = field;
    while let Some(parent) = schema.by_id(at.parent_id).filter(|_| at.parent_id >= 0 && found.len() < schema.fields.len()) {
        found.push(parent);
        at = parent;
    }
    found
}

/// The Arrow type of a scalar field or of lists of scalars, as the schema has it; `UNSUPPORTED_TYPE` for others.
pub fn field_type(schema: &Schema, field: &Field) -> Result<DataType> {
    type_of(schema, field, 0).map(|(asked, _)| asked).ok_or_else(|| {
        let text = format!("columns of type {} cannot be read by this build", field.logical_type);
        Error::new(ErrorCode::UnsupportedType, text).with("logical_type", field.logical_type.as_str())
    })
}

/// The type of a field that is no struct and holds none, and the id of its innermost field.
fn type_of(schema: &Schema, field: &Field, depth: usize) -> Option<(DataType, i32)> {
    let mut children = schema.children(field.id);
    let list = match field.logical_type.as_str() {
        "list" => DataType::List,
        "large_list" => DataType::LargeList,
        other => return children.next().is_none().then(|| leaf_type(other)).flatten().map(|ty| (ty, field.id)),
    };
    let (Some(child), None, true) = (children.next(), children.next(), depth < 16) else { return None };
    if is_blob(child) {
        return None;
    }
    let (item, leaf) = type_of(schema, child, depth + 1)?;
    Some((list(Arc::new(ArrowField::new(child.name.clone(), item, child.nullable))), leaf))
}

/// The type of a field without children, by its logical type text.
fn leaf_type(logical: &str) -> Option<DataType> {
    if let Some(rest) = logical.strip_prefix("fixed_size_list:") {
        // The inner type may hold colons itself.
        let (inner, dimension) = rest.rsplit_once(':')?;
        let dimension: i32 = dimension.parse().ok().filter(|dimension| *dimension > 0)?;
        // Two bytes that Arrow has no number type for.
        let item = if inner == "lance.bfloat16" { DataType::FixedSizeBinary(2) } else { leaf_type(inner)? };
        return Some(DataType::FixedSizeList(Arc::new(ArrowField::new("item", item, true)), dimension));
    }
    if let Some(rest) = logical.strip_prefix("dict:") {
        let (rest, _ordered) = rest.rsplit_once(':')?;
        let (value, key) = rest.rsplit_once(':')?;
        let key = scalar_type(key).ok().filter(DataType::is_integer)?;
        return Some(DataType::Dictionary(Box::new(key), Box::new(scalar_type(value).ok()?)));
    }
    scalar_type(logical).ok()
}

/// The file that holds the field `id_in` names for it, and the physical column; a field is in at most one file of a fragment.
pub(super) fn file_with(fragment: &Fragment, id_in: impl Fn(&DataFile) -> i32) -> Result<Option<(&DataFile, Option<usize>)>> {
    let mut found = None;
    for file in &fragment.files {
        let field = id_in(file);
        // Positions of negative ids (tombstones, hidden columns) never match a field of the schema.
        let Some(position) = file.fields.iter().position(|id| *id == field) else { continue };
        if found.is_some() {
            return Err(Error::corrupt(&file.path, format!("fragment {} stores field {field} in two files", fragment.id)));
        }
        if file.column_indices.is_empty() && file.major < 2 {
            // Format 0.1 has no column indices; opening the file refuses it by its footer.
            found = Some((file, None));
            continue;
        }
        let column = match file.column_indices.get(position).map(|column| usize::try_from(*column)) {
            Some(Ok(column)) if file.column_indices.len() == file.fields.len() => column,
            _ => return Err(Error::corrupt(&file.path, format!("the manifest gives field {field} no column in it"))),
        };
        found = Some((file, Some(column)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaf_types() {
        let list = |item, dimension| DataType::FixedSizeList(Arc::new(ArrowField::new("item", item, true)), dimension);
        assert_eq!(leaf_type("fixed_size_list:float:768"), Some(list(DataType::Float32, 768)));
        assert_eq!(leaf_type("fixed_size_list:fixed_size_list:int32:3:5"), Some(list(list(DataType::Int32, 3), 5)));
        let stamp = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some("+01:00".into()));
        assert_eq!(leaf_type("fixed_size_list:timestamp:us:+01:00:4"), Some(list(stamp, 4)));
        let dictionary = DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8));
        assert_eq!(leaf_type("dict:string:int16:false"), Some(dictionary));
        for bad in
            ["fixed_size_list:float:0", "fixed_size_list:float", "dict:string:double:false", "dict:string", "struct", "map"]
        {
            assert_eq!(leaf_type(bad), None, "{bad}");
        }
    }
}
