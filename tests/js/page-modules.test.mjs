// The page's geometry, colours, words and address, without a browser.
import assert from "node:assert/strict";
import test from "node:test";
import { corsRules } from "whetstone/rules";
import { pageModules } from "../support/page_modules.mjs";

const axis = await pageModules("map/axis");
const { makeLayout, coverRuns, UNCOVERED, UNKNOWN } = await pageModules("map/model");
const { makeGroups, groupsIn } = await pageModules("map/groups");
const pyramid = await pageModules("map/pyramid");
const strip = await pageModules("map/strip");
const { assignColours, hash, HUES, SLOTS, SEGMENT_COLOURS, SEGMENT_EDGES } = await pageModules("map/palette");
const { luminance, readable } = await pageModules("map/theme");
const { laneBoxes, lanesHeight, laneAtY } = await pageModules("map/lanes");
const format = await pageModules("lib/format");
const url = await pageModules("lib/url");
const { healthLines, layoutLine } = await pageModules("lib/health");
const { explain, rulesFor } = await pageModules("lib/errors", "lib/cors");
const { find } = await pageModules("lib/search");
const jobs = await pageModules("jobs/choice", "jobs/words");
const { sortContents } = await pageModules("inside/contents");
const { diffVersions, isSame } = await pageModules("versions/diff");
const historyGraph = await pageModules("history/graph");
const listing = await pageModules("inside/listing");
const commits = await pageModules("lib/commits");
const recent = await pageModules("lib/recent");
const progress = await pageModules("jobs/progress");

const THIN = "\u202f";

/** A seeded generator, so that a failing case can be run again. */
function random(seed) {
  let s = seed >>> 0;
  return () => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return s / 2 ** 32;
  };
}

function segment(uuid, ids, live, extra = {}) {
  const alive = new Set(live);
  return {
    uuid, fragment_ids: ids, effective_fragment_ids: ids?.filter((i) => alive.has(i)) ?? null, retired_fragment_ids: ids?.filter((i) => !alive.has(i)) ?? null,
    dataset_version: 1, index_version: 0, created_at: null, size_bytes: 1, files: null, base_id: null, status: "", status_reason: null, ...extra,
  };
}

function index(name, segments, live, extra = {}) {
  const covered = new Set(segments.flatMap((s) => s.effective_fragment_ids ?? []));
  const known = segments.every((s) => s.fragment_ids !== null);
  return {
    name, type: "BTree", type_url: "", fields: [1], field_names: ["k"], num_segments: segments.length, indexed_percent: 50, coverage_known: known,
    size_bytes: 1, num_rows_indexed: 1, num_rows_unindexed: 1, covered_live_fragments: [...covered], unindexed_fragments: live.filter((i) => !covered.has(i)), segments, ...extra,
  };
}

function columns(ids, rows = ids.map(() => 10), deleted = ids.map(() => 0)) {
  return {
    ids: Uint32Array.from(ids), physical_rows: Float64Array.from(rows), deleted_rows: Float64Array.from(deleted), bytes: Float64Array.from(rows), files: new Uint32Array(ids.length), coverage: [],
  };
}

const uuid = (n) => `${n.toString(16).padStart(8, "0")}-0000-4000-8000-000000000000`;

test("an axis has a place for every fragment, also for those without rows", () => {
  const a = axis.makeAxis(Uint32Array.of(1, 4, 9), Float64Array.of(100, 0, 300), "rows", []);
  assert.deepEqual([...a.starts], [0, 100, 300, 600]);
  const e = axis.makeAxis(Uint32Array.of(1, 4, 9), Float64Array.of(100, 0, 300), "equal", []);
  assert.deepEqual([...e.starts], [0, 1, 2, 3]);
  const unknown = axis.makeAxis(Uint32Array.of(1, 2), Float64Array.of(NaN, 50), "rows", []);
  assert.deepEqual([...unknown.starts], [0, 50, 100]);
  const none = axis.makeAxis(new Uint32Array(0), new Float64Array(0), "rows", []);
  assert.ok(none.total > 0);
  assert.equal(axis.fragmentAt(none, 0), -1);
});

test("retired ids lie beyond the axis and never take much of it", () => {
  const ids = Uint32Array.from({ length: 100 }, (_, i) => i);
  const rows = new Float64Array(100).fill(10);
  const few = axis.makeAxis(ids, rows, "rows", [200, 201]);
  assert.ok(few.ghostStart > few.starts[100]);
  assert.equal(few.ghostWidth, 10);
  const many = axis.makeAxis(ids, rows, "rows", Array.from({ length: 100_000 }, (_, i) => 1000 + i));
  assert.ok(many.total < many.starts[100] * 1.11, `${many.total}`);
});

test("positions and fragments invert each other at random", () => {
  const next = random(7);
  for (let round = 0; round < 200; round += 1) {
    const n = 1 + Math.floor(next() * 50);
    const ids = Uint32Array.from({ length: n }, (_, i) => i * 3 + 1);
    const a = axis.makeAxis(ids, Float64Array.from({ length: n }, () => Math.floor(next() * 100)), next() < 0.5 ? "rows" : "equal", []);
    for (let i = 0; i < n; i += 1) {
      assert.equal(axis.fragmentAt(a, (a.starts[i] + a.starts[i + 1]) / 2), i);
      assert.equal(axis.positionOf(ids, ids[i]), i);
    }
    assert.equal(axis.fragmentAt(a, a.starts[n]), -1);
    assert.equal(axis.fragmentAt(a, -1), -1);
    assert.equal(axis.positionOf(ids, 0), -1);
    const from = next() * a.total * 0.9;
    const view = { from, to: from + (a.total - from) * Math.max(0.01, next()), width: 500 };
    const [first, last] = axis.visible(a, view);
    for (let i = 0; i < n; i += 1) {
      const touches = a.starts[i + 1] > view.from && a.starts[i] < view.to;
      if (touches) assert.ok(i >= first && i < last, `fragment ${i} of ${n} in [${first}, ${last})`);
    }
    assert.ok(Math.abs(axis.toAxis(view, axis.toPixel(view, from + 1)) - (from + 1)) < 1e-6);
  }
});

