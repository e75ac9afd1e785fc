//! The lowest step of a commit (table-format §10): put the transaction and the next manifest, find out what became of it.

use bytes::Bytes;

use super::handle::{Table, transaction_of};
use super::reading::{manifest_path, read_manifest};
use super::succession::{Ours, Place, created_newest, is_still_there, is_strong, place_of};
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::manifest::ManifestFile;
use crate::format::naming::Naming;
use crate::format::transaction::Transaction;
use crate::store::{Created, Store, is_not_found};

/// How often the version is read to find out whose it is.
const TRIES: u32 = 3;
/// Wait before reading again, milliseconds.
const WAIT_MS: u64 = 400;

/// What became of a commit.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // one a commit, consumed where it is made
pub enum CommitOutcome {
    /// The version carries our transaction.
    Landed(Table),
    /// The version carries another transaction, or the store took none: nothing was committed by us.
    Lost {
        /// The version that somebody else made; `None` = nobody did, the store refused or dropped our manifest.
        taken: Option<Table>,
        /// One clause for a report.
        why: String,
        /// Whether the store answered: otherwise the request may still arrive.
        answered: bool,
    },
    /// The version carried our transaction but is none of the history: higher ones were there before it, and the versions
    /// between had been cleaned up. Nothing was committed by us.
    Overtaken {
        /// A version that was there before.
        by: u64,
        /// Our manifest, when it could not be taken away again.
        left: Option<String>,
    },
    /// It cannot be found out. Nothing may be deleted.
    Unknown(Error),
}

/// The manifest to be put and the transaction it carries.
pub struct NextVersion<'a> {
    /// Version number.
    pub version: u64,
    /// Encoded manifest file of that version.
    pub manifest: Bytes,
    /// Its transaction.
    pub transaction: &'a Transaction,
}

/// What the store said of our manifest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// The version was there before.
    Taken,
    /// Something else.
    Answered,
    /// Nothing: the request may still arrive.
    Unanswered,
}

impl Table {
    /// Puts the transaction file, creates the manifest of `next` (this table's version plus one) if there is none, and finds
    /// out what became of it. An error means that nothing was committed; it lists the transaction file when that may be left.
    pub async fn put_next(&self, next: NextVersion<'_>) -> Result<CommitOutcome> {
        self.put_transaction(&next).await?;
        self.put_manifest(next).await
    }

    /// Puts the transaction file, which has to be there before a manifest names it.
    pub(super) async fn put_transaction(&self, next: &NextVersion<'_>) -> Result<()> {
        if self.version().checked_add(1) != Some(next.version) {
            return Err(Error::internal(format!("version {} does not follow {}", next.version, self.version())));
        }
        if self.naming() == Naming::Detached {
            return Err(Error::new(
                ErrorCode::UnsupportedFeature,
                format!("version {} is detached from the table's history and cannot be committed on", self.version()),
            ));
        }
        let path = transaction_path(next.transaction);
        let put = self.store().put(&path, vec![next.transaction.encode()]).await;
        put.map_err(|error| error.of_writing(&path))
    }

    /// Takes the transaction file away: of a commit that is certain not to be, nobody looks for it. Failing to delete it harms nobody;
    /// what is left is named.
    pub(super) async fn drop_transaction(&self, transaction: &Transaction) -> Vec<String> {
        let path = transaction_path(transaction);
        if self.store().delete(&path).await.is_err() { vec![path] } else { Vec::new() }
    }

    /// [`put_next`](Table::put_next), once the transaction file is there.
    pub(super) async fn put_manifest(&self, next: NextVersion<'_>) -> Result<CommitOutcome> {
        let store = self.store();
        let path = manifest_path(self.naming(), next.version);
        let created = store.put_create(&path, vec![next.manifest.clone()]).await;
        let sent = match created {
            Ok(Created::Exists) => Sent::Taken,
            Ok(Created::Unclear(_)) => Sent::Unanswered,
            _ => Sent::Answered,
        };
        let clue = match created {
            // "Created" alone is not believed: some stores overwrite and say the same.
            Ok(Created::Yes(tag)) => {
                if let Some(tag) = tag
                    && let Some(table) = self.seen_newest(&next, &tag).await
                {
                    return Ok(CommitOutcome::Landed(table));
                }
                None
            }
            Ok(Created::Exists) => Some("the version was there already".to_owned()),
            Ok(Created::Unclear(error)) => Some(error.message().to_owned()),
            Err(error) => {
                // Refused before anything was stored.
                let left = self.drop_transaction(next.transaction).await;
                return Err(error.with_staged(left));
            }
        };
        let outcome = match self.resolve(&next.transaction.uuid, next.version, clue, sent).await {
            CommitOutcome::Landed(table) => self.placed(table, next.transaction, Some(next.manifest.len() as u64)).await,
            other => other,
        };
        if matches!(outcome, CommitOutcome::Lost { taken: Some(_), .. } | CommitOutcome::Overtaken { left: None, .. }) {
            self.drop_transaction(next.transaction).await;
        }
        Ok(outcome)
    }

