//! Text to tokens with their positions, by Lance's own tokenizers and filters (index-formats §11.5).

use lance_tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, NgramTokenizer, RawTokenizer, RemoveLongFilter, SimpleTokenizer, Stemmer,
    StopWordFilter, TextAnalyzer, TextAnalyzerBuilder, TokenStream as _, WhitespaceTokenizer,
};

use arrow::datatypes::DataType;

use super::settings::Settings;
use crate::error::{Error, Result};
use crate::index::distinct::Distinct;

/// Cuts text as the settings say.
///
/// What the filters make of a token depends on it alone, and texts repeat their words: it is looked up once known.
pub(super) struct Analyzer {
    base: TextAnalyzer,
    /// The filters over a text that is one token.
    filters: TextAnalyzer,
    known: Distinct,
    /// By number of the known token, what becomes of it.
    outcomes: Vec<Option<Box<str>>>,
}

/// Tokens that are known at a time; then they are learned anew.
const KNOWN: usize = 1 << 16;
/// Bytes of the longest token that is kept in mind.
const LONGEST_KNOWN: usize = 64;

impl Analyzer {
    pub(super) fn new(settings: &Settings) -> Result<Analyzer> {
        let (least, most) = (settings.min_ngram_length as usize, settings.max_ngram_length as usize);
        let base: TextAnalyzerBuilder = match settings.base.as_str() {
            "whitespace" => TextAnalyzer::builder(WhitespaceTokenizer::default()).dynamic(),
            "raw" => TextAnalyzer::builder(RawTokenizer::default()).dynamic(),
            "ngram" => {
                let ngram = NgramTokenizer::new(least, most, settings.prefix_only).map_err(|e| Error::invalid(e.to_string()))?;
                TextAnalyzer::builder(ngram).dynamic()
            }
            _ => TextAnalyzer::builder(SimpleTokenizer::default()).dynamic(),
        };
        let mut chain: TextAnalyzerBuilder = TextAnalyzer::builder(RawTokenizer::default()).dynamic();
        if let Some(limit) = settings.max_token_length {
            chain = chain.filter_dynamic(RemoveLongFilter::limit(limit as usize));
        }
        if settings.lower_case {
            chain = chain.filter_dynamic(LowerCaser);
        }
        let language = language(&settings.language)?;
        if settings.stem {
            chain = chain.filter_dynamic(Stemmer::new(language));
        }
        if settings.remove_stop_words {
            let own = settings.custom_stop_words.clone().map(StopWordFilter::remove);
            if let Some(filter) = own.or_else(|| StopWordFilter::new(language)) {
                chain = chain.filter_dynamic(filter);
            }
        }
        if settings.ascii_folding {
            chain = chain.filter_dynamic(AsciiFoldingFilter);
        }
        let known = Distinct::new(&DataType::Utf8);
        Ok(Analyzer { base: base.build(), filters: chain.build(), known, outcomes: Vec::new() })
    }

    /// Hands every token of `text` to `each`, with its position among all tokens of the base tokenizer.
    pub(super) fn each(&mut self, text: &str, each: &mut dyn FnMut(&str, u32)) {
        let Analyzer { base, filters, known, outcomes } = self;
        let mut stream = base.token_stream(text);
        while stream.advance() {
            let token = stream.token();
            let position = u32::try_from(token.position).unwrap_or(u32::MAX);
            if outcomes.len() >= KNOWN {
                *known = Distinct::new(&DataType::Utf8);
                outcomes.clear();
            }
            let short = Some(token.text.as_bytes()).filter(|bytes| bytes.len() <= LONGEST_KNOWN);
            let Some(number) = short.and_then(|bytes| known.number(bytes).ok()) else {
                if let Some(text) = filtered(filters, &token.text) {
                    each(&text, position);
                }
                continue;
            };
            if number as usize == outcomes.len() {
                outcomes.push(filtered(filters, &token.text));
            }
            if let Some(Some(text)) = outcomes.get(number as usize) {
                each(text, position);
            }
        }
    }

    /// Bytes held for the tokens that are known.
    pub(super) fn memory_bytes(&self) -> u64 {
        let texts = 32 * self.outcomes.len() as u64;
        self.known.memory_bytes() + size_of::<Option<Box<str>>>() as u64 * self.outcomes.capacity() as u64 + texts
    }
}

/// What becomes of a token.
fn filtered(filters: &mut TextAnalyzer, token: &str) -> Option<Box<str>> {
    let mut stream = filters.token_stream(token);
    stream.advance().then(|| stream.token().text.as_str().into())
}

fn language(name: &str) -> Result<Language> {
    // The names are those of the enum's variants.
    serde_json::from_value(name.into()).map_err(|_| Error::invalid(format!("there is no stemmer for {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::inverted::settings::{LANGUAGES, defaults, merge};
    use serde_json::{Value, json};

    fn tokens(params: Value, text: &str) -> Vec<(String, u32)> {
        let params = merge("INVERTED", defaults(), params.as_object().unwrap()).unwrap();
        let mut analyzer = Analyzer::new(&Settings::parse(&params).unwrap()).unwrap();
        let mut out = Vec::new();
        analyzer.each(text, &mut |token, position| out.push((token.to_owned(), position)));
        out
    }

    fn words(params: Value, text: &str) -> Vec<String> {
        tokens(params, text).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn the_default_chain() {
        let found = tokens(json!({}), "The quick brown foxes jumped over a naïve café");
        let expected = [("quick", 1), ("brown", 2), ("fox", 3), ("jump", 4), ("naiv", 7), ("cafe", 8)];
        assert_eq!(found, expected.map(|(word, at)| (word.to_owned(), at)));
        assert!(words(json!({}), &"x".repeat(40)).is_empty(), "the limit of 40 bytes is exclusive");
        assert_eq!(words(json!({}), "don't"), ["don", "t"], "the apostrophe separates before stop words are looked for");
    }

    #[test]
    fn the_other_tokenizers() {
        let plain = json!({"base_tokenizer": "whitespace", "stem": false, "lower_case": false, "remove_stop_words": false});
        assert_eq!(words(plain, "The  don't\\tStop"), ["The", "don't\\tStop"]);
        assert_eq!(words(json!({"base_tokenizer": "raw", "stem": false}), "Quick Brown"), ["quick brown"]);
        assert_eq!(words(json!({"base_tokenizer": "ngram"}), "abcd"), ["abc", "bcd"]);
        assert_eq!(words(json!({"base_tokenizer": "ngram", "prefix_only": true, "min_ngram_length": 2}), "abcd"), ["ab", "abc"]);
        assert_eq!(words(json!({"custom_stop_words": ["fox"]}), "the fox"), ["the"]);
    }

    #[test]
    fn every_language_has_a_stemmer() {
        for language in LANGUAGES {
            assert!(!words(json!({"language": language, "remove_stop_words": false}), "organizations").is_empty(), "{language}");
        }
    }
}