test("zooming leaves what is under the pointer there, and stays on the axis", () => {
  const next = random(3);
  for (let round = 0; round < 300; round += 1) {
    const total = 10 + next() * 1000;
    const smallest = total / 100;
    const [from, to] = axis.clampWindow(total, next() * total, next() * total, smallest);
    assert.ok(from >= -1e-9 && to <= total + 1e-9 && to - from >= smallest - 1e-9);
    const anchor = from + next() * (to - from);
    const [a, b] = axis.zoomWindow(total, from, to, 0.3 + next() * 3, anchor, smallest);
    assert.ok(a >= -1e-9 && b <= total + 1e-9);
    const free = a > 1e-9 && b < total - 1e-9;
    if (free) assert.ok(Math.abs((anchor - from) / (to - from) - (anchor - a) / (b - a)) < 1e-6);
  }
});

test("lanes: covered, uncovered, unknown and retired are four different things", () => {
  const live = [0, 1, 2, 3, 5];
  const layout = makeLayout(columns(live), [
    index("known", [segment(uuid(1), [0, 1, 4], live), segment(uuid(2), [], live)], live),
    index("unknown", [segment(uuid(3), null, live), segment(uuid(4), [1], live)], live),
  ]);
  const [known, unknown] = layout.lanes;
  assert.deepEqual([...known.cover], [0, 0, UNCOVERED, UNCOVERED, UNCOVERED]);
  assert.equal(known.uncovered, 3);
  assert.deepEqual([...known.retired], [[4, 0]]);
  assert.deepEqual(layout.retired, [4]);
  assert.deepEqual([...unknown.cover], [UNKNOWN, 1, UNKNOWN, UNKNOWN, UNKNOWN]);
  assert.equal(unknown.uncovered, 0);
  assert.ok(unknown.segments[0].unknown);
  const untold = makeLayout(columns(live), [index("untold", [segment(uuid(5), [0], live, { effective_fragment_ids: [] })], live, { coverage_known: false })]);
  assert.ok(untold.lanes[0].cover.every((c) => c === UNKNOWN), "an index whose coverage is not known is unknown, not uncovered");
  assert.deepEqual(coverRuns(known).map((r) => [r.from, r.to, r.cover]), [[0, 2, 0], [2, 5, UNCOVERED]]);
});

test("groups are the planner's: stretches that are rewritten together, frozen ones alone, the rest in none", () => {
  const made = makeGroups({ group: Int32Array.of(0, 0, -1, -1, 1, 1, 2, -1), frozen: Uint8Array.of(0, 0, 1, 1, 0, 0, 0, 0) });
  assert.deepEqual(made.list.map((g) => [g.from, g.to, g.frozen]), [[0, 2, false], [2, 3, true], [3, 4, true], [4, 6, false], [6, 7, false]]);
  assert.deepEqual([...made.frozenBefore], [0, 0, 1, 2, 2, 2]);
  const next = random(11);
  for (let round = 0; round < 200; round += 1) {
    const [from, length] = [Math.floor(next() * 9), 1 + Math.floor(next() * 4)];
    const [first, end] = groupsIn(made, from, from + length);
    assert.deepEqual(made.list.slice(first, end), made.list.filter((g) => g.to > from && g.from < from + length), `${from}+${length}`);
  }
  assert.deepEqual(makeGroups({ group: new Int32Array(0), frozen: new Uint8Array(0) }).list, []);
});

test("a far view sums blocks of fragments to what the fragments say one by one", () => {
  const next = random(23);
  for (let round = 0; round < 40; round += 1) {
    const n = 1 + Math.floor(next() * 3000);
    const ids = Uint32Array.from({ length: n }, (_, i) => i);
    const rows = Float64Array.from({ length: n }, () => (next() < 0.1 ? NaN : 1 + Math.floor(next() * 500)));
    const deleted = Float64Array.from(rows, (r) => (next() < 0.05 ? Math.floor(r * next()) : 0));
    const a = axis.makeAxis(ids, rows, round % 2 ? "rows" : "equal", round % 5 === 0 ? [n + 1] : []);
    const kinds = round % 3 === 0 ? 1 : 7;
    const cover = Int32Array.from({ length: n }, () => (next() < 0.02 ? UNCOVERED : next() < 0.02 ? UNKNOWN : next() < 0.7 ? 0 : Math.floor(next() * kinds)));
    const from = a.total * next() * 0.3;
    const view = { from, to: from + (a.total - from) * (0.3 + 0.7 * next()), width: 20 + Math.floor(next() * 60) };
    const edges = pyramid.pixelEdges(a, view);
    const found = pyramid.laneColumns(pyramid.makeLanePyramid(a, strip.makeRuns(cover)), view, edges);
    const levels = pyramid.makeRowPyramid(rows, deleted);
    const rowsFound = new Map(pyramid.rowsPerColumn(levels, a, view, edges, rows, deleted).map((column) => [column.x, column]));
    const scale = view.width / (view.to - view.from);
    for (let x = 0; x < view.width; x += 1) {
      const [lo, hi] = [view.from + x / scale, view.from + (x + 1) / scale];
      const want = { covered: 0, unknown: 0, uncovered: 0 };
      const share = new Map();
      let [most, all, gone] = [-1, 0, 0];
      for (let i = 0; i < n; i += 1) {
        const part = (Math.min(hi, a.starts[i + 1]) - Math.max(lo, a.starts[i])) * scale;
        if (part <= 1e-9) continue;
        want[cover[i] >= 0 ? "covered" : cover[i] === UNKNOWN ? "unknown" : "uncovered"] += part;
        if (cover[i] >= 0) share.set(cover[i], (share.get(cover[i]) ?? 0) + part);
        most = Math.max(most, Number.isNaN(rows[i]) ? 0 : rows[i]);
        all += Number.isNaN(rows[i]) ? 0 : rows[i];
        gone += Number.isNaN(deleted[i]) ? 0 : deleted[i];
      }
      for (const key of Object.keys(want)) assert.ok(Math.abs(found[key][x] - want[key]) < 1e-6, `${round}/${x} ${key}: ${found[key][x]} for ${want[key]}`);
      const [leader, length] = [...share].reduce((best, one) => (one[1] > best[1] ? one : best), [-1, 0]);
      if (length > want.covered * 0.5 + 1e-6) assert.equal(found.segment[x], leader, "what covers most of the column gives its colour");
      else if (share.size > 0) assert.ok(share.has(found.segment[x]));
      if (most < 0) continue;
      const column = rowsFound.get(x);
      assert.ok(column.rows >= most && (column.deleted > 0) === (gone > 0), "no tall fragment and no deletion is averaged away");
    }
  }
});

