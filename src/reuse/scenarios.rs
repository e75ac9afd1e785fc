//! The conformance table (`tests/data/fragment-reuse-scenarios.md`), parsed and run: every row of pure set logic here, and a
//! list that says where each of the others is tried, or why it is not.

use std::collections::{BTreeMap, BTreeSet};

use roaring::RoaringBitmap;

use super::coverage::{State, derive, plans};
use super::ledger::Ledger;
use super::remap::{Outcome, RemapPlan, effective_provenance, outcome, plan_remap};
use super::retention::{Trim, needs, trim};
use super::superseded::superseded;
use super::testing::{Parsed, facts, history, ledger, segments, set};
use super::withdraw::{settle, withdraw};

const TABLE: &str = include_str!("../../tests/data/fragment-reuse-scenarios.md");

/// Rows by id; a row is its cells by the names of the columns.
fn rows() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    let mut header: Vec<String> = Vec::new();
    for line in TABLE.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<String> = line.trim().trim_matches('|').split(" | ").map(|c| c.trim().to_owned()).collect();
        if cells[0] == "Id" {
            header = cells;
        } else if cells[0].starts_with("FRI-") {
            let named = header.iter().cloned().zip(cells.iter().cloned()).collect();
            assert!(all.insert(cells[0].clone(), named).is_none(), "{} twice", cells[0]);
        }
    }
    all
}

/// The rows `FRI-{letter}-{first}` to `-{last}`.
fn range(letter: &str, first: u32, last: u32) -> Vec<(String, BTreeMap<String, String>)> {
    let all = rows();
    let ids = (first..=last).map(|n| format!("FRI-{letter}-{n:02}"));
    ids.map(|id| (id.clone(), all.get(&id).unwrap_or_else(|| panic!("{id} is not in the table")).clone())).collect()
}

struct Case {
    id: String,
    cells: BTreeMap<String, String>,
    ledger: Ledger,
    live: RoaringBitmap,
    parsed: Vec<Parsed>,
}

fn cases(letter: &str, first: u32, last: u32) -> Vec<Case> {
    let case = |(id, cells): (String, BTreeMap<String, String>)| Case {
        ledger: ledger(&cells["history"]),
        live: cells.get("live").map(|text| set(text)).unwrap_or_default(),
        parsed: cells.get("segments").map(|text| segments(text)).unwrap_or_default(),
        id,
        cells,
    };
    range(letter, first, last).into_iter().map(case).collect()
}

#[test]
fn reader_coverage() {
    for case in cases("R", 1, 26) {
        let derived = derive(&case.ledger, &case.live, &facts(&case.parsed));
        let listed: BTreeMap<&str, &RoaringBitmap> =
            case.parsed.iter().zip(&derived).filter(|(_, d)| d.listed).map(|(p, d)| (p.letter.as_str(), &d.coverage)).collect();
        let expected: BTreeMap<String, RoaringBitmap> = match case.cells["listing"].as_str() {
            "none" => BTreeMap::new(),
            text => text.split(';').map(|s| (s.trim()[..1].to_owned(), set(&s.trim()[1..]))).collect(),
        };
        let expected: BTreeMap<&str, &RoaringBitmap> = expected.iter().map(|(l, c)| (l.as_str(), c)).collect();
        assert_eq!(listed, expected, "{}", case.id);
        for derived in derived.iter().filter(|d| !d.listed) {
            assert!(derived.coverage.is_empty(), "{}", case.id);
            assert!(!matches!(derived.state, State::Translated), "{}: {derived:?}", case.id);
        }
    }
}

#[test]
fn exclusions_and_paths() {
    for (id, cells) in range("R", 27, 30) {
        let row = format!("FRI-{}", cells["Row"]);
        let of = &rows()[&row];
        let (ledger, parsed) = (ledger(&of["history"]), segments(&of["segments"]));
        let stored: Vec<&RoaringBitmap> = parsed.iter().map(|p| p.stored.as_ref().unwrap()).collect();
        let plans = plans(&ledger, &set(&of["live"]), &stored);
        let mut held = 0;
        for (parsed, plan) in parsed.iter().zip(&plans) {
            for (pattern, shown) in [
                (format!("{}={{", parsed.letter), format!("{{{}}}", super::explain::list(&plan.excluded).replace(' ', ""))),
                (format!("{}=[", parsed.letter), format!("{:?}", plan.path).replace(' ', "")),
            ] {
                for (at, _) in cells["Expect"].match_indices(&pattern) {
                    let rest = &cells["Expect"][at + pattern.len() - 1..];
                    let end = rest.find(['}', ']']).unwrap();
                    assert_eq!(rest[..=end], shown, "{id} {}", parsed.letter);
                    held += 1;
                }
            }
        }
        assert!(held >= 2, "{id}: only {held} statements were found");
    }
}

