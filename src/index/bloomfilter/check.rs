//! Filters held against rows, and against conditions.

use crate::error::Result;
use crate::index::SegmentFiles;
use crate::index::bloomfilter::FILE;
use crate::index::bloomfilter::filter::may_contain;
use crate::index::bloomfilter::read::{each_filter, has_null};
use crate::index::check::{Admits, ZoneCheck, ZoneRows};
use crate::index::probe::{Matches, Op, Query};
use crate::index::zones::ZoneFile;

struct Filters {
    /// All filters end to end, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    has_null: Vec<bool>,
}

pub(super) async fn check(segment: &SegmentFiles) -> Result<Box<dyn ZoneCheck>> {
    let file = ZoneFile::open(segment, FILE).await?;
    let content = read(segment, &file).await?;
    let places = file.places().await?;
    Ok(Box::new(ZoneRows::new(&places, file.null_rows().await?, content)))
}

pub(super) async fn probe(segment: &SegmentFiles, query: &Query) -> Result<Matches> {
    let file = ZoneFile::open(segment, FILE).await?;
    let nulls = if query.op == Op::IsNull { file.null_rows().await? } else { None };
    let content = read(segment, &file).await?;
    let value = (query.op == Op::Equal).then_some(query.value.as_slice());
    let places = file.places().await?;
    let kept = places.iter().enumerate().filter(|(zone, _)| content.refuses(*zone, value).is_none());
    Ok(Matches { exact: nulls.is_some(), rows: nulls, zones: Some(kept.map(|(_, place)| place).collect()), pages: None })
}

async fn read(segment: &SegmentFiles, file: &ZoneFile<'_>) -> Result<Filters> {
    let mut content = Filters { bytes: Vec::new(), ends: Vec::new(), has_null: has_null(file).await? };
    each_filter(segment, file, &mut |_, filter| {
        content.bytes.extend_from_slice(filter);
        content.ends.push(content.bytes.len());
        Ok(())
    })
    .await?;
    Ok(content)
}

impl Admits for Filters {
    fn refuses(&self, zone: usize, value: Option<&[u8]>) -> Option<&'static str> {
        let Some(value) = value else {
            return (self.has_null.get(zone) != Some(&true)).then_some("its zone says that it has no nulls");
        };
        let end = |zone: usize| self.ends.get(zone).copied().unwrap_or(0);
        let filter = self.bytes.get(zone.checked_sub(1).map_or(0, end)..end(zone)).unwrap_or(&[]);
        (!may_contain(filter, value)).then_some("the filter of its zone denies it")
    }
}