test("one uncovered fragment among 100 000 paints, at any width and any place", () => {
  const n = 100_000;
  const ids = Uint32Array.from({ length: n }, (_, i) => i);
  const rows = new Float64Array(n).fill(1000);
  const a = axis.makeAxis(ids, rows, "rows", []);
  for (const [at, width] of [[0, 1200], [61_803, 1200], [n - 1, 1200], [50_000, 3], [12_345, 333]]) {
    const cover = new Int32Array(n);
    cover[at] = UNCOVERED;
    const view = { from: 0, to: a.total, width };
    assert.equal(strip.fragmentsFit(a, view), false);
    const found = strip.columns(a, view, strip.makeRuns(cover));
    const hit = found.filter((column) => column.uncovered > 0);
    assert.ok(hit.length >= 1, `fragment ${at} at ${width} pixels`);
    const parts = strip.splitHeight(hit[0], 28, 3);
    assert.ok(parts.uncovered >= 3 && parts.covered > 0 && parts.uncovered + parts.covered + parts.unknown === 28);
    assert.equal(found.reduce((sum, column) => sum + column.width, 0), width);
    for (let k = 1; k < found.length; k += 1) assert.equal(found[k].x, found[k - 1].x + found[k - 1].width);
    cover[at] = UNKNOWN;
    assert.ok(strip.columns(a, view, strip.makeRuns(cover)).some((column) => column.unknown > 0));
  }
});

test("a tiny fragment beside giants paints as well", () => {
  const rows = new Float64Array(400).fill(1e9);
  rows[200] = 1;
  const a = axis.makeAxis(Uint32Array.from({ length: 400 }, (_, i) => i), rows, "rows", []);
  const cover = new Int32Array(400);
  cover[200] = UNCOVERED;
  const view = { from: 0, to: a.total, width: 1000 };
  assert.ok(strip.fragmentsFit(a, view));
  const boxes = strip.boxes(a, view, strip.makeRuns(cover));
  assert.ok(boxes.some((box) => box.cover === UNCOVERED && box.width >= 1));
});

test("density columns add up to the fragments they hold", () => {
  const next = random(5);
  const n = 5000;
  const ids = Uint32Array.from({ length: n }, (_, i) => i);
  const rows = Float64Array.from({ length: n }, () => 1 + Math.floor(next() * 100));
  const cover = Int32Array.from({ length: n }, () => Math.floor(next() * 4) - 2);
  const a = axis.makeAxis(ids, rows, "rows", []);
  const view = { from: 0, to: a.total, width: 640 };
  const sums = { covered: 0, uncovered: 0, unknown: 0 };
  for (const column of strip.columns(a, view, strip.makeRuns(cover))) for (const key of Object.keys(sums)) sums[key] += column[key];
  const want = { covered: 0, uncovered: 0, unknown: 0 };
  for (let i = 0; i < n; i += 1) want[cover[i] >= 0 ? "covered" : cover[i] === UNKNOWN ? "unknown" : "uncovered"] += (rows[i] / a.total) * 640;
  for (const key of Object.keys(sums)) assert.ok(Math.abs(sums[key] - want[key]) < 1e-3, `${key}: ${sums[key]} for ${want[key]}`);
});

test("one deleted row paints in a strip", () => {
  const n = 50_000;
  const deleted = new Float64Array(n);
  deleted[777] = 1;
  const a = axis.makeAxis(Uint32Array.from({ length: n }, (_, i) => i), new Float64Array(n).fill(1000), "equal", []);
  const found = strip.rowColumns(a, { from: 0, to: a.total, width: 400 }, new Float64Array(n).fill(1000), deleted);
  assert.equal(found.filter((column) => column.deleted > 0).length, 1);
});

test("a frame of 100 000 fragments and 8 lanes is reckoned in time", () => {
  const n = 100_000;
  const a = axis.makeAxis(Uint32Array.from({ length: n }, (_, i) => i), new Float64Array(n).fill(10), "rows", []);
  const cover = new Int32Array(n).map((_, i) => (i % 1000 === 3 ? -1 : Math.floor(i / 9000)));
  const view = { from: 0, to: a.total, width: 1200 };
  strip.columns(a, view, strip.makeRuns(cover));
  const start = performance.now();
  for (let lane = 0; lane < 8; lane += 1) strip.columns(a, view, strip.makeRuns(cover));
  // Far above the 16 ms of a frame, since other tests share the machine: it catches a quadratic step, not a slow day.
  assert.ok(performance.now() - start < 400);
});

test("segments keep their colour and neighbours never share one", () => {
  const next = random(21);
  for (let round = 0; round < 100; round += 1) {
    const pieces = 2 + Math.floor(next() * 12);
    const segments = Array.from({ length: pieces }, (_, k) => ({ uuid: uuid(Math.floor(next() * 2 ** 32)), colour: 0, info: { created_at: null, dataset_version: k + 1 } }));
    const cover = Int32Array.from({ length: pieces * 3 }, (_, i) => Math.floor(i / 3));
    assignColours(segments, cover);
    for (let i = 1; i < pieces; i += 1) assert.notEqual(segments[i - 1].colour % HUES, segments[i].colour % HUES);
    const before = segments.map((s) => s.colour);
    // A later segment at the end does not repaint the older ones.
    const more = [...segments.map((s) => ({ ...s, colour: 0 })), { uuid: uuid(Math.floor(next() * 2 ** 32)), colour: 0, info: { created_at: null, dataset_version: 99 } }];
    assignColours(more, Int32Array.from([...cover, pieces, pieces]));
    assert.deepEqual(more.slice(0, pieces).map((s) => s.colour), before);
  }
  assert.equal(hash("a"), hash("a"));
  const spread = new Set(Array.from({ length: 400 }, (_, i) => hash(uuid(i * 7919)) % SLOTS));
  assert.equal(spread.size, SLOTS);
});

test("colours: text on a segment is readable, edges stand out on white", () => {
  const contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
  assert.equal(SEGMENT_COLOURS.length, SLOTS);
  assert.equal(SEGMENT_EDGES.length, SLOTS);
  for (const colour of SEGMENT_COLOURS) assert.ok(contrast(colour, readable(colour)) >= 4.5, colour);
  for (const colour of SEGMENT_EDGES) assert.ok(contrast(colour, "#ffffff") >= 3, colour);
});

