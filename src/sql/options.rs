//! The options of `WITH (…)`: names in any case; a number, `'text'`, TRUE or FALSE, where text that spells a number or a truth
//! value stands for it.

use serde_json::Value;
use sqlparser::tokenizer::Token;

use super::text::{Place, Text, alternatives, fault};
use crate::error::{Error, ErrorCode, Result};

/// An option as it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Name, in lower case.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Where its name is.
    pub place: Place,
    /// Where its value is.
    pub value_place: Place,
}

impl Given {
    /// Takes `name = value`.
    pub(super) fn read(text: &mut Text<'_>) -> Result<Given> {
        let name = text.name("the name of an option")?;
        text.expect(&Token::Eq)?;
        let value_place = text.place();
        let value = value(text)?;
        Ok(Given { name: name.text.to_lowercase(), value, place: name.place, value_place })
    }
}

const VALUE: &str = "a number, a text in single quotes, TRUE or FALSE";

fn value(text: &mut Text<'_>) -> Result<Value> {
    let place = text.place();
    let minus = text.accept(&Token::Minus);
    let expected = text.expected(VALUE);
    match text.next() {
        Some(Token::Number(digits, _)) => {
            let digits = if minus { format!("-{digits}") } else { digits };
            number(&digits).ok_or_else(|| text.error(&format!("{digits} is no number that can be used here"), place))
        }
        Some(Token::SingleQuotedString(given)) if !minus => Ok(Value::String(given)),
        Some(Token::Word(word)) if !minus && word.quote_style.is_none() => match word.value.to_ascii_lowercase().as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(expected),
        },
        _ => Err(expected),
    }
}

fn number(digits: &str) -> Option<Value> {
    if let Ok(whole) = digits.parse::<u64>() {
        return Some(whole.into());
    }
    if let Ok(negative) = digits.parse::<i64>() {
        return Some(negative.into());
    }
    // Digits alone that fit no whole number are no number, never a rounded one.
    let plain = digits.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<f64>().ok().filter(|number| number.is_finite() && !plain).map(Value::from)
}

/// The options of one statement while they are taken one by one; what is left at the end was used by nobody.
pub struct Taking<'a> {
    source: &'a str,
    left: Vec<Given>,
}

impl<'a> Taking<'a> {
    /// All options of a statement.
    pub fn new(source: &'a str, given: Vec<Given>) -> Taking<'a> {
        Taking { source, left: given }
    }

    /// An error about the value of an option.
    fn wrong(&self, option: &Given, wanted: &str) -> Error {
        let text = format!("option {} takes {wanted}, not {}", option.name, option.value);
        fault(self.source, ErrorCode::InvalidArgument, &text, option.value_place).with("key", option.name.as_str())
    }

    fn take(&mut self, name: &str) -> Option<Given> {
        let at = self.left.iter().position(|option| option.name == name)?;
        Some(self.left.remove(at))
    }

    /// A whole number of at least `least`.
    pub fn whole(&mut self, name: &str, least: u64) -> Result<Option<u64>> {
        let Some(option) = self.take(name) else { return Ok(None) };
        let number = match &option.value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number.filter(|number| *number >= least) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(&option, &format!("a whole number of at least {least}"))),
        }
    }

    /// Any number.
    pub fn fraction(&mut self, name: &str) -> Result<Option<f64>> {
        let Some(option) = self.take(name) else { return Ok(None) };
        let number = match &option.value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        };
        number.map(Some).ok_or_else(|| self.wrong(&option, "a number"))
    }

    /// A truth value.
    pub fn truth(&mut self, name: &str) -> Result<Option<bool>> {
        let Some(option) = self.take(name) else { return Ok(None) };
        let truth = match &option.value {
            Value::Bool(truth) => Some(*truth),
            Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
            Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        };
        truth.map(Some).ok_or_else(|| self.wrong(&option, "TRUE or FALSE"))
    }

    /// One of several words, in any case; TRUE and FALSE stand for the last and the first.
    pub fn word(&mut self, name: &str, words: &[&'static str]) -> Result<Option<&'static str>> {
        let Some(option) = self.take(name) else { return Ok(None) };
        let word = match &option.value {
            Value::Bool(true) => words.last(),
            Value::Bool(false) => words.first(),
            Value::String(text) => words.iter().find(|word| text.trim().eq_ignore_ascii_case(word)),
            _ => None,
        };
        word.copied().map(Some).ok_or_else(|| self.wrong(&option, &alternatives(words)))
    }

    /// Ids of fragments: a number, or several in a text with commas between them.
    pub fn ids(&mut self, name: &str) -> Result<Option<Vec<u32>>> {
        let Some(option) = self.take(name) else { return Ok(None) };
        let ids: Option<Vec<u32>> = match &option.value {
            Value::Number(number) => number.as_u64().and_then(|id| u32::try_from(id).ok()).map(|id| vec![id]),
            Value::String(text) if text.trim().is_empty() => Some(Vec::new()),
            Value::String(text) => text.split(',').map(|id| id.trim().parse().ok()).collect(),
            _ => None,
        };
        ids.map(Some).ok_or_else(|| self.wrong(&option, "fragment ids, as in '3,4'"))
    }

    /// Refuses an option by name.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is there.
    pub fn refuse(&self, name: &str, why: &str) -> Result<()> {
        match self.left.iter().find(|option| option.name == name) {
            Some(option) => {
                let text = format!("option {name} {why}");
                Err(fault(self.source, ErrorCode::InvalidArgument, &text, option.place).with("key", name))
            }
            None => Ok(()),
        }
    }

    /// What is left, as parameters of an index method that has those called `known`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for the first that is none of them: unknown everywhere, or of no use here.
    pub fn rest(self, known: &[String], elsewhere: &[String], here: &str) -> Result<Vec<Given>> {
        for option in &self.left {
            if known.contains(&option.name) {
                continue;
            }
            let text = if elsewhere.contains(&option.name) {
                format!("option {} means nothing to {here}", option.name)
            } else if known.is_empty() {
                format!("{here} has no option {}", option.name)
            } else {
                format!("{here} has no option {}; the ones it has are {}", option.name, known.join(", "))
            };
            return Err(fault(self.source, ErrorCode::InvalidArgument, &text, option.place).with("key", option.name.as_str()));
        }
        Ok(self.left)
    }
}
