//! Options of a compaction: what the caller says, else what the table's configuration says, else the default
//! (refresh-and-compaction §5.1).

use std::collections::BTreeMap;
use std::str::FromStr;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// `target_rows_per_fragment` when nobody set it.
pub const DEFAULT_TARGET_ROWS: u64 = 1_048_576;
/// `materialize_deletions_threshold` when nobody set it.
pub const DEFAULT_DELETION_THRESHOLD: f32 = 0.1;
/// `max_overlays_per_fragment` when nobody set it.
const DEFAULT_OVERLAYS: u64 = 10;
/// What the names in a table's configuration begin with.
const CONFIG: &str = "lance.compaction.";

/// What a caller may say; every key is optional, names and meaning are Lance's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionOptions {
    /// Rows an output fragment should have; a fragment with fewer is worth merging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_rows_per_fragment: Option<u64>,
    /// Whether fragments with many deleted rows are rewritten on their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub materialize_deletions: Option<bool>,
    /// Share of deleted rows above which they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub materialize_deletions_threshold: Option<f64>,
    /// Leave the indexes alone and record in the fragment reuse history where rows went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defer_index_remap: Option<bool>,
    /// Fragments that stay as they are, and separate their neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_fragment_ids: Option<Vec<u32>>,
    /// Most fragments rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_source_fragments: Option<u64>,
    /// Most live rows rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_source_rows: Option<u64>,
    /// Most bytes of data files rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_source_bytes: Option<u64>,
    /// Rows of a row group; changes no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rows_per_group: Option<u64>,
    /// Bytes of an output file; changes no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes_per_file: Option<u64>,
    /// Rows read at a time; changes no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<u64>,
    /// Threads; changes no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_threads: Option<u64>,
}

impl CompactionOptions {
    /// These options, and where they say nothing those of `other`.
    pub fn over(&self, other: &CompactionOptions) -> CompactionOptions {
        CompactionOptions {
            target_rows_per_fragment: self.target_rows_per_fragment.or(other.target_rows_per_fragment),
            materialize_deletions: self.materialize_deletions.or(other.materialize_deletions),
            materialize_deletions_threshold: self.materialize_deletions_threshold.or(other.materialize_deletions_threshold),
            defer_index_remap: self.defer_index_remap.or(other.defer_index_remap),
            excluded_fragment_ids: self.excluded_fragment_ids.clone().or_else(|| other.excluded_fragment_ids.clone()),
            max_source_fragments: self.max_source_fragments.or(other.max_source_fragments),
            max_source_rows: self.max_source_rows.or(other.max_source_rows),
            max_source_bytes: self.max_source_bytes.or(other.max_source_bytes),
            max_rows_per_group: self.max_rows_per_group.or(other.max_rows_per_group),
            max_bytes_per_file: self.max_bytes_per_file.or(other.max_bytes_per_file),
            batch_size: self.batch_size.or(other.batch_size),
            num_threads: self.num_threads.or(other.num_threads),
        }
    }
}

/// Where the value of an option comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The caller.
    Argument,
    /// The table's configuration.
    Config,
    /// Nobody.
    Default,
}

/// Options with every value that matters to a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    /// Rows an output fragment should have.
    pub target_rows_per_fragment: u64,
    /// Whether deletions make a fragment a candidate on its own.
    pub materialize_deletions: bool,
    /// Share of deleted rows above which they do, as the 32-bit float it is compared as.
    pub materialize_deletions_threshold: f32,
    /// Whether indexes are left alone.
    pub defer_index_remap: bool,
    /// Fragments that stay.
    pub excluded_fragment_ids: Vec<u32>,
    /// Most fragments; null = no limit.
    pub max_source_fragments: Option<u64>,
    /// Most live rows; null = no limit.
    pub max_source_rows: Option<u64>,
    /// Most bytes; null = no limit.
    pub max_source_bytes: Option<u64>,
    /// Most overlay files a fragment may have before it is rewritten for them; null = any number.
    pub max_overlays_per_fragment: Option<u64>,
    /// Where each value comes from.
    pub from: BTreeMap<String, Origin>,
}

impl Default for Resolved {
    fn default() -> Resolved {
        Resolved {
            target_rows_per_fragment: DEFAULT_TARGET_ROWS,
            materialize_deletions: true,
            materialize_deletions_threshold: DEFAULT_DELETION_THRESHOLD,
            defer_index_remap: false,
            excluded_fragment_ids: Vec::new(),
            max_source_fragments: None,
            max_source_rows: None,
            max_source_bytes: None,
            max_overlays_per_fragment: Some(DEFAULT_OVERLAYS),
            from: BTreeMap::new(),
        }
    }
}