test("lanes lie under each other and are found by height", () => {
  const boxes = laneBoxes(3, true);
  assert.deepEqual(boxes.map((b) => b.kind), ["rows", "deleted", "index", "index", "index", "groups", "axis"]);
  for (let i = 1; i < boxes.length; i += 1) assert.ok(boxes[i].y >= boxes[i - 1].y + boxes[i - 1].height);
  for (const box of boxes) assert.equal(laneAtY(boxes, box.y + box.height / 2), box);
  assert.ok(lanesHeight(boxes) > boxes.at(-1).y);
  assert.equal(laneBoxes(0, false).length, 3);
});

test("numbers as the page writes them", () => {
  assert.equal(format.count(null), "unknown");
  assert.equal(format.count(0), "0");
  assert.equal(format.count(1234), `1${THIN}234`);
  assert.equal(format.count(12_345_678), `12${THIN}345${THIN}678`);
  assert.equal(format.compactCount(12_449_999), `12.4${THIN}M`);
  assert.equal(format.compactCount(999_999), `999${THIN}999`);
  assert.equal(format.bytes(999), `999${THIN}B`);
  assert.equal(format.bytes(61_000), `61.0${THIN}KB`);
  assert.equal(format.bytes(999_600), `1.00${THIN}MB`);
  assert.equal(format.bytes(41_230_000), `41.2${THIN}MB`);
  assert.equal(format.bytes(null), "unknown");
  assert.equal(format.percent(99.999), `99.99${THIN}%`);
  assert.equal(format.percent(87.31), `87.31${THIN}%`);
  assert.equal(format.percent(0.29), `0.29${THIN}%`);
  assert.equal(format.percent(100), `100${THIN}%`);
  assert.equal(format.percent(null), "unknown");
  for (let i = 0; i <= 10_000; i += 1) assert.equal(format.percent(i / 100), i === 10_000 ? `100${THIN}%` : `${Math.floor(i / 100)}.${String(i % 100).padStart(2, "0")}${THIN}%`);
  assert.equal(format.sharePercent(999_999, 1_000_000), 99.99);
  assert.equal(format.sharePercent(1, 0), null);
  assert.equal(format.ranges([0, 1, 2, 7, 9, 10]), "0–2, 7, 9–10");
  assert.equal(format.ranges([0, 2, 4, 6], 2), "0, 2 and 2 more ranges");
  assert.equal(format.ranges([]), "none");
  assert.equal(format.duration(8400), `8.4${THIN}s`);
  assert.equal(format.tableName("https://h/a/b%20c.lance/?x=1"), "b c.lance");
});

test("names from a table cannot hide characters or turn the text around", () => {
  assert.equal(format.name("a\u202eb\u0000c"), "a\\u202eb\\u0000c");
  assert.equal(format.name("plain name"), "plain name");
  assert.equal(format.shellWord("plain-1.lance"), "plain-1.lance");
  assert.equal(format.shellWord("it's $(rm)"), "'it'\\''s $(rm)'");
});

test("the address keeps the state and drops secrets", () => {
  const state = {
    ...url.EMPTY_STATE, url: "https://host/t.lance", version: 12, selection: { kind: "pair", a: 3, b: 9 }, widths: "equal", groups: false, view: "table", window: [0.25, 0.5], query: "a&b", changes: true, job: { kind: "merge", index: "x y" }, segments: 4,
  };
  assert.deepEqual(url.parseState(url.formatState(state)), state);
  for (const selection of [{ kind: "fragment", id: 7 }, { kind: "segment", uuid: uuid(5) }, { kind: "index", name: "a:b,c" }]) {
    assert.deepEqual(url.parseState(url.formatState({ ...state, selection })).selection, selection);
  }
  for (const job of [{ kind: "compact", rows: null }, { kind: "compact", rows: 5000 }, { kind: "trim" }, { kind: "prune" }, { kind: "gc" }, { kind: "orphans" }, { kind: "create" }, { kind: "drop", index: "a b" }]) {
    assert.deepEqual(url.parseState(url.formatState({ ...state, job })).job, job);
  }
  for (const odd of ["0", "-5", "x", "1e9"]) assert.deepEqual(url.parseState(`?compact=${odd}`).job, { kind: "compact", rows: null }, odd);
  assert.equal(url.formatState(url.EMPTY_STATE), "");
  assert.equal(url.withoutSecrets("https://me:pw@host/t.lance?X-Amz-Signature=abc&X-Amz-Credential=k&v=1#t"), "https://host/t.lance?v=1");
  assert.ok(!url.formatState({ ...state, url: "https://me:pw@host/t?sig=abc" }).includes("pw"));
  assert.ok(!url.formatState({ ...state, url: "https://host/t?sig=abc" }).includes("abc"));
  assert.equal(url.withoutSecrets("s3://bucket/t.lance"), "s3://bucket/t.lance");
  for (const odd of ["?v=-1", "?v=1e9", "?z=0.5-0.2", "?z=2-3", "?sel=segment:zzz", "?sel=fragment:x", "?n=0"]) {
    const parsed = url.parseState(odd);
    assert.deepEqual([parsed.version, parsed.window, parsed.selection, parsed.segments], [null, null, null, 1], odd);
  }
});

test("health lines: the rule, its numbers, one action", () => {
  const live = [0, 1, 2, 3];
  const table = (...indices) => ({ rows: 40, indices, warnings: [] });
  const lines = healthLines(table(index("a", [segment(uuid(1), [0, 1], live)], live, { indexed_percent: 87.31 })));
  assert.equal(lines[0].rule, "uncovered");
  assert.match(lines[0].text, /87\.31\u202f%.*2 fragments are scanned/);
  assert.deepEqual(lines[0].action, { kind: "refresh", label: "Refresh…" });
  assert.equal(healthLines(table(index("a", [segment(uuid(1), [], live)], live, { indexed_percent: 0 })))[0].rule, "deferred");
  assert.equal(healthLines(table(index("a", [segment(uuid(1), null, live)], live)))[0].rule, "coverage-unknown");
  assert.equal(healthLines(table(index("a", [segment(uuid(1), [0, 1], live)], live, { type: "IVF_PQ" })))[0].action.kind, "show");
  const whole = healthLines(table(index("a", [segment(uuid(1), live, live)], live, { indexed_percent: 100 })));
  assert.deepEqual(whole.map((l) => l.severity), ["good"]);
  assert.equal(healthLines(table()).at(0).rule, "no-index");
  const history = { ...table(index("a", [segment(uuid(1), null, live)], live)), warnings: [{ rule: "history_unsupported", severity: "warning", evidence: "HISTORY_UNSUPPORTED: the table keeps a history", action: null }] };
  assert.deepEqual(healthLines(history).map((l) => [l.rule, l.text]), [["history_unsupported", "the table keeps a history"]]);
  const nine = healthLines(table(index("a", live.map((i) => segment(uuid(i + 1), [i], live)).concat(Array.from({ length: 5 }, (_, k) => segment(uuid(k + 20), [900 + k], live))), live)));
  assert.ok(nine.some((l) => l.rule === "many-segments") && nine.some((l) => l.rule === "dead-segments" && /5 segments/.test(l.text)));
});

