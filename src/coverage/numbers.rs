//! The figures of SHOW INDEXES (refresh-and-compaction §7).

/// Rows covered in percent, truncated to two decimals so that it never overstates; `None` on an empty table.
///
/// `100.0` only if every row is covered. Division happens on integers; the one step to a float is the last.
pub fn indexed_percent(indexed_rows: u64, total_rows: u64) -> Option<f64> {
    if total_rows == 0 {
        return None;
    }
    let hundredths = u128::from(indexed_rows.min(total_rows)) * 10_000 / u128::from(total_rows);
    Some(hundredths as f64 / 100.0)
}

/// Sum of the segments' sizes in bytes; `None` as soon as one segment's size is not recorded or the sum does not fit.
///
/// Each item is the sizes of one segment's files; an empty list cannot be told from an unrecorded one.
pub fn size_bytes<'a>(segments: impl IntoIterator<Item = &'a [u64]>) -> Option<u64> {
    segments.into_iter().try_fold(0u64, |sum, files| {
        if files.is_empty() {
            return None;
        }
        files.iter().try_fold(sum, |sum, size| sum.checked_add(*size))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_never_overstates() {
        assert_eq!(indexed_percent(0, 0), None);
        assert_eq!(indexed_percent(0, 10), Some(0.0));
        assert_eq!(indexed_percent(999_999, 1_000_000), Some(99.99));
        assert_eq!(indexed_percent(2, 3), Some(66.66));
        assert_eq!(indexed_percent(3, 3), Some(100.0));
        assert_eq!(indexed_percent(u64::MAX - 1, u64::MAX), Some(99.99));
    }

    #[test]
    fn an_unrecorded_size_makes_the_sum_unknown() {
        assert_eq!(size_bytes([[1u64, 2].as_slice(), &[3]]), Some(6));
        assert_eq!(size_bytes([[1u64].as_slice(), &[]]), None);
        assert_eq!(size_bytes(std::iter::empty()), Some(0));
        assert_eq!(size_bytes([[u64::MAX].as_slice(), &[1]]), None);
    }
}
