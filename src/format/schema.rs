//! The schema: a flattened field list and the tree it stands for (table-format §5).

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow::datatypes::{DataType, TimeUnit};

use super::proto;
use crate::error::{Error, ErrorCode, Result};
use crate::lists::map_of;

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
    /// Builds the tree from the flattened list; a parent that does not come before its child, or a repeated id, is
    /// `CORRUPT_FILE`.
    pub fn from_proto(object: &str, fields: Vec<proto::Field>, metadata: HashMap<String, Vec<u8>>) -> Result<Schema> {
        let mut seen = HashSet::new();
        let mut list = Vec::with_capacity(fields.len());
        for field in fields {
            if field.parent_id != -1 && !seen.contains(&field.parent_id) {
                let what = format!("field {} ({:?}) comes before its parent {}", field.id, field.name, field.parent_id);
                return Err(Error::corrupt(object, what));
            }
            if !seen.insert(field.id) {
                return Err(Error::corrupt(object, format!("field id {} is used twice ({:?})", field.id, field.name)));
            }
            list.push(Field::from(field));
        }
        Ok(Schema { fields: list, metadata: text_values(metadata) })
    }

    /// The field at a dotted path. A part in backticks is taken literally (a doubled backtick is one). The exact path wins;
    /// otherwise the only path that matches when case is ignored. `COLUMN_NOT_FOUND` lists the candidates.
    pub fn resolve(&self, path: &str) -> Result<&Field> {
        let parts = split_path(path)?;
        let exact = self.matching(&parts, |name, part| name == part);
        let found =
            if exact.is_empty() { self.matching(&parts, |name, part| name.to_lowercase() == part.to_lowercase()) } else { exact };
        if let [field] = found.as_slice() {
            return Ok(field);
        }
        let candidates: Vec<String> = if found.is_empty() {
            self.fields.iter().filter_map(|f| self.path_of(f.id)).take(100).collect()
        } else {
            found.iter().filter_map(|f| self.path_of(f.id)).collect()
        };
        let text = if found.is_empty() {
            format!("there is no column {path:?}; the table has: {}", candidates.join(", "))
        } else {
            format!("column {path:?} is ambiguous; it could be: {}", candidates.join(", "))
        };
        Err(Error::new(ErrorCode::ColumnNotFound, text).with("column", path).with("candidates", candidates))
    }

    fn matching(&self, parts: &[String], same: impl Fn(&str, &str) -> bool) -> Vec<&Field> {
        let mut parents = vec![-1];
        let mut found = Vec::new();
        for part in parts {
            found = self.fields.iter().filter(|f| parents.contains(&f.parent_id) && same(&f.name, part)).collect();
            parents = found.iter().map(|f| f.id).collect();
        }
        found
    }

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

impl From<proto::Field> for Field {
    fn from(field: proto::Field) -> Field {
        Field {
            id: field.id,
            parent_id: field.parent_id,
            name: field.name,
            logical_type: field.logical_type,
            nullable: field.nullable,
            metadata: text_values(field.metadata),
            has_dictionary: field.dictionary.is_some(),
        }
    }
}

/// Arrow metadata values are UTF-8; what is not is shown with replacement characters and stays as it is in the raw bytes.
fn text_values(metadata: HashMap<String, Vec<u8>>) -> BTreeMap<String, String> {
    map_of(metadata.into_iter().map(|(k, v)| (k, String::from_utf8_lossy(&v).into_owned())))
}

/// Splits a dotted path into names; backticks quote.
fn split_path(path: &str) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    let mut chars = path.chars().peekable();
    loop {
        let mut part = String::new();
        if chars.next_if_eq(&'`').is_some() {
            loop {
                match chars.next() {
                    Some('`') if chars.next_if_eq(&'`').is_some() => part.push('`'),
                    Some('`') => break,
                    Some(c) => part.push(c),
                    None => return Err(Error::invalid(format!("column path {path:?}: a backtick is not closed"))),
                }
            }
        } else {
            while let Some(c) = chars.next_if(|c| *c != '.') {
                part.push(c);
            }
            if part.is_empty() {
                return Err(Error::invalid(format!("column path {path:?} has an empty part")));
            }
        }
        parts.push(part);
        match chars.next() {
            None => return Ok(parts),
            Some('.') => {}
            Some(c) => return Err(Error::invalid(format!("column path {path:?}: {c:?} follows a closing backtick"))),
        }
    }
}

/// A part of a path; in backticks where it holds a dot or a backtick.
pub(crate) fn quote(name: &str) -> String {
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
                (Some("decimal"), Some(bits), Some(rest)) => {
                    let (precision, scale) = rest.split_once(':').ok_or_else(refused)?;
                    let precision: u8 = precision.parse().map_err(|_| refused())?;
                    let scale: i8 = scale.parse().map_err(|_| refused())?;
                    match bits {
                        "128" if (1..=38).contains(&precision) => DataType::Decimal128(precision, scale),
                        "256" if (1..=76).contains(&precision) => DataType::Decimal256(precision, scale),
                        _ => return Err(refused()),
                    }
                }
                (Some("fixed_size_binary"), Some(n), None) => {
                    DataType::FixedSizeBinary(n.parse().ok().filter(|n| *n >= 0).ok_or_else(refused)?)
                }
                _ => return Err(refused()),
            }
        }
    })
}

