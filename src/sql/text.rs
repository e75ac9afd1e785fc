//! Walking over the tokens of a statement.

use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, ErrorCode, Result};

/// Longest statement that is read, in bytes.
const LONGEST: usize = 64 * 1024;
/// Longest part of a line that an error shows, in characters.
const SHOWN: usize = 120;

/// The lexical rules: words as everybody has them, quoted by `"` or by backticks as Spark does; strings by `'`.
#[derive(Debug)]
struct Lexical;

impl Dialect for Lexical {
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"' || ch == '`'
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_' || ch == '$'
    }
}

/// A place in a statement: line and column, both counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    line: u64,
    column: u64,
}

/// A name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Without quotes.
    pub text: String,
    /// It was quoted, so its case counts.
    pub quoted: bool,
    /// Where it is.
    pub place: Place,
}

/// The tokens of a statement, from front to back.
pub struct Text<'a> {
    source: &'a str,
    tokens: Vec<TokenWithSpan>,
    at: usize,
}

impl<'a> Text<'a> {
    /// Cuts a statement into tokens.
    ///
    /// # Errors
    /// `SQL_SYNTAX` for what is no token: a string without its end, a character that means nothing.
    pub fn new(source: &'a str) -> Result<Text<'a>> {
        if source.len() > LONGEST {
            let text = format!("a statement has at most {LONGEST} bytes, not {}", source.len());
            return Err(Error::new(ErrorCode::SqlSyntax, text));
        }
        let tokens = Tokenizer::new(&Lexical, source).tokenize_with_location().map_err(|error| {
            let place = Place { line: error.location.line, column: error.location.column };
            fault(source, ErrorCode::SqlSyntax, &error.message, place)
        })?;
        let tokens = tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
        Ok(Text { source, tokens, at: 0 })
    }

    /// The next token; at the end there is none.
    pub fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|token| &token.token)
    }

    /// Where the next token is, or the end.
    pub fn place(&self) -> Place {
        match self.tokens.get(self.at) {
            Some(token) => Place { line: token.span.start.line, column: token.span.start.column },
            None => {
                let last = self.source.trim_end();
                let lines = last.split('\n');
                let column = lines.clone().next_back().map_or(0, |line| line.chars().count());
                Place { line: lines.count() as u64, column: column as u64 + 1 }
            }
        }
    }

    /// An error about the next token.
    pub fn expected(&self, what: &str) -> Error {
        let found = match self.peek() {
            None => "the statement ends".to_owned(),
            Some(token) => format!("found {}", shortened(&token.to_string())),
        };
        self.error(&format!("expected {what}, {found}"), self.place())
    }

    /// An error about a place.
    pub fn error(&self, message: &str, place: Place) -> Error {
        fault(self.source, ErrorCode::SqlSyntax, message, place)
    }

    /// Takes a token if it is the next one.
    pub fn accept(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    /// Takes a token.
    ///
    /// # Errors
    /// `SQL_SYNTAX` when another one is next.
    pub fn expect(&mut self, token: &Token) -> Result<()> {
        if self.accept(token) { Ok(()) } else { Err(self.expected(&format!("{token}"))) }
    }

    /// Takes a keyword, in any case, if it is next.
    pub fn accept_word(&mut self, keyword: &str) -> bool {
        let found = self.is_word(keyword);
        self.at += usize::from(found);
        found
    }

    /// Whether a keyword is next.
    pub fn is_word(&self, keyword: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
    }

    /// Takes a keyword.
    ///
    /// # Errors
    /// `SQL_SYNTAX` when something else is next.
    pub fn expect_word(&mut self, keyword: &str) -> Result<()> {
        if self.accept_word(keyword) { Ok(()) } else { Err(self.expected(keyword)) }
    }

    /// Takes one of several keywords; answers which.
    ///
    /// # Errors
    /// `SQL_SYNTAX` when something else is next.
    pub fn expect_one(&mut self, keywords: &[&'static str]) -> Result<&'static str> {
        let found = keywords.iter().copied().find(|keyword| self.is_word(keyword));
        match found {
            Some(keyword) => {
                self.at += 1;
                Ok(keyword)
            }
            None => Err(self.expected(&alternatives(keywords))),
        }
    }

    /// Takes a name; any word is one.
    ///
    /// # Errors
    /// `SQL_SYNTAX` when something else is next.
    pub fn name(&mut self, what: &str) -> Result<Name> {
        let place = self.place();
        match self.peek() {
            Some(Token::Word(word)) if !word.value.is_empty() => {
                let name = Name { text: word.value.clone(), quoted: word.quote_style.is_some(), place };
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Takes names with periods between them.
    ///
    /// # Errors
    /// `SQL_SYNTAX` when something else is next.
    pub fn path(&mut self, what: &str) -> Result<Vec<Name>> {
        let mut parts = vec![self.name(what)?];
        while self.accept(&Token::Period) {
            parts.push(self.name("a name behind the period")?);
        }
        Ok(parts)
    }

    /// Takes the next token, whatever it is.
    pub fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += usize::from(token.is_some());
        token
    }
}

/// An error about a place. Its detail has the place, and an excerpt: the line and, below it, a caret.
pub fn fault(source: &str, code: ErrorCode, message: &str, place: Place) -> Error {
    pointed(Error::new(code, message), source, place)
}

/// The same error, with the place it is about.
pub fn pointed(error: Error, source: &str, place: Place) -> Error {
    let line = source.split('\n').nth(usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX)).unwrap_or("");
    let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
    // Of a long line only what is around the place is shown.
    let first = column.saturating_sub(SHOWN / 2);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = line.chars().skip(first).take(SHOWN).map(plain).collect();
    let caret = " ".repeat(column.saturating_sub(first).min(SHOWN));
    error.with("line", place.line).with("column", place.column).with("excerpt", format!("{shown}\n{caret}^"))
}

fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    if plain.chars().count() <= MOST { plain } else { format!("{}…", plain.chars().take(MOST).collect::<String>()) }
}

/// `A, B or C`.
pub fn alternatives(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}
