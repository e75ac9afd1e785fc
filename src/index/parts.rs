//! The parts of a segment, one by one and a stretch at a time: its pages, zones, keys or tokens.

use std::ops::Range;

use serde_json::{Value, json};

/// Parts listed when nobody says how many.
pub const PARTS_LISTED: u64 = 1000;
/// Parts listed at most, whatever is asked for.
pub const PARTS_MOST: u64 = 10_000;
/// Bytes of JSON after which a list ends early: a bound may be a value of any size.
const BYTES: usize = 4 << 20;

/// A stretch of the parts of a segment.
pub struct Parts {
    kind: &'static str,
    count: u64,
    wanted: Range<u64>,
    items: Vec<Value>,
    bytes: usize,
}

impl Parts {
    /// An empty list of those `wanted`, of the `count` there are; `kind` is `pages`, `zones`, `keys` or `tokens`.
    pub fn new(kind: &'static str, count: u64, wanted: &Range<u64>) -> Parts {
        let end = wanted.end.min(count).min(wanted.start.saturating_add(PARTS_MOST));
        let start = wanted.start.min(count);
        Parts { kind, count, wanted: start..end.max(start), items: Vec::new(), bytes: 0 }
    }

    /// Of a file whose `rows` parts begin with part `first`: the rows still to be listed.
    pub fn inside(&self, first: u64, rows: u64) -> Range<u64> {
        let local = |part: u64| part.saturating_sub(first).min(rows);
        if self.full() { 0..0 } else { local(self.wanted.start)..local(self.wanted.end) }
    }

    fn full(&self) -> bool {
        self.bytes >= BYTES
    }

    /// Appends the next part; `false` when no further one fits.
    pub fn push(&mut self, item: Value) -> bool {
        self.bytes = self.bytes.saturating_add(item.to_string().len());
        self.items.push(item);
        !self.full()
    }

    /// `{kind, count, offset, items, left_out}`.
    pub fn document(self) -> Value {
        json!({
            "kind": self.kind,
            "count": self.count,
            "offset": self.wanted.start,
            "left_out": self.count - (self.items.len() as u64).min(self.count),
            "items": self.items,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_knows_what_it_leaves_out() {
        let mut parts = Parts::new("pages", 10, &(7..20));
        assert_eq!((parts.inside(0, 4), parts.inside(4, 5), parts.inside(9, 1)), (4..4, 3..5, 0..1));
        assert!((7..10).all(|page| parts.push(json!({ "page": page }))));
        let listed = parts.document();
        assert_eq!((&listed["offset"], &listed["left_out"], &listed["items"][2]["page"]), (&json!(7), &json!(7), &json!(9)));
        assert_eq!(Parts::new("pages", 10, &(90..99)).inside(0, 10), 10..10);
        assert_eq!(Parts::new("pages", 1 << 40, &(5..u64::MAX)).inside(0, 1 << 40), 5..5 + PARTS_MOST);
    }

    #[test]
    fn a_list_of_large_values_ends_early() {
        let mut parts = Parts::new("keys", 10, &(0..10));
        let value = json!({ "key": "x".repeat(3 << 20) });
        assert!(parts.push(value.clone()) && !parts.push(value));
        assert_eq!(parts.inside(2, 8), 0..0);
        assert_eq!(parts.document()["left_out"], 8);
    }
}
