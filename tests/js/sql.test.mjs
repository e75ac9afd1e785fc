// Statements: sixty that are answered and sixty that are not, through the package; some of them through the command.
import assert from "node:assert/strict";
import test from "node:test";
import { open, WhetstoneError } from "whetstone";
import { command, copyTable, expected } from "./support.mjs";

const NAME = "fragments_one_wide";
const said = expected(NAME);
const T = NAME;
const FRAGMENTS = said.fragments.length;

// [statement, what it is, rows or a test of the result]
const SHOWN = [
  [`SHOW INDEXES FROM ${T}`, "SHOW INDEXES", said.indices.length],
  [`SHOW INDEXES IN ${T}`, "SHOW INDEXES", said.indices.length],
  [`show indexes from ${T};`, "SHOW INDEXES", said.indices.length],
  [`Show Indexes In ${T.toUpperCase()}`, "SHOW INDEXES", said.indices.length],
  [`SHOW INDEXES FROM lance.db.${T}`, "SHOW INDEXES", said.indices.length],
  [`SHOW INDEXES FROM "${T}"`, "SHOW INDEXES", said.indices.length],
  [`SHOW INDEXES FROM \`${T}\``, "SHOW INDEXES", said.indices.length],
  [`SHOW INDEXES FROM \`db\`."${T}"`, "SHOW INDEXES", said.indices.length],
  [`SHOW INDEXES FROM ${T}.lance`, "SHOW INDEXES", said.indices.length],
  [`SHOW INDEXES FROM "${T}.lance"`, "SHOW INDEXES", said.indices.length],
  [`SHOW INDEXES FROM db.other_name`, "SHOW INDEXES", said.indices.length],
  [`-- what is there\nSHOW INDEXES FROM ${T} -- please`, "SHOW INDEXES", said.indices.length],
  [`SHOW /* all */ INDEXES\n  FROM\n  ${T}\n;\n`, "SHOW INDEXES", said.indices.length],
  [`SHOW FRAGMENTS FROM ${T}`, "SHOW FRAGMENTS", FRAGMENTS],
  [`SHOW FRAGMENTS IN ${T}`, "SHOW FRAGMENTS", FRAGMENTS],
  [`SHOW VERSIONS FROM ${T}`, "SHOW VERSIONS", said.version],
  [`SHOW VERSIONS IN db.${T};`, "SHOW VERSIONS", said.version],
  [`SHOW SEGMENTS FROM ${T}`, "SHOW SEGMENTS", said.indices.reduce((sum, index) => sum + index.segments.length, 0)],
  [`SHOW SEGMENTS IN ${T}`, "SHOW SEGMENTS", said.indices.reduce((sum, index) => sum + index.segments.length, 0)],
  [`EXPLAIN SHOW INDEXES FROM ${T}`, "SHOW INDEXES", 1],
  [`EXPLAIN SHOW FRAGMENTS FROM ${T}`, "SHOW FRAGMENTS", 1],
  [`EXPLAIN SHOW VERSIONS FROM ${T}`, "SHOW VERSIONS", 1],
  [`EXPLAIN SHOW SEGMENTS FROM ${T}`, "SHOW SEGMENTS", 1],
];

const INDEX = said.indices.find((index) => index.type === "BTree").name;
const refresh = (with_ = "") => `ALTER TABLE ${T} REFRESH INDEX ${INDEX}${with_}`;
const create = (with_ = "", method = "BTREE") => `CREATE INDEX n ON ${T} USING ${method} (k)${with_}`;
const runs = (n) => (plan) => assert.equal(plan.runs.length, n);
const params = (wanted) => (plan) => assert.deepEqual({ ...plan.index.params, ...wanted }, plan.index.params);
const option = (name, value) => (plan) => assert.deepEqual(plan.options[name], value);

