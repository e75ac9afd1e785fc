//! The one loop that publishes a change of the index section, of the fragments, or of both (refresh-and-compaction §8.3, design §8).
//!
//! What is to be published is decided anew on every attempt, from the manifest of the version it would replace: the loop knows
//! nothing of refreshes or drops, and a [`Proposal`] knows nothing of attempts.

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::commit::{CommitOutcome, NextVersion, taken_later};
use super::succession::is_still_there;
use super::{At, Table};
use crate::coverage::prune::LeftOut;
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::fragment_change::FragmentChange;
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
/// Longest wait between two attempts, in milliseconds.
const LONGEST_WAIT_MS: u64 = 10_000;
/// An attempt older than this looks once more for newer versions before it sends anything: the machine may have slept.
const SLEPT_MS: i64 = 60_000;

/// What happens to the fragments, and the operation that says so.
#[derive(Clone, Debug)]
pub struct DataChange {
    /// Number of the operation in a transaction (table-format §8.2).
    pub operation: u32,
    /// Its message.
    pub body: Bytes,
    /// What becomes of the fragments.
    pub fragments: FragmentChange,
}

/// Entries that come and go in one transaction.
#[derive(Clone, Debug, Default)]
pub struct IndexChange {
    /// What happens to the fragments; `None` = nothing, and the transaction is a CreateIndex.
    pub data: Option<Box<DataChange>>,
    /// Entries to add, complete but for `created_at`, which is set; with `data` one that is dated keeps its date.
    pub new: Vec<IndexMetadata>,
    /// Entries to take out, as stored.
    pub removed: Vec<IndexMetadata>,
    /// Fragments that were to be covered and will not be.
    pub left_out: Vec<LeftOut>,
    /// Properties of the transaction.
    pub properties: &'static [(&'static str, &'static str)],
}

impl IndexChange {
    /// Whether a manifest with this change names files that no version named before.
    fn names_files(&self) -> bool {
        let data = self.data.as_ref().is_some_and(|data| !data.fragments.added.is_empty() || !data.fragments.updated.is_empty());
        data || !self.new.is_empty()
    }
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
    /// Name of the index it is about; of a change of data, what it does.
    fn index_name(&self) -> &str;

    /// What errors call it.
    fn subject(&self) -> String {
        format!("index {}", self.index_name())
    }

    /// What to publish as the version after `latest`; every fact is to be taken from it.
    ///
    /// # Errors
    /// Whatever makes the change impossible; it ends the loop with nothing committed.
    async fn decide(&self, latest: &Table) -> Result<Decision>;

    /// Asked once more before the manifest is sent, when much time went by since it was decided on.
    ///
    /// # Errors
    /// What makes the change impossible by now; nothing was committed.
    async fn still(&self, _latest: &Table) -> Result<()> {
        Ok(())
    }
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
    /// Uuid of the transaction: the same for every attempt, unless a version that was overtaken carries it.
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
    /// `committed`, `lost` (another writer was faster, or the store took nothing), `unknown` or `nothing_to_do`.
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
/// commit landed, and then nothing is deleted. The detail `attempts` lists every attempt.
pub async fn publish(table: &Table, proposal: &dyn Proposal, committing: &OnCommitting<'_>) -> Result<Published> {
    let uuid = table.store().env().uuid();
    let mut run = Run {
        proposal,
        committing,
        uuid,
        attempts: Vec::new(),
        pending: None,
        unanswered: Vec::new(),
        refused: 0,
        newest: table.clone(),
    };
    match run.try_on().await {
        // Whatever ended it, a request of ours that seemed lost may still arrive.
        Err(error) => Err(run.not_certain(error)),
        Ok(Published { change: None, .. }) if run.pending.is_some() => {
            let cause = Error::new(ErrorCode::CommitUnknown, "there was nothing left to do after an attempt that seemed lost");
            Err(run.not_certain(cause))
        }
        done => done,
    }
}

/// The attempts of one commit.
struct Run<'a> {
    proposal: &'a dyn Proposal,
    committing: &'a OnCommitting<'a>,
    uuid: Uuid,
    attempts: Vec<Attempt>,
    /// What may yet become a version: its request got no answer, and it is not there.
    pending: Option<Pending>,
    /// Versions of others that were there where requests of ours went that got no answer.
    unanswered: Vec<Table>,
    /// Times in a row that the store took no manifest.
    refused: u32,
    /// The newest version seen. A listing that ends below it is old.
    newest: Table,
}

