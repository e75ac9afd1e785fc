//! Asking a segment: which pages, zones and rows can match a condition (issue: probe).

use std::cmp::Ordering;

use arrow::datatypes::DataType;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::index::order::{Comparison, comparison};

/// A condition on a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `=`
    Equal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `IS NULL`
    IsNull,
    /// `LIKE 'value%'`
    Prefix,
    /// `array_has(column, value)`
    Has,
    /// `contains(column, value)`
    Contains,
    /// Full text: any of the words.
    Match,
    /// Full text: all of the words.
    MatchAll,
    /// Full text: the words one after the other.
    Phrase,
    /// Full text: words and `"phrases"`, those after `+` in every document, those after `-` in none.
    Boolean,
}

impl Op {
    /// All of them with their names.
    pub const NAMES: [(&'static str, Op); 13] = [
        ("=", Op::Equal),
        ("<", Op::Less),
        ("<=", Op::LessOrEqual),
        (">", Op::Greater),
        (">=", Op::GreaterOrEqual),
        ("is-null", Op::IsNull),
        ("prefix", Op::Prefix),
        ("has", Op::Has),
        ("contains", Op::Contains),
        ("match", Op::Match),
        ("match-all", Op::MatchAll),
        ("phrase", Op::Phrase),
        ("boolean", Op::Boolean),
    ];

    /// The operator of that name.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming those there are.
    pub fn parse(name: &str) -> Result<Op> {
        let found = Op::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, op)| *op).ok_or_else(|| {
            let known: Vec<&str> = Op::NAMES.iter().map(|(name, _)| *name).collect();
            Error::invalid(format!("there is no operator {name}; there are {}", known.join(", "))).with("operator", name)
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Op::NAMES.iter().find(|(_, op)| *op == self).map_or("", |(name, _)| name)
    }
}

/// A condition with its value in plain bytes, and how values of the column compare.
pub struct Query {
    /// The operator.
    pub op: Op,
    /// The value; empty for `is-null`.
    pub value: Vec<u8>,
    /// How values compare.
    pub compare: Comparison,
}

impl Query {
    /// A condition on values of a type.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when values of the type do not compare.
    pub fn new(op: Op, value: Vec<u8>, data_type: &DataType) -> Result<Query> {
        let compare =
            comparison(data_type).ok_or_else(|| Error::invalid(format!("values of type {data_type} are not compared")))?;
        Ok(Query { op, value, compare })
    }

    /// Whether a value meets the condition.
    pub fn matches(&self, value: Option<&[u8]>) -> bool {
        let Some(value) = value else { return self.op == Op::IsNull };
        match self.op {
            Op::IsNull => false,
            Op::Prefix => value.starts_with(&self.value),
            Op::Equal | Op::Has => (self.compare)(value, &self.value).is_eq(),
            Op::Less => (self.compare)(value, &self.value).is_lt(),
            Op::LessOrEqual => (self.compare)(value, &self.value).is_le(),
            Op::Greater => (self.compare)(value, &self.value).is_gt(),
            Op::GreaterOrEqual => (self.compare)(value, &self.value).is_ge(),
            Op::Contains | Op::Match | Op::MatchAll | Op::Phrase | Op::Boolean => false,
        }
    }

    /// Whether a value between two others, both included, can meet the condition. `None`: unbounded on that side.
    pub fn may_match_between(&self, low: Option<&[u8]>, high: Option<&[u8]>) -> bool {
        let below = |bound: Option<&[u8]>| bound.map(|bound| (self.compare)(bound, &self.value));
        match self.op {
            Op::IsNull | Op::Contains | Op::Match | Op::MatchAll | Op::Phrase | Op::Boolean => false,
            Op::Equal | Op::Has => below(low) != Some(Ordering::Greater) && below(high) != Some(Ordering::Less),
            Op::Less => below(low).is_none_or(Ordering::is_lt),
            Op::LessOrEqual => below(low).is_none_or(Ordering::is_le),
            Op::Greater => below(high).is_none_or(Ordering::is_gt),
            Op::GreaterOrEqual => below(high).is_none_or(Ordering::is_ge),
            // Every text with the prefix is at least the prefix, and at most one that starts with it.
            Op::Prefix => {
                below(high) != Some(Ordering::Less)
                    && low.is_none_or(|low| (self.compare)(low, &self.value).is_le() || low.starts_with(&self.value))
            }
        }
    }
}

/// What of a segment can match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matches {
    /// Whether `rows` are the answer; otherwise they, or the zones, have to be looked at.
    pub exact: bool,
    /// Rows, in the row domain of the segment.
    pub rows: Option<RoaringTreemap>,
    /// Numbers of the pages that are read for it.
    pub pages: Option<Vec<u64>>,
    /// Fragment, start and length of the zones that are kept.
    pub zones: Option<Vec<(u64, u64, u64)>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_values_and_ranges() {
        let query = |op, value: i64| Query::new(op, value.to_le_bytes().to_vec(), &DataType::Int64).unwrap();
        let ops = [Op::Equal, Op::Less, Op::LessOrEqual, Op::Greater, Op::GreaterOrEqual];
        for op in ops {
            for wanted in -3..=3i64 {
                let query = query(op, wanted);
                for low in -4..=4i64 {
                    for high in low..=4i64 {
                        let any = (low..=high).any(|value| query.matches(Some(&value.to_le_bytes())));
                        let may = query.may_match_between(Some(&low.to_le_bytes()), Some(&high.to_le_bytes()));
                        assert_eq!(may, any, "{op:?} {wanted} in {low}..={high}");
                    }
                }
                assert!(query.may_match_between(None, None) && !query.matches(None));
            }
        }
        let prefix = Query::new(Op::Prefix, b"ab".to_vec(), &DataType::Utf8).unwrap();
        assert!(prefix.matches(Some(b"abc")) && !prefix.matches(Some(b"aa")) && !prefix.matches(None));
        let between = |low: &str, high: &str| prefix.may_match_between(Some(low.as_bytes()), Some(high.as_bytes()));
        assert!(between("a", "b") && between("abc", "x") && between("ab", "ab") && between("a", "abz"));
        assert!(!between("ac", "z") && !between("a", "aa"));
        assert!(Query::new(Op::IsNull, vec![], &DataType::Utf8).unwrap().matches(None));
    }

    #[test]
    fn operators_by_name() {
        assert!(Op::NAMES.iter().all(|(name, op)| Op::parse(name).unwrap() == *op && op.name() == *name));
        assert!(Op::parse("~").unwrap_err().message().contains("is-null"));
    }
}
