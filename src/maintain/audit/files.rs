//! What can be seen without rows: folders, coverage, details, the files in themselves.

use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::maintain::audit::Audit;
use crate::store::is_listing_refused;

impl Audit<'_> {
    pub(super) async fn check_files(&mut self) -> Result<()> {
        self.findings.segment = None;
        self.coverage();
        self.alike();
        self.same_settings().await;
        let mut unlisted = false;
        for at in 0..self.segments.len() {
            let Some(segment) = self.segments.get(at) else { break };
            let (uuid, files) = (segment.entry.uuid, segment.files.clone());
            self.findings.segment = Some(uuid);
            unlisted |= !self.folder(at).await?;
            match self.method.inspect(&files).await {
                Ok(seen) => {
                    for problem in seen.get("problems").and_then(|list| list.as_array()).into_iter().flatten() {
                        self.findings.push("FILE", None, None, || problem.as_str().unwrap_or_default().to_owned());
                    }
                    for remark in seen.get("remarks").and_then(|list| list.as_array()).into_iter().flatten() {
                        self.notes.push(format!("segment {uuid}: {}", remark.as_str().unwrap_or_default()));
                    }
                }
                Err(error) => self.unreadable(error)?,
            }
            match self.method.faults(&files, &self.data_type).await {
                Ok(faults) => faults.into_iter().for_each(|fault| self.findings.push("FILE", None, None, || fault)),
                Err(error) => self.unreadable(error)?,
            }
        }
        if unlisted {
            self.notes.push("the store lists no folders, so the sizes of files were not compared".to_owned());
        }
        Ok(())
    }

    /// A file that cannot be read is what an audit looks for; a server that cannot be reached is not.
    fn unreadable(&mut self, error: Error) -> Result<()> {
        use crate::error::ErrorCode::{CorruptFile, UnsupportedEncoding, UnsupportedFeature, UnsupportedType};
        let code = error.code();
        if !matches!(code, CorruptFile | UnsupportedEncoding | UnsupportedFeature | UnsupportedType)
            && !crate::store::is_not_found(&error)
        {
            return Err(error);
        }
        if self.findings.count("UNREADABLE") == 0 {
            self.findings.push("UNREADABLE", None, None, || error.message().to_owned());
        }
        Ok(())
    }

    /// Fragments that two segments claim, segments that do not say what they claim.
    fn coverage(&mut self) {
        for (at, segment) in self.segments.iter().enumerate() {
            if segment.entry.fragment_bitmap.is_none() {
                let text = format!("segment {} does not record what it covers; its rows were not looked at", segment.entry.uuid);
                self.notes.push(text);
            }
            for other in self.segments.iter().skip(at + 1) {
                // Rows of one fragment that came from several may be in several segments.
                for fragment in (&segment.fragments - &segment.shared) & &other.fragments {
                    let (one, two) = (segment.entry.uuid, other.entry.uuid);
                    let text = || format!("fragment {fragment} is covered by both {one} and {two}");
                    self.findings.push("OVERLAP", Some(fragment), None, text);
                }
            }
        }
    }

    /// Segments of one index are of one type and one row domain.
    fn alike(&mut self) {
        let Some(first) = self.segments.first().map(|segment| segment.entry.clone()) else { return };
        let stable = self.table.manifest().manifest.has_stable_row_ids();
        let url = |entry: &IndexMetadata| entry.details.as_ref().map(|details| details.type_url.clone());
        let domain = |entry: &IndexMetadata| self.method.row_domain(entry.index_version.unwrap_or(0), stable);
        for segment in self.segments.iter().skip(1) {
            let uuid = segment.entry.uuid;
            if url(&segment.entry) != url(&first) {
                self.findings.push("DETAILS_DIFFER", None, None, || {
                    format!(
                        "segment {uuid} has details of type {:?}, {} of type {:?}",
                        url(&segment.entry),
                        first.uuid,
                        url(&first)
                    )
                });
            }
            if domain(&segment.entry) != domain(&first) {
                let text = || {
                    format!("segment {uuid} names rows by {:?}, {} by {:?}", domain(&segment.entry), first.uuid, domain(&first))
                };
                self.findings.push("WRONG_ROW_DOMAIN", None, None, text);
            }
        }
    }

    /// Where all segments are searched with one configuration, each was built with that of the first.
    async fn same_settings(&mut self) {
        let Some(first) = self.segments.first() else { return };
        // Segments that cannot be read are told of by the parts that read them.
        let Ok(params) = self.method.recover_params(&first.files).await else { return };
        let uuid = first.entry.uuid;
        for segment in self.segments.iter().skip(1) {
            let beside = self.method.check_beside(&segment.files, &params).await;
            if beside.is_err_and(|error| error.code() == ErrorCode::DetailsDiffer) {
                let other = segment.entry.uuid;
                let text = || format!("segment {other} was built with other settings than {uuid}: searches fail or miss rows");
                self.findings.push("DETAILS_DIFFER", None, None, text);
            }
        }
    }

    /// Compares the recorded files of a segment with its folder; false when the store cannot list.
    async fn folder(&mut self, at: usize) -> Result<bool> {
        let Some(segment) = self.segments.get(at) else { return Ok(true) };
        let recorded = segment.entry.files.clone();
        if recorded.is_empty() {
            return Ok(true);
        }
        if !segment.files.can_list() {
            return Ok(false);
        }
        let listed = match segment.files.list().await {
            Ok(listed) => listed,
            Err(error) if is_listing_refused(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        for file in recorded {
            match listed.iter().find(|entry| entry.name == file.path) {
                None => self.findings.push("FILE_MISSING", None, None, || format!("{} is not there", file.path)),
                Some(entry) if entry.size != file.size_bytes => self.findings.push("FILE_SIZE", None, None, || {
                    format!("{} has {} bytes, the manifest records {}", file.path, entry.size, file.size_bytes)
                }),
                Some(_) => {}
            }
        }
        Ok(true)
    }
}
