//! A plan as rows, for whoever reads and does not run.

use serde_json::{Value, json};

use super::run::SqlPlan;
use crate::coverage::fate::SegmentFate;
use crate::refresh::RefreshPlan;

/// Columns of an explained plan.
pub const COLUMNS: [&str; 5] = ["action", "object", "fragments", "rows", "why"];

/// Rows of an explained plan.
pub fn rows(plan: &SqlPlan) -> Vec<Vec<Value>> {
    match plan {
        SqlPlan::Build(plan) => building(plan),
        SqlPlan::Drop(plan) => fates(&plan.segments),
        SqlPlan::Compact(plan) => {
            let tasks = plan.tasks.iter().enumerate();
            let mut rows: Vec<Vec<Value>> = tasks
                .map(|(number, task)| {
                    row("REWRITE", format!("group {number}"), Some(ranges(&task.fragments)), Some(task.rows), &task.why)
                })
                .collect();
            rows.extend(plan.effects.iter().map(|effect| {
                let segment = effect.uuid.clone().unwrap_or_default();
                let covers = ranges(&effect.fragment_ids_after);
                vec![
                    json!(effect.fate),
                    json!(format!("{} {segment}", effect.index)),
                    json!(covers),
                    Value::Null,
                    json!(effect.why),
                ]
            }));
            rows
        }
    }
}

fn building(plan: &RefreshPlan) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for task in &plan.tasks {
        let (action, object, why) = match &task.copy_of {
            Some(copied) => ("COPY", format!("segment {}", copied.uuid), "it holds rows that are stale"),
            None => ("BUILD", format!("segment {} of {}", task.task + 1, plan.index.target.name), "not covered, or built anew"),
        };
        rows.push(row(action, object, Some(ranges(&task.fragments)), Some(task.rows), why));
    }
    rows.extend(fates(&plan.segments));
    if rows.is_empty() {
        rows.push(row("NOTHING", plan.index.target.name.clone(), None, None, "every fragment is covered"));
    }
    rows
}

fn fates(segments: &[SegmentFate]) -> Vec<Vec<Value>> {
    segments
        .iter()
        .map(|segment| vec![json!(segment.fate), json!(segment.uuid), Value::Null, Value::Null, json!(segment.why)])
        .collect()
}

fn row(action: &str, object: String, fragments: Option<String>, rows: Option<u64>, why: &str) -> Vec<Value> {
    vec![json!(action), json!(object), json!(fragments), json!(rows), json!(why)]
}

/// `0-3, 7`.
fn ranges(ids: &[u32]) -> String {
    let mut text = String::new();
    let mut ids = ids.iter().copied().peekable();
    while let Some(first) = ids.next() {
        let mut last = first;
        while let Some(next) = ids.next_if(|next| last.checked_add(1) == Some(*next)) {
            last = next;
        }
        let comma = if text.is_empty() { "" } else { ", " };
        let part = if first == last { format!("{comma}{first}") } else { format!("{comma}{first}-{last}") };
        text.push_str(&part);
    }
    text
}
