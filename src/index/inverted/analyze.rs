//! Text to tokens with their positions, by Lance's own tokenizers and filters (index-formats §11.5).

use lance_tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, NgramTokenizer, RawTokenizer, RemoveLongFilter, Stemmer, StopWordFilter,
    TextAnalyzer, TextAnalyzerBuilder, TokenStream as _,
};

use arrow::datatypes::DataType;

use super::settings::Settings;
use crate::error::{Error, Result};
use crate::index::distinct::Distinct;

/// Cuts text as the settings say.
///
/// What the filters make of a token depends on it alone, and texts repeat their words: it is looked up once known.
pub(super) struct Analyzer {
    base: Base,
    /// The filters over a text that is one token.
    filters: TextAnalyzer,
    known: Distinct,
    /// By number of the known token, what becomes of it.
    outcomes: Vec<Outcome>,
}

/// How a text falls into tokens.
enum Base {
    /// Runs of letters and digits, as Lance's simple tokenizer has them. Cut here, without a copy of each.
    Words,
    /// Runs of anything but ASCII white space, likewise.
    Pieces,
    Other(TextAnalyzer),
}

/// What becomes of a token.
struct Outcome {
    /// What the filters leave of it, if anything.
    text: Option<Box<str>>,
    /// Whatever the listener wants to find again with it; [`NO_NOTE`] at first.
    note: u32,
}

/// The note of a token that nobody made one about.
pub(super) const NO_NOTE: u32 = u32::MAX;

/// Tokens that are known at a time; then they are learned anew.
const KNOWN: usize = 1 << 16;
/// Bytes of the longest token that is kept in mind.
const LONGEST_KNOWN: usize = 64;

impl Analyzer {
    pub(super) fn new(settings: &Settings) -> Result<Analyzer> {
        let (least, most) = (settings.min_ngram_length as usize, settings.max_ngram_length as usize);
        let base = match settings.base.as_str() {
            "whitespace" => Base::Pieces,
            "raw" => Base::Other(TextAnalyzer::builder(RawTokenizer::default()).dynamic().build()),
            "ngram" => {
                let ngram = NgramTokenizer::new(least, most, settings.prefix_only).map_err(|e| Error::invalid(e.to_string()))?;
                Base::Other(TextAnalyzer::builder(ngram).dynamic().build())
            }
            _ => Base::Words,
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
        Ok(Analyzer { base, filters: chain.build(), known, outcomes: Vec::new() })
    }

    /// Hands every token of `text` to `each`, with its position among all tokens of the base tokenizer and the note that was
    /// made about it before, to read and to change. Notes can be lost at any time.
    pub(super) fn each(&mut self, text: &str, each: &mut dyn FnMut(&str, u32, &mut u32)) {
        let Analyzer { base, filters, known, outcomes } = self;
        let mut learn = |token: &str, position: u32| {
            if outcomes.len() >= KNOWN {
                *known = Distinct::new(&DataType::Utf8);
                outcomes.clear();
            }
            let short = Some(token.as_bytes()).filter(|bytes| bytes.len() <= LONGEST_KNOWN);
            let Some(number) = short.and_then(|bytes| known.number(bytes).ok()) else {
                if let Some(text) = filtered(filters, token) {
                    let mut note = NO_NOTE;
                    each(&text, position, &mut note);
                }
                return;
            };
            if number as usize == outcomes.len() {
                outcomes.push(Outcome { text: filtered(filters, token), note: NO_NOTE });
            }
            if let Some(Outcome { text: Some(text), note }) = outcomes.get_mut(number as usize) {
                each(text, position, note);
            }
        };
        match base {
            Base::Words => runs(text, char::is_alphanumeric, &mut learn),
            Base::Pieces => runs(text, |c| !c.is_ascii_whitespace(), &mut learn),
            Base::Other(base) => {
                let mut stream = base.token_stream(text);
                while stream.advance() {
                    let token = stream.token();
                    learn(&token.text, u32::try_from(token.position).unwrap_or(u32::MAX));
                }
            }
        }
    }

    /// Forgets all notes.
    pub(super) fn forget_notes(&mut self) {
        self.outcomes.iter_mut().for_each(|outcome| outcome.note = NO_NOTE);
    }

    /// Bytes held for the tokens that are known.
    pub(super) fn memory_bytes(&self) -> u64 {
        let texts = 32 * self.outcomes.len() as u64;
        self.known.memory_bytes() + size_of::<Outcome>() as u64 * self.outcomes.capacity() as u64 + texts
    }
}

/// Hands every run of characters that are `inside` to `each`, numbered from 0.
#[inline]
fn runs(text: &str, inside: impl Fn(char) -> bool, each: &mut impl FnMut(&str, u32)) {
    let (mut position, mut start) = (0u32, None::<usize>);
    let mut end = |start: &mut Option<usize>, end: usize| {
        if let Some(run) = start.take().and_then(|from| text.get(from..end)) {
            each(run, position);
            position = position.saturating_add(1);
        }
    };
    for (at, character) in text.char_indices() {
        if !inside(character) {
            end(&mut start, at);
        } else if start.is_none() {
            start = Some(at);
        }
    }
    end(&mut start, text.len());
}

/// What the filters leave of a token.
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
        analyzer.each(text, &mut |token, position, _| out.push((token.to_owned(), position)));
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
    fn texts_are_cut_as_lance_cuts_them() {
        use lance_tokenizer::{SimpleTokenizer, WhitespaceTokenizer};
        let texts = [
            "",
            " ",
            "a",
            "one two",
            " lead, trail. ",
            "a\tb\u{b}c\u{a0}d\u{2003}e",
            "naïve CAFÉ 北京abc١٢³ Ⅷ½",
            "x_y-z'w",
            "e\u{301}é\u{1f600}k",
            "ß\0ﬁ",
        ];
        let cut = |mut stream: Box<dyn lance_tokenizer::TokenStream + '_>| {
            let mut found = Vec::new();
            while stream.advance() {
                found.push((stream.token().text.clone(), stream.token().position as u32));
            }
            found
        };
        for text in texts {
            let (mut words, mut pieces) = (Vec::new(), Vec::new());
            runs(text, char::is_alphanumeric, &mut |run, at| words.push((run.to_owned(), at)));
            runs(text, |c| !c.is_ascii_whitespace(), &mut |run, at| pieces.push((run.to_owned(), at)));
            let mut simple = TextAnalyzer::builder(SimpleTokenizer::default()).build();
            let mut white = TextAnalyzer::builder(WhitespaceTokenizer::default()).build();
            assert_eq!(words, cut(Box::new(simple.token_stream(text))), "{text}");
            assert_eq!(pieces, cut(Box::new(white.token_stream(text))), "{text}");
        }
    }

    #[test]
    fn every_language_has_a_stemmer() {
        for language in LANGUAGES {
            assert!(!words(json!({"language": language, "remove_stop_words": false}), "organizations").is_empty(), "{language}");
        }
    }
}