test("errors say what happened, to what, what was changed and what to do", () => {
  const cors = explain({ code: "STORE_CORS", message: "GET failed", detail: { object: "_versions/" }, changed: "nothing" }, "https://page.example", "https://b.s3.amazonaws.com/t");
  assert.equal(cors.object, "_versions/");
  assert.equal(cors.changed, "Nothing was changed.");
  assert.deepEqual(cors.paste.map(({ text }) => text), [corsRules("s3", "https://page.example")[0].paste]);
  const staged = explain({ code: "STALE_PLAN", message: "m", detail: { staged: ["data/a.lance", 7, "data/b.lance"] }, changed: "staged" }, "o", null);
  assert.deepEqual([staged.left, staged.paste], [["data/a.lance", "data/b.lance"], []]);
  const reserved = (changed, reserved) => explain({ code: "STALE_PLAN", message: "m", detail: { reserved }, changed }, "o", null).changed;
  assert.equal(reserved("nothing", null), "Nothing was changed.");
  assert.equal(reserved("nothing", 5), "Fragments and indexes are as they were. Version 5 was written for it, and only reserves fragment ids.");
  assert.match(reserved("nothing", "unknown"), /^Fragments and indexes are as they were\. A version that only reserves fragment ids may/);
  assert.match(reserved("staged", 5), /^Files were uploaded.* Version 5 was written/);
  for (const code of ["COMMIT_UNKNOWN", "SOMETHING_NEW", "INTERNAL"]) {
    const e = explain({ code, message: "m", detail: {}, changed: "unknown" }, "o", null);
    assert.ok(e.title && e.steps.length > 0 && /not known/.test(e.changed));
  }
});

test("the rules a page shows are those of the kind of store that the address points to", () => {
  const origin = "https://page.example";
  const places = {
    "gs://b/t.lance": ["gcs"], "https://a.blob.core.windows.net/c/t.lance": ["azure"], "https://x.r2.cloudflarestorage.com/t": ["r2"], "https://b.s3.amazonaws.com/t": ["s3"], "s3://b/t": ["s3", "r2"],
    "https://host/t": ["nginx", "apache"],
  };
  for (const [target, wheres] of Object.entries(places)) {
    const all = ["s3", "gcs", "azure", "http"].flatMap((kind) => corsRules(kind, origin));
    const shown = rulesFor(origin, target);
    assert.deepEqual(shown.map(({ text }) => all.find(({ paste }) => paste === text)?.where), wheres, target);
    for (const { label, text } of shown) assert.ok(label.length > 4 && text.includes(origin), target);
  }
});

test("search finds fragments, segments and indexes", () => {
  const live = [0, 1, 17];
  const layout = makeLayout(columns(live), [index("user_id_idx", [segment("abcdef12-0000-4000-8000-000000000000", [0], live)], live), index("name_fts", [], live)]);
  assert.deepEqual(find(layout, "17"), { kind: "fragment", id: 17 });
  assert.deepEqual(find(layout, "fragment 1"), { kind: "fragment", id: 1 });
  assert.deepEqual(find(layout, "ABCDEF"), { kind: "segment", uuid: "abcdef12-0000-4000-8000-000000000000" });
  assert.deepEqual(find(layout, "fts"), { kind: "index", name: "name_fts" });
  assert.equal(find(layout, "99"), null);
  assert.equal(find(layout, " "), null);
});

test("progress folds events and never runs backwards", () => {
  const plan = { tasks: [{ rows: 100 }, { rows: 300 }] };
  let p = progress.startProgress(plan, 0);
  const build = (task, rows, state, worker, now) => {
    p = progress.advance(p, { phase: "build", task, tasks: 2, worker, state, rows, rows_total: 0 }, now);
  };
  build(0, 50, "running", 0, 1000);
  build(0, 20, "running", 0, 1100);
  build(1, 30, "running", 1, 1200);
  assert.deepEqual(p.tasks.map((t) => t.rows), [50, 30]);
  assert.equal(progress.totals(p, 2000).share, 0.2);
  assert.equal(progress.totals(p, 2000).left, 8000);
  build(1, 0, "retrying", 1, 1300);
  assert.equal(p.tasks[1].rows, 0);
  build(0, 0, "done", 0, 1400);
  build(0, 10, "running", 0, 1500);
  assert.equal(p.tasks[0].rows, 100);
  assert.equal(p.tasks[0].state, "done");
  build(1, 300, "done", 0, 1600);
  const lines = progress.byWorker(p);
  assert.deepEqual(lines.map((l) => l.worker), [0]);
  assert.equal(lines[0].done, 2);
  p = progress.advance(p, { phase: "commit", tasks: 2, state: "running", rows: 0, rows_total: 0 }, 1700);
  assert.equal(p.phase, "commit");
  assert.equal(progress.totals(p, 1700).left, null);
});

