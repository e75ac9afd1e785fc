//! A fixture table in memory that several writers change at once.
#![allow(dead_code)] // every test binary uses its own part
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use object_store::memory::InMemory;
use whetstone::env::TestEnv;
use whetstone::format::index_metadata::IndexMetadata;
use whetstone::format::next_manifest::NextManifest;
use whetstone::format::transaction::Transaction;
use whetstone::store::{Store, StoreKind};
use whetstone::table::commit::{CommitOutcome, NextVersion};
use whetstone::table::{At, Table};

use super::Fixture;

/// A fixture table in memory that several writers can open.
pub struct Shared {
    memory: Arc<InMemory>,
}

impl Shared {
    /// The fixture of that name.
    pub fn new(name: &str) -> Shared {
        Shared::of(&Fixture::table(name))
    }

    /// A copy of that fixture.
    pub fn of(fixture: &Fixture) -> Shared {
        let shared = Shared { memory: Arc::new(InMemory::new()) };
        let store = shared.store(0);
        for file in super::files_below(&fixture.path, "") {
            let relative = file.strip_prefix(&fixture.path).unwrap().to_str().unwrap();
            block_on(store.put(relative, vec![Bytes::from(std::fs::read(&file).unwrap())])).unwrap();
        }
        shared
    }

    /// Each writer has its own clock, uuids and request counts.
    pub fn store(&self, writer: u64) -> Store {
        let env = Arc::new(TestEnv::new(1_800_000_000_000, 1 + writer));
        Store::new(self.memory.clone(), Default::default(), StoreKind::Memory, env)
    }

    /// The memory itself, for a writer with a clock of its own.
    pub fn memory(&self) -> Arc<InMemory> {
        self.memory.clone()
    }

    /// The latest version as that writer sees it.
    pub fn open(&self, writer: u64) -> Table {
        block_on(Table::open(self.store(writer), At::Latest, None)).unwrap()
    }
}

/// Replaces the index section, as any writer may.
pub fn rewrite(table: &Table, change: impl FnOnce(&mut Vec<IndexMetadata>)) -> Table {
    let table = block_on(table.latest()).unwrap();
    let before = table.manifest().indices.clone();
    let mut section = before.clone();
    change(&mut section);
    let new = section.iter().filter(|e| !before.contains(e)).cloned().collect();
    let removed = before.iter().filter(|e| !section.contains(e)).cloned().collect();
    let transaction = Transaction::create_index(table.version(), table.store().env().uuid(), new, removed);
    let manifest = NextManifest {
        base: table.manifest(),
        indices: section,
        transaction: &transaction,
        transaction_file: transaction.file_name(),
        now_ms: 1_800_000_000_000,
        fragments: None,
    };
    let next = NextVersion { version: table.version() + 1, manifest: manifest.encode().unwrap(), transaction: &transaction };
    match block_on(table.put_next(next)).unwrap() {
        CommitOutcome::Landed(table) => table,
        other => panic!("{other:?}"),
    }
}
