//! The segments of an index that queries read (spec fragment-reuse §7.3, §7.4).

use std::sync::Arc;

use serde::Serialize;

use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::refresh::resolve::exact_name;
use crate::reuse::explain;
use crate::reuse::segment::Segment;
use crate::table::Table;
use crate::table::history::TaggedHistory;

/// A segment that queries leave out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// Segment.
    pub uuid: String,
    /// As `status` in `segments`.
    pub state: String,
    /// Why, in a sentence.
    pub why: String,
}

/// An index as queries see it.
pub struct Served {
    /// Its entries that queries read, with what they cover.
    pub entries: Vec<IndexMetadata>,
    /// The others; only under a tagged history there are any.
    pub omitted: Vec<Omitted>,
    /// The tagged history; `None` = there is none.
    pub history: Option<Arc<TaggedHistory>>,
}

impl Served {
    /// The segments of the index meant by `asked`.
    ///
    /// # Errors
    /// Those of finding the index, `HISTORY_UNSUPPORTED`, and those of reading the history.
    pub async fn of(table: &Table, asked: &str) -> Result<Served> {
        let section = table.indices().await?;
        let name = exact_name(section, asked)?;
        let history = table.derivable().await?;
        let file = table.manifest();
        let live = file.manifest.live();
        let (mut entries, mut omitted) = (Vec::new(), Vec::new());
        for (at, entry) in section.iter().enumerate().filter(|(_, entry)| entry.name == name) {
            let derived = history.as_ref().and_then(|history| Some((history, history.of(at)?)));
            let stored = file.indices.get(at).and_then(Segment::of);
            match (derived, stored) {
                (Some((history, derived)), Some(segment)) if !derived.listed => omitted.push(Omitted {
                    uuid: entry.uuid.to_string(),
                    state: derived.state.name().to_owned(),
                    why: explain::state(&history.ledger, &live, &segment, derived)
                        .unwrap_or_else(|| "no row it was built from is in a live fragment".to_owned()),
                }),
                _ => entries.push(entry.clone()),
            }
        }
        Ok(Served { entries, omitted, history })
    }

    /// Refuses an index of which queries read nothing: it has no answer, which is another thing than an empty one.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` with the reason of every segment.
    pub fn check_read(&self, index: &str) -> Result<()> {
        if !self.entries.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> = self.omitted.iter().map(|o| format!("segment {} is {}: {}", o.uuid, o.state, o.why)).collect();
        let text =
            format!("queries read no segment of {index}, so it has no answer; {}. Nothing was changed", reasons.join("; "));
        let uuids: Vec<&str> = self.omitted.iter().map(|o| o.uuid.as_str()).collect();
        Err(Error::new(ErrorCode::UnsupportedFeature, text).with("index", index).with("segments", uuids))
    }
}