test("the words for jobs on the whole table: what the button says, what stops it, the command", () => {
  const compaction = (tasks, extra = {}) => ({
    kind: "compaction", tasks: tasks.map(([before, after, deleted = 0]) => ({ fragments: Array(before).fill(0), outputs: Array(after).fill(0), rows: 9, deleted })), warnings: [],
    options: { target_rows_per_fragment: 60, materialize_deletions: true, defer_index_remap: true, excluded_fragment_ids: [1, 2], from: { target_rows_per_fragment: "argument", materialize_deletions: "config", defer_index_remap: "argument", excluded_fragment_ids: "argument" } },
    ...extra,
  });
  assert.equal(jobs.effect(compaction([[3, 1], [9, 2]])), "Rewrite 12 fragments into 3");
  assert.equal(jobs.effect(compaction([])), "Nothing to compact");
  const stopped = compaction([[3, 1]], { warnings: [{ rule: "cannot_run", severity: "warning", evidence: "column s", action: null }] });
  assert.deepEqual([jobs.effect(stopped), jobs.cannotRun(stopped), jobs.nothingToDo(stopped)], ["Cannot be run here", "column s", false]);
  assert.equal(jobs.commandLine(compaction([]), "https://h/t.lance"), "whetstone compact https://h/t.lance --param target_rows_per_fragment=60 --defer --param 'excluded_fragment_ids=[1,2]'");
  const trim = { kind: "trim", outcome: "replace", prune: [{}], records: [{ kept: true }, { kept: false }, { kept: false }] };
  assert.equal(jobs.effect(trim), "Remove 2 records and 1 superseded segment");
  assert.equal(jobs.nothingToDo({ ...trim, outcome: "nothing", prune: [] }), true);
  assert.equal(jobs.nothingToDo({ ...trim, outcome: "nothing" }), false);
  const map = (map_id, state) => ({ map_id, state, bytes: 1500, age: 0, files: [], referenced_by: [] });
  const gc = { kind: "gc", disabled: null, older_than_ms: 7 * 86_400_000, row_maps: [map("a", "aged"), map("b", "referenced"), map("c", "aged")] };
  assert.equal(jobs.effect(gc), `Delete 2 row maps, 3.00${THIN}KB`);
  const one = jobs.onlyTicked(gc, new Set(["c"]));
  assert.deepEqual(one.row_maps.map(({ map_id }) => map_id), ["b", "c"]);
  assert.equal(jobs.nothingToDo(jobs.onlyTicked(gc, new Set())), true);
  assert.equal(jobs.effect({ ...gc, disabled: "why" }), "Nothing can be deleted");
  assert.equal(jobs.commandLine(gc, "https://u:p@h/t.lance"), "whetstone gc https://h/t.lance --older-than 7d --remove");
  assert.deepEqual([null, 0, 47.9 * 3_600_000, 7 * 86_400_000 - 1].map(jobs.age), ["unknown", "0 hours", "47 hours", "6 days"]);
});

test("numbers and ids that are typed: nothing, something, or what is none", () => {
  assert.deepEqual(["", "60", `1${THIN}048${THIN}576`, "1_000", "0", "-1", "1e3", "6o", "1.5", "9".repeat(16)].map((text) => jobs.typedNumber(text, 1)), [undefined, 60, 1_048_576, 1000, null, null, null, null, null, null]);
  assert.deepEqual(["", " , ", "3, 5-8 7", "4294967295", "8-5", "4294967296", "x", "0-999999999"].map((text) => jobs.typedIds(text)), [undefined, undefined, [3, 5, 6, 7, 8], [4_294_967_295], null, null, null, null]);
});

test("the line about the layout: always one, and an action only where a compaction has work", () => {
  const groups = (group, frozen) => makeGroups({ group: Int32Array.from(group), frozen: Uint8Array.from(frozen) });
  assert.equal(layoutLine(null, null), null);
  const joined = layoutLine(groups([0, 0, -1, -1, 1, 1, 1], [0, 0, 1, 0, 0, 0, 0]), null);
  assert.equal(joined.text, "a compaction would rewrite 5 fragments in 2 groups and leave 1 frozen");
  assert.equal(joined.action.kind, "compact");
  const frozen = layoutLine(groups([-1, -1], [1, 1]), null);
  assert.deepEqual([frozen.action, frozen.severity], [null, "info"]);
  assert.match(frozen.text, /^2 small fragments are frozen/);
  assert.equal(layoutLine(groups([-1], [0]), null).severity, "good");
  assert.match(layoutLine(null, { code: "HISTORY_UNSUPPORTED", message: "a record of kind 9", detail: {}, changed: "nothing" }).text, /cannot be planned: a record of kind 9/);
});

test("columns an index can be made on are leaves and lists, quoted where a dot would mislead", () => {
  const leaf = (name, type, children = []) => ({ id: 0, name, type, nullable: true, children });
  const schema = [leaf("id", "int64"), leaf("a.b", "string"), leaf("tags", "list", [leaf("item", "string")]), leaf("s", "struct", [leaf("x", "float"), leaf("t`k", "bool")])];
  assert.deepEqual(jobs.columnsOf(schema), [
    { path: "id", type: "int64" }, { path: "`a.b`", type: "string" }, { path: "tags", type: "list of string" }, { path: "s.x", type: "float" }, { path: "s.`t``k`", type: "bool" },
  ]);
  assert.deepEqual(jobs.methodsFor("list of string"), ["LABEL_LIST", "INVERTED"]);
  assert.ok(!jobs.methodsFor("int64").includes("NGRAM"));
});

test("parameters are numbers, booleans or texts; a part without = is no parameter", () => {
  assert.deepEqual(jobs.parseParams("rows_per_zone=16, stem = true,language=German"), { rows_per_zone: 16, stem: true, language: "German" });
  assert.deepEqual(jobs.parseParams(""), {});
  assert.equal(jobs.parseParams("rows_per_zone"), null);
  assert.equal(jobs.parseParams("=3"), null);
});

test("the button of a job says its effect, and the command line does the same", () => {
  const build = (kind, tasks, extra = {}) => ({
    kind, index: { name: "a b", column: "c", method: "BTREE", params: { batch_size: 8 }, params_from: "options" }, tasks: tasks.map((fragments) => ({ fragments })), runs: tasks, segments: [], ...extra,
  });
  assert.equal(jobs.effect(build("refresh", [[1, 2], [3]])), "Index 3 fragments in 2 segments");
  assert.equal(jobs.effect(build("refresh", [])), "Nothing to index");
  assert.equal(jobs.effect(build("merge", [[1]], { segments: [{ fate: "REMOVED" }, { fate: "REMOVED" }, { fate: "KEPT" }] })), "Merge 2 segments into 1");
  assert.equal(jobs.effect(build("create_index", [], { create: { train: false, replace: false } })), "Create the index, empty");
  assert.equal(jobs.effect({ kind: "drop_index", index: { name: "x" }, segments: [] }), "Drop x");
  assert.equal(jobs.commandLine(build("create_index", [[1]], { create: { train: true, replace: true } }), "https://u:p@h/t.lance"), "whetstone create-index https://h/t.lance 'a b' c BTREE --num-segments 1 --param batch_size=8 --replace");
  assert.equal(jobs.nothingToDo(build("merge", [])), true);
  assert.equal(jobs.nothingToDo(build("create_index", [])), false);
});

