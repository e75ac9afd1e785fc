//! Documents from outside: JSON text to a struct, and, when that fails, which key is to blame.

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Longest path that an error quotes, in bytes.
const LONGEST_PATH: usize = 200;

/// Reads `text` as a `T`.
///
/// # Errors
/// `INVALID_ARGUMENT`: `what`, the path of the key, and what is wrong with it.
pub fn parse<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let path = path_at(text, offset_of(text, error.line(), error.column()));
        let said = error.to_string();
        let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
        let place = if path.is_empty() { what.to_owned() } else { format!("{what}: {path}") };
        Error::invalid(format!("{place}: {said}")).with("key", path)
    })
}

/// Offset behind the `column`th byte of the `line`th line, both counted from 1.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before.saturating_add(column)
}

enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

/// Path of the value that is being read where `end` bytes are behind.
fn path_at(text: &str, end: usize) -> String {
    let mut steps: Vec<Step> = Vec::new();
    let mut bytes = text.bytes().enumerate().take(end);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'{' => steps.push(Step::Key("")),
            b'[' => steps.push(Step::Item(0)),
            b'}' | b']' => {
                steps.pop();
            }
            b',' => match steps.last_mut() {
                Some(Step::Item(at)) => *at += 1,
                Some(Step::Key(key)) => *key = "",
                None => {}
            },
            b'"' => {
                let mut escaped = false;
                let close = bytes.by_ref().find(|(_, byte)| {
                    let closes = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    closes
                });
                if let (Some((close, _)), Some(Step::Key(key @ ""))) = (close, steps.last_mut()) {
                    *key = text.get(at + 1..close).unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Item(at) => path.push_str(&format!("[{at}]")),
            Step::Key("") => {}
            Step::Key(key) => {
                let dot = if path.is_empty() { "" } else { "." };
                path.push_str(dot);
                path.push_str(key);
            }
        }
    }
    if path.len() > LONGEST_PATH {
        path.truncate(path.floor_char_boundary(LONGEST_PATH));
        path.push('…');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Map, Value};

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
        assert!(!error.message().contains("line 1"), "{}", error.message());
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
        assert!(key(&format!(r#"{{"name":"a","tasks":[{{"params":{{}},"{}":"#, "é".repeat(300))).len() < 210);
    }
}
