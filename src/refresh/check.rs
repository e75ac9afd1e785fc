//! Whether a plan can be run. A plan may come from a queue, a file or anybody: it is asked before anything is built, because what
//! is found out later leaves files behind.

use std::collections::BTreeMap;

use super::plan::{FORMAT, RefreshPlan};
use super::task::BuildTask;
use crate::coverage::prune::FragmentKey;
use crate::error::{Error, ErrorCode, Result};
use crate::format::manifest::Manifest;

/// Checks what the document itself can tell: its format, that its tasks are for its index and version, and that the files it
/// names are names inside a table.
///
/// # Errors
/// `INVALID_ARGUMENT`, naming the key.
pub fn check_plan(plan: &RefreshPlan) -> Result<()> {
    if plan.format != FORMAT || plan.job().is_none() {
        let text =
            format!("this is no plan of format {FORMAT} that builds segments (kind {:?}, format {})", plan.kind, plan.format);
        return Err(Error::invalid(text));
    }
    let runs = plan.runs.iter().enumerate().map(|(at, run)| (format!("runs[{at}]"), &run.files));
    let copies = plan.tasks.iter().enumerate();
    let copies = copies.filter_map(|(at, task)| Some((format!("tasks[{at}].copy_of"), &task.copy_of.as_ref()?.files)));
    for (part, files) in runs.chain(copies) {
        for (at, key) in files.iter().enumerate() {
            check_names(&format!("{part}.files[{at}]"), key)?;
        }
    }
    plan.tasks.iter().enumerate().try_for_each(|(at, task)| check_task(plan, at, task))
}

fn check_task(plan: &RefreshPlan, at: usize, task: &BuildTask) -> Result<()> {
    let wrong = |what: String| Error::invalid(format!("the plan: tasks[{at}]: {what}; nothing was built"));
    if task.format != FORMAT || task.kind != "build" {
        return Err(wrong(format!("it is no build task of format {FORMAT} (kind {:?}, format {})", task.kind, task.format)));
    }
    if task.v_plan != plan.v_plan || task.branch != plan.branch {
        return Err(wrong(format!(
            "it is for version {}, the plan for version {}, or for another branch",
            task.v_plan, plan.v_plan
        )));
    }
    if task.index != plan.index.target {
        // Built for another index, the segment could only be thrown away again.
        return Err(wrong(format!("its index is not the plan's, {}", plan.index.target.name)));
    }
    if task.fragments.is_empty() && task.copy_of.is_none() && plan.creation().is_none() {
        return Err(wrong("it has no fragments".to_owned()));
    }
    Ok(())
}

fn check_names(part: &str, key: &FragmentKey) -> Result<()> {
    let wrong = |name: &str, path: &str| {
        Error::invalid(format!("the plan: {part}.{name}: {path:?} is no path inside a table; nothing was built"))
    };
    if let Some(file) = key.data.iter().find(|file| !is_inside(&file.path)) {
        return Err(wrong("data", &file.path));
    }
    match &key.deletion {
        Some(path) if !is_inside(path) || !path.starts_with("_deletions/") => Err(wrong("deletion", path)),
        _ => Ok(()),
    }
}

/// A relative path without empty parts and without `.` or `..`.
fn is_inside(path: &str) -> bool {
    path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Checks the files a plan names against the manifest of the version it was made on.
///
/// # Errors
/// `STALE_PLAN` when the manifest is that of another version or says something else.
pub fn check_basis(plan: &RefreshPlan, manifest: &Manifest) -> Result<()> {
    let stale = |what: String| {
        let text = format!("the plan for index {} is for another table: {what}; nothing was built", plan.index.target.name);
        Error::new(ErrorCode::StalePlan, text)
    };
    if manifest.version != plan.v_plan {
        return Err(stale(format!("it was made on version {}, this is version {}", plan.v_plan, manifest.version)));
    }
    let keys: BTreeMap<u32, &FragmentKey> = plan.keys();
    for (id, key) in keys {
        let Some(fragment) = manifest.fragment(id) else {
            return Err(stale(format!("version {} has no fragment {id}", plan.v_plan)));
        };
        if FragmentKey::of(fragment, &manifest.schema, plan.index.target.field_id) != *key {
            return Err(stale(format!("fragment {id} has other files in version {}", plan.v_plan)).with("fragment", id));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_inside_a_table() {
        for good in ["a.lance", "_deletions/0-3-1.arrow", "sub/b.lance", "..a/b"] {
            assert!(is_inside(good), "{good}");
        }
        for bad in ["", "/a", "a/", "a//b", ".", "..", "../a", "_deletions/../../x.bin", "a/./b"] {
            assert!(!is_inside(bad), "{bad}");
        }
    }
}