    /// The committed version, when one listing settles everything: it names the very object that the store made of our request,
    /// by its entity tag, and nothing above it. Reading it back would tell no more. `None` settles nothing.
    async fn seen_newest(&self, next: &NextVersion<'_>, tag: &str) -> Option<Table> {
        // A store that lets writers replace each other's objects may list what another one wrote with the same tag; one whose
        // listing told no tag of the version before will tell none of ours.
        if self.store().commits_anyway() || !self.listed_tag().is_some_and(is_strong) {
            return None;
        }
        let size = next.manifest.len() as u64;
        let listed = (created_newest(self, next.version, size, tag).await?, size);
        let file = ManifestFile::parse(&manifest_path(self.naming(), next.version), &next.manifest).ok()?;
        self.adopt_listed(file, next.manifest.clone(), listed).ok()
    }

    /// What a version that carries our transaction amounts to: it counts only as part of the history.
    pub(super) async fn placed(&self, table: Table, transaction: &Transaction, size: Option<u64>) -> CommitOutcome {
        let version = table.version();
        let manifest = &table.manifest().manifest;
        match place_of(self, &Ours { version, transaction, manifest, size }).await {
            Place::InHistory => CommitOutcome::Landed(table),
            // Nobody but us can have made it, and nobody builds on it.
            Place::Overtaken(by) => {
                let path = table.manifest_path();
                CommitOutcome::Overtaken { by, left: self.store().delete(&path).await.is_err().then_some(path) }
            }
            Place::Unclear(why) => CommitOutcome::Unknown(not_known(&transaction.uuid, version, &why)),
        }
    }

    /// Whose is `version`? Reads it back until that is certain, at most three times.
    async fn resolve(&self, uuid: &str, version: u64, clue: Option<String>, sent: Sent) -> CommitOutcome {
        let answered = sent != Sent::Unanswered;
        let mut last = None;
        for attempt in 0..TRIES {
            if attempt > 0 {
                let wait = WAIT_MS << attempt.min(4);
                self.store().env().sleep(wait).await;
            }
            match owner(self.store(), self.naming(), version).await {
                Ok(Some((file, Some(owner)))) if owner.eq_ignore_ascii_case(uuid) => {
                    return match self.adopt(file) {
                        Ok(table) => CommitOutcome::Landed(table),
                        Err(error) => CommitOutcome::Unknown(error.with_changed(Changed::Committed)),
                    };
                }
                Ok(Some((_, Some(_)))) if sent != Sent::Taken && !matches!(is_still_there(self).await, Ok(true)) => {
                    return CommitOutcome::Unknown(not_known(uuid, version, &taken_later(version)));
                }
                Ok(Some((file, Some(_)))) => {
                    let why = clue.unwrap_or_else(|| "the store let another writer replace our manifest".to_owned());
                    return match self.adopt(file) {
                        Ok(table) => CommitOutcome::Lost { taken: Some(table), why, answered },
                        Err(error) => CommitOutcome::Unknown(not_known(uuid, version, error.message())),
                    };
                }
                // A version without a readable transaction is nobody's: not ours, as far as that can be known.
                Ok(Some((_, None))) => last = Some(format!("version {version} carries no transaction that can be read")),
                Ok(None) => last = Some(format!("version {version} is not there")),
                Err(error) => last = Some(error.message().to_owned()),
            }
            // An absent version after a refusal is a loss as soon as it stays absent.
            if attempt + 1 == TRIES
                && let (Some(clue), Ok(None)) = (&clue, owner(self.store(), self.naming(), version).await)
            {
                return CommitOutcome::Lost { taken: None, why: clue.clone(), answered };
            }
        }
        CommitOutcome::Unknown(not_known(uuid, version, &last.unwrap_or_default()))
    }
}

/// Why another's manifest under our number proves nothing.
pub(super) fn taken_later(version: u64) -> String {
    format!(
        "version {version} is another writer's, but what it would follow was cleaned up meanwhile: ours may have been there before, and \
         cleaned up too"
    )
}

fn transaction_path(transaction: &Transaction) -> String {
    format!("_transactions/{}", transaction.file_name())
}

fn not_known(uuid: &str, version: u64, why: &str) -> Error {
    Error::new(ErrorCode::CommitUnknown, why).with("version", version).with("transaction", uuid).with_changed(Changed::Unknown)
}

type Owned = Option<(ManifestFile, Option<String>)>;

/// The manifest of a version and the uuid of its transaction.
async fn owner(store: &Store, naming: Naming, version: u64) -> Result<Owned> {
    let fetched = match read_manifest(store, naming, version, None).await {
        Ok(fetched) => fetched,
        Err(error) if is_not_found(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let uuid = transaction_of(store, naming, &fetched.file).await?.map(|t| t.uuid);
    Ok(Some((fetched.file, uuid)))
}