/// The logical type text of a scalar type, the inverse of [`scalar_type`]; `None` for types that have none.
pub fn scalar_name(data_type: &DataType) -> Option<String> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    };
    let name = match data_type {
        DataType::Null => "null",
        DataType::Boolean => "bool",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::UInt8 => "uint8",
        DataType::UInt16 => "uint16",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Float16 => "halffloat",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Utf8 => "string",
        DataType::LargeUtf8 => "large_string",
        DataType::Binary => "binary",
        DataType::LargeBinary => "large_binary",
        DataType::Date32 => "date32:day",
        DataType::Date64 => "date64:ms",
        DataType::Time32(u) => return Some(format!("time32:{}", unit(u))),
        DataType::Time64(u) => return Some(format!("time64:{}", unit(u))),
        DataType::Duration(u) => return Some(format!("duration:{}", unit(u))),
        DataType::Timestamp(u, zone) => return Some(format!("timestamp:{}:{}", unit(u), zone.as_deref().unwrap_or("-"))),
        DataType::Decimal128(precision, scale) => return Some(format!("decimal:128:{precision}:{scale}")),
        DataType::Decimal256(precision, scale) => return Some(format!("decimal:256:{precision}:{scale}")),
        DataType::FixedSizeBinary(width) => return Some(format!("fixed_size_binary:{width}")),
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(id: i32, parent_id: i32, name: &str) -> proto::Field {
        proto::Field { id, parent_id, name: name.into(), logical_type: "int64".into(), ..Default::default() }
    }

    fn schema(fields: Vec<proto::Field>) -> Result<Schema> {
        Schema::from_proto("m", fields, HashMap::new())
    }

    #[test]
    fn names_and_types_are_inverse() {
        for name in [
            "null",
            "bool",
            "int8",
            "uint64",
            "halffloat",
            "double",
            "string",
            "large_binary",
            "date32:day",
            "date64:ms",
            "time32:ms",
            "time64:ns",
            "duration:s",
            "timestamp:us:-",
            "timestamp:ns:+05:30",
            "decimal:128:9:2",
            "decimal:256:60:-3",
            "fixed_size_binary:7",
        ] {
            assert_eq!(scalar_name(&scalar_type(name).unwrap()).as_deref(), Some(name));
        }
        assert_eq!(scalar_name(&DataType::new_list(DataType::Int8, true)), None);
    }

    #[test]
    fn decimals_within_their_limits() {
        assert_eq!(scalar_type("decimal:128:38:5").unwrap(), DataType::Decimal128(38, 5));
        assert_eq!(scalar_type("decimal:256:76:-2").unwrap(), DataType::Decimal256(76, -2));
        for bad in
            ["decimal:128:39:0", "decimal:256:77:0", "decimal:128:0:0", "decimal:64:9:2", "decimal:128:9", "decimal:128:9:x"]
        {
            let error = scalar_type(bad).unwrap_err();
            assert_eq!(error.code(), ErrorCode::UnsupportedType);
            assert!(error.message().contains(bad), "{}", error.message());
        }
    }

    #[test]
    fn paths() {
        let s = schema(vec![
            field(0, -1, "a"),
            field(1, 0, "B"),
            field(2, -1, "A"),
            field(3, 2, "b"),
            field(4, -1, "x.y`z"),
            field(5, -1, "Only"),
        ])
        .unwrap();
        let id = |path: &str| s.resolve(path).map(|f| f.id);
        assert_eq!(id("a").unwrap(), 0);
        assert_eq!(id("A").unwrap(), 2);
        assert_eq!(id("a.B").unwrap(), 1);
        assert_eq!(id("`A`.b").unwrap(), 3);
        assert_eq!(id("`x.y``z`").unwrap(), 4);
        assert_eq!(id("oNLY").unwrap(), 5);
        let ambiguous = id("a.b").unwrap_err();
        assert_eq!(ambiguous.code(), ErrorCode::ColumnNotFound);
        assert!(ambiguous.message().contains("a.B, A.b"), "{ambiguous}");
        assert!(id("nope").unwrap_err().message().contains("`x.y``z`"));
        for bad in ["", ".", "a.", "`a", "`a`b"] {
            assert_eq!(id(bad).unwrap_err().code(), ErrorCode::InvalidArgument, "{bad}");
        }
        for f in &s.fields {
            assert_eq!(id(&s.path_of(f.id).unwrap()).unwrap(), f.id);
        }
    }

    #[test]
    fn broken_trees() {
        assert!(
            schema(vec![field(1, 0, "child"), field(0, -1, "parent")]).unwrap_err().message().contains("before its parent 0")
        );
        assert!(schema(vec![field(1, -1, "a"), field(1, -1, "b")]).unwrap_err().message().contains("used twice"));
    }
}
