//! `column op value`, joined by AND: the conditions that a delete and an update take.

use std::cmp::Ordering;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer, Word};

use super::cell::{Cells, cell};
use crate::error::{Error, ErrorCode, Result};
use crate::format::schema::Schema;
use crate::index::literal;
use crate::table::column::ReadColumn;

/// Longest condition in bytes, most parts and most values of an IN.
const LONGEST: usize = 16 * 1024;
const MOST_PARTS: usize = 100;

/// What a value is held against.
#[derive(Clone, Debug, PartialEq)]
enum Test {
    IsNull(bool),
    /// One of the orders, against one value; `false` in front turns it round, as `!=` does.
    Compare(bool, &'static [Ordering], Vec<u8>),
    In(bool, Vec<Vec<u8>>),
}

/// One condition on one column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// Field id.
    pub(super) field: i32,
    data_type: DataType,
    test: Test,
}

/// Reads a condition: `id < 10 AND color IN ('red', 'blue') AND note IS NOT NULL`; `true` alone is met by every row.
///
/// # Errors
/// `SQL_SYNTAX` for what does not parse, `COLUMN_NOT_FOUND`, `UNSUPPORTED_TYPE` for a column that cannot be compared,
/// `INVALID_ARGUMENT` for a value of another type.
pub(super) fn parse(schema: &Schema, text: &str) -> Result<Vec<Part>> {
    let wrong =
        |what: String| Error::new(ErrorCode::SqlSyntax, format!("{what} in the condition {text:?}")).with("condition", text);
    if text.len() > LONGEST {
        return Err(Error::new(ErrorCode::SqlSyntax, format!("a condition has at most {LONGEST} bytes, not {}", text.len())));
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize().map_err(|error| wrong(error.to_string()))?;
    let tokens: Vec<Token> = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    if let [Token::Word(word)] = tokens.as_slice()
        && word.keyword == Keyword::TRUE
    {
        return Ok(Vec::new());
    }
    let mut reader = Reader { tokens, at: 0 };
    let mut parts = Vec::new();
    loop {
        let (field, data_type) = column(schema, &mut reader).map_err(|error| at_condition(error, text))?;
        reader.part(field, &data_type, &mut parts).map_err(|error| at_condition(error, text))?;
        if parts.len() > MOST_PARTS {
            return Err(wrong(format!("more than {MOST_PARTS} parts")));
        }
        match reader.next() {
            None => return Ok(parts),
            Some(Token::Word(word)) if word.keyword == Keyword::AND => {}
            Some(other) => return Err(wrong(format!("AND or the end was expected, not {other},"))),
        }
    }
}

fn at_condition(error: Error, text: &str) -> Error {
    if error.code() == ErrorCode::SqlSyntax {
        return Error::new(ErrorCode::SqlSyntax, format!("{} in the condition {text:?}", error.message()))
            .with("condition", text);
    }
    error
}

fn syntax(what: String) -> Error {
    Error::new(ErrorCode::SqlSyntax, what)
}

fn column(schema: &Schema, reader: &mut Reader) -> Result<(i32, DataType)> {
    let mut path = String::new();
    loop {
        match reader.next() {
            Some(Token::Word(Word { value, .. })) => path.push_str(&crate::format::schema::quote(&value)),
            Some(other) => return Err(syntax(format!("a column was expected, not {other},"))),
            None => return Err(syntax("a column was expected at the end".to_owned())),
        }
        if !reader.accept(&Token::Period) {
            break;
        }
        path.push('.');
    }
    let field = schema.resolve(&path)?;
    Ok((field.id, ReadColumn::new(schema, field.id)?.data_type))
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
}

impl Reader {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn accept(&mut self, token: &Token) -> bool {
        let found = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(found);
        found
    }

    fn keyword(&mut self, keyword: Keyword) -> bool {
        let found =
            matches!(self.tokens.get(self.at), Some(Token::Word(word)) if word.keyword == keyword && word.quote_style.is_none());
        self.at += usize::from(found);
        found
    }

    fn part(&mut self, field: i32, data_type: &DataType, parts: &mut Vec<Part>) -> Result<()> {
        let mut push = |test: Test| parts.push(Part { field, data_type: data_type.clone(), test });
        if self.keyword(Keyword::IS) {
            let not = self.keyword(Keyword::NOT);
            if !self.keyword(Keyword::NULL) {
                return Err(syntax("NULL was expected after IS".to_owned()));
            }
            push(Test::IsNull(!not));
            return Ok(());
        }
        let not = self.keyword(Keyword::NOT);
        if self.keyword(Keyword::IN) {
            if !self.accept(&Token::LParen) {
                return Err(syntax("a list in parentheses was expected after IN".to_owned()));
            }
            let mut values = Vec::new();
            loop {
                values.push(self.value(data_type)?);
                if self.accept(&Token::RParen) {
                    break;
                }
                if !self.accept(&Token::Comma) {
                    return Err(syntax("a comma or a closing parenthesis was expected".to_owned()));
                }
            }
            push(Test::In(!not, values));
            return Ok(());
        }
        if not {
            return Err(syntax("IN was expected after NOT".to_owned()));
        }
        if self.keyword(Keyword::BETWEEN) {
            let low = self.value(data_type)?;
            if !self.keyword(Keyword::AND) {
                return Err(syntax("AND was expected between the values of BETWEEN".to_owned()));
            }
            push(Test::Compare(true, &[Ordering::Greater, Ordering::Equal], low));
            push(Test::Compare(true, &[Ordering::Less, Ordering::Equal], self.value(data_type)?));
            return Ok(());
        }
        let (wanted, orders): (bool, &'static [Ordering]) = match self.next() {
            Some(Token::Eq | Token::DoubleEq) => (true, &[Ordering::Equal]),
            Some(Token::Neq) => (false, &[Ordering::Equal]),
            Some(Token::Lt) => (true, &[Ordering::Less]),
            Some(Token::LtEq) => (true, &[Ordering::Less, Ordering::Equal]),
            Some(Token::Gt) => (true, &[Ordering::Greater]),
            Some(Token::GtEq) => (true, &[Ordering::Greater, Ordering::Equal]),
            Some(other) => return Err(syntax(format!("=, !=, <, <=, >, >=, IS, IN or BETWEEN was expected, not {other},"))),
            None => return Err(syntax("=, !=, <, <=, >, >=, IS, IN or BETWEEN was expected at the end".to_owned())),
        };
        push(Test::Compare(wanted, orders, self.value(data_type)?));
        Ok(())
    }

    fn value(&mut self, data_type: &DataType) -> Result<Vec<u8>> {
        let refused = || {
            Error::new(ErrorCode::UnsupportedType, format!("values of type {data_type} cannot be compared here, only with NULL"))
        };
        if data_type.is_nested() {
            return Err(refused());
        }
        let minus = self.accept(&Token::Minus);
        let text = match self.next() {
            Some(Token::Number(digits, _)) => format!("{}{digits}", if minus { "-" } else { "" }),
            Some(Token::SingleQuotedString(text)) if !minus => text,
            Some(Token::Word(word)) if !minus && matches!(word.keyword, Keyword::TRUE | Keyword::FALSE) => {
                word.value.to_lowercase()
            }
            Some(other) => return Err(syntax(format!("a number, 'text', true or false was expected, not {other},"))),
            None => return Err(syntax("a value was expected at the end".to_owned())),
        };
        let bytes = literal::plain(&text, data_type)?;
        if cell(&bytes, data_type).is_none() {
            return Err(refused());
        }
        Ok(bytes)
    }
}

impl Part {
    /// Which of the values meet it. A null meets nothing but IS NULL.
    pub(super) fn test(&self, values: &ArrayRef) -> Vec<bool> {
        let cells = Cells::new(values);
        let one = |row: usize| match &self.test {
            Test::IsNull(wanted) => cells.is_null(row) == *wanted,
            Test::Compare(wanted, orders, bytes) => {
                let order = cells.get(row).zip(cell(bytes, &self.data_type)).and_then(|(a, b)| a.compare(&b));
                order.is_some_and(|order| orders.contains(&order) == *wanted)
            }
            Test::In(wanted, list) => cells.get(row).is_some_and(|value| {
                let found = list.iter().any(|bytes| cell(bytes, &self.data_type).is_some_and(|other| other == value));
                found == *wanted
            }),
        };
        (0..values.len()).map(one).collect()
    }
}
