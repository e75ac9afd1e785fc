//! How text becomes tokens: the parameters of a full text index, and the details that repeat most of them (index-formats §11.2, §11.3).

use bytes::Bytes;
use prost::Message;
use serde_json::{Map, Value, json};

use crate::error::{Error, ErrorCode, Result};
use crate::index::Params;
use crate::index::params::{flag, merge_known, positive};

/// Languages Lance stems and has stop words for.
pub(super) const LANGUAGES: [&str; 18] = [
    "Arabic",
    "Danish",
    "Dutch",
    "English",
    "Finnish",
    "French",
    "German",
    "Greek",
    "Hungarian",
    "Italian",
    "Norwegian",
    "Portuguese",
    "Romanian",
    "Russian",
    "Spanish",
    "Swedish",
    "Tamil",
    "Turkish",
];
/// Tokenizers this build has.
const TOKENIZERS: [&str; 4] = ["simple", "whitespace", "raw", "ngram"];
/// Documents of a posting block; the other size Lance knows, 256, belongs to posting format 3.
const BLOCK_SIZE: u64 = 128;
/// Posting format that is written, and format version of the segments.
pub(super) const FORMAT: u32 = 2;

const BASE: &str = "base_tokenizer";
const LANGUAGE: &str = "language";
const POSITIONS: &str = "with_position";
const LONGEST: &str = "max_token_length";
const LOWER: &str = "lower_case";
const STEM: &str = "stem";
const STOP: &str = "remove_stop_words";
const OWN_STOP: &str = "custom_stop_words";
const FOLD: &str = "ascii_folding";
const LEAST: &str = "min_ngram_length";
const MOST: &str = "max_ngram_length";
const PREFIX: &str = "prefix_only";
const BLOCK: &str = "block_size";
const KNOWN: [&str; 13] = [BASE, LANGUAGE, POSITIONS, LONGEST, LOWER, STEM, STOP, OWN_STOP, FOLD, LEAST, MOST, PREFIX, BLOCK];
/// Keys of the code tokenizer: written as off, and nothing else is maintained.
const CODE: [&str; 4] = ["split_identifiers", "split_on_numerics", "preserve_original", "index_operators"];

/// Checked parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub base: String,
    pub language: String,
    pub with_position: bool,
    /// A token of that many bytes or more is dropped.
    pub max_token_length: Option<u32>,
    pub lower_case: bool,
    pub stem: bool,
    pub remove_stop_words: bool,
    pub custom_stop_words: Option<Vec<String>>,
    pub ascii_folding: bool,
    pub min_ngram_length: u32,
    pub max_ngram_length: u32,
    pub prefix_only: bool,
}

pub(super) fn defaults() -> Params {
    Settings {
        base: "simple".to_owned(),
        language: "English".to_owned(),
        with_position: false,
        max_token_length: Some(40),
        lower_case: true,
        stem: true,
        remove_stop_words: true,
        custom_stop_words: None,
        ascii_folding: true,
        min_ngram_length: 3,
        max_ngram_length: 3,
        prefix_only: false,
    }
    .params()
}

/// `given` over `base`. A change to the ngram tokenizer brings that one's defaults: no stemming, no stop words.
pub(super) fn merge(method: &str, mut base: Params, given: &Params) -> Result<Params> {
    let to_ngram = given.get(BASE).and_then(Value::as_str) == Some("ngram") && base.get(BASE) != given.get(BASE);
    if to_ngram {
        for key in [STEM, STOP] {
            base.insert(key.to_owned(), false.into());
        }
    }
    let merged = merge_known(method, &KNOWN, base, given)?;
    Ok(Settings::parse(&merged)?.params())
}

impl Settings {
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for tokenizers and block sizes that are not built here, `INVALID_ARGUMENT` for other values.
    pub(super) fn parse(params: &Params) -> Result<Settings> {
        let base = text(params, BASE)?.unwrap_or("simple").to_owned();
        if !TOKENIZERS.contains(&base.as_str()) {
            return Err(unknown_tokenizer(&base));
        }
        let block = positive(params, BLOCK, BLOCK_SIZE, u64::from(u32::MAX))?;
        if block != BLOCK_SIZE {
            let what = format!("posting blocks of {block} documents are not written by this build, only those of {BLOCK_SIZE}");
            return Err(Error::new(ErrorCode::UnsupportedFeature, format!("{what}; nothing was changed")).with("key", BLOCK));
        }
        let language = text(params, LANGUAGE)?.unwrap_or("English");
        let language = LANGUAGES
            .iter()
            .find(|known| known.eq_ignore_ascii_case(language))
            .ok_or_else(|| invalid(LANGUAGE, format!("is one of {}, not {language}", LANGUAGES.join(", "))))?;
        let least = positive(params, LEAST, 3, 1 << 20)?;
        let most = positive(params, MOST, 3, 1 << 20)?;
        if least > most {
            return Err(invalid(LEAST, format!("({least}) is greater than {MOST} ({most})")));
        }
        Ok(Settings {
            base,
            language: (*language).to_owned(),
            with_position: flag(params, POSITIONS)?.unwrap_or(false),
            max_token_length: match params.get(LONGEST) {
                Some(Value::Null) => None,
                _ => Some(positive(params, LONGEST, 40, u64::from(u32::MAX))? as u32),
            },
            lower_case: flag(params, LOWER)?.unwrap_or(true),
            stem: flag(params, STEM)?.unwrap_or(true),
            remove_stop_words: flag(params, STOP)?.unwrap_or(true),
            custom_stop_words: words(params)?,
            ascii_folding: flag(params, FOLD)?.unwrap_or(true),
            min_ngram_length: least as u32,
            max_ngram_length: most as u32,
            prefix_only: flag(params, PREFIX)?.unwrap_or(false),
        })
    }

