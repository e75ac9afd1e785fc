//! The schema: a flattened field list and the tree it stands for (table-format §5).

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, TimeUnit};

use crate::error::{Error, ErrorCode, Result};

/// One field of the flattened list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Field id used by data files and indexes.
    pub id: i32,
    /// -1 for top level.
    pub parent_id: i32,
    /// Own name, not a path.
    pub name: String,
    /// Logical type text, e.g. `timestamp:us:UTC`.
    pub logical_type: String,
    /// May hold nulls.
    pub nullable: bool,
    /// Field metadata, values as text.
    pub metadata: BTreeMap<String, String>,
    /// A 0.1 dictionary whose pages lie in the manifest file (field number 8).
    pub has_dictionary: bool,
}

/// The fields in pre-order, every parent before its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Flattened pre-order list.
    pub fields: Vec<Field>,
    /// Schema metadata, values as text.
    pub metadata: BTreeMap<String, String>,
}

impl Schema {
    /// The field with that id.
    pub fn by_id(&self, id: i32) -> Option<&Field> {
        self.fields.iter().find(|f| f.id == id)
    }

    /// Children of a field (or the top level for -1), in order.
    pub fn children(&self, parent: i32) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |f| f.parent_id == parent)
    }

    /// Dotted path of a field; a name part that holds a dot or a backtick is quoted in backticks.
    pub fn path_of(&self, id: i32) -> Option<String> {
        let mut parts = Vec::new();
        let mut at = self.by_id(id)?;
        loop {
            parts.push(quote(&at.name));
            if at.parent_id < 0 || parts.len() > self.fields.len() {
                break;
            }
            at = self.by_id(at.parent_id)?;
        }
        parts.reverse();
        Some(parts.join("."))
    }
}

fn quote(name: &str) -> String {
    if name.contains(['.', '`']) { format!("`{}`", name.replace('`', "``")) } else { name.to_owned() }
}

/// The Arrow type of a scalar logical type text; nested and unknown types are refused by name.
pub fn scalar_type(logical_type: &str) -> Result<DataType> {
    let unit = |text: &str| match text {
        "s" => Some(TimeUnit::Second),
        "ms" => Some(TimeUnit::Millisecond),
        "us" => Some(TimeUnit::Microsecond),
        "ns" => Some(TimeUnit::Nanosecond),
        _ => None,
    };
    let refused = || {
        Error::new(ErrorCode::UnsupportedType, format!("columns of type {logical_type} cannot be read by this build"))
            .with("logical_type", logical_type)
    };
    Ok(match logical_type {
        "null" => DataType::Null,
        "bool" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "halffloat" => DataType::Float16,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "string" => DataType::Utf8,
        "large_string" => DataType::LargeUtf8,
        "binary" => DataType::Binary,
        "large_binary" | "json" => DataType::LargeBinary,
        "date32:day" => DataType::Date32,
        "date64:ms" => DataType::Date64,
        _ => {
            let mut parts = logical_type.splitn(3, ':');
            match (parts.next(), parts.next(), parts.next()) {
                (Some("time32"), Some(u @ ("s" | "ms")), None) => DataType::Time32(unit(u).ok_or_else(refused)?),
                (Some("time64"), Some(u @ ("us" | "ns")), None) => DataType::Time64(unit(u).ok_or_else(refused)?),
                (Some("duration"), Some(u), None) => DataType::Duration(unit(u).ok_or_else(refused)?),
                (Some("timestamp"), Some(u), Some(tz)) => {
                    let zone = if tz == "-" { None } else { Some(tz.into()) };
                    DataType::Timestamp(unit(u).ok_or_else(refused)?, zone)
                }
                (Some("fixed_size_binary"), Some(n), None) => {
                    DataType::FixedSizeBinary(n.parse().ok().filter(|n| *n >= 0).ok_or_else(refused)?)
                }
                _ => return Err(refused()),
            }
        }
    })
}