#[test]
fn withdrawal() {
    for case in cases("W", 1, 17) {
        let rewritten = RoaringBitmap::from([case.cells["f"].parse().unwrap()]);
        let before: Vec<Option<RoaringBitmap>> = case.parsed.iter().map(|p| p.stored.clone()).collect();
        let after: Vec<Option<RoaringBitmap>> =
            before.iter().map(|b| b.as_ref().map(|b| withdraw(Some(&case.ledger), &case.live, b, &rewritten))).collect();
        let stays = settle(&before, &after);
        let shown: Vec<String> = case
            .parsed
            .iter()
            .zip(after.iter().zip(stays))
            .map(|(p, (bitmap, stays))| match bitmap {
                _ if !stays => format!("{} removed", p.letter),
                None => format!("{}?", p.letter),
                Some(b) if b.is_empty() => format!("{}∅", p.letter),
                Some(b) => format!("{}{{{}}}", p.letter, super::explain::list(b).replace(' ', "")),
            })
            .collect();
        assert_eq!(shown.join("; "), case.cells["after"], "{}", case.id);
    }
    // FRI-W-18: a history that cannot be walked.
    let mut unknown = ledger("OC{1,2}→{3}; OC{3}→{4}; OC{6}→{8}");
    unknown.supported = false;
    let left = |f| withdraw(Some(&unknown), &set("{4,8,9}"), &set("{6,9}"), &RoaringBitmap::from([f]));
    assert_eq!((left(4), left(9)), (set("{9}"), set("∅")));
    assert_eq!(withdraw(None, &set("{4,8,9}"), &set("{6,9}"), &set("{4}")), set("{9}"));
}

#[test]
fn trims() {
    for case in cases("T", 1, 40) {
        let content = history(&case.cells["history"]);
        let shown = match trim("h", &case.ledger, &facts(&case.parsed)).unwrap() {
            Trim::Nothing => "no-op".to_owned(),
            Trim::Delete => "delete".to_owned(),
            Trim::Replace { content: kept, ids } => {
                let needed: Vec<bool> = needs(&case.ledger, &facts(&case.parsed)).iter().map(|n| !n.is_empty()).collect();
                let places: Vec<usize> = (0..needed.len()).filter(|at| needed[*at]).collect();
                let bytes: Vec<u8> = places.iter().flat_map(|at| case.ledger.records[*at].raw.to_vec()).collect();
                assert_eq!(kept, bytes, "{}", case.id);
                assert!(content.windows(kept.len()).any(|w| w == kept.as_ref()) || places.len() > 1, "{}", case.id);
                assert_eq!(ids, case.ledger.ids_of(&needed), "{}", case.id);
                let names: Vec<String> = places.iter().map(|at| (at + 1).to_string()).collect();
                format!("keep {}", names.join(","))
            }
        };
        assert_eq!(shown, case.cells["result"], "{}", case.id);
    }
}

#[test]
fn prunes() {
    for case in cases("P", 1, 22) {
        let facts = facts(&case.parsed);
        let derived = derive(&case.ledger, &case.live, &facts);
        let gone = superseded(&case.live, &facts, &derived);
        let letters: BTreeSet<&str> = gone.iter().map(|s| case.parsed[s.segment].letter.as_str()).collect();
        let expected: BTreeSet<&str> = match case.cells["removed"].as_str() {
            "none" => BTreeSet::new(),
            text => text.split(';').map(str::trim).collect(),
        };
        assert_eq!(letters, expected, "{}", case.id);
        for gone in gone {
            let named: RoaringBitmap = gone.by.iter().filter_map(|at| facts[*at].stored).flatten().collect();
            assert!(gone.covered.is_subset(&named), "{}: {gone:?} is not justified", case.id);
        }
    }
}

/// "hops 1,2 → {3}", "hops none → ∅", "blocked 5", "identity".
fn shown_plan(plan: &RemapPlan) -> String {
    match plan {
        RemapPlan::Identity => "identity".to_owned(),
        RemapPlan::Blocked(fragment) => format!("blocked {fragment}"),
        RemapPlan::Remap { hops, coverage, .. } => {
            let places: Vec<String> = hops.iter().map(|at| (at + 1).to_string()).collect();
            let hops = if places.is_empty() { "none".to_owned() } else { places.join(",") };
            format!("hops {hops} → {}", shown_set(coverage))
        }
    }
}

fn shown_set(set: &RoaringBitmap) -> String {
    if set.is_empty() { "∅".to_owned() } else { format!("{{{}}}", super::explain::list(set).replace(' ', "")) }
}