// Only explained: what they would do is in the plan.
const EXPLAINED = [
  [refresh(), () => {}],
  [`alter table ${T} refresh index ${INDEX.toUpperCase()}`, (plan) => assert.equal(plan.index.name, INDEX)],
  [`ALTER TABLE a.b.${T} REFRESH INDEX "${INDEX}"`, () => {}],
  [refresh(" WITH (num_segments = 3, absorb = true)"), runs(3)],
  [refresh(" WITH (NUM_SEGMENTS = '2', Absorb = 'ALL')"), runs(2)],
  [refresh(" WITH (absorb = FALSE)"), () => {}],
  [refresh(" WITH (absorb = 'tiered')"), () => {}],
  [refresh(" WITH (max_bytes = 100000000)"), () => {}],
  [refresh(" with (zone_size = 500, absorb = 'all')"), params({ zone_size: 500 })],
  [refresh(" WITH (\"zone_size\" = '500', absorb = 'all')"), () => {}],
  [create(), (plan) => assert.deepEqual(plan.create, { train: true, replace: false })],
  [create(" WITH (num_segments = 2)"), runs(2)],
  [create(" WITH (Train = false)"), (plan) => assert.equal(plan.create.train, false)],
  [create(" WITH (train = 'FALSE', replace = 'true')"), (plan) => assert.deepEqual(plan.create, { train: false, replace: true })],
  [create("", "btree"), () => {}],
  [create(" WITH (rows_per_zone = 100)", "ZoneMap"), params({ rows_per_zone: 100 })],
  [create(" WITH (rows_per_zone = 100, use_seeds = false)", "zonemap"), () => {}],
  [create(" WITH (number_of_items = 64, probability = 0.25)", "BLOOMFILTER"), params({ probability: 0.25 })],
  [create("", "BITMAP"), () => {}],
  [`CREATE INDEX "odd name" ON TABLE ${T} USING BTREE ("k")`, (plan) => assert.equal(plan.index.name, "odd name")],
  [`ALTER TABLE ${T} CREATE INDEX n USING BTREE (k) WITH (zone_size = 100)`, params({ zone_size: 100 })],
  [`DROP INDEX ${INDEX} ON ${T}`, (plan) => assert.equal(plan.kind, "drop_index")],
  [`ALTER TABLE ${T} DROP INDEX ${INDEX}`, (plan) => assert.equal(plan.kind, "drop_index")],
  [`DROP INDEX ${INDEX.toUpperCase()} ON TABLE db.${T};`, (plan) => assert.equal(plan.index.name, INDEX)],
  [`OPTIMIZE ${T}`, option("target_rows_per_fragment", 1048576)],
  [`OPTIMIZE TABLE ${T}`, () => {}],
  [`OPTIMIZE ${T} WITH (target_rows_per_fragment = 1000)`, option("target_rows_per_fragment", 1000)],
  [`OPTIMIZE ${T} WITH (Target_Rows_Per_Fragment = '1000')`, option("target_rows_per_fragment", 1000)],
  [`OPTIMIZE ${T} WITH (materialize_deletions = FALSE)`, option("materialize_deletions", false)],
  [`OPTIMIZE ${T} WITH (materialize_deletions_threshold = 0.5)`, option("materialize_deletions_threshold", 0.5)],
  [`OPTIMIZE ${T} WITH (materialize_deletions_threshold = -1)`, option("materialize_deletions_threshold", -1)],
  [`OPTIMIZE ${T} WITH (defer_index_remap = 'true')`, option("defer_index_remap", true)],
  [`OPTIMIZE ${T} WITH (excluded_fragment_ids = '0, 2')`, option("excluded_fragment_ids", [0, 2])],
  [`OPTIMIZE ${T} WITH (excluded_fragment_ids = 1)`, option("excluded_fragment_ids", [1])],
  [`OPTIMIZE ${T} WITH (max_source_fragments = 3, max_source_rows = 1000, max_source_bytes = 1000000)`, option("max_source_fragments", 3)],
  [`OPTIMIZE ${T} WITH (max_rows_per_group = 10, max_bytes_per_file = 1, batch_size = 5, num_threads = 1)`, () => {}],
];

