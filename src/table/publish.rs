//! The one loop that publishes a change of the index section (refresh-and-compaction §8.3, design §8).
//!
//! What is to be published is decided anew on every attempt, from the manifest of the version it would replace: the loop knows
//! nothing of refreshes or drops, and a [`Proposal`] knows nothing of attempts.

use async_trait::async_trait;
use futures::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::commit::{CommitOutcome, NextVersion};
use super::{At, Table};
use crate::coverage::prune::LeftOut;
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::format::next_manifest::NextManifest;
use crate::format::transaction::Transaction;
use crate::lists::set_of;

/// Attempts before giving up, as many as Lance makes.
const ATTEMPTS: u32 = 20;
/// Times in a row that the store may take no manifest although nobody else's is there.
const REFUSALS: u32 = 3;
/// Width of one back-off slot before it is known how long an attempt takes, in milliseconds.
const SLOT_MS: u64 = 50;
/// Most slots an attempt waits.
const MOST_SLOTS: u32 = 128;

/// Entries that come and go in one CreateIndex transaction.
#[derive(Clone, Debug, Default)]
pub struct IndexChange {
    /// Entries to add, complete but for `created_at`.
    pub new: Vec<IndexMetadata>,
    /// Entries to take out, as stored.
    pub removed: Vec<IndexMetadata>,
    /// Fragments that were to be covered and will not be.
    pub left_out: Vec<LeftOut>,
}

/// What one attempt is to do.
pub enum Decision {
    /// Publish this.
    Publish(IndexChange),
    /// There is nothing to publish on this version any more, and that is no error.
    Nothing {
        /// Why, for the report.
        why: String,
        /// Fragments that were to be covered, and why they are not.
        left_out: Vec<LeftOut>,
    },
}

/// Something that wants to change the index section.
#[async_trait(?Send)]
pub trait Proposal {
    /// Name of the index it is about.
    fn index_name(&self) -> &str;

    /// What to publish as the version after `latest`; every fact is to be taken from it.
    ///
    /// # Errors
    /// Whatever makes the change impossible; it ends the loop with nothing committed.
    async fn decide(&self, latest: &Table) -> Result<Decision>;

    /// Whether `latest` lists entries that only this proposal can have added.
    fn is_in(&self, latest: &Table) -> bool;
}

/// What is about to be committed: enough to find out later what became of it, whoever is still there to ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Committing {
    /// Address of the table or of its branch's root; no keys.
    pub uri: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Index name.
    pub index_name: String,
    /// Uuid of the transaction, the same for every attempt.
    pub transaction: Uuid,
    /// Version this attempt tries to become.
    pub version: u64,
}

/// Told before the manifest of each attempt is sent, and waited for; an error ends the commit.
pub type OnCommitting<'a> = dyn Fn(Committing) -> LocalBoxFuture<'static, Result<()>> + 'a;

/// For callers whom nobody has to be told.
pub fn tell_nobody(_: Committing) -> LocalBoxFuture<'static, Result<()>> {
    Box::pin(std::future::ready(Ok(())))
}

/// How the loop ended, when it did not end in an error.
pub struct Published {
    /// The table at the committed version, or the one found current.
    pub table: Table,
    /// What was committed; `None` = nothing.
    pub change: Option<IndexChange>,
    /// Fragments that were not committed although nothing at all was.
    pub left_out: Vec<LeftOut>,
    /// Every attempt.
    pub attempts: Vec<Attempt>,
    /// Uuid of the transaction, `None` when nothing was committed.
    pub transaction: Option<Uuid>,
}

/// One attempt to commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Version it tried to become.
    pub version: u64,
    /// `committed`, `lost` (another writer created that version) or `nothing_to_do`.
    pub outcome: String,
    /// Why; null when there is nothing to say.
    pub why: Option<String>,
}

impl Attempt {
    fn new(version: u64, outcome: &str, why: Option<String>) -> Attempt {
        Attempt { version, outcome: outcome.to_owned(), why }
    }
}

