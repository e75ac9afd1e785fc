//! What a statement answers on a table: rows, or a plan.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::explain;
use super::options::{Given, Taking};
use super::show;
use super::statement::{Listing, Statement, Verb, parse};
use super::text::{Name, fault, pointed};
use crate::compaction::CompactionOptions;
use crate::error::{Error, ErrorCode, Result};
use crate::index::{IndexMethod, method_by_name, methods};
use crate::maintain::forecast::CompactionPlan;
#[cfg(not(feature = "full"))]
use crate::maintain::plan_compaction;
use crate::maintain::{CreateOptions, DropPlan, plan_create_index, plan_drop_index};
use crate::refresh::resolve::resolve;
use crate::refresh::{Absorb, RefreshOptions, RefreshPlan, plan_refresh};
#[cfg(feature = "full")]
use crate::rewrite::plan_compaction;
use crate::table::Table;

/// Options of statements, those of index methods aside.
const OF_STATEMENTS: [&str; 15] = [
    "num_segments",
    "absorb",
    "max_bytes",
    "train",
    "replace",
    "target_rows_per_fragment",
    "materialize_deletions",
    "materialize_deletions_threshold",
    "defer_index_remap",
    "excluded_fragment_ids",
    "max_source_fragments",
    "max_source_rows",
    "max_source_bytes",
    "max_rows_per_group",
    "max_bytes_per_file",
];

/// What a statement answers.
#[derive(Clone, Debug, Serialize)]
pub struct SqlAnswer {
    /// E.g. `REFRESH INDEX` or `SHOW VERSIONS`.
    pub statement: &'static str,
    /// Whether it was asked to explain only.
    pub explain: bool,
    /// Names of the columns of `rows`; none where there is a plan to run.
    pub columns: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// What to run, or what would be.
    pub plan: Option<SqlPlan>,
}

/// A plan of any kind.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum SqlPlan {
    /// It builds segments.
    Build(Box<RefreshPlan>),
    /// It drops an index.
    Drop(DropPlan),
    /// It compacts.
    Compact(Box<CompactionPlan>),
}

/// Reads a statement and answers it on `table`, which may also be called `alias`. Nothing is changed: what changes something
/// comes back as a plan.
///
/// # Errors
/// `SQL_SYNTAX` and `INVALID_ARGUMENT` with the place in the statement, and those of planning.
pub async fn answer(table: &Table, source: &str, alias: Option<&str>) -> Result<SqlAnswer> {
    let statement = parse(source)?;
    check_name(table, source, &statement.table, alias)?;
    let explain = statement.explain;
    let bound = Bound { table, source };
    let plan = |statement: &'static str, plan: SqlPlan| {
        let (columns, rows) = if explain { (explain::COLUMNS.to_vec(), explain::rows(&plan)) } else { Default::default() };
        Ok(SqlAnswer { statement, explain, columns, rows, plan: Some(plan) })
    };
    match statement {
        Statement { verb: Verb::Refresh { index }, with, .. } => {
            plan("REFRESH INDEX", SqlPlan::Build(Box::new(bound.refresh(&index, with).await?)))
        }
        Statement { verb: Verb::Create { index, method, column }, with, .. } => {
            plan("CREATE INDEX", SqlPlan::Build(Box::new(bound.create(&index, &method, &column, with).await?)))
        }
        Statement { verb: Verb::Drop { index }, .. } => {
            let dropped = plan_drop_index(table, &index.text).await.map_err(|error| pointed(error, source, index.place))?;
            plan("DROP INDEX", SqlPlan::Drop(dropped))
        }
        Statement { verb: Verb::Optimize, with, .. } => plan("OPTIMIZE", SqlPlan::Compact(Box::new(bound.optimize(with).await?))),
        Statement { verb: Verb::Show(listing), .. } if explain => {
            let (statement, costs) = match listing {
                Listing::Indexes => ("SHOW INDEXES", "from the manifest this handle has: no request"),
                Listing::Fragments => ("SHOW FRAGMENTS", "from the manifest this handle has: no request"),
                Listing::Segments => ("SHOW SEGMENTS", "from the manifest this handle has: no request"),
                Listing::Versions => ("SHOW VERSIONS", "one listing of the versions"),
            };
            let text = format!("{statement} of version {}, {costs}", table.version());
            Ok(SqlAnswer { statement, explain, columns: vec!["plan"], rows: vec![vec![json!(text)]], plan: None })
        }
        Statement { verb: Verb::Show(listing), .. } => {
            let (statement, columns, rows) = show::rows(table, listing).await?;
            Ok(SqlAnswer { statement, explain, columns, rows, plan: None })
        }
    }
}

/// The name a statement must use: the end of the table's address, with or without `.lance`, or the alias.
fn check_name(table: &Table, source: &str, given: &[Name], alias: Option<&str>) -> Result<()> {
    let uri = table.main_store().uri();
    let whole = uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let short = whole.strip_suffix(".lance").unwrap_or(&whole).to_owned();
    let (Some(last), first) = (given.last(), given.len().saturating_sub(2)) else { return Ok(()) };
    let two = given.get(first..).unwrap_or_default().iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".");
    let quoted = given.iter().any(|name| name.quoted);
    let same = |wanted: &str| {
        let equal = |text: &str| if quoted { text == wanted } else { text.to_lowercase() == wanted.to_lowercase() };
        equal(&last.text) || equal(&two)
    };
    if same(&short) || same(&whole) || alias.is_some_and(same) {
        return Ok(());
    }
    let also = alias.map(|alias| format!(" (or {alias})")).unwrap_or_default();
    let text = format!("the statement is about {}, and this table is {short}{also}; nothing was done", last.text);
    Err(fault(source, ErrorCode::InvalidArgument, &text, last.place).with("table", short))
}

