//! Methods of zones: every row of a covered fragment is let through, and what is stored of nulls is exact.

use roaring::RoaringBitmap;

use crate::error::Result;
use crate::format::reuse_v0::ReuseHistoryV0;
use crate::format::row::RowAddress;
use crate::index::check::ZoneCheck;
use crate::maintain::audit::Audit;
use crate::table::scan::FragmentScan;

impl Audit<'_> {
    /// `checks`: which segment, and its check.
    pub(super) async fn check_zones(
        &mut self,
        mut checks: Vec<(usize, Box<dyn ZoneCheck>)>,
        history: Option<&ReuseHistoryV0>,
    ) -> Result<()> {
        let moved = history.map(ReuseHistoryV0::destinations).unwrap_or_default();
        let mut through = RoaringBitmap::new();
        for (at, check) in &checks {
            let Some(segment) = self.segments.get(*at) else { continue };
            through.extend((&segment.fragments & &moved).iter().filter(|fragment| !check.has_zones(*fragment)));
            through |= &segment.shared;
        }
        if !through.is_empty() {
            self.notes.push(format!(
                "fragments {:?} are covered through a reuse history only; their rows were not held against zones of older fragments",
                through.iter().take(20).collect::<Vec<_>>()
            ));
        }
        let chosen = std::mem::take(&mut self.chosen);
        for fragment in &chosen {
            let mut scan = FragmentScan::open(&self.context, fragment).await?;
            while let Some(batch) = scan.next().await? {
                for (at, check) in &mut checks {
                    let Some(segment) = self.segments.get(*at) else { continue };
                    self.findings.segment = Some(segment.entry.uuid);
                    if !through.contains(batch.fragment) {
                        check.rows(&batch, segment.fragments.contains(batch.fragment), &mut self.findings)?;
                    }
                }
                self.rows += batch.values.len() as u64;
                (self.progress)(self.rows, self.total);
            }
        }
        for (at, check) in &checks {
            let (Some(segment), Some(nulls)) = (self.segments.get(*at), check.null_rows()) else { continue };
            self.findings.segment = Some(segment.entry.uuid);
            for fragment in &chosen {
                let Some(rows) =
                    fragment.physical_rows.filter(|_| segment.fragments.contains(fragment.id) && !through.contains(fragment.id))
                else {
                    continue;
                };
                let Ok(rows) = u32::try_from(rows) else { continue };
                let past = RowAddress::new(fragment.id, rows).0..=RowAddress::new(fragment.id, u32::MAX).0;
                let count = nulls.range_cardinality(past);
                if count > 0 {
                    let text = || format!("{count} null rows are stored past the {rows} rows of fragment {}", fragment.id);
                    self.findings.push("ROW_NOT_THERE", Some(fragment.id), None, text);
                }
            }
        }
        self.chosen = chosen;
        Ok(())
    }
}