test("what a segment holds: facts, bars and problems, and no key is lost", () => {
  const sorted = sortContents({ method: "NGRAM", tokens: 133, posting_bytes: 6058, nulls: null, problems: ["a page is gone"], params: { stem: true }, largest: [{ rows: 11, token: "ass" }, { rows: 3, token: "" }] });
  assert.deepEqual(sorted.facts, [{ label: "tokens", value: "133" }, { label: "posting bytes", value: `6.06${THIN}KB` }, { label: "nulls", value: "unknown" }, { label: "stem", value: "yes" }]);
  assert.deepEqual(sorted.bars, [{ title: "Most rows", bars: [{ label: "ass", value: 11, unit: "rows" }, { label: "", value: 3, unit: "rows" }] }]);
  assert.deepEqual(sorted.problems, ["a page is gone"]);
  const unreadable = sortContents({ method: "NGRAM", error: { code: "CORRUPT_FILE", message: "it is cut off", detail: {}, changed: "nothing" } });
  assert.deepEqual([unreadable.facts, unreadable.problems], [[], ["it is cut off"]]);
});

test("the changes between two versions: fragments, deletions, segments added, removed and narrowed", () => {
  const version = (v, ids, deleted, indices) => ({ show: { version: v, rows: ids.length * 10, indices }, columns: columns(ids, ids.map(() => 10), deleted) });
  const a = version(3, [0, 1, 2, 5], [0, 0, 1, 0], [index("k", [segment(uuid(1), [0, 1], [0, 1]), segment(uuid(2), [2], [2])], [0, 1, 2]), index("gone", [segment(uuid(9), [0], [0])], [0])]);
  const b = version(4, [0, 2, 6], [0, 4, 0], [index("k", [segment(uuid(1), [0, 1], [0]), segment(uuid(3), [6], [6])], [0, 2, 6]), index("new", [], [0])]);
  const diff = diffVersions(a, b);
  assert.deepEqual([diff.from, diff.to, diff.addedFragments, diff.removedFragments], [3, 4, [6], [1, 5]]);
  assert.deepEqual(diff.deletions, [{ fragment: 2, before: 1, after: 4 }]);
  assert.deepEqual(diff.indexes, [
    { name: "k", is: "changed", added: [{ uuid: uuid(3), fragments: 1 }], removed: [{ uuid: uuid(2), fragments: 1 }], moved: [{ uuid: uuid(1), lost: [1], gained: [] }] },
    { name: "new", is: "added", added: [], removed: [], moved: [] },
    { name: "gone", is: "removed", added: [], removed: [{ uuid: uuid(9), fragments: 1 }], moved: [] },
  ]);
  assert.ok(isSame(diffVersions(a, a)) && !isSame(diff));
});

test("recent tables are addresses without secrets, newest first, each once", () => {
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
  recent.remember(storage, "https://u:secret@h/a.lance");
  recent.remember(storage, "https://h/b.lance?X-Amz-Signature=secret");
  recent.remember(storage, "https://h/a.lance");
  assert.deepEqual(recent.recentTables(storage), ["https://h/a.lance", "https://h/b.lance"]);
  assert.doesNotMatch([...kept.values()].join(), /secret/);
  for (let i = 0; i < 20; i += 1) recent.remember(storage, `https://h/${i}.lance`);
  assert.equal(recent.recentTables(storage).length, 8);
  kept.set("whetstone.recent", "{broken");
  assert.deepEqual(recent.recentTables(storage), []);
});

/** A history as the engine tells it: moves are [sources, destinations, kept]. */
function history(moves, live, segments = []) {
  const digest = (id) => ({ id, physical_rows: 10, deleted_rows: 0 });
  return {
    version: 1, index_version: 1, supported: true, live, row_maps: [],
    transitions: moves.map(([sources, destinations, kept = true], position) => ({ position, record: position, kind: "ordered_compaction", sources: sources.map(digest), destinations: destinations.map(digest), map_id: null, kept, why: [] })),
    segments: segments.map(([stored, derived, path], n) => ({ index: "i", uuid: uuid(n), stored, derived, listed: true, state: "translated", reason: null, path, kept: true, why: "" })),
  };
}

const chain16 = () => history([], [], Array.from({ length: 16 }, (_, i) => [[i], [i], []])).segments;

test("a history is drawn left to right: bundles, transitions, and the way of every segment", () => {
  const chain = history([[[0, 1, 2, 3], [10, 11]], [[10, 11, 4], [20]], [[30], [31], false]], [20, 31, 40], [[[0, 1], [20], [0, 1]], [[2, 3], [20], [0, 1]], [[31], [31], []]]);
  const graph = historyGraph.makeGraph(chain, 0, 3);
  const of = (id) => graph.bundles.find((one) => one.ids.includes(id));
  assert.deepEqual(of(0).ids, [0, 1], "what shares everything is one bundle");
  assert.deepEqual(of(2).ids, [2, 3], "another segment was built from these");
  assert.ok(of(0).x < of(10).x && of(10).x < of(20).x, "time runs to the right");
  assert.equal(of(4).x, of(10).x, "what a transition took stands before it");
  assert.deepEqual([of(20).live, of(0).live, of(30).ghost, of(0).ghost, of(31).ghost], [true, false, true, false, false]);
  assert.deepEqual(of(20).derived, [0, 1], "covered through the history");
  assert.deepEqual([of(31).stored, of(31).derived], [[2], []], "covered by name");
  const way = (id, into) => graph.edges.find((edge) => edge.bundle === of(id) && edge.into === into).passing;
  assert.deepEqual([way(0, true), way(2, true), way(10, false), way(10, true), way(4, true), way(20, false), way(30, true)], [[0], [1], [0, 1], [0, 1], [], [0, 1], []]);
  assert.deepEqual(graph.apart, [40]);
  const boxes = graph.bundles.map((one) => `${one.x}/${one.y}`);
  assert.equal(new Set(boxes).size, boxes.length, "nothing lies on something else");
  for (const one of [...graph.bundles, ...graph.joints]) assert.ok(one.x >= 0 && one.y >= 0 && one.x < graph.width && one.y < graph.height);
});