impl Resolved {
    /// Puts the caller's options over the table's configuration over the defaults.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a value that Lance would refuse as well, for a limit or target of 0, and for a deferred remap where
    /// rows have stable ids, which need none.
    pub fn new(given: &CompactionOptions, config: &BTreeMap<String, String>, stable_row_ids: bool) -> Result<Resolved> {
        let mut from = BTreeMap::new();
        let mut source = Source { config, from: &mut from };
        let whole = "a non-negative integer";
        // What no plan depends on is still refused where Lance refuses it.
        for name in ["max_rows_per_group", "max_bytes_per_file", "io_buffer_size", "binary_copy_read_batch_bytes"] {
            source.of_config::<u64>(name, whole)?;
        }
        let batch = given.batch_size.or(source.of_config("batch_size", whole)?);
        if batch.is_some_and(|rows| !(1..=u64::from(u32::MAX)).contains(&rows)) {
            return Err(Error::invalid(format!("batch_size must be between 1 and {}; nothing was planned", u32::MAX)));
        }
        let resolved = Resolved {
            target_rows_per_fragment: source
                .pick("target_rows_per_fragment", given.target_rows_per_fragment, whole)?
                .unwrap_or(DEFAULT_TARGET_ROWS),
            materialize_deletions: source
                .pick("materialize_deletions", given.materialize_deletions.map(Truth), "'true' or 'false'")?
                .is_none_or(|truth| truth.0),
            materialize_deletions_threshold: source
                .pick("materialize_deletions_threshold", given.materialize_deletions_threshold.map(|t| t as f32), "a number")?
                .unwrap_or(DEFAULT_DELETION_THRESHOLD),
            defer_index_remap: source
                .pick("defer_index_remap", given.defer_index_remap.map(Truth), "'true' or 'false'")?
                .is_some_and(|truth| truth.0),
            max_source_fragments: source.pick("max_source_fragments", given.max_source_fragments, whole)?,
            max_source_rows: source.pick("max_source_rows", given.max_source_rows, whole)?,
            max_source_bytes: source.pick("max_source_bytes", given.max_source_bytes, whole)?,
            max_overlays_per_fragment: source
                .pick("max_overlays_per_fragment", None, "a non-negative integer or 'none'")?
                .map_or(Some(DEFAULT_OVERLAYS), |most: Most| most.0),
            excluded_fragment_ids: given.excluded_fragment_ids.clone().unwrap_or_default(),
            from: BTreeMap::new(),
        };
        // Lance merges nothing for a target of 0 and makes one file of what it rewrites all the same, and waits for ever with no
        // thread: neither can be meant.
        let counts = [("target_rows_per_fragment", Some(resolved.target_rows_per_fragment)), ("num_threads", given.num_threads)];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
            return Err(Error::invalid(format!("{name} must be greater than 0; nothing was planned")));
        }
        let limits = [
            ("max_source_fragments", resolved.max_source_fragments),
            ("max_source_rows", resolved.max_source_rows),
            ("max_source_bytes", resolved.max_source_bytes),
        ];
        if let Some((name, _)) = limits.iter().find(|(_, limit)| *limit == Some(0)) {
            return Err(Error::invalid(format!(
                "{name} must be greater than 0 (leave it out for no limit); nothing was planned"
            )));
        }
        if resolved.defer_index_remap && stable_row_ids {
            return Err(Error::invalid(
                "defer_index_remap: this table has stable row ids, so its indexes need no remap; nothing was planned",
            ));
        }
        let origin = if given.excluded_fragment_ids.is_some() { Origin::Argument } else { Origin::Default };
        from.insert("excluded_fragment_ids".to_owned(), origin);
        Ok(Resolved { from, ..resolved })
    }

    /// The fragments that stay, as a set.
    pub fn excluded(&self) -> RoaringBitmap {
        self.excluded_fragment_ids.iter().copied().collect()
    }
}

struct Source<'a> {
    config: &'a BTreeMap<String, String>,
    from: &'a mut BTreeMap<String, Origin>,
}

