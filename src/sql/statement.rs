//! The grammar.
//!
//! ```text
//! [EXPLAIN] statement [;]
//! statement = ALTER TABLE table REFRESH INDEX name [WITH (options)]
//!           | ALTER TABLE table CREATE INDEX name USING method (column) [WITH (options)]
//!           | ALTER TABLE table DROP INDEX name
//!           | CREATE INDEX name ON [TABLE] table USING method (column) [WITH (options)]
//!           | DROP INDEX name ON [TABLE] table
//!           | OPTIMIZE table [WITH (options)]
//!           | SHOW INDEXES | FRAGMENTS | VERSIONS | SEGMENTS  FROM | IN table
//! options   = name = value, …        value = number | 'text' | TRUE | FALSE
//! ```

use sqlparser::tokenizer::Token;

use super::options::Given;
use super::text::{Name, Text};
use crate::error::Result;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Only plan what changes something.
    pub explain: bool,
    /// The table it is about.
    pub table: Vec<Name>,
    /// What to do.
    pub verb: Verb,
    /// `WITH (…)`.
    pub with: Vec<Given>,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Builds what an index does not cover.
    Refresh {
        /// The index.
        index: Name,
    },
    /// Makes an index.
    Create {
        /// Its name.
        index: Name,
        /// Its method.
        method: Name,
        /// Its column.
        column: Vec<Name>,
    },
    /// Takes an index away.
    Drop {
        /// The index.
        index: Name,
    },
    /// Compacts fragments.
    Optimize,
    /// Lists something.
    Show(Listing),
}

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// A row an index.
    Indexes,
    /// A row a fragment.
    Fragments,
    /// A row a version.
    Versions,
    /// A row a segment.
    Segments,
}

/// Reads a statement.
///
/// # Errors
/// `SQL_SYNTAX`, with the line and a caret under what was not expected.
pub fn parse(source: &str) -> Result<Statement> {
    let mut text = Text::new(source)?;
    let explain = text.accept_word("EXPLAIN");
    let word = text.expect_one(&["ALTER", "CREATE", "DROP", "OPTIMIZE", "SHOW"])?;
    let (table, verb) = match word {
        "ALTER" => alter(&mut text)?,
        "CREATE" => {
            text.expect_word("INDEX")?;
            let index = text.name("the name of an index")?;
            let table = on_table(&mut text)?;
            (table, create(&mut text, index)?)
        }
        "DROP" => {
            text.expect_word("INDEX")?;
            let index = text.name("the name of an index")?;
            (on_table(&mut text)?, Verb::Drop { index })
        }
        "OPTIMIZE" => {
            text.accept_word("TABLE");
            (text.path("the name of a table")?, Verb::Optimize)
        }
        _ => show(&mut text)?,
    };
    let with = match verb {
        Verb::Refresh { .. } | Verb::Create { .. } | Verb::Optimize => with(&mut text)?,
        Verb::Drop { .. } | Verb::Show(_) => Vec::new(),
    };
    text.accept(&Token::SemiColon);
    if text.peek().is_some() {
        let what =
            if with.is_empty() && takes_options(&verb) { "WITH or the end of the statement" } else { "the end of the statement" };
        return Err(text.expected(what));
    }
    Ok(Statement { explain, table, verb, with })
}

fn takes_options(verb: &Verb) -> bool {
    !matches!(verb, Verb::Drop { .. } | Verb::Show(_))
}

fn alter(text: &mut Text<'_>) -> Result<(Vec<Name>, Verb)> {
    text.expect_word("TABLE")?;
    let table = text.path("the name of a table")?;
    let word = text.expect_one(&["REFRESH", "CREATE", "DROP"])?;
    text.expect_word("INDEX")?;
    let index = text.name("the name of an index")?;
    let verb = match word {
        "REFRESH" => Verb::Refresh { index },
        "CREATE" => create(text, index)?,
        _ => Verb::Drop { index },
    };
    Ok((table, verb))
}

fn on_table(text: &mut Text<'_>) -> Result<Vec<Name>> {
    text.expect_word("ON")?;
    text.accept_word("TABLE");
    text.path("the name of a table")
}

fn create(text: &mut Text<'_>, index: Name) -> Result<Verb> {
    text.expect_word("USING")?;
    let method = text.name("an index method")?;
    text.expect(&Token::LParen)?;
    let column = text.path("a column")?;
    if text.peek() == Some(&Token::Comma) {
        return Err(text.expected(") (an index here is on one column)"));
    }
    text.expect(&Token::RParen)?;
    Ok(Verb::Create { index, method, column })
}

