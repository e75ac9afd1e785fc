//! Tag and branch files (table-format §1.1): JSON with camelCase keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document;
use crate::error::{Error, Result};

/// A tag: `_refs/tags/{tag}.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tag {
    /// Branch the version belongs to; `None` = main.
    #[serde(default)]
    pub branch: Option<String>,
    /// The tagged version.
    pub version: u64,
    /// RFC 3339; missing in old files.
    #[serde(default)]
    pub created_at: Option<String>,
    /// RFC 3339; missing in old files.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// Size of the tagged manifest in bytes.
    #[serde(default)]
    pub manifest_size: Option<u64>,
    /// Free metadata.
    #[serde(default)]
    pub metadata: Option<BTreeMap<String, Value>>,
}

/// A branch: `_refs/branches/{branch, '/' as %2F}.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// Branch it was made from; `None` = main.
    #[serde(default)]
    pub parent_branch: Option<String>,
    /// Ancestry; missing in old files.
    #[serde(default)]
    pub identifier: Option<BranchIdentifier>,
    /// Version it was made from.
    pub parent_version: u64,
    /// Unix seconds.
    #[serde(default)]
    pub create_at: Option<u64>,
    /// Size in bytes of the manifest it was made from.
    #[serde(default)]
    pub manifest_size: Option<u64>,
    /// Free metadata.
    #[serde(default)]
    pub metadata: Option<BTreeMap<String, Value>>,
}

/// Where a branch comes from, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchIdentifier {
    /// `(parent version, 32 hex digits)`.
    pub version_mapping: Vec<(u64, String)>,
}

impl Tag {
    /// Reads a tag file.
    pub fn parse(object: &str, bytes: &[u8]) -> Result<Tag> {
        document::read(bytes).map_err(|e| Error::corrupt(object, format!("is not a tag: {e}")))
    }
}

impl Branch {
    /// Reads a branch file.
    pub fn parse(object: &str, bytes: &[u8]) -> Result<Branch> {
        document::read(bytes).map_err(|e| Error::corrupt(object, format!("is not a branch record: {e}")))
    }
}

/// File name of a branch record: `/` becomes `%2F`.
pub fn branch_file_name(branch: &str) -> String {
    format!("{}.json", branch.replace('/', "%2F"))
}

/// Branch name of a record's file name; `None` when it is no record.
pub fn branch_of_file_name(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".json").filter(|s| !s.is_empty())?;
    Some(stem.replace("%2F", "/").replace("%2f", "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_and_old_tags() {
        let tag = Tag::parse(
            "t",
            br#"{"branch":null,"version":3,"createdAt":"2026-01-01T00:00:00Z","updatedAt":null,"manifestSize":746,"metadata":{"a":"b"}}"#,
        )
        .unwrap();
        assert_eq!((tag.version, tag.branch, tag.manifest_size), (3, None, Some(746)));
        let old = Tag::parse("t", br#"{"version":1,"manifestSize":1,"later":[1]}"#).unwrap();
        assert_eq!((old.created_at, old.metadata), (None, None));
        let error = Tag::parse("_refs/tags/x.json", b"{\"version\":-1}").unwrap_err();
        assert!(error.message().starts_with("_refs/tags/x.json: is not a tag"), "{error}");
    }

    #[test]
    fn branches() {
        let text = br#"{"parentBranch":null,"identifier":{"version_mapping":[[2,"e2d690566d6f41dba599777fc731f934"]]},
            "parentVersion":2,"createAt":1796002086,"manifestSize":746,"metadata":{}}"#;
        let branch = Branch::parse("b", text).unwrap();
        assert_eq!(branch.parent_version, 2);
        assert_eq!(branch.identifier.unwrap().version_mapping[0].0, 2);
        assert_eq!(branch_file_name("feat/x"), "feat%2Fx.json");
        assert_eq!(branch_of_file_name("feat%2Fx.json").as_deref(), Some("feat/x"));
        assert_eq!(branch_of_file_name("x.tmp"), None);
    }
}