// [statement, code, column of the caret, what the sentence says]
const BAD = [
  ["", "SQL_SYNTAX", 1, /expected ALTER, CREATE, DROP, OPTIMIZE or SHOW/],
  [";", "SQL_SYNTAX", 1, /expected ALTER/],
  ["EXPLAIN", "SQL_SYNTAX", 8, /the statement ends/],
  ["EXPLAIN EXPLAIN SHOW INDEXES FROM t", "SQL_SYNTAX", 9, /found EXPLAIN/],
  ["SELECT 1", "SQL_SYNTAX", 1, /found SELECT/],
  ["SHOW", "SQL_SYNTAX", 5, /INDEXES, FRAGMENTS, VERSIONS or SEGMENTS/],
  [`SHOW INDEX FROM ${T}`, "SQL_SYNTAX", 6, /found INDEX/],
  [`SHOW INDEXES ${T}`, "SQL_SYNTAX", 14, /expected FROM or IN/],
  ["SHOW INDEXES FROM", "SQL_SYNTAX", 18, /the name of a table/],
  [`SHOW INDEXES FROM ${T} WITH (a = 1)`, "SQL_SYNTAX", 38, /the end of the statement/],
  [`SHOW INDEXES FROM ${T} ${T}`, "SQL_SYNTAX", 38, /the end of the statement/],
  [`SHOW INDEXES FROM ${T}; SHOW INDEXES FROM ${T}`, "SQL_SYNTAX", 39, /the end of the statement/],
  ["SHOW INDEXES FROM other", "INVALID_ARGUMENT", 19, /about other/],
  [`SHOW INDEXES FROM ${T}.db`, "INVALID_ARGUMENT", 38, /about db/],
  [`SHOW INDEXES FROM "${T.toUpperCase()}"`, "INVALID_ARGUMENT", 19, /this table is/],
  [`SHOW INDEXES FROM ${T}.`, "SQL_SYNTAX", 38, /a name behind the period/],
  [`SHOW INDEXES FROM .${T}`, "SQL_SYNTAX", 19, /the name of a table/],
  [`SHOW INDEXES FROM '${T}'`, "SQL_SYNTAX", 19, /the name of a table/],
  [`SHOW INDEXES FROM "${T}`, "SQL_SYNTAX", 19, /./],
  ["SHOW INDEXES FROM 'x", "SQL_SYNTAX", 19, /[Uu]nterminated/],
  ["SHOW /* INDEXES FROM t", "SQL_SYNTAX", 23, /comment/],
  [`ALTER ${T} REFRESH INDEX ${INDEX}`, "SQL_SYNTAX", 7, /expected TABLE/],
  [`ALTER TABLE REFRESH INDEX ${INDEX}`, "SQL_SYNTAX", 21, /REFRESH, CREATE or DROP/],
  [`ALTER TABLE ${T} REBUILD INDEX ${INDEX}`, "SQL_SYNTAX", 32, /REFRESH, CREATE or DROP/],
  [`ALTER TABLE ${T} REFRESH ${INDEX}`, "SQL_SYNTAX", 40, /expected INDEX/],
  [`ALTER TABLE ${T} REFRESH INDEX`, "SQL_SYNTAX", 45, /the name of an index/],
  [`ALTER TABLE ${T} REFRESH INDEX 7`, "SQL_SYNTAX", 46, /the name of an index/],
  [`ALTER TABLE ${T} REFRESH INDEX nothing_like_it`, "INDEX_NOT_FOUND", 46, /nothing_like_it/],
  [refresh(" (num_segments = 1)"), "SQL_SYNTAX", 47 + INDEX.length, /WITH or the end/],
  [refresh(" WITH num_segments = 1"), "SQL_SYNTAX", 52 + INDEX.length, /expected \(/],
  [refresh(" WITH ()"), "SQL_SYNTAX", 53 + INDEX.length, /the name of an option/],
  [refresh(" WITH (num_segments)"), "SQL_SYNTAX", 65 + INDEX.length, /expected =/],
  [refresh(" WITH (num_segments = )"), "SQL_SYNTAX", 68 + INDEX.length, /a number, a text/],
  [refresh(" WITH (num_segments = 1"), "SQL_SYNTAX", 69 + INDEX.length, /, or \)/],
  [refresh(" WITH (num_segments = 1,)"), "SQL_SYNTAX", 70 + INDEX.length, /the name of an option/],
  [refresh(" WITH (num_segments = 1 absorb = true)"), "SQL_SYNTAX", 70 + INDEX.length, /, or \)/],
  [refresh(" WITH (num_segments == 1)"), "SQL_SYNTAX", 66 + INDEX.length, /expected =/],
  [refresh(" WITH (num_segments = many)"), "SQL_SYNTAX", 68 + INDEX.length, /a number, a text/],
  [refresh(" WITH (num_segments = \"8\")"), "SQL_SYNTAX", 68 + INDEX.length, /a number, a text/],
  [refresh(" WITH (num_segments = 1, NUM_SEGMENTS = 2)"), "SQL_SYNTAX", 71 + INDEX.length, /given twice/],
  [refresh(" WITH (num_segments = 0)"), "INVALID_ARGUMENT", 68 + INDEX.length, /at least 1, not 0/],
  [refresh(" WITH (num_segments = -1)"), "INVALID_ARGUMENT", 68 + INDEX.length, /not -1/],
  [refresh(" WITH (num_segments = 1.5)"), "INVALID_ARGUMENT", 68 + INDEX.length, /whole number/],
  [refresh(" WITH (num_segments = 'eight')"), "INVALID_ARGUMENT", 68 + INDEX.length, /eight/],
  [refresh(" WITH (num_segments = true)"), "INVALID_ARGUMENT", 68 + INDEX.length, /whole number/],
  [refresh(" WITH (num_segments = 99999999999999999999)"), "SQL_SYNTAX", 68 + INDEX.length, /is no number that can be used/],
  [refresh(" WITH (absorb = 'some')"), "INVALID_ARGUMENT", 62 + INDEX.length, /none, tiered or all/],
  [refresh(" WITH (train = false)"), "INVALID_ARGUMENT", 53 + INDEX.length, /train is not for a refresh/],
  [refresh(" WITH (build_mode = 'range')"), "INVALID_ARGUMENT", 53 + INDEX.length, /build_mode/],
  [refresh(" WITH (rows_per_range = 5)"), "INVALID_ARGUMENT", 53 + INDEX.length, /rows_per_range/],
  [refresh(" WITH (segments = 5)"), "INVALID_ARGUMENT", 53 + INDEX.length, /has no option segments/],
  [refresh(" WITH (rows_per_zone = 5)"), "INVALID_ARGUMENT", 53 + INDEX.length, /means nothing to a BTREE index/],
  [refresh(" WITH (zone_size = 0)"), "INVALID_ARGUMENT", 65 + INDEX.length, /zone_size/],
  [`CREATE INDEX ON ${T} USING BTREE (k)`, "SQL_SYNTAX", 17, /expected ON/],
  [`CREATE INDEX n ${T} USING BTREE (k)`, "SQL_SYNTAX", 16, /expected ON/],
  [`CREATE INDEX n ON ${T} (k)`, "SQL_SYNTAX", 38, /expected USING/],
  [create("", "IVF_PQ"), "UNSUPPORTED_METHOD", 44, /optimize_indices/],
  [create("", "QUADTREE"), "UNSUPPORTED_METHOD", 44, /QUADTREE/],
  [`CREATE INDEX n ON ${T} USING BTREE k`, "SQL_SYNTAX", 50, /expected \(/],
  [`CREATE INDEX n ON ${T} USING BTREE (k, id)`, "SQL_SYNTAX", 52, /one column/],
  [`CREATE INDEX n ON ${T} USING BTREE (nope)`, "COLUMN_NOT_FOUND", 51, /nope/],
  [`CREATE INDEX ${INDEX} ON ${T} USING BTREE (k)`, "INDEX_EXISTS", 14, /already/],
  [create(" WITH (target_rows_per_fragment = 5)"), "INVALID_ARGUMENT", 60, /means nothing to a BTREE index/],
  [create(" WITH (zone_size = 5)", "BITMAP"), "INVALID_ARGUMENT", 61, /means nothing to a BITMAP index/],
  [`DROP INDEX ON ${T}`, "SQL_SYNTAX", 15, /expected ON/],
  [`DROP INDEX nothing_like_it ON ${T}`, "INDEX_NOT_FOUND", 12, /nothing_like_it/],
  [`DROP TABLE ${T}`, "SQL_SYNTAX", 6, /expected INDEX/],
  [`OPTIMIZE ${T} WITH (num_segments = 2)`, "INVALID_ARGUMENT", 35, /means nothing to OPTIMIZE/],
  [`OPTIMIZE ${T} WITH (max_source_rows = 0)`, "INVALID_ARGUMENT", 53, /at least 1/],
  [`OPTIMIZE ${T} WITH (excluded_fragment_ids = 'a')`, "INVALID_ARGUMENT", 59, /fragment ids/],
  [`OPTIMIZE ${T} WHERE k = 1`, "SQL_SYNTAX", 29, /WITH or the end/],
];