fn show(text: &mut Text<'_>) -> Result<(Vec<Name>, Verb)> {
    let listing = match text.expect_one(&["INDEXES", "FRAGMENTS", "VERSIONS", "SEGMENTS"])? {
        "INDEXES" => Listing::Indexes,
        "FRAGMENTS" => Listing::Fragments,
        "VERSIONS" => Listing::Versions,
        _ => Listing::Segments,
    };
    text.expect_one(&["FROM", "IN"])?;
    Ok((text.path("the name of a table")?, Verb::Show(listing)))
}

fn with(text: &mut Text<'_>) -> Result<Vec<Given>> {
    let mut given = Vec::new();
    if !text.accept_word("WITH") {
        return Ok(given);
    }
    text.expect(&Token::LParen)?;
    loop {
        let option = Given::read(text)?;
        if let Some(first) = given.iter().find(|other: &&Given| other.name == option.name) {
            let text_of = format!("option {} is given twice (names are the same in any case)", first.name);
            return Err(text.error(&text_of, option.place));
        }
        given.push(option);
        if !text.accept(&Token::Comma) {
            break;
        }
    }
    if text.peek() != Some(&Token::RParen) {
        return Err(text.expected(", or )"));
    }
    text.expect(&Token::RParen)?;
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    const STATEMENTS: [&str; 6] = [
        "ALTER TABLE lance.db.users REFRESH INDEX user_id_idx WITH (num_segments = 8, absorb = 'tiered')",
        "EXPLAIN CREATE INDEX `a b` ON TABLE \"db\".users USING btree (s.`x.y`) WITH (Zone_Size = 10, train = FALSE);",
        "DROP INDEX i ON users",
        "OPTIMIZE users WITH (target_rows_per_fragment = 1000, materialize_deletions_threshold = -0.5)",
        "SHOW INDEXES IN users -- a comment",
        "SHOW /* nested /* comments */ */ SEGMENTS FROM users",
    ];

    #[test]
    fn the_parts_of_a_statement() {
        let [refresh, create, ..] = STATEMENTS.map(|text| parse(text).unwrap());
        assert_eq!(refresh.table.iter().map(|n| n.text.as_str()).collect::<Vec<_>>(), ["lance", "db", "users"]);
        assert!(matches!(&refresh.verb, Verb::Refresh { index } if index.text == "user_id_idx"));
        assert_eq!(refresh.with.iter().map(|o| o.value.to_string()).collect::<Vec<_>>(), ["8", "\"tiered\""]);
        assert!(create.explain && create.with[0].name == "zone_size");
        let Verb::Create { index, column, .. } = &create.verb else { panic!("{create:?}") };
        assert_eq!((index.text.as_str(), column[1].text.as_str()), ("a b", "x.y"));
    }

    /// Whatever is typed, it is a statement or it is pointed at.
    #[test]
    fn mangled_statements_are_statements_or_errors() {
        let mut seed = 3u64;
        let mut next = |bound: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % bound
        };
        let odd: Vec<char> = "'\"`(),;.=-/*$@#%&|!?<>[]{}\\:~^0e9xXnNuU\n\t\u{0}\u{e9}\u{1f600}\u{202e}".chars().collect();
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut text: Vec<char> = STATEMENTS[next(STATEMENTS.len())].chars().collect();
            for _ in 0..1 + next(4) {
                let at = next(text.len());
                match next(4) {
                    0 => text[at] = odd[next(odd.len())],
                    1 => text.insert(at, odd[next(odd.len())]),
                    2 => text.truncate(at.max(1)),
                    _ if text.len() > 1 => drop(text.remove(at)),
                    _ => {}
                }
            }
            let text: String = text.into_iter().collect();
            match parse(&text) {
                Ok(_) => accepted += 1,
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::SqlSyntax, "{text:?}: {error}");
                    let excerpt =
                        error.detail().get("excerpt").and_then(|e| e.as_str()).unwrap_or_else(|| panic!("{text:?}: {error}"));
                    assert!(excerpt.ends_with('^') && excerpt.lines().count() <= 2, "{text:?}: {excerpt}");
                }
            }
        }
        assert!(accepted > 1000, "only {accepted} were still statements");
    }
}