struct Bound<'a> {
    table: &'a Table,
    source: &'a str,
}

impl Bound<'_> {
    async fn refresh(&self, index: &Name, with: Vec<Given>) -> Result<RefreshPlan> {
        let mut taking = Taking::new(self.source, with.clone());
        taking.refuse("train", "is not for a refresh, which always builds")?;
        for name in ["build_mode", "rows_per_range"] {
            taking.refuse(name, "is not for a refresh: it builds by fragments")?;
        }
        let segments = taking.whole("num_segments", 1)?;
        let absorb = match taking.word("absorb", &["none", "tiered", "all"])? {
            Some("tiered") => Absorb::Tiered,
            Some("all") => Absorb::All,
            _ => Absorb::None,
        };
        let max_bytes = taking.whole("max_bytes", 1)?;
        let schema = &self.table.manifest().manifest.schema;
        let indices = self.table.indices().await?;
        let method = resolve(indices, schema, &index.text).map(|resolved| resolved.method);
        let method = method.map_err(|error| pointed(error, self.source, index.place))?;
        let params = self.params(taking, method)?;
        let options = RefreshOptions { segments, absorb, max_bytes, params };
        plan_refresh(self.table, &index.text, options).await.map_err(|error| self.blame(error, &with, index))
    }

    async fn create(&self, index: &Name, method: &Name, column: &[Name], with: Vec<Given>) -> Result<RefreshPlan> {
        let mut taking = Taking::new(self.source, with.clone());
        let known = method_by_name(&method.text).map_err(|error| pointed(error, self.source, method.place))?;
        let segments = taking.whole("num_segments", 1)?;
        let train = taking.truth("train")?.unwrap_or(true);
        let replace = taking.truth("replace")?.unwrap_or(false);
        let max_bytes = taking.whole("max_bytes", 1)?;
        let params = self.params(taking, known)?;
        let parts: Vec<String> = column.iter().map(|name| crate::format::schema::quote(&name.text)).collect();
        let options = CreateOptions { segments, max_bytes, params, train, replace };
        plan_create_index(self.table, &index.text, &parts.join("."), known.name(), options).await.map_err(|error| {
            let at_column = matches!(error.code(), ErrorCode::ColumnNotFound | ErrorCode::UnsupportedType);
            self.blame(error, &with, column.first().filter(|_| at_column).unwrap_or(index))
        })
    }

    async fn optimize(&self, with: Vec<Given>) -> Result<CompactionPlan> {
        let mut taking = Taking::new(self.source, with.clone());
        let options = CompactionOptions {
            target_rows_per_fragment: taking.whole("target_rows_per_fragment", 1)?,
            materialize_deletions: taking.truth("materialize_deletions")?,
            materialize_deletions_threshold: taking.fraction("materialize_deletions_threshold")?,
            defer_index_remap: taking.truth("defer_index_remap")?,
            excluded_fragment_ids: taking.ids("excluded_fragment_ids")?,
            max_source_fragments: taking.whole("max_source_fragments", 1)?,
            max_source_rows: taking.whole("max_source_rows", 1)?,
            max_source_bytes: taking.whole("max_source_bytes", 1)?,
            max_rows_per_group: taking.whole("max_rows_per_group", 0)?,
            max_bytes_per_file: taking.whole("max_bytes_per_file", 0)?,
            batch_size: taking.whole("batch_size", 1)?,
            num_threads: taking.whole("num_threads", 1)?,
        };
        taking.rest(&[], &all_options(), "OPTIMIZE")?;
        plan_compaction(self.table, &options).await.map_err(|error| self.blame_option(error, &with))
    }

    /// What is left of the options, as parameters of a method.
    fn params(&self, taking: Taking<'_>, method: &dyn IndexMethod) -> Result<Map<String, Value>> {
        let mut params = Map::new();
        for option in taking.rest(&method.param_names(), &all_options(), &format!("a {} index", method.name()))? {
            params.insert(option.name, option.value);
        }
        Ok(params)
    }

    /// Points at the option an error is about, else at a name.
    fn blame(&self, error: Error, with: &[Given], name: &Name) -> Error {
        let error = self.blame_option(error, with);
        if error.detail().contains_key("excerpt") { error } else { pointed(error, self.source, name.place) }
    }

    fn blame_option(&self, error: Error, with: &[Given]) -> Error {
        let key = error.detail().get("key").and_then(Value::as_str);
        // Not every error about a value has the name in its detail; all have it in their sentence.
        let about = |option: &&Given| key.map_or_else(|| error.message().contains(&option.name), |key| key == option.name);
        match with.iter().find(about) {
            Some(option) if error.code() == ErrorCode::InvalidArgument => {
                let place = option.value_place;
                pointed(error, self.source, place)
            }
            _ => error,
        }
    }
}

fn all_options() -> Vec<String> {
    let mut all: Vec<String> = OF_STATEMENTS.iter().map(|name| (*name).to_owned()).collect();
    all.extend(methods().iter().flat_map(|method| method.param_names()));
    all
}