test("as many statements as promised", () => {
  const statements = [...SHOWN, ...EXPLAINED, ...BAD].map(([statement]) => statement);
  assert.equal(new Set(statements).size, statements.length);
  assert.ok(SHOWN.length + EXPLAINED.length + 4 >= 60, `${SHOWN.length + EXPLAINED.length} good ones, and those that are run`);
  assert.ok(BAD.length >= 60, `${BAD.length} bad ones`);
});

test("what is listed", async (t) => {
  const table = await open(copyTable(t, NAME));
  for (const [statement, kind, count] of SHOWN) {
    const result = await table.sql(statement, { alias: "other_name" });
    assert.deepEqual([result.statement, result.rows.length, result.plan, result.report], [kind, count, null, null], statement);
    for (const row of result.rows) assert.equal(row.length, result.columns.length, statement);
  }
  const { columns, rows } = await table.sql(`SHOW INDEXES FROM ${T}`);
  const shown = Object.fromEntries(columns.map((name, at) => [name, rows[0][at]]));
  const index = (await table.indexes())[0];
  assert.deepEqual([shown.name, shown.num_segments, shown.size_bytes, shown.indexed_percent], [index.name, index.num_segments, index.size_bytes, index.indexed_percent]);
});

test("what would be done", async (t) => {
  const table = await open(copyTable(t, NAME));
  for (const [statement, check] of EXPLAINED) {
    const result = await table.sql(`EXPLAIN ${statement}`).catch((error) => { throw new Error(`${statement}: ${error.message}`); });
    assert.deepEqual([result.explain, result.report], [true, null], statement);
    assert.deepEqual(result.columns, ["action", "object", "fragments", "rows", "why"], statement);
    try { check(result.plan); } catch (error) { throw new Error(`${statement}: ${error.message}`); }
  }
  assert.equal(await table.reload(), false, "nothing was committed");
});