test("a part of a long history names what lies outside, and wide transitions stay small", () => {
  const long = history(Array.from({ length: 10_000 }, (_, i) => [[i], [i + 1]]), [10_000], [[[0], [10_000], Array.from({ length: 10_000 }, (_, i) => i)]]);
  const graph = historyGraph.makeGraph(long, 40, 80);
  assert.equal(graph.joints.length, 40);
  const ends = graph.bundles.filter((one) => one.earlier || one.later).map((one) => [one.ids, one.earlier, one.later]);
  assert.deepEqual(ends, [[[40], true, false], [[80], false, true]]);
  assert.ok(graph.edges.every((edge) => edge.passing.length === 1), "the segment passes all of it");
  const wide = history([[Array.from({ length: 1000 }, (_, i) => i), [5000]]], [5000], Array.from({ length: 1000 }, (_, i) => [[i], [5000], [0]]));
  const drawn = historyGraph.makeGraph(wide, 0, 1);
  assert.ok(drawn.bundles.length <= 9);
  assert.equal(drawn.bundles.reduce((sum, one) => sum + one.ids.length, 0), 1001);
  assert.equal(new Set(drawn.bundles.flatMap((one) => one.stored)).size, 1000, "no segment is lost");
  const colours = historyGraph.ownColours(chain16(), () => 3);
  assert.equal(new Set(colours).size, 16, "as many segments as there are colours have one each");
  assert.equal(historyGraph.briefIds([1, 2, 3, 9]), "1–3, 9");
  assert.equal(historyGraph.briefIds([1, 3, 5, 7]), "1 … 7");
});

test("what is kept of a commit names its job; what an older page kept still says something", () => {
  const store = new Map();
  const storage = { getItem: (key) => store.get(key) ?? null, setItem: (key, value) => store.set(key, value), removeItem: (key) => store.delete(key), key: (i) => [...store.keys()][i] ?? null, get length() { return store.size; } };
  const commit = { uri: "u", branch: null, index_name: "i", transaction: "t", version: 2, target: "https://a/t.lance", at: 1 };
  commits.keep(storage, commit);
  commits.keep(storage, { ...commit, transaction: "s", job: "merge", at: 2 });
  store.set("whetstone.commit.x", JSON.stringify({ ...commit, transaction: "x", job: 7 }));
  assert.deepEqual(commits.keptFor(storage, commit.target).map((one) => commits.jobWords(one.job).name), ["A change", "A merge"]);
  assert.equal(commits.jobWords("toString").name, "A change");
});

test("a job of two commits that ended after the first is told as begun, not as done", () => {
  const kept = (job, version = 5) => ({ uri: "u", branch: null, index_name: "compaction", transaction: "t", version, target: "https://a/t.lance", at: 1, job });
  const found = (operation, properties = {}) => ({ uuid: "t", read_version: 4, version: 5, operation, properties });
  assert.deepEqual(commits.fateOf(kept("compaction"), found("ReserveFragments"), 5, 2), { is: "begun", version: 5 });
  assert.deepEqual(commits.fateOf(kept("compaction"), found("Rewrite"), 5, 2), { is: "landed", version: 5 });
  const pruned = found("CreateIndex", { "__lance.frag_reuse.superseded_prune": "true" });
  assert.deepEqual(commits.fateOf(kept("trim"), pruned, 5, 2), { is: "begun", version: 5 });
  assert.deepEqual(commits.fateOf(kept("prune"), pruned, 5, 2), { is: "landed", version: 5 });
  assert.deepEqual(commits.fateOf(kept("refresh"), found("CreateIndex"), 5, 2), { is: "landed", version: 5 });
  assert.deepEqual(commits.fateOf(kept("compaction"), null, 4, 2), { is: "pending" });
  assert.deepEqual(commits.fateOf(kept("compaction"), null, 5, 2), { is: "lost" });
});

test("pages and zones stand where their values do; keys are counted by powers of two", () => {
  const parts = (kind, items) => ({ kind, items, count: items.length, offset: 0, left_out: 0 });
  const spans = listing.pageSpans(parts("pages", [
    { page: 0, rows: 10, min: null, max: null, nulls: 10 }, { page: 1, rows: 10, min: null, max: 0, nulls: 2 }, { page: 2, rows: null, min: 0, max: 100, nulls: 0 }, { page: 3, rows: 5, min: 100, max: 400, nulls: 0 },
  ]));
  assert.deepEqual(spans.map((span) => span && [span.from, span.to]), [null, [0, 0], [0, 0.25], [0.25, 1]]);
  assert.match(spans[1].title, /page 1: null … 0, 10 rows, 2 nulls/);
  const text = listing.scaleOf(["b", "a", null, "c"]);
  assert.deepEqual(["a", "b", "c", null].map(text), [0, 0.5, 1, 0]);
  const whole = listing.scaleOf(["-9223372036854775808", "9223372036854775807", -1.7e308, 1.7e308]);
  for (const value of ["-9223372036854775808", 1.7e308, -1.7e308]) assert.ok(whole(value) >= 0 && whole(value) <= 1);
  const zones = (items) => listing.heatRows(parts("zones", items));
  const [row, other] = zones([
    { fragment: 3, start: 0, length: 8, min: 0, max: 10, nulls: 0, nans: 0 }, { fragment: 3, start: 8, length: 8, min: null, max: null, nulls: 8, nans: 0 }, { fragment: 7, start: 0, length: 8, min: 5, max: 5, nulls: 0, nans: 1 },
  ]);
  assert.deepEqual([row.fragment, row.zones.map((zone) => zone.heat), other.zones[0].heat], [3, [1, 0], 0]);
  assert.match(other.zones[0].title, /1 NaN/);
  assert.deepEqual(zones([{ fragment: 0, start: 0, length: 4, nulls: null, filter_bytes: 32, fill: 0.25, false_positive_estimate: 0.01 }])[0].zones[0].heat, 0.25);
  assert.deepEqual(listing.cardinalities([1, 1, 2, 3, 9]), [{ label: "1", keys: 2 }, { label: "2–3", keys: 2 }, { label: "4–7", keys: 0 }, { label: "8–15", keys: 1 }]);
  assert.deepEqual(listing.cardinalities([]), []);
  assert.deepEqual(listing.cardinalities([0, 4]).map(({ label, keys }) => [label, keys]), [["0", 1], ["1", 0], ["2–3", 0], ["4–7", 1]]);
});
