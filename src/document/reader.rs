//! Values of JSON to structs.
//!
//! One deserializer over parsed values, instead of one per source of text: what serde derives is compiled once per struct, and only
//! for the form a document has (an object; never a list of its members in order).

use std::fmt;
use std::slice;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// What is wrong with a document, and where.
#[derive(Debug)]
pub struct Fault {
    /// Path of the value to blame, e.g. `tasks[1].params`; empty for the document itself.
    pub path: String,
    /// What is wrong with it.
    pub said: String,
}

impl Fault {
    /// A document that cannot be read at all.
    pub(super) fn of(said: impl fmt::Display) -> Fault {
        <Fault as de::Error>::custom(said)
    }

    fn under(mut self, key: &str) -> Fault {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = [key, dot, &self.path].concat();
        self
    }

    fn at(self, item: usize) -> Fault {
        self.under(&format!("[{item}]"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.path.is_empty() { "" } else { ": " };
        [&self.path, colon, &self.said].iter().try_for_each(|part| f.write_str(part))
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(said: T) -> Fault {
        Fault { path: String::new(), said: said.to_string() }
    }

    /// In the words of JSON.
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        let found = if found == Unexpected::Unit { Unexpected::Other("null") } else { found };
        Fault::of(format_args!("invalid type: {found}, expected {expected}"))
    }
}

/// Reads a value as a `T`.
pub fn read<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T, Fault> {
    T::deserialize(Reader(value))
}

#[derive(Clone, Copy)]
struct Reader<'a>(&'a Value);

#[cold]
fn not_what(value: &Value, expected: &dyn Expected) -> Fault {
    let found = match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Unexpected::Unsigned(value),
            (None, Some(value)) => Unexpected::Signed(value),
            (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    };
    de::Error::invalid_type(found, expected)
}

impl<'a> Reader<'a> {
    fn object<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Object(fields) => visitor.visit_map(Fields { fields: fields.iter(), current: None }),
            other => Err(not_what(other, &visitor)),
        }
    }

    fn list<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::Array(items) = self.0 else { return Err(not_what(self.0, &visitor)) };
        let mut items = Items { items: items.iter(), at: 0 };
        let read = visitor.visit_seq(&mut items)?;
        match items.items.len() {
            0 => Ok(read),
            over => Err(Fault::of(format_args!("{over} items too many"))),
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), _, _) => visitor.visit_u64(value),
                (None, Some(value), _) => visitor.visit_i64(value),
                (None, None, Some(value)) => visitor.visit_f64(value),
                (None, None, None) => Err(not_what(self.0, &visitor)),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(_) => self.list(visitor),
            Value::Object(_) => self.object(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.list(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.list(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.object(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.object(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(Variant { name, content: None }),
            Value::Object(fields) if fields.len() == 1 => match fields.iter().next() {
                Some((name, content)) => visitor.visit_enum(Variant { name, content: Some(content) }),
                None => Err(not_what(self.0, &visitor)),
            },
            other => Err(not_what(other, &visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::String(text) => visitor.visit_str(text),
            other => Err(not_what(other, &visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple_struct identifier
    }
}

struct Items<'a> {
    items: slice::Iter<'a, Value>,
    at: usize,
}

impl<'a> de::SeqAccess<'a> for &mut Items<'a> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        seed.deserialize(Reader(item)).map(Some).map_err(|fault| fault.at(at))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Fields<'a> {
    fields: serde_json::map::Iter<'a>,
    current: Option<(&'a str, &'a Value)>,
}

impl<'a> de::MapAccess<'a> for Fields<'a> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, value)) = self.fields.next() else { return Ok(None) };
        self.current = Some((key, value));
        let key: de::value::StrDeserializer<'_, Fault> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|fault| match self.current {
            Some((key, _)) => fault.under(key),
            None => fault,
        })
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (key, value) = self.current.take().ok_or_else(|| Fault::of("a value without its key"))?;
        seed.deserialize(Reader(value)).map_err(|fault| fault.under(key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.fields.len())
    }
}

struct Variant<'a> {
    name: &'a str,
    content: Option<&'a Value>,
}

impl<'a> de::EnumAccess<'a> for Variant<'a> {
    type Error = Fault;
    type Variant = Variant<'a>;

    fn variant_seed<V: DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Variant<'a>), Fault> {
        let name: de::value::StrDeserializer<'_, Fault> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

static NOTHING: Value = Value::Null;

impl<'a> Variant<'a> {
    fn reader(&self) -> Reader<'a> {
        Reader(self.content.unwrap_or(&NOTHING))
    }
}

impl<'a> de::VariantAccess<'a> for Variant<'a> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.content {
            None | Some(Value::Null) => Ok(()),
            Some(other) => Err(not_what(other, &"nothing beside the name").under(self.name)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.reader()).map_err(|fault| fault.under(self.name))
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.reader().list(visitor).map_err(|fault| fault.under(self.name))
    }

    fn struct_variant<V: Visitor<'a>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        self.reader().object(visitor).map_err(|fault| fault.under(self.name))
    }
}