impl Source<'_> {
    fn of_config<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>> {
        let key = format!("{CONFIG}{name}");
        let Some(text) = self.config.get(&key) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            let text = format!("the table's configuration has {key} = {text:?}, which is not {expected}; nothing was planned");
            Error::invalid(text).with("key", key)
        })
    }

    fn pick<T: FromStr>(&mut self, name: &str, given: Option<T>, expected: &str) -> Result<Option<T>> {
        let configured = self.of_config(name, expected)?;
        let origin = match (&given, &configured) {
            (Some(_), _) => Origin::Argument,
            (None, Some(_)) => Origin::Config,
            (None, None) => Origin::Default,
        };
        self.from.insert(name.to_owned(), origin);
        Ok(given.or(configured))
    }
}

/// A truth value in any case, as Lance reads it from a configuration.
struct Truth(bool);

impl FromStr for Truth {
    type Err = ();

    fn from_str(text: &str) -> Result<Truth, ()> {
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(Truth(true)),
            "false" => Ok(Truth(false)),
            _ => Err(()),
        }
    }
}

/// A number, or none.
struct Most(Option<u64>);

impl FromStr for Most {
    type Err = ();

    fn from_str(text: &str) -> Result<Most, ()> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Most(None));
        }
        text.parse().map(|most| Most(Some(most))).map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(k, v)| (format!("{CONFIG}{k}"), (*v).to_owned())).collect()
    }

    #[test]
    fn the_caller_comes_before_the_table_and_the_table_before_the_default() {
        let given = CompactionOptions { target_rows_per_fragment: Some(40), ..Default::default() };
        let config = config(&[
            ("target_rows_per_fragment", "20"),
            ("materialize_deletions", "False"),
            ("excluded_fragment_ids", "1"),
            ("nonsense", "x"),
        ]);
        let resolved = Resolved::new(&given, &config, false).unwrap();
        assert_eq!((resolved.target_rows_per_fragment, resolved.materialize_deletions), (40, false));
        assert_eq!(resolved.excluded_fragment_ids, Vec::<u32>::new());
        assert_eq!(resolved.from["target_rows_per_fragment"], Origin::Argument);
        assert_eq!(resolved.from["materialize_deletions"], Origin::Config);
        assert_eq!(resolved.from["max_source_rows"], Origin::Default);
    }

    #[test]
    fn what_lance_refuses_is_refused() {
        let refused = |given: CompactionOptions, entries: &[(&str, &str)], stable: bool| {
            Resolved::new(&given, &config(entries), stable).unwrap_err().message().to_owned()
        };
        for bad in [
            ("target_rows_per_fragment", "abc"),
            ("target_rows_per_fragment", " 20"),
            ("target_rows_per_fragment", "-1"),
            ("materialize_deletions", "no"),
            ("max_overlays_per_fragment", "x"),
            ("max_rows_per_group", "x"),
        ] {
            assert!(refused(CompactionOptions::default(), &[bad], false).contains(bad.0), "{bad:?}");
        }
        assert!(
            refused(CompactionOptions { max_source_rows: Some(0), ..Default::default() }, &[], false).contains("max_source_rows")
        );
        assert!(refused(CompactionOptions::default(), &[("max_source_fragments", "0")], false).contains("greater than 0"));
        assert!(refused(CompactionOptions { defer_index_remap: Some(true), ..Default::default() }, &[], true).contains("stable"));
        assert!(Resolved::new(&CompactionOptions::default(), &config(&[("target_rows_per_fragment", "+20")]), false).is_ok());
        let none = CompactionOptions::default();
        for (name, given) in [
            ("target_rows_per_fragment", CompactionOptions { target_rows_per_fragment: Some(0), ..none.clone() }),
            ("num_threads", CompactionOptions { num_threads: Some(0), ..none.clone() }),
            ("batch_size", CompactionOptions { batch_size: Some(0), ..none.clone() }),
            ("batch_size", CompactionOptions { batch_size: Some(1 << 32), ..none.clone() }),
        ] {
            assert!(refused(given, &[], false).starts_with(name));
        }
        for name in ["target_rows_per_fragment", "batch_size"] {
            assert!(refused(none.clone(), &[(name, "0")], false).starts_with(name));
        }
        // Lance takes these: no row of a group is looked at, and any number may be compared with a share.
        for threshold in [f64::NAN, -1.0, 1.5, f64::INFINITY] {
            let given = CompactionOptions {
                max_rows_per_group: Some(0),
                materialize_deletions_threshold: Some(threshold),
                ..none.clone()
            };
            assert!(Resolved::new(&given, &config(&[]), false).is_ok());
        }
    }
}
