//! Advice about a layout, as data: which rule, on what evidence, and what to do.

use super::document::PlanForecast;
use super::tagged::Carried;
use crate::compaction::{Effects, Fate, Layout, Summary};
use crate::lists::set_of;
use crate::refresh::plan::Advice;
use crate::reuse::explain::list;
use crate::table::Table;
use crate::table::show::{job_command, js_text, refresh_command};

/// Segments from which on a query pays for them.
const MANY_SEGMENTS: u64 = 4;

struct Where<'a> {
    uri: String,
    branch: Option<&'a str>,
    /// Under a tagged reuse history segments are not merged.
    tagged: bool,
}

impl Where<'_> {
    fn of(table: &Table) -> Where<'_> {
        let branch = table.manifest().manifest.branch.as_deref();
        Where { uri: table.store().uri(), branch, tagged: table.has_tagged_history() }
    }

    fn merge(&self, mut advice: Advice, index: &str) -> Advice {
        if self.tagged {
            advice.evidence.push_str(
                ". Segments are not merged under a tagged reuse history: create-index --replace builds the index anew in as many as asked for",
            );
            return advice;
        }
        advice.act(job_command("merge", &self.uri, self.branch, index, ""), format!("table.merge({})", js_text(index)))
    }

    fn refresh(&self, advice: Advice, index: &str, options: &str, js: &str) -> Advice {
        let js = if js.is_empty() { String::new() } else { format!(", {js}") };
        advice.act(refresh_command(&self.uri, self.branch, index, options), format!("table.refresh({}{js})", js_text(index)))
    }
}

/// What the numbers of a layout, and of the plans compared, suggest.
pub(super) fn of_layout(table: &Table, before: &Summary, plans: &[PlanForecast], found: &mut Vec<Advice>) {
    let at = Where::of(table);
    let named = |name: &str| plans.iter().find(|plan| plan.name == name).map(|plan| &plan.after.summary);
    if before.frozen > 0 {
        let worst =
            before.indexes.iter().filter(|index| index.freezes > 0 && index.segments > 1).max_by_key(|index| index.freezes);
        if let Some(index) = worst {
            let merged = named("merge").filter(|merged| merged.fragments < before.fragments);
            let better = merged.map(|merged| {
                format!(
                    "; with one segment for every index a compaction leaves {} fragments of {}",
                    merged.fragments, before.fragments
                )
            });
            let text = format!(
                "{} of {} fragments are small and stay small: the {} segments of {} end between {} pairs of them{}",
                before.frozen,
                before.fragments,
                index.segments,
                index.name,
                index.freezes,
                better.unwrap_or_default()
            );
            found.push(at.merge(Advice::warning("frozen", text), &index.name));
        } else {
            let text = format!(
                "{} of {} fragments are small and stay small, because an index covers a part of them only: a refresh of it first, with the \
                 covered ones built anew, lets a compaction join them",
                before.frozen, before.fragments
            );
            let partly = before.indexes.iter().filter(|index| index.freezes > 0).max_by_key(|index| index.freezes);
            let advice = Advice::warning("frozen", text);
            found.push(match partly {
                Some(index) => at.refresh(advice, &index.name, "--absorb", "{ absorb: true }"),
                None => advice,
            });
        }
    }
    if let (Some(first), Some(last)) = (named("compact_then_refresh"), named("refresh_then_compact"))
        && (first.fragments, first.segments) < (last.fragments, last.segments)
    {
        found.push(Advice::info(
            "compact_first",
            format!(
                "compacting before refreshing ends with {} fragments and {} segments, after it with {} and {}",
                first.fragments, first.segments, last.fragments, last.segments
            ),
        ));
    }
    for index in &before.indexes {
        if index.dead_segments > 0 && index.unindexed_fragments > 0 {
            let text = format!(
                "{} of {} segments of {} cover nothing; a refresh removes them",
                index.dead_segments, index.segments, index.name
            );
            found.push(at.refresh(Advice::info("dead_segments", text), &index.name, "", ""));
        } else if index.segments > MANY_SEGMENTS && index.unindexed_fragments > 0 {
            let text = format!(
                "{} has {} segments, all of which a query opens; a refresh that absorbs the trailing small ones keeps their number logarithmic",
                index.name, index.segments
            );
            found.push(at.refresh(
                Advice::info("many_segments", text),
                &index.name,
                "--absorb-trailing",
                "{ absorb: \"tiered\" }",
            ));
        } else if index.segments > MANY_SEGMENTS {
            let text = format!("{} has {} segments, all of which a query opens", index.name, index.segments);
            found.push(at.merge(Advice::info("many_segments", text), &index.name));
        }
    }
    if before.held_back > 0 {
        let text = format!(
            "{} fragments are held back: a segment of a type or format that Lance 14 cannot read covers them, and an eager compaction would \
             break it; one with defer_index_remap would not",
            before.held_back
        );
        found.push(Advice::warning("held_back", text));
    }
}

/// What one should know before a compaction is run.
pub(super) fn of_effects(table: &Table, layout: &Layout, effects: &Effects, found: &mut Vec<Advice>) {
    let at = Where::of(table);
    let touched = |wanted: &dyn Fn(usize) -> bool| -> Vec<&str> {
        let of_index =
            layout.covers.iter().enumerate().filter(|(number, _)| wanted(*number)).map(|(_, cover)| layout.index_of(cover));
        set_of(of_index).into_iter().collect()
    };
    let fate = |number: usize| effects.segments.get(number).map(|effect| effect.fate);
    for index in touched(&|number| matches!(fate(number), Some(Fate::Retired | Fate::Stripped))) {
        let text = format!(
            "an eager compaction takes the rewritten fragments out of {index}, whose type cannot follow rows: it has to be refreshed \
             afterwards, or the compaction deferred (defer_index_remap)"
        );
        found.push(at.refresh(Advice::warning("loses_coverage", text), index, "", ""));
    }
    let lost = touched(&|number| effects.segments.get(number).is_some_and(|effect| effect.lost_in_lance));
    for index in lost {
        let text = format!(
            "an eager compaction by Lance loses rows of {index}: fragments it covers only through the reuse history of a deferred compaction \
             answer nothing afterwards, and nothing reports them. Build it anew first"
        );
        found.push(at.refresh(Advice::warning("lance_loses_rows", text), index, "--absorb", "{ absorb: true }"));
    }
}

/// What one should know before a compaction is run under a tagged reuse history.
pub(super) fn of_carried(table: &Table, layout: &Layout, carried: &Carried, found: &mut Vec<Advice>) {
    let at = Where::of(table);
    for (number, index) in layout.indexes.iter().enumerate() {
        let lost = carried.lost(layout, number);
        if lost.is_empty() {
            continue;
        }
        let text = format!(
            "{} loses fragments {}: it covers them through the reuse history, which a compaction by Lance does not look at, so it joins them \
             with fragments that {} does not cover, and nothing is derived for the result. Build the index anew first, so that its segments name \
             these fragments themselves",
            index.name,
            list(&lost),
            index.name
        );
        found.push(at.refresh(Advice::warning("loses_coverage", text), &index.name, "--absorb", "{ absorb: true }"));
    }
}
