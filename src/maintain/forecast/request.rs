//! What a caller may ask of a forecast, and the plans that have a name.

use serde::{Deserialize, Serialize};

use crate::compaction::CompactionOptions;
use crate::compaction::steps::{Absorbing, Cut, Step};
use crate::error::{Error, Result};

/// Options of a forecast; every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ForecastOptions {
    /// Plans to compare, by name or as steps; those of [`NAMES`] when absent.
    pub plans: Option<Vec<PlanChoice>>,
    /// Segments that the refreshes of the named plans build. Default 1; 4 where a plan is about cutting.
    pub segments: Option<u64>,
    /// Options of every compaction.
    pub compaction: CompactionOptions,
    /// Also give every layout fragment by fragment.
    pub columns: bool,
}

/// A plan to compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PlanChoice {
    /// One of [`NAMES`].
    Name(String),
    /// Steps of the caller's own.
    Steps(NamedPlan),
}

/// Steps under a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedPlan {
    /// What it is called.
    pub name: String,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// The plans that have a name, and the sentence that says what they do.
pub const NAMES: [(&str, &str); 9] = [
    ("compact", "compact, and refresh nothing"),
    ("contiguous", "refresh in contiguous runs, then compact"),
    ("gap_aware", "refresh in contiguous runs cut where nothing could be joined anyway, then compact"),
    ("interleaved", "refresh in segments whose fragments are dealt out like cards, then compact"),
    ("one_per_append", "refresh every fragment into a segment of its own, then compact"),
    ("refresh_then_compact", "refresh into one segment, then compact, then refresh what compaction left uncovered"),
    ("compact_then_refresh", "compact, then refresh into one segment"),
    ("absorb", "refresh and build all existing segments anew with it, then compact"),
    ("merge", "merge the segments of every index into one, then compact"),
];

/// Segments of the plans about cutting, when the caller does not say.
const CUT_INTO: u64 = 4;
/// Most plans of one forecast.
const MOST_PLANS: usize = 64;
/// Most steps of one plan.
const MOST_STEPS: usize = 256;

/// A plan with what it does in words.
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// What it does.
    pub title: String,
    /// Its steps.
    pub steps: Vec<Step>,
}

impl ForecastOptions {
    /// The plans asked for.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name that is none, and for more plans or steps than anybody compares.
    pub fn chosen(&self) -> Result<Vec<Chosen>> {
        let Some(plans) = &self.plans else {
            return NAMES.iter().map(|(name, _)| self.named(name)).collect();
        };
        if plans.len() > MOST_PLANS {
            return Err(Error::invalid(format!("a forecast compares at most {MOST_PLANS} plans, not {}", plans.len())));
        }
        let choose = |choice: &PlanChoice| match choice {
            PlanChoice::Name(name) => self.named(name),
            PlanChoice::Steps(plan) if plan.steps.len() > MOST_STEPS => Err(Error::invalid(format!(
                "plan {:?} has {} steps; at most {MOST_STEPS} are taken",
                plan.name,
                plan.steps.len()
            ))),
            PlanChoice::Steps(plan) => {
                Ok(Chosen { name: plan.name.clone(), title: plan.name.clone(), steps: plan.steps.clone() })
            }
        };
        plans.iter().map(choose).collect()
    }

    fn named(&self, name: &str) -> Result<Chosen> {
        let refresh = |default: u64, cut: Cut, absorb: Absorbing| Step::Refresh {
            index: None,
            segments: self.segments.unwrap_or(default),
            cut,
            absorb,
        };
        let plain = || refresh(1, Cut::Balanced, Absorbing::None);
        let compact = || Step::Compact { options: CompactionOptions::default() };
        let steps = match name {
            "compact" => vec![compact()],
            "contiguous" => vec![refresh(CUT_INTO, Cut::Balanced, Absorbing::None), compact()],
            "gap_aware" => vec![refresh(CUT_INTO, Cut::GapAware, Absorbing::None), compact()],
            "interleaved" => vec![refresh(CUT_INTO, Cut::Interleaved, Absorbing::None), compact()],
            "one_per_append" => vec![refresh(1, Cut::PerFragment, Absorbing::None), compact()],
            "refresh_then_compact" => vec![plain(), compact(), plain()],
            "compact_then_refresh" => vec![compact(), plain()],
            "absorb" => vec![refresh(1, Cut::Balanced, Absorbing::All), compact()],
            "merge" => vec![Step::Merge { index: None, segments: self.segments.unwrap_or(1) }, compact()],
            _ => {
                let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                let text = format!("there is no plan called {name:?}: the named ones are {}", names.join(", "));
                return Err(Error::invalid(text).with("plan", name));
            }
        };
        let title = NAMES.iter().find(|(known, _)| *known == name).map_or(name, |(_, title)| title);
        Ok(Chosen { name: name.to_owned(), title: title.to_owned(), steps })
    }
}