fn mentioned(ledger: &Ledger) -> RoaringBitmap {
    ledger.transitions.iter().flat_map(|t| t.source_ids().chain(t.destination_ids())).collect()
}

#[test]
fn remap_plans() {
    for case in cases("M", 1, 15) {
        let provenance = set(&case.cells["provenance"]);
        let lineage = mentioned(&case.ledger);
        let live = (&lineage | &provenance).iter().filter(|f| case.ledger.consumer(*f).is_none()).collect();
        let plan = plan_remap(&case.ledger, &provenance, &live, &lineage);
        assert_eq!(shown_plan(&plan), case.cells["result"], "{}", case.id);
        let admitted = match (case.id.as_str(), plan) {
            ("FRI-M-13", RemapPlan::Remap { admitted, .. }) => Some((admitted, "{1,2,3,4,5,6}")), // FRI-M-16
            ("FRI-M-14", RemapPlan::Remap { admitted, .. }) => Some((admitted, "{7,8}")),         // FRI-M-17
            _ => None,
        };
        if let Some((admitted, expected)) = admitted {
            assert_eq!(admitted, set(expected));
        }
    }
    // FRI-M-18: on the lineage, and its record was trimmed. FRI-M-19: before it is held against the derived coverage.
    let one = ledger("OC{1}→{2}");
    assert_eq!(plan_remap(&one, &set("{1,5}"), &set("{2}"), &set("{1,2,5}")), RemapPlan::Blocked(5));
    let plan = plan_remap(&ledger("SP{1}→{2,3}"), &set("{1,7}"), &set("{3}"), &set("{1,2,3}"));
    assert_eq!(shown_plan(&plan), "hops 1 → {2,3,7}");
}

#[test]
fn provenance_of_lifted_histories() {
    for case in cases("M", 20, 28) {
        let version = case.cells["dataset_version"].parse().unwrap();
        let effective = effective_provenance(&case.ledger, &set(&case.cells["stored"]), version);
        assert_eq!(effective, set(&case.cells["effective"]), "{}", case.id);
    }
}

#[test]
fn remap_outcomes() {
    for case in cases("M", 29, 45) {
        let facts = facts(&case.parsed);
        let derived = derive(&case.ledger, &case.live, &facts);
        let target = case.parsed.iter().position(|p| p.letter == case.cells["target"]).unwrap();
        let lineage = mentioned(&case.ledger);
        let shown = match outcome(&case.ledger, &case.live, &lineage, &facts[target], &derived[target]) {
            Outcome::Skip => "skip".to_owned(),
            Outcome::Identity => "identity".to_owned(),
            Outcome::Blocked(fragment) => format!("blocked {fragment}"),
            Outcome::Keep(coverage) => format!("keep {}", shown_set(&coverage)),
            Outcome::Rewrite(coverage) => format!("rewrite {}", shown_set(&coverage)),
        };
        assert_eq!(shown, case.cells["result"], "{}", case.id);
    }
}

/// `F-01..07, F-11` as ids.
fn listed(cell: &str) -> Vec<String> {
    let of = |part: &str| -> Vec<String> {
        let (letter, numbers) = part.trim().split_once('-').unwrap_or_else(|| panic!("{part:?} names no row"));
        let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
        let (first, last): (u32, u32) = (first.parse().unwrap(), last.parse().unwrap());
        (first..=last).map(|n| format!("FRI-{letter}-{n:02}")).collect()
    };
    cell.split(',').flat_map(of).collect()
}

#[test]
fn every_row_is_tried_or_it_is_said_why_not() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut seen, mut tried, mut reason) = (BTreeSet::new(), 0, false);
    for line in include_str!("../../docs/reuse-scenarios.md").lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if cells[0] == "rows" {
            reason = cells[1].starts_with("not tried");
            continue;
        }
        for id in listed(cells[0]) {
            tried += usize::from(!reason);
            assert!(seen.insert(id.clone()), "{id} is listed twice");
        }
        if reason {
            assert!(cells[1].len() > 20, "{line}");
            continue;
        }
        let (file, test) = cells[1].split_once(": ").unwrap_or_else(|| panic!("{line}"));
        let (file, test) = (file.trim_matches('`'), test.trim_matches('`'));
        let source = std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(
            [format!("fn {test}("), format!("def {test}(")].iter().any(|head| source.contains(head)),
            "{file} has no test {test}"
        );
    }
    let all: BTreeSet<String> = rows().into_keys().collect();
    assert_eq!(seen, all, "rows of the table, and rows of the page");
    assert!(tried > 230, "{tried} of {} rows are tried", all.len());
}
