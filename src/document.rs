//! Documents from outside: JSON text to a struct, and, when that fails, which key is to blame.

mod reader;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};

pub use reader::Fault;

/// Longest path that an error quotes, in bytes.
const LONGEST_PATH: usize = 200;

/// Reads `text` as a `T`.
///
/// # Errors
/// `INVALID_ARGUMENT`: `what`, the path of the key, and what is wrong with it.
pub fn parse<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    read(text.as_bytes()).map_err(|fault| invalid(what, fault))
}

/// Reads JSON as a `T`; the error is for whoever knows what the bytes are.
///
/// # Errors
/// What is wrong, and where in the document.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> std::result::Result<T, Fault> {
    // Through text, as everything else: reading bytes directly is the same code once more.
    let text = std::str::from_utf8(bytes).map_err(Fault::of)?;
    let value: Value = serde_json::from_str(text).map_err(Fault::of)?;
    reader::read(&value)
}

fn invalid(what: &str, fault: Fault) -> Error {
    let Fault { mut path, said } = fault;
    if path.len() > LONGEST_PATH {
        path.truncate(path.floor_char_boundary(LONGEST_PATH));
        path.push('…');
    }
    let place = if path.is_empty() { what.to_owned() } else { format!("{what}: {path}") };
    Error::invalid(format!("{place}: {said}")).with("key", path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::Map;
    use std::collections::BTreeMap;

    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Inner {
        params: Map<String, Value>,
        ids: Vec<u32>,
    }

    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Outer {
        name: String,
        tasks: Vec<Inner>,
    }

    fn key(text: &str) -> String {
        let error = parse::<Outer>("the plan", text).unwrap_err();
        assert_eq!(error.code(), crate::ErrorCode::InvalidArgument);
        assert!(error.message().starts_with("the plan"), "{}", error.message());
        error.detail()["key"].as_str().unwrap().to_owned()
    }

    #[test]
    fn the_key_to_blame_is_named() {
        assert_eq!(key(r#"{"name":"a,[\"{","tasks":[{"params":{},"ids":[]},{"params":null,"ids":[]}]}"#), "tasks[1].params");
        assert_eq!(key(r#"{"name":"a","tasks":[{"params":{"x":[1,{"y":"]"}]},"ids":[1,2,-3]}]}"#), "tasks[0].ids[2]");
        assert_eq!(key(r#"{"name":7,"tasks":[]}"#), "name");
        assert_eq!(key(r#"{"name":"a","tasks":[{"ids":[]}]}"#), "tasks[0]");
        assert_eq!(key("null"), "");
        assert_eq!(key("{\n \"name\": \"a\",\n \"tasks\": {}\n}"), "tasks");
        assert_eq!(key("{\"name\": "), "", "no JSON at all");
        let error = parse::<BTreeMap<String, u32>>("the options", &format!(r#"{{"{}":"x"}}"#, "é".repeat(300))).unwrap_err();
        assert!(error.message().len() < 300, "{}", error.message());
    }

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum Choice {
        Nothing,
        One(u8),
        Pair(u8, i64),
        Named { ratio: f64, of: Option<String> },
    }

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        pair: (u64, String),
        #[serde(default)]
        choice: Option<Choice>,
    }

    #[test]
    fn every_form_of_serde_is_read() {
        let strict = |choice| Strict { pair: (u64::MAX, "b".into()), choice };
        let read = |choice: &str| parse::<Strict>("it", &format!(r#"{{"pair":[18446744073709551615,"b"],"choice":{choice}}}"#));
        assert_eq!(read("null").unwrap(), strict(None));
        assert_eq!(read(r#""nothing""#).unwrap(), strict(Some(Choice::Nothing)));
        assert_eq!(read(r#"{"one":255}"#).unwrap(), strict(Some(Choice::One(255))));
        assert_eq!(read(r#"{"pair":[1,-2]}"#).unwrap(), strict(Some(Choice::Pair(1, -2))));
        assert_eq!(
            read(r#"{"named":{"ratio":2,"of":"x"}}"#).unwrap(),
            strict(Some(Choice::Named { ratio: 2.0, of: Some("x".into()) }))
        );
        let said = |choice: &str| read(choice).unwrap_err().message().to_owned();
        assert_eq!(said(r#"{"one":256}"#), "it: choice.one: invalid value: integer `256`, expected u8");
        assert_eq!(said(r#"{"pair":[1,2,3]}"#), "it: choice.pair: 1 items too many");
        assert_eq!(said(r#"{"pair":[1,"x"]}"#), "it: choice.pair[1]: invalid type: string \"x\", expected i64");
        assert_eq!(said(r#"{"named":{"ratio":null}}"#), "it: choice.named.ratio: invalid type: null, expected f64");
        assert!(said(r#""other""#).starts_with("it: choice: unknown variant `other`"));
        assert!(said("[]").starts_with("it: choice: invalid type: sequence"));
        let text = parse::<Strict>("it", r#"{"pair":[1,"b"],"chioce":null}"#).unwrap_err();
        assert_eq!(text.message(), "it: chioce: unknown field `chioce`, expected `pair` or `choice`");
        assert_eq!(
            parse::<Strict>("it", "[[1,\"b\"]]").unwrap_err().message(),
            "it: invalid type: sequence, expected struct Strict"
        );
    }
}