    /// As options and in the files' own spelling, complete.
    pub(super) fn params(&self) -> Params {
        let value = json!({
            BASE: self.base,
            LANGUAGE: self.language,
            POSITIONS: self.with_position,
            LONGEST: self.max_token_length,
            LOWER: self.lower_case,
            STEM: self.stem,
            STOP: self.remove_stop_words,
            OWN_STOP: self.custom_stop_words,
            FOLD: self.ascii_folding,
            LEAST: self.min_ngram_length,
            MOST: self.max_ngram_length,
            PREFIX: self.prefix_only,
            BLOCK: BLOCK_SIZE,
        });
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    /// The `params` of the metadata file.
    pub(super) fn file_text(&self) -> String {
        let mut map = self.params();
        map.insert("lance_tokenizer".to_owned(), "text".into());
        map.extend(CODE.map(|key| (key.to_owned(), false.into())));
        Value::Object(map).to_string()
    }

    /// The settings that a metadata file records.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub(super) fn recover(text: &str) -> Result<Params, String> {
        let map = match serde_json::from_str(text) {
            Ok(Value::Object(map)) => map,
            _ => return Err("`params` is no JSON object".to_owned()),
        };
        let mut params = defaults();
        for key in KNOWN {
            if let Some(value) = map.get(key) {
                params.insert(key.to_owned(), value.clone());
            }
        }
        // What is not maintained must not be lost on the way: it is refused when the parameters are checked.
        let json = map.get("lance_tokenizer").and_then(Value::as_str).is_some_and(|name| name != "text");
        if json {
            params.insert(BASE.to_owned(), "json".into());
        }
        Ok(params)
    }

    pub(super) fn details(&self) -> Bytes {
        Details {
            base_tokenizer: Some(self.base.clone()),
            language: format!("\"{}\"", self.language),
            with_position: self.with_position,
            max_token_length: self.max_token_length,
            lower_case: self.lower_case,
            stem: self.stem,
            remove_stop_words: self.remove_stop_words,
            ascii_folding: self.ascii_folding,
            min_ngram_length: self.min_ngram_length,
            max_ngram_length: self.max_ngram_length,
            prefix_only: self.prefix_only,
            block_size: Some(BLOCK_SIZE as u32),
            code_config: None,
            document_granularity: 0,
            posting_format_version: Some(FORMAT),
        }
        .encode_to_vec()
        .into()
    }
}

/// `InvertedIndexDetails`.
#[derive(Clone, PartialEq, Message)]
struct Details {
    #[prost(string, optional, tag = "1")]
    base_tokenizer: Option<String>,
    #[prost(string, tag = "2")]
    language: String,
    #[prost(bool, tag = "3")]
    with_position: bool,
    #[prost(uint32, optional, tag = "4")]
    max_token_length: Option<u32>,
    #[prost(bool, tag = "5")]
    lower_case: bool,
    #[prost(bool, tag = "6")]
    stem: bool,
    #[prost(bool, tag = "7")]
    remove_stop_words: bool,
    #[prost(bool, tag = "8")]
    ascii_folding: bool,
    #[prost(uint32, tag = "9")]
    min_ngram_length: u32,
    #[prost(uint32, tag = "10")]
    max_ngram_length: u32,
    #[prost(bool, tag = "11")]
    prefix_only: bool,
    #[prost(uint32, optional, tag = "12")]
    block_size: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "13")]
    code_config: Option<Vec<u8>>,
    #[prost(int32, tag = "14")]
    document_granularity: i32,
    #[prost(uint32, optional, tag = "15")]
    posting_format_version: Option<u32>,
}

