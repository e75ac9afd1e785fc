//! Removing what a job staged and did not commit, once it is certain that it never will be.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::leftovers::{Folder, Removal};
use super::references::References;
use crate::error::{Error, ErrorCode, Result};
use crate::lists::set_of;
use crate::refresh::plan::FORMAT;
use crate::store::is_not_found;
use crate::table::{At, Table};

/// The `kind` of a plan to discard staged files.
pub const DISCARD: &str = "discard";

/// A plan to remove staged segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiscardPlan {
    /// Format of this document.
    pub format: u32,
    /// Always `discard`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version that was the latest when it was found out that nothing was committed.
    pub v_plan: u64,
    /// Transaction that was to commit them; null when none was sent.
    pub transaction: Option<String>,
    /// Why it is certain that nothing of it was or will be committed.
    pub why: String,
    /// The segments.
    pub segments: Vec<StagedSegment>,
}

/// A segment no manifest names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StagedSegment {
    /// Its uuid: the folder below `_indices`.
    pub uuid: Uuid,
    /// Its files, relative to the branch's root.
    pub files: Vec<String>,
    /// Bytes of these.
    pub bytes: u64,
}

/// What a document tells about a job.
#[derive(Default)]
struct Facts {
    segments: Vec<Uuid>,
    transaction: Option<String>,
    version: Option<u64>,
}

/// Plans to remove what the job behind `document` staged: its error or report as JSON, or the segments that were built. Nothing is
/// removed yet.
///
/// # Errors
/// `INVALID_ARGUMENT` for a document that names no segment and for a job that committed; `COMMIT_UNKNOWN` while its transaction may still
/// arrive, and those of reading every retained manifest.
pub async fn plan_discard(table: &Table, document: &Value) -> Result<DiscardPlan> {
    let mut facts = Facts::default();
    gather(document, &mut facts);
    facts.segments = set_of(facts.segments).into_iter().collect();
    if facts.segments.is_empty() {
        return Err(Error::invalid(
            "the document names no staged segment: give the error or the report of a job as --json prints it, or the segments \
             that were built. Nothing was removed",
        ));
    }
    let latest = table.latest().await?;
    let why = certain(&latest, &facts).await?;
    let mut segments = Vec::new();
    for uuid in facts.segments {
        let folder = Folder::read(latest.store(), &format!("_indices/{uuid}")).await?;
        let bytes = folder.bytes();
        segments.push(StagedSegment { uuid, files: folder.files.into_iter().map(|(path, _)| path).collect(), bytes });
    }
    Ok(DiscardPlan {
        format: FORMAT,
        kind: DISCARD.to_owned(),
        table: latest.store().uri(),
        branch: latest.manifest().manifest.branch.clone(),
        v_plan: latest.version(),
        transaction: facts.transaction,
        why,
        segments,
    })
}

/// Whether the document is a plan to discard staged files.
///
/// # Errors
/// `INVALID_ARGUMENT` when it is not.
pub fn check_discard(plan: &DiscardPlan) -> Result<()> {
    if plan.format != FORMAT || plan.kind != DISCARD {
        let text = format!("this is no plan of format {FORMAT} to discard (kind {:?}, format {})", plan.kind, plan.format);
        return Err(Error::invalid(text));
    }
    Ok(())
}

/// Removes the planned files. Everything is looked at again first: a segment that a version names by now stays.
///
/// # Errors
/// As for [`plan_discard`]; what could not be deleted is listed in the answer.
pub async fn discard_staged(table: &Table, plan: &DiscardPlan) -> Result<Removal> {
    check_discard(plan)?;
    let latest = table.latest().await?;
    if latest.manifest().manifest.branch != plan.branch {
        return Err(Error::invalid("the plan to discard is for another branch than the table given; nothing was removed"));
    }
    // The plan proved that its version is somebody else's or gone; what is named by now is all that can have changed.
    let references = References::of(&latest).await?;
    let mut removal = Removal::new(DISCARD);
    for segment in &plan.segments {
        let folder = format!("_indices/{}", segment.uuid);
        if references.segments.contains(&segment.uuid) {
            removal.keep(&folder, "a version names it");
            continue;
        }
        for (path, size) in Folder::read(latest.store(), &folder).await?.files {
            removal.delete(latest.store(), &path, size).await;
        }
    }
    removal.requests = latest.store().requests();
    Ok(removal)
}

