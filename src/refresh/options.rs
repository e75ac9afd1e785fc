//! What a caller may say about a refresh.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Options of `planRefresh`; every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RefreshOptions {
    /// Segments to build, at least 1; never more than there are fragments of work. Default 1.
    pub segments: Option<u64>,
    /// Whether existing segments are built anew together with the work.
    pub absorb: Absorb,
    /// Most bytes one build task may hold for its segment, the files included until they are stored; reading takes some
    /// MB beside it. A task over it reads the column in several passes (INVERTED: writes more partitions), and fails with
    /// `MEMORY_LIMIT` when that does not help.
    pub max_bytes: Option<u64>,
    /// Parameters of the index method; what is not given is inherited.
    pub params: Map<String, Value>,
}

impl RefreshOptions {
    /// The number of segments asked for.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is 0.
    pub fn segments(&self) -> Result<usize> {
        match self.segments {
            None => Ok(1),
            Some(0) => Err(Error::invalid("segments must be at least 1; nothing was planned").with("segments", 0)),
            Some(n) => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        }
    }
}

/// The policy about existing segments. A stale segment is absorbed whatever it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Absorb {
    /// They stay where the commit rules let them.
    #[default]
    None,
    /// When there is work, the trailing segments no larger than twice what is built behind them are built anew with it, so
    /// that the number of segments stays logarithmic.
    Tiered,
    /// When there is work, everything the index covers is built anew with it, so that no older segment stays.
    All,
}

impl Serialize for Absorb {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Absorb::None => "none",
            Absorb::Tiered => "tiered",
            Absorb::All => "all",
        })
    }
}

impl<'de> Deserialize<'de> for Absorb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Absorb, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Null | Value::Bool(false) => Ok(Absorb::None),
            Value::Bool(true) => Ok(Absorb::All),
            Value::String(text) if text == "none" => Ok(Absorb::None),
            Value::String(text) if text == "tiered" => Ok(Absorb::Tiered),
            Value::String(text) if text == "all" => Ok(Absorb::All),
            other => Err(D::Error::custom(format!("absorb is true, false, \"none\", \"tiered\" or \"all\", not {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(value: Value) -> Result<RefreshOptions, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn spellings() {
        assert_eq!(parse(json!({})).unwrap().segments().unwrap(), 1);
        assert_eq!(parse(json!({"absorb": true})).unwrap().absorb, Absorb::All);
        assert_eq!(parse(json!({"absorb": "none", "segments": 8})).unwrap().segments().unwrap(), 8);
        assert!(parse(json!({"absorb": "some"})).is_err());
        assert!(parse(json!({"segment": 8})).is_err(), "a typo must not be ignored");
        assert_eq!(parse(json!({"segments": 0})).unwrap().segments().unwrap_err().code(), crate::ErrorCode::InvalidArgument);
    }
}