/// Publishes what `proposal` decides, trying again as long as other writers are faster. `committing` is told before anything
/// that may commit is sent.
///
/// # Errors
/// Those of deciding and of `committing`; `COMMIT_CONFLICT` after 20 lost attempts; `COMMIT_UNKNOWN` when it cannot be found out whether the
/// commit landed, and then nothing is deleted.
pub async fn publish(table: &Table, proposal: &dyn Proposal, committing: &OnCommitting<'_>) -> Result<Published> {
    let env = table.store().env().clone();
    let uuid = env.uuid();
    let mut attempts = Vec::new();
    let mut slot = SLOT_MS;
    let mut refused = 0;
    let mut pending: Option<(u64, IndexChange)> = None;
    for attempt in 0..ATTEMPTS {
        let started = env.now_ms();
        let latest = table.latest().await?;
        if let Some((version, change)) = pending.take_if(|(version, _)| *version <= latest.version())
            && let Some(landed) = landed_late(&latest, proposal, version, uuid).await?
        {
            if let Some(last) = attempts.iter_mut().rfind(|a: &&mut Attempt| a.version == version) {
                *last = Attempt::new(version, "committed", Some("the store's answer was lost, the commit was not".to_owned()));
            }
            return Ok(committed(landed, change, attempts, uuid));
        }
        let next = latest.version().saturating_add(1);
        let mut change = match proposal.decide(&latest).await? {
            Decision::Publish(change) => change,
            Decision::Nothing { why, left_out } => {
                attempts.push(Attempt::new(next, "nothing_to_do", Some(why)));
                return Ok(Published { table: latest, change: None, left_out, attempts, transaction: None });
            }
        };
        let transaction = put_together(&latest, uuid, &mut change);
        let manifest = next_manifest(&latest, &transaction, &change)?;
        let told = committing(Committing {
            uri: latest.store().uri(),
            branch: latest.manifest().manifest.branch.clone(),
            index_name: proposal.index_name().to_owned(),
            transaction: uuid,
            version: next,
        });
        if let Err(error) = told.await {
            // An earlier attempt may still be on its way: then this is no certain end.
            return Err(pending.map_or(error, |(version, _)| {
                let cause = Error::new(ErrorCode::CommitUnknown, "an attempt that seemed lost was not followed any further");
                unknown(proposal, version, &transaction.uuid, &cause)
            }));
        }
        match latest.put_next(NextVersion { version: next, manifest, transaction: &transaction }).await? {
            CommitOutcome::Landed(landed) => {
                attempts.push(Attempt::new(next, "committed", None));
                return Ok(committed(landed, change, attempts, uuid));
            }
            CommitOutcome::Lost { taken: Some(_), why } => {
                refused = 0;
                attempts.push(Attempt::new(next, "lost", Some(why)));
            }
            CommitOutcome::Lost { taken: None, why } => {
                refused += 1;
                if refused == REFUSALS {
                    let cause =
                        Error::new(ErrorCode::CommitUnknown, format!("the store took no manifest {REFUSALS} times ({why})"));
                    return Err(unknown(proposal, next, &transaction.uuid, &cause));
                }
                attempts.push(Attempt::new(next, "lost", Some(why)));
                // A request that seemed lost may still arrive: remembered, so that it is recognised as ours.
                pending = Some((next, change));
            }
            CommitOutcome::Unknown(error) => return Err(unknown(proposal, next, &transaction.uuid, &error)),
        }
        if attempt == 0 {
            let took = u64::try_from(env.now_ms().saturating_sub(started)).unwrap_or(0);
            slot = (took + took / 10).max(1);
        }
        let slots = 2u32.saturating_pow(attempt.saturating_add(2)).min(MOST_SLOTS);
        env.sleep(slot.saturating_mul((env.random() * f64::from(slots)) as u64)).await;
    }
    let text = format!(
        "index {}: none of {} attempts to commit succeeded, the last because {}; nothing was committed",
        proposal.index_name(),
        attempts.len(),
        attempts.last().and_then(|a| a.why.as_deref()).unwrap_or("of nothing known")
    );
    Err(Error::new(ErrorCode::CommitConflict, text).with("attempts", serde_json::to_value(&attempts).unwrap_or_default()))
}

/// Dates the new entries and makes the transaction of them.
fn put_together(latest: &Table, uuid: Uuid, change: &mut IndexChange) -> Transaction {
    let created = u64::try_from(latest.store().env().now_ms()).ok();
    for entry in &mut change.new {
        entry.created_at_ms = created;
    }
    Transaction::create_index(latest.version(), uuid, change.new.clone(), change.removed.clone())
}

fn next_manifest(latest: &Table, transaction: &Transaction, change: &IndexChange) -> Result<bytes::Bytes> {
    let removed = set_of(change.removed.iter().map(|e| e.uuid));
    let stays = latest.manifest().indices.iter().filter(|e| !removed.contains(&e.uuid));
    NextManifest {
        base: latest.manifest(),
        indices: stays.chain(&change.new).cloned().collect(),
        transaction,
        transaction_file: transaction.file_name(),
        now_ms: latest.store().env().now_ms(),
    }
    .encode()
}

fn committed(table: Table, change: IndexChange, attempts: Vec<Attempt>, uuid: Uuid) -> Published {
    Published { table, change: Some(change), left_out: Vec::new(), attempts, transaction: Some(uuid) }
}

/// A version that no attempt was seen to make is there now: did one of ours make it after all?
async fn landed_late(latest: &Table, proposal: &dyn Proposal, version: u64, uuid: Uuid) -> Result<Option<Table>> {
    let text = uuid.to_string();
    match latest.transaction(version).await? {
        Some(transaction) if transaction.uuid.eq_ignore_ascii_case(&text) => {
            let there = latest.version() == version;
            Ok(Some(if there { latest.clone() } else { latest.at(At::Version(version)).await? }))
        }
        Some(_) => Ok(None),
        None if proposal.is_in(latest) => {
            let cause = Error::new(ErrorCode::CommitUnknown, format!("version {} names its segments", latest.version()));
            Err(unknown(proposal, version, &text, &cause))
        }
        None => Ok(None),
    }
}

fn unknown(proposal: &dyn Proposal, version: u64, transaction: &str, cause: &Error) -> Error {
    let text = format!(
        "it could not be found out whether the change of index {} was committed as version {version}: {}. It was if that version carries \
         transaction {transaction}; nothing was deleted",
        proposal.index_name(),
        cause.message()
    );
    Error::new(ErrorCode::CommitUnknown, text)
        .with("version", version)
        .with("transaction", transaction)
        .with_changed(Changed::Unknown)
}