/// Collects uuids, transaction and version from wherever documents of ours have them.
fn gather(value: &Value, facts: &mut Facts) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| gather(item, facts)),
        Value::Object(object) => {
            for (key, value) in object {
                match key.as_str() {
                    "error" | "detail" => gather(value, facts),
                    "staged" | "segments" | "added" => facts.segments.extend(strings(value).filter_map(segment_of)),
                    "uuid" => facts.segments.extend(value.as_str().and_then(segment_of)),
                    "transaction" => facts.transaction = value.as_str().map(str::to_owned).or(facts.transaction.take()),
                    "version" => facts.version = value.as_u64().or(facts.version),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A segment by its uuid or by the path of one of its files; nothing else may become a folder to delete.
fn segment_of(text: &str) -> Option<Uuid> {
    let name = text.strip_prefix("_indices/").map_or(text, |rest| rest.split('/').next().unwrap_or_default());
    Uuid::try_parse(name).ok()
}

/// Why it is certain that nothing was and nothing will be committed.
async fn certain(latest: &Table, facts: &Facts) -> Result<String> {
    let references = References::of(latest).await?;
    if let Some(used) = facts.segments.iter().find(|uuid| references.segments.contains(uuid)) {
        let text = format!("segment {used} was committed: a version of the table names it. Nothing was removed");
        return Err(Error::invalid(text).with("segment", used.to_string()));
    }
    let Some(transaction) = &facts.transaction else {
        return Ok("no transaction was sent for them, and no version names them".to_owned());
    };
    if let Some((Some(version), _)) = latest.find_transaction(transaction).await? {
        let text = format!("transaction {transaction} was committed as version {version}. Nothing was removed");
        return Err(Error::invalid(text).with("version", version));
    }
    let unknown = |why: String| {
        Error::new(ErrorCode::CommitUnknown, format!("{why}: commit again, or wait for the next version. Nothing was removed"))
            .with("transaction", transaction.as_str())
    };
    let Some(version) = facts.version else {
        return Err(unknown(format!("the document does not say which version transaction {transaction} was to become")));
    };
    if latest.version() < version {
        return Err(unknown(format!("version {version} is not there yet, so transaction {transaction} may still arrive as it")));
    }
    match latest.at(At::Version(version)).await {
        Ok(there) if there.transaction(version).await?.is_none() => {
            Err(unknown(format!("version {version} carries no transaction that can be read")))
        }
        Ok(_) => Ok(format!("version {version} carries another transaction")),
        Err(error) if error.code() == ErrorCode::VersionNotFound || is_not_found(&error) => {
            Ok(format!("version {version} was cleaned up, and no version names them"))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn facts(document: Value) -> (Vec<Uuid>, Option<String>, Option<u64>) {
        let mut facts = Facts::default();
        gather(&document, &mut facts);
        (facts.segments, facts.transaction, facts.version)
    }

    #[test]
    fn segments_are_found_in_every_document_of_ours() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let path = |uuid: Uuid| format!("_indices/{uuid}/page_data.lance");
        let error = json!({"error": {"code": "COMMIT_UNKNOWN", "detail": {"staged": [path(a), path(b)], "transaction": "t", "version": 7}}});
        assert_eq!(facts(error), (vec![a, b], Some("t".into()), Some(7)));
        assert_eq!(facts(json!({"detail": {"segments": [a]}, "code": "ABORTED"})).0, [a]);
        assert_eq!(facts(json!([{"uuid": a, "staged": [path(a)], "name": "i"}, {"uuid": b}])).0.len(), 3);
        assert_eq!(facts(json!({"added": [a], "transaction": null, "version": 3})).0, [a]);
    }

    #[test]
    fn nothing_but_a_uuid_becomes_a_folder() {
        for text in ["..", "_indices/..", "_indices/../x", "_versions/1.manifest", "", "_indices/"] {
            assert_eq!(segment_of(text), None, "{text}");
        }
    }
}
