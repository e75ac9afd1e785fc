//! When a version-0 record is no longer needed (spec fragment-reuse §3.5). Their rule is about versions, not about coverage,
//! because version-0 bitmaps move on while files stay behind.

use roaring::RoaringBitmap;

use super::content::{LEGACY, Record};
use super::segment::Segment;
use crate::error::{Error, ErrorCode, Result};
use crate::format::proto;

/// A recorded compaction, as far as its rule asks: ids only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyVersion {
    /// Position of its record.
    pub record: usize,
    /// Table version it was built on.
    pub stamp: u64,
    /// Per rewrite group: fragments before, fragments after.
    pub groups: Vec<(Vec<u32>, Vec<u32>)>,
}

impl LegacyVersion {
    /// Reads the records of a version-0 history.
    ///
    /// # Errors
    /// `CORRUPT_FILE`; `HISTORY_UNSUPPORTED` for a record that is not of version 0, since nobody could say what it needs.
    pub fn of(object: &str, records: &[Record]) -> Result<Vec<LegacyVersion>> {
        let mut all = Vec::new();
        for (at, record) in records.iter().enumerate() {
            if record.field != LEGACY {
                let text = format!("{object}: the version-0 history has records of kind {}; nothing was changed", record.field);
                return Err(Error::new(ErrorCode::HistoryUnsupported, text));
            }
            let version: proto::ReuseVersion = proto::decode(object, "a reuse version", record.value.clone())?;
            let ids = |list: &[proto::FragmentDigest]| {
                let id = |d: &proto::FragmentDigest| {
                    u32::try_from(d.id).map_err(|_| Error::corrupt(object, format!("{} is no fragment id", d.id)))
                };
                list.iter().map(id).collect::<Result<Vec<u32>>>()
            };
            let groups = version.groups.iter().map(|g| Ok((ids(&g.old_fragments)?, ids(&g.new_fragments)?)));
            let groups = groups.collect::<Result<Vec<_>>>()?;
            all.push(LegacyVersion { record: at, stamp: version.dataset_version, groups });
        }
        Ok(all)
    }

    fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().flat_map(|(old, new)| old.iter().chain(new)).copied()
    }

    /// Fragments it wrote.
    pub fn written(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().flat_map(|(_, new)| new).copied()
    }
}

/// Every fragment the version-0 records of a history name.
pub fn chain(versions: &[LegacyVersion]) -> RoaringBitmap {
    versions.iter().flat_map(LegacyVersion::ids).collect()
}

/// Whether an index has caught up with a recorded compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaughtUp {
    /// It has: nothing in it depends on the record.
    Yes,
    /// It has not.
    No,
    /// It holds part of a group that was compacted as one: no mapping helps it, so the record is no use to it.
    Straddles,
}

/// Whether `segment` still depends on a recorded compaction; `chain` is what [`chain`] says of all of them. Bitmaps are taken as
/// they are stored, not as a reader would carry them on.
pub fn caught_up(version: &LegacyVersion, chain: &RoaringBitmap, segment: &Segment<'_>) -> CaughtUp {
    if segment.stored.is_some_and(|stored| stored.is_disjoint(chain)) {
        return CaughtUp::Yes;
    }
    if segment.dataset_version <= version.stamp {
        return CaughtUp::No;
    }
    let Some(stored) = segment.stored else { return CaughtUp::Yes };
    for (old, _) in &version.groups {
        let held = old.iter().filter(|id| stored.contains(**id)).count();
        if held > 0 {
            return if held == old.len() { CaughtUp::No } else { CaughtUp::Straddles };
        }
    }
    CaughtUp::Yes
}

/// Who still depends on a recorded compaction; nobody = it is not needed, also when some segment straddles it.
pub fn behind<'a>(version: &LegacyVersion, chain: &RoaringBitmap, segments: &'a [Segment<'a>]) -> Vec<&'a Segment<'a>> {
    let states = || segments.iter().map(|segment| (caught_up(version, chain, segment), segment));
    if states().any(|(state, _)| state == CaughtUp::Straddles) {
        return Vec::new();
    }
    states().filter(|(state, _)| *state == CaughtUp::No).map(|(_, segment)| segment).collect()
}
