//! Sorting and collecting small lists with one piece of code for all types.
//!
//! The standard library's sort is made anew for every type, and every `collect` into a B-tree brings one: some 5 KB each in
//! an engine that browsers download. Here only the comparison differs. Columns have their own sorts (`index::sort`).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A map of `entries`; of equal keys the last counts.
pub(crate) fn map_of<K: Ord, V>(entries: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(entries);
    map
}

/// A set of `items`.
pub(crate) fn set_of<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(items);
    set
}

/// `list` in the order of `compare`; equal items stay in their order.
pub(crate) fn sorted_by<T>(list: Vec<T>, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let order = order_of(list.len(), &|a, b| match (list.get(a), list.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    let mut slots: Vec<Option<T>> = list.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| slots.get_mut(at).and_then(Option::take)).collect()
}

/// `list` in the order of a key.
pub(crate) fn sorted_by_key<T, K: Ord>(list: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    sorted_by(list, |a, b| key(a).cmp(&key(b)))
}

fn order_of(length: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_stay_in_order() {
        let list = vec![("b", 1), ("a", 2), ("b", 3), ("a", 4), ("c", 5)];
        assert_eq!(sorted_by_key(list.clone(), |item| item.0), [("a", 2), ("a", 4), ("b", 1), ("b", 3), ("c", 5)]);
        assert_eq!(map_of(list.clone()).into_iter().collect::<Vec<_>>(), [("a", 4), ("b", 3), ("c", 5)]);
        assert_eq!(set_of(list.into_iter().map(|item| item.0)).into_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
