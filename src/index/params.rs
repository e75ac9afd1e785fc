//! Build parameters: what may be given, and reading numbers back out of them.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::index::{IndexMethod, Params};

/// Parameters or counts of these names.
pub fn collected(entries: impl IntoIterator<Item = (String, Value)>) -> Params {
    let mut params = Params::new();
    for (key, value) in entries {
        params.insert(key, value);
    }
    params
}

/// Refuses to build in a format version that the method does not have.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the versions there are.
pub fn check_version(method: &dyn IndexMethod, version: i32) -> Result<()> {
    let known = match method.max_index_version() {
        max if (0..=max).contains(&version) => return Ok(()),
        0 => "only format version 0".to_owned(),
        max => format!("the format versions 0 and {max}"),
    };
    Err(Error::invalid(format!("{} has {known}, not {version}", method.name())))
}

/// `given` over `base`, refusing keys the method does not have: Lance ignores them without a word, which hides typos.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the key.
pub fn merge_known(method: &str, known: &[&str], mut base: Params, given: &Params) -> Result<Params> {
    for (key, value) in given {
        if !known.contains(&key.as_str()) {
            return Err(
                Error::invalid(format!("{method} has no parameter {key}; it has {}", known.join(", "))).with("key", key.as_str())
            );
        }
        base.insert(key.clone(), value.clone());
    }
    Ok(base)
}

/// A whole number from 1 to `limit`, or `default` when the key is absent. Digits in a string count, as options of a
/// command line are text.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the key and the limits.
pub fn positive(params: &Params, key: &str, default: u64, limit: u64) -> Result<u64> {
    let number = match params.get(key) {
        None | Some(Value::Null) => return Ok(default),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(other) => other.as_u64(),
    };
    number.filter(|number| (1..=limit).contains(number)).ok_or_else(|| {
        Error::invalid(format!(
            "parameter {key} must be a whole number from 1 to {limit}, not {}",
            params.get(key).unwrap_or(&Value::Null)
        ))
        .with("key", key)
    })
}

/// A number above 0 and below 1, or `default` when the key is absent; text counts as above.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the key and the limits.
pub fn fraction(params: &Params, key: &str, default: f64) -> Result<f64> {
    let number = match params.get(key) {
        None | Some(Value::Null) => return Ok(default),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(other) => other.as_f64(),
    };
    number.filter(|number| *number > 0.0 && *number < 1.0).ok_or_else(|| {
        let value = params.get(key).unwrap_or(&Value::Null);
        Error::invalid(format!("parameter {key} must be a number above 0 and below 1, not {value}")).with("key", key)
    })
}

/// True or false, or nothing when the key is absent.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the key.
pub fn flag(params: &Params, key: &str) -> Result<Option<bool>> {
    match params.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(Value::String(text)) if text == "true" || text == "false" => Ok(Some(text == "true")),
        Some(other) => Err(Error::invalid(format!("parameter {key} must be true or false, not {other}")).with("key", key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params(value: Value) -> Params {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn given_wins_and_unknown_keys_are_refused() {
        let merged =
            merge_known("BTREE", &["zone_size"], params(json!({"zone_size": 7})), &params(json!({"zone_size": 9}))).unwrap();
        assert_eq!(merged, params(json!({"zone_size": 9})));
        let error = merge_known("BTREE", &["zone_size"], Params::new(), &params(json!({"zonesize": 9}))).unwrap_err();
        assert!(error.message().contains("zonesize") && error.message().contains("zone_size"), "{}", error.message());
    }

    #[test]
    fn limits() {
        for bad in [json!({"n": 0}), json!({"n": -1}), json!({"n": 1.5}), json!({"n": "x"}), json!({"n": 11}), json!({"n": true})]
        {
            assert!(positive(&params(bad.clone()), "n", 5, 10).is_err(), "{bad}");
        }
        assert_eq!(positive(&params(json!({"n": "10"})), "n", 5, 10).unwrap(), 10);
        assert_eq!(positive(&Params::new(), "n", 5, 10).unwrap(), 5);
        for bad in [json!({"p": 0}), json!({"p": 1}), json!({"p": -0.5}), json!({"p": "NaN"}), json!({"p": []})] {
            assert!(fraction(&params(bad.clone()), "p", 0.5).is_err(), "{bad}");
        }
        assert_eq!(fraction(&params(json!({"p": "1e-6"})), "p", 0.5).unwrap(), 1e-6);
        assert_eq!(fraction(&Params::new(), "p", 0.5).unwrap(), 0.5);
        assert!(flag(&params(json!({"f": 1})), "f").is_err());
        assert_eq!(flag(&params(json!({"f": "false"})), "f").unwrap(), Some(false));
    }
}
