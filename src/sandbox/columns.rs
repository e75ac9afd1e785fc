//! The columns of a table to be made: what is asked for → the schema, with the generator of each column kept in its metadata.

use std::collections::HashMap;

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use super::generate::{Generator, Shape, Value};
use crate::document;
use crate::error::{Error, ErrorCode, Result};
use crate::format::proto;
use crate::format::schema::{Field, Schema, scalar_type};

/// Key of a field's metadata that holds its generator.
pub(super) const GENERATOR: &str = "whetstone:generator";
/// Most columns of a table made here.
const MOST_COLUMNS: usize = 100;
/// Longest column name, in bytes.
const LONGEST_NAME: usize = 200;
/// Names that Lance gives to columns of its own.
const RESERVED: [&str; 7] =
    ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version", "_distance", "_score"];
/// Names of types besides the format's own.
const ALIASES: [(&str, &str); 9] = [
    ("utf8", "string"),
    ("float32", "float"),
    ("float64", "double"),
    ("float16", "halffloat"),
    ("boolean", "bool"),
    ("timestamp", "timestamp:us:-"),
    ("date", "date32:day"),
    ("date32", "date32:day"),
    ("labels", "list<string>"),
];

/// One column as it is asked for; everything but name and type has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// Name, without a dot.
    pub name: String,
    /// `int8` … `uint64`, `float32`, `float64`, `bool`, `utf8`, `timestamp` (`timestamp:us:-`), `date32`, `labels` (a list of utf8).
    #[serde(rename = "type")]
    pub kind: String,
    /// May hold nulls; true when absent.
    #[serde(default)]
    pub nullable: Option<bool>,
    /// Which value a row has.
    #[serde(default)]
    pub shape: Option<Shape>,
    /// Sequence: the value of row 0.
    #[serde(default)]
    pub start: Option<Value>,
    /// Sequence and choice: from one value to the next.
    #[serde(default)]
    pub step: Option<Value>,
    /// Random: the smallest value. Choice: the first one.
    #[serde(default)]
    pub min: Option<Value>,
    /// Random: the largest value.
    #[serde(default)]
    pub max: Option<Value>,
    /// Choice and words: how many different values there are.
    #[serde(default)]
    pub distinct: Option<u64>,
    /// Sentences and lists: fewest and most words.
    #[serde(default)]
    pub words: Option<(u32, u32)>,
    /// Share of nulls, from 0 to 1.
    #[serde(default)]
    pub nulls: Option<f64>,
}

/// The `Field` messages of the columns, in pre-order, ids from 0; checked in full.
pub(super) fn fields_of(columns: &[ColumnSpec]) -> Result<Vec<proto::Field>> {
    if columns.is_empty() || columns.len() > MOST_COLUMNS {
        return Err(Error::invalid(format!("a table has 1 to {MOST_COLUMNS} columns, not {}", columns.len())));
    }
    let mut fields: Vec<proto::Field> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        check_name(&column.name)?;
        if columns.iter().take(at).any(|other| other.name == column.name) {
            return Err(Error::invalid(format!("there are two columns {:?}", column.name)).with("column", column.name.as_str()));
        }
        let logical = logical_type(column)?;
        let id = next_id(&fields);
        let nullable = column.nullable.unwrap_or(true);
        let (own, item) = match logical.as_str() {
            "list<string>" => ("list", Some("string")),
            other => (other, None),
        };
        let generator = Generator::of(column, item.is_some(), &scalar_type(item.unwrap_or(own))?)?;
        if generator.nulls > 0.0 && !nullable {
            let text = format!("column {} takes no nulls, so a share of them means nothing", column.name);
            return Err(Error::invalid(text).with("column", column.name.as_str()));
        }
        let text = serde_json::to_vec(&generator).map_err(|error| Error::internal(error.to_string()))?;
        fields.push(proto::Field {
            name: column.name.clone(),
            id,
            parent_id: -1,
            logical_type: own.to_owned(),
            nullable,
            dictionary: None,
            metadata: HashMap::from([(GENERATOR.to_owned(), text)]),
        });
        if let Some(item) = item {
            fields.push(proto::Field {
                name: "item".to_owned(),
                id: id + 1,
                parent_id: id,
                logical_type: item.to_owned(),
                nullable: true,
                ..proto::Field::default()
            });
        }
    }
    Ok(fields)
}

fn next_id(fields: &[proto::Field]) -> i32 {
    i32::try_from(fields.len()).unwrap_or(i32::MAX)
}

fn check_name(name: &str) -> Result<()> {
    let wrong = if name.is_empty() || name.len() > LONGEST_NAME {
        format!("has 1 to {LONGEST_NAME} bytes")
    } else if name.contains('.') || name.chars().any(char::is_control) {
        "has no dot and no control character".to_owned()
    } else if RESERVED.contains(&name) {
        "is not one that Lance gives to columns of its own".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("the name of a column {wrong}, {name:?} cannot be one")).with("column", name))
}

fn logical_type(column: &ColumnSpec) -> Result<String> {
    let asked = column.kind.as_str();
    let known = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(asked)).map(|(_, logical)| *logical);
    let logical = match asked {
        "list<utf8>" | "list<string>" => "list<string>",
        other => known.unwrap_or(other),
    };
    if logical == "list<string>" || scalar_type(logical).is_ok_and(|data_type| generated(&data_type)) {
        return Ok(logical.to_owned());
    }
    let text = format!("column {}: there is no generator for values of type {asked:?}", column.name);
    Err(Error::new(ErrorCode::UnsupportedType, text).with("column", column.name.as_str()).with("type", asked))
}

/// Whether rows of that type can be made up.
fn generated(data_type: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Float32, Float64, LargeUtf8, Timestamp, Utf8};
    data_type.is_integer()
        || matches!(data_type, Boolean | Float32 | Float64 | Utf8 | LargeUtf8 | Timestamp(..) | Date32 | Date64)
}

/// The generator of a top-level field: the one it was made with, else the default of its type.
///
/// # Errors
/// `UNSUPPORTED_TYPE` naming the column when there is none.
pub(super) fn generator_of(schema: &Schema, field: &Field) -> Result<Generator> {
    let item = match (field.logical_type.as_str(), schema.children(field.id).next()) {
        ("list", Some(item)) => Some(item.logical_type.as_str()),
        _ => None,
    };
    let refused = || {
        let text = format!("column {}: there is no generator for values of type {}", field.name, field.logical_type);
        Error::new(ErrorCode::UnsupportedType, text).with("column", field.name.as_str())
    };
    let data_type = scalar_type(item.unwrap_or(&field.logical_type)).map_err(|_| refused())?;
    if !(generated(&data_type) && item.is_none_or(|_| data_type == DataType::Utf8)) {
        return Err(refused());
    }
    if let Some(text) = field.metadata.get(GENERATOR) {
        // What is no generator of ours is somebody's note, and the default serves.
        if let Ok(generator) = document::parse::<Generator>("the generator", text) {
            return Ok(generator);
        }
    }
    Generator::of(&ColumnSpec { name: field.name.clone(), ..ColumnSpec::default() }, item.is_some(), &data_type)
}