/// An attempt that seemed lost.
struct Pending {
    version: u64,
    change: IndexChange,
    /// What it was built on.
    basis: Table,
}

impl Run<'_> {
    async fn try_on(&mut self) -> Result<Published> {
        let env = self.newest.store().env().clone();
        let mut slot = SLOT_MS;
        for attempt in 0..ATTEMPTS {
            let started = env.now_ms();
            if let Some(published) = self.attempt(started).await? {
                return Ok(published);
            }
            if attempt == 0 {
                let took = u64::try_from(env.now_ms().saturating_sub(started)).unwrap_or(0);
                slot = took.saturating_add(took / 10).max(1);
            }
            let slots = 2u32.saturating_pow(attempt.saturating_add(2)).min(MOST_SLOTS);
            env.sleep(slot.saturating_mul((env.random() * f64::from(slots)) as u64).min(LONGEST_WAIT_MS)).await;
        }
        let text = format!(
            "{}: none of {} attempts to commit succeeded, the last because {}; nothing was committed",
            self.proposal.subject(),
            self.attempts.len(),
            self.attempts.last().and_then(|a| a.why.as_deref()).unwrap_or("of nothing known")
        );
        Err(Error::new(ErrorCode::CommitConflict, text))
    }

    /// `None`: it has to be tried again.
    async fn attempt(&mut self, started: i64) -> Result<Option<Published>> {
        let latest = self.newest.latest().await?;
        self.newest = latest.clone();
        if let Some(published) = self.landed_late(&latest).await? {
            return Ok(Some(published));
        }
        let next = latest.version().saturating_add(1);
        let mut change = match self.proposal.decide(&latest).await? {
            Decision::Publish(change) => change,
            Decision::Nothing { why, left_out } => {
                self.attempts.push(Attempt::new(next, "nothing_to_do", Some(why)));
                let attempts = self.attempts.clone();
                return Ok(Some(Published { table: latest, change: None, left_out, attempts, transaction: None }));
            }
        };
        latest.store().may_commit()?;
        let transaction = put_together(&latest, self.uuid, &mut change)?;
        let manifest = next_manifest(&latest, &transaction, &change)?;
        (self.committing)(Committing {
            uri: latest.store().uri(),
            branch: latest.manifest().manifest.branch.clone(),
            index_name: self.proposal.index_name().to_owned(),
            transaction: self.uuid,
            version: next,
        })
        .await?;
        let put = NextVersion { version: next, manifest, transaction: &transaction };
        latest.put_transaction(&put).await?;
        let lost = self.last_look(&latest, started, &change).await;
        // A manifest that may yet arrive for this version names the same transaction file.
        let pending = self.pending.as_ref().is_some_and(|pending| pending.version == next);
        if !pending && !matches!(lost, Ok(None)) {
            latest.drop_transaction(&transaction).await;
        }
        if let Some(why) = lost? {
            self.attempts.push(Attempt::new(next, "lost", Some(why)));
            return Ok(None);
        }
        match latest.put_manifest(put).await? {
            CommitOutcome::Landed(landed) => {
                self.attempts.push(Attempt::new(next, "committed", None));
                return Ok(Some(committed(landed, change, self.attempts.clone(), self.uuid)));
            }
            CommitOutcome::Lost { taken: Some(theirs), why, answered } => {
                self.refused = 0;
                self.pending = None;
                if !answered {
                    self.unanswered.push(theirs.clone());
                }
                self.newest = theirs;
                self.attempts.push(Attempt::new(next, "lost", Some(why)));
            }
            CommitOutcome::Lost { taken: None, why, .. } => {
                self.refused += 1;
                self.attempts.push(Attempt::new(next, "lost", Some(why.clone())));
                // A request that seemed lost may still arrive: remembered, so that it is recognised as ours.
                self.pending = Some(Pending { version: next, change, basis: latest });
                if self.refused == REFUSALS {
                    let text = format!("the store took no manifest {REFUSALS} times ({why})");
                    return Err(Error::new(ErrorCode::CommitUnknown, text));
                }
            }
            CommitOutcome::Overtaken { by, left } => self.overtaken(next, &change, by, left)?,
            CommitOutcome::Unknown(error) => {
                self.attempts.push(Attempt::new(next, "unknown", Some(error.message().to_owned())));
                self.pending = Some(Pending { version: next, change, basis: latest });
                return Err(error);
            }
        }
        Ok(None)
    }

    /// The last thing before the manifest is sent: why this attempt is lost already, if it is.
    async fn last_look(&self, latest: &Table, started: i64, change: &IndexChange) -> Result<Option<String>> {
        let now = || latest.store().env().now_ms();
        let looked = now();
        if looked.saturating_sub(started) > SLEPT_MS {
            if latest.latest().await?.version() != latest.version() {
                return Ok(Some("other writers committed while this attempt was made".to_owned()));
            }
            self.proposal.still(latest).await?;
        }
        if change.names_files() {
            self.room_for_none().await?;
        }
        let again = now().saturating_sub(looked) > SLEPT_MS;
        Ok(again.then(|| "looking once more took so long that it has to be done again".to_owned()))
    }

    /// A request without an answer arrives only where a cleanup made room for it. What it would name, as an old version, the next
    /// cleanup removes: it must not be named again.
    async fn room_for_none(&self) -> Result<()> {
        for theirs in &self.unanswered {
            if !is_still_there(theirs).await? {
                let text = format!(
                    "{}: version {} was cleaned up while our request to create it was without an answer: should it arrive yet, the next \
                     cleanup removes what was built; build it again. Nothing was committed",
                    self.proposal.subject(),
                    theirs.version()
                );
                return Err(Error::new(ErrorCode::StalePlan, text));
            }
        }
        Ok(())
    }

    /// A version that no attempt was seen to make is there now: did one of ours make it after all?
    async fn landed_late(&mut self, latest: &Table) -> Result<Option<Published>> {
        let Some(pending) = self.pending.as_ref().filter(|pending| pending.version <= latest.version()) else {
            return Ok(None);
        };
        let version = pending.version;
        let there = if latest.version() == version { Some(latest.clone()) } else { latest.at(At::Version(version)).await.ok() };
        let Some(there) = there else {
            let text = format!("version {version} was cleaned up before it could be read");
            return Err(Error::new(ErrorCode::CommitUnknown, text));
        };
        let owner = there.transaction(version).await?;
        let Some(transaction) = owner.filter(|owner| owner.uuid.eq_ignore_ascii_case(&self.uuid.to_string())) else {
            if !is_still_there(&pending.basis).await? {
                return Err(Error::new(ErrorCode::CommitUnknown, taken_later(version)));
            }
            self.unanswered.push(there);
            self.pending = None;
            return Ok(None);
        };
        let size = there.manifest_bytes().map(|bytes| bytes.len() as u64);
        let (basis, change) = (pending.basis.clone(), pending.change.clone());
        match basis.placed(there, &transaction, size).await {
            CommitOutcome::Landed(there) => {
                self.pending = None;
                if let Some(last) = self.attempts.iter_mut().rfind(|a| a.version == version) {
                    let why = "the store's answer was lost, the commit was not".to_owned();
                    *last = Attempt::new(version, "committed", Some(why));
                }
                Ok(Some(committed(there, change, self.attempts.clone(), self.uuid)))
            }
            CommitOutcome::Overtaken { by, left } => {
                self.overtaken(version, &change, by, left)?;
                Ok(None)
            }
            CommitOutcome::Unknown(error) => Err(error),
            CommitOutcome::Lost { .. } => Err(Error::internal("a version that is ours was lost")),
        }
    }

    /// Our version is none of the history: the next attempt is another transaction, since this one has a version already. What that
    /// version named cannot be named again: to a cleanup that saw it, it is what an old version has left.
    fn overtaken(&mut self, version: u64, change: &IndexChange, by: u64, left: Option<String>) -> Result<()> {
        self.refused = 0;
        self.pending = None;
        self.uuid = self.newest.store().env().uuid();
        let still = left.map(|path| format!("; {path} is none of the history and could not be removed"));
        let why = format!("version {by} was there before, and what lay between had been cleaned up{}", still.unwrap_or_default());
        self.attempts.push(Attempt::new(version, "lost", Some(why.clone())));
        if !change.names_files() {
            return Ok(());
        }
        let text = format!(
            "{}: {why}; for a moment version {version} named what was built, as an old version that a cleanup removes with its files: build \
             it again. Nothing was committed",
            self.proposal.subject()
        );
        Err(Error::new(ErrorCode::StalePlan, text))
    }

    /// The error with the attempts so far; when one of them may still succeed, it is not known what will have been committed.
    fn not_certain(&self, error: Error) -> Error {
        let error = match &self.pending {
            Some(Pending { version, .. }) => unknown(self.proposal, *version, &self.uuid.to_string(), &error),
            None => error,
        };
        if self.attempts.is_empty() {
            return error;
        }
        error.with("attempts", serde_json::to_value(&self.attempts).unwrap_or_default())
    }
}