/// Whether two details say the same, as Lance compares them: absent values are defaults, the posting format does not count.
pub(super) fn same_details(a: &[u8], b: &[u8]) -> bool {
    let read = |bytes: &[u8]| {
        let mut details = if bytes.is_empty() {
            Details::decode(Settings::parse(&defaults()).ok()?.details()).ok()?
        } else {
            Details::decode(bytes).ok()?
        };
        details.base_tokenizer.get_or_insert_with(|| "simple".to_owned());
        if details.language.is_empty() {
            details.language = "\"English\"".to_owned();
        }
        details.block_size.get_or_insert(BLOCK_SIZE as u32);
        details.posting_format_version = None;
        Some(details)
    };
    a == b || matches!((read(a), read(b)), (Some(a), Some(b)) if a == b)
}

fn unknown_tokenizer(name: &str) -> Error {
    let what = match name.split('/').next().unwrap_or(name) {
        "jieba" | "lindera" => format!("the tokenizer {name} needs model files, which this build does not have"),
        "icu" | "code" | "json" => format!("the tokenizer {name} is not in this build"),
        _ => return invalid(BASE, format!("is one of {}, not {name}", TOKENIZERS.join(", "))),
    };
    Error::new(ErrorCode::UnsupportedFeature, format!("{what} ({} are); nothing was changed", TOKENIZERS.join(", ")))
        .with("key", BASE)
}

fn invalid(key: &str, what: String) -> Error {
    Error::invalid(format!("parameter {key} {what}")).with("key", key)
}

fn text<'a>(params: &'a Params, key: &str) -> Result<Option<&'a str>> {
    match params.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(invalid(key, format!("must be a text, not {other}"))),
    }
}

fn words(params: &Params) -> Result<Option<Vec<String>>> {
    match params.get(OWN_STOP) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            Ok(Some(items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()))
        }
        Some(other) => Err(invalid(OWN_STOP, format!("must be a list of texts, not {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(value: Value) -> Params {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn the_default_details() {
        let expected = [
            &[0x0a, 6][..],
            b"simple",
            &[0x12, 9],
            b"\"English\"",
            &[0x20, 40, 0x28, 1, 0x30, 1, 0x38, 1, 0x40, 1, 0x48, 3, 0x50, 3],
            &[0x60, 0x80, 1, 0x78, 2],
        ]
        .concat();
        assert_eq!(Settings::parse(&defaults()).unwrap().details(), expected);
        assert!(same_details(&expected, b""), "an empty message is all defaults");
        let older = &expected[..expected.len() - 5];
        assert!(same_details(older, &expected), "the posting format and the default block size do not count");
        let positions = Settings { with_position: true, ..Settings::parse(&defaults()).unwrap() }.details();
        assert!(!same_details(&positions, &expected));
        assert!(!same_details(b"\xff", &expected));
    }

    #[test]
    fn ngram_brings_its_own_defaults() {
        let ngram = merge("INVERTED", defaults(), &params(json!({"base_tokenizer": "ngram"}))).unwrap();
        assert_eq!((&ngram[STEM], &ngram[STOP]), (&json!(false), &json!(false)));
        let again = merge("INVERTED", ngram, &params(json!({"stem": true}))).unwrap();
        assert_eq!(again[STEM], json!(true));
        let same = merge("INVERTED", again, &params(json!({"base_tokenizer": "ngram"}))).unwrap();
        assert_eq!(same[STEM], json!(true), "it was ngram before");
    }

    #[test]
    fn refusals() {
        let code = |value: Value| merge("INVERTED", defaults(), &params(value)).unwrap_err().code();
        for model in ["jieba/default", "lindera/ipadic", "icu", "icu/split", "code"] {
            assert_eq!(code(json!({"base_tokenizer": model})), ErrorCode::UnsupportedFeature, "{model}");
        }
        assert_eq!(code(json!({"block_size": 256})), ErrorCode::UnsupportedFeature);
        for bad in [
            json!({"base_tokenizer": "words"}),
            json!({"language": "Klingon"}),
            json!({"min_ngram_length": 4}),
            json!({"custom_stop_words": "a"}),
            json!({"stem": 1}),
            json!({"tokenizer": "simple"}),
        ] {
            assert_eq!(code(bad.clone()), ErrorCode::InvalidArgument, "{bad}");
        }
    }

    #[test]
    fn what_a_file_records_comes_back() {
        let mut settings = Settings::parse(&defaults()).unwrap();
        settings.custom_stop_words = Some(vec!["x".to_owned()]);
        settings.max_token_length = None;
        let back = Settings::recover(&settings.file_text()).unwrap();
        assert_eq!(Settings::parse(&back).unwrap(), settings);
        let json_column = Settings::recover(r#"{"lance_tokenizer":"json"}"#).unwrap();
        assert_eq!(Settings::parse(&json_column).unwrap_err().code(), ErrorCode::UnsupportedFeature);
        assert!(Settings::recover("[]").is_err());
    }
}