test("what is not understood, and where", async (t) => {
  const table = await open(copyTable(t, NAME));
  for (const [statement, code, column, text] of BAD) {
    const error = await table.sql(statement).then(() => assert.fail(`accepted: ${statement}`), (failure) => failure);
    assert.ok(error instanceof WhetstoneError, `${statement}: ${error.message}`);
    assert.deepEqual([error.code, error.detail.column], [code, column], `${statement}: ${error.message}\n${error.detail.excerpt}`);
    assert.match(error.message, text, statement);
    const lines = error.detail.excerpt.split("\n");
    assert.equal(lines.length, 2);
    assert.equal(lines[1].indexOf("^"), lines[1].length - 1);
    assert.equal(error.changed, "nothing");
  }
  assert.equal(await table.reload(), false);
});

test("the line of the caret, and what is too long", async (t) => {
  const table = await open(copyTable(t, NAME));
  const split = await table.sql(`SHOW INDEXES\n  FRM ${T}`).catch((error) => error);
  assert.deepEqual([split.detail.line, split.detail.column, split.detail.excerpt], [2, 3, `  FRM ${T}\n  ^`]);
  await assert.rejects(table.sql(`SHOW INDEXES FROM ${"x".repeat(70_000)}`), { code: "SQL_SYNTAX" });
  const far = await table.sql(`SHOW INDEXES ${" ".repeat(500)}FRM ${T}`).catch((error) => error);
  assert.ok(far.detail.excerpt.split("\n")[0].length <= 120);
});

test("statements that change the table change it", async (t) => {
  const table = await open(copyTable(t, NAME));
  const before = table.version;
  const created = await table.sql(create(" WITH (num_segments = 2)"));
  assert.deepEqual([created.rows[0][0], created.report.segments_added, table.version], ["n", 2, before + 1]);
  const refreshed = await table.sql(refresh(" WITH (absorb = true, num_segments = 1)"));
  assert.equal(refreshed.statement, "REFRESH INDEX");
  assert.deepEqual((await table.index(INDEX)).unindexed_fragments, []);
  const dropped = await table.sql(`DROP INDEX n ON ${T}`);
  assert.equal(dropped.report.segments_removed, 2);
  assert.ok(!(await table.indexes()).some((index) => index.name === "n"));
  const compacted = await table.sql(`OPTIMIZE ${T}`);
  assert.deepEqual([compacted.columns[0], compacted.rows[0][0], table.version], ["fragments_removed", compacted.report.fragments_removed.length, compacted.report.version]);
  assert.ok(compacted.report.fragments_removed.length > compacted.report.fragments_added.length);
});

test("the command answers statements too", async (t) => {
  const target = copyTable(t, NAME);
  const shown = await command(["sql", target, `SHOW INDEXES FROM ${T}`, "--json"]);
  assert.equal(JSON.parse(shown.stdout).rows.length, said.indices.length);
  const made = await command(["sql", target, create(), "--json", "--quiet"]);
  assert.equal(made.status, 0, made.stderr);
  assert.equal(JSON.parse(made.stdout).report.version, said.version + 1);
  const text = await command(["sql", target, `SHOW FRAGMENTS FROM mine`, "--alias", "mine"]);
  assert.equal(text.stdout.trimEnd().split("\n").length, FRAGMENTS + 1);
  const wrong = await command(["sql", target, `SHOW INDX FROM ${T}`]);
  assert.equal(wrong.status, 1);
  assert.match(wrong.stderr, /\n {2}SHOW INDX FROM .*\n {7}\^\n$/);
});