/// Dates the new entries and makes the transaction of them.
fn put_together(latest: &Table, uuid: Uuid, change: &mut IndexChange) -> Result<Transaction> {
    let created = u64::try_from(latest.store().env().now_ms()).ok();
    if let Some(data) = &change.data {
        // Entries that take the place of others are as old as they are.
        for entry in change.new.iter_mut().filter(|entry| entry.created_at_ms.is_none()) {
            entry.created_at_ms = created;
        }
        let transaction = Transaction::of_operation(latest.version(), uuid, data.operation, &data.body)?;
        return Ok(transaction.with_properties(change.properties));
    }
    for entry in &mut change.new {
        entry.created_at_ms = created;
    }
    Ok(Transaction::create_index(latest.version(), uuid, change.new.clone(), change.removed.clone())
        .with_properties(change.properties))
}

fn next_manifest(latest: &Table, transaction: &Transaction, change: &IndexChange) -> Result<Bytes> {
    let removed = set_of(change.removed.iter().map(|e| e.uuid));
    let stays = latest.manifest().indices.iter().filter(|e| !removed.contains(&e.uuid));
    NextManifest {
        base: latest.manifest(),
        indices: stays.chain(&change.new).cloned().collect(),
        transaction,
        transaction_file: transaction.file_name(),
        now_ms: latest.store().env().now_ms(),
        fragments: change.data.as_ref().map(|data| &data.fragments),
    }
    .encode()
}

fn committed(table: Table, change: IndexChange, attempts: Vec<Attempt>, uuid: Uuid) -> Published {
    Published { table, change: Some(change), left_out: Vec::new(), attempts, transaction: Some(uuid) }
}

fn unknown(proposal: &dyn Proposal, version: u64, transaction: &str, cause: &Error) -> Error {
    let text = format!(
        "it could not be found out whether the change of {} was committed as version {version}: {}. It was if that version carries \
         transaction {transaction}, which `whetstone transaction TABLE {transaction}` tells; nothing was deleted",
        proposal.subject(),
        cause.message()
    );
    Error::new(ErrorCode::CommitUnknown, text)
        .with("version", version)
        .with("transaction", transaction)
        .with_changed(Changed::Unknown)
}
