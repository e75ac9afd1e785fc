//! Time to decode one column of tables: `cargo bench --bench decode -- ROUNDS FOLDER…` prints a JSON object, folder → seconds
//! (best of the rounds), rows and bytes. `tests/bench/decode.py` makes the tables and compares. Prints, never judges.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use futures::executor::block_on;
use serde_json::{Value, json};
use whetstone::env;
use whetstone::store::{HostStore, LocalIo, Store, StoreKind};
use whetstone::table::values::{ColumnRequest, ColumnValues};
use whetstone::table::{At, Table};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let rounds: u32 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let mut answer = BTreeMap::new();
    for folder in arguments {
        let io = Arc::new(LocalIo::new(std::path::Path::new(&folder)));
        let store = Store::new(Arc::new(HostStore::new(io)), Default::default(), StoreKind::Host, env::system());
        let table = block_on(Table::open(store, At::Latest, None))?;
        answer.insert(folder, timed(&table, rounds).unwrap_or_else(|error| json!({ "refused": error.code().as_str() })));
    }
    println!("{}", json!(answer));
    Ok(())
}

/// Best of the rounds.
fn timed(table: &Table, rounds: u32) -> whetstone::Result<Value> {
    let mut best = f64::INFINITY;
    let (mut rows, mut bytes) = (0, 0);
    for _ in 0..rounds {
        let start = Instant::now();
        (rows, bytes) = block_on(ColumnValues::new(table, "v", ColumnRequest::default())?.count())?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(json!({ "seconds": best, "rows": rows, "bytes": bytes }))
}
