"""The same table compacted by us and, as a copy, by Lance: equal rows in equal order, equal queries through every index, equal effects
on every segment; Lance goes on from ours. And what we refuse, and what changes meanwhile."""

import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import lance
import numpy as np
import pyarrow as pa
import pytest

import command
import fixture_tables
import oracle
import tables

WORDS = ["stone", "edge", "whet", "blade", "oil", "grind", "sharp", "steel", "water", "hone"]

FILTERS = {
    "v_btree": ["v = 7", "v < -20", "v between 0 and 15", "v is null", "v in (1, 2, 30)"],
    "c_bitmap": ["c = 3", "c in (0, 4)", "c is null"],
    "s_ngram": ["contains(s, 'ston')", "contains(s, 'ade o')"],
    "z_zones": ["z > 1.0", "z = 0.5", "z is null"],
    "w_bloom": ["w = 77", "w is null"],
    "l_labels": ["array_has(l, 'a')", "array_has_any(l, ['b', 'c'])"],
}
METHODS = {"v_btree": ("v", "BTREE"), "c_bitmap": ("c", "BITMAP"), "s_ngram": ("s", "NGRAM"), "z_zones": ("z", "ZONEMAP"), "w_bloom": ("w", "BLOOMFILTER"), "l_labels": ("l", "LABEL_LIST")}


def rows(rng, first, count, lists):
    maybe = lambda values, share=0.1: [None if n < share else v for n, v in zip(rng.random(count), values)]  # noqa: E731
    text = [" ".join(WORDS[int(i)] for i in rng.integers(0, len(WORDS), 6)) for _ in range(count)]
    columns = {
        "id": pa.array(range(first, first + count), pa.int64()),
        "v": pa.array(maybe([int(v) for v in rng.integers(-50, 50, count)]), pa.int32()),
        "c": pa.array(maybe([int(v) for v in rng.integers(0, 5, count)]), pa.int8()),
        "s": pa.array(maybe(text), pa.string()),
        "t": pa.array(text, pa.large_string()),
        "z": pa.array(maybe([float(v) / 2 for v in rng.integers(-6, 6, count)]), pa.float64()),
        "w": pa.array(maybe([int(v) for v in rng.integers(0, 100, count)]), pa.uint64()),
        "flag": pa.array(maybe([bool(v) for v in rng.integers(0, 2, count)]), pa.bool_()),
        "raw": pa.array(maybe([bytes([int(v)] * int(v)) for v in rng.integers(0, 9, count)]), pa.binary()),
        "fixed": pa.array([int(v).to_bytes(4, "big") for v in rng.integers(0, 2**31, count)], pa.binary(4)),
        "at": pa.array(maybe([datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=int(v)) for v in rng.integers(0, 10**6, count)]), pa.timestamp("us", "UTC")),
    }
    vectors = [[float(x) for x in rng.normal(0, 1, 8)] for _ in range(count)]
    columns["e"] = pa.array(maybe(vectors), pa.list_(pa.float32(), 8))
    if lists:
        labels = [[("a", "b", "c", "d")[int(i)] for i in rng.integers(0, 4, int(n))] for n in rng.integers(0, 4, count)]
        columns["l"] = pa.array(maybe(labels), pa.list_(pa.string()))
    return pa.table(columns)


def make(path, version="2.1", stable=False, fragments=7, indexes=("v_btree", "c_bitmap", "s_ngram", "z_zones", "w_bloom"), seed=1, interleaved=False):
    """A table of small fragments with deletions, nulls and indexes; the last two fragments are not indexed."""
    rng = np.random.default_rng(seed)
    lists = version == "2.0"
    first = 0
    sizes = [int(n) for n in rng.integers(30, 120, fragments)]
    for number, count in enumerate(sizes):
        options = {"data_storage_version": version, "enable_stable_row_ids": stable} if number == 0 else {}
        lance.write_dataset(rows(rng, first, count, lists), str(path), mode="append" if number else "create", **options)
        first += count
        if number == fragments - 3:
            dataset = lance.dataset(str(path))
            for name in indexes if not lists else (*indexes, "l_labels"):
                column, method = METHODS[name]
                dataset.create_scalar_index(column, method, name=name)
            dataset.create_scalar_index("t", "INVERTED", name="t_words", with_position=True)
            dataset.delete("id % 7 = 3")
    if interleaved:
        names = [index.name for index in lance.dataset(str(path)).describe_indices()]
        # A segment of its own for the last two fragments.
        command.run("refresh", path, names[0])
    lance.dataset(str(path)).delete(f"id >= {first - sizes[-1]} and id % 5 = 1")
    if stable:
        lance.dataset(str(path)).update({"flag": "true"}, where="id % 40 = 2")
    return path


def segments(path):
    """Per index and coverage the uuid of each segment."""
    found = {}
    for index in lance.dataset(str(path)).describe_indices():
        for segment in index.segments:
            found.setdefault(index.name, []).append((tuple(sorted(segment.fragment_ids)), str(segment.uuid)))
    return {name: sorted(list_) for name, list_ in found.items()}


def effects(path, before):
    """Coverage of every segment, and whether it kept its uuid."""
    known = {uuid for list_ in before.values() for _, uuid in list_}
    return {name: [(coverage, uuid in known) for coverage, uuid in list_] for name, list_ in segments(path).items()}


def words_found(path, word):
    dataset = lance.dataset(str(path))
    return sorted(dataset.to_table(columns=["id"], full_text_query={"query": word, "columns": ["t"]})["id"].to_pylist())


def queries_agree(ours, theirs=None):
    dataset = lance.dataset(str(ours))
    names = {index.name for index in dataset.describe_indices()}
    for name in names & FILTERS.keys():
        for text in FILTERS[name]:
            scanned = oracle.ids(ours, text, use_scalar_index=False)
            assert oracle.ids(ours, text) == scanned, f"{name}: {text} gives other rows with the index"
            if theirs is not None:
                assert oracle.ids(theirs, text) == scanned, f"{name}: {text} gives other rows than Lance's compaction"
    if "t_words" in names:
        for word in WORDS[:4]:
            text = dataset.to_table(columns=["id", "t"])
            expected = sorted(i for i, t in zip(text["id"].to_pylist(), text["t"].to_pylist()) if word in t.split())
            found = words_found(ours, word)
            assert found == expected, f"{word}: {len(found)} found, {len(expected)} have it"


def both(tmp_path, make_table, target=150, defer=False, **options):
    """The table compacted by us and by Lance; the coverage before."""
    ours = make_table(tmp_path / "ours.lance")
    theirs = tmp_path / "theirs.lance"
    shutil.copytree(ours, theirs)
    before = segments(ours)
    params = {"target_rows_per_fragment": target, **options}
    report = command.run("compact", ours, *[word for key, value in params.items() for word in ("--param", f"{key}={json.dumps(value)}")], *(["--defer"] if defer else []))
    lance.dataset(str(theirs)).optimize.compact_files(num_threads=1, defer_index_remap=defer, **params)
    return ours, theirs, before, report


def same(ours, theirs, before):
    oracle.healthy(ours)
    one, other = lance.dataset(str(ours)), lance.dataset(str(theirs))
    assert one.version == other.version
    assert [(f.fragment_id, f.physical_rows, f.num_deletions) for f in one.get_fragments()] == [(f.fragment_id, f.physical_rows, f.num_deletions) for f in other.get_fragments()]
    for options in ({}, {"with_row_id": True}, {"with_row_address": True}):
        assert one.to_table(**options).equals(other.to_table(**options)), f"other rows {options}"
    assert effects(ours, before) == effects(theirs, before)
    queries_agree(ours, theirs)


def lance_goes_on(path, lists=False):
    rng = np.random.default_rng(9)
    dataset = lance.dataset(str(path))
    lance.write_dataset(rows(rng, 100_000, 40, lists), str(path), mode="append")
    dataset = lance.dataset(str(path))
    dataset.delete("id % 13 = 5")
    dataset.optimize.optimize_indices()
    queries_agree(path)
    lance.dataset(str(path)).optimize.compact_files(target_rows_per_fragment=10_000)
    oracle.healthy(path)
    queries_agree(path)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_eager(version, tmp_path):
    ours, theirs, before, report = both(tmp_path, lambda path: make(path, version))
    assert len(report["fragments_removed"]) > len(report["fragments_added"]) > 0 and report["deleted_rows"] > 0
    assert report["segments_remapped"] >= 4
    same(ours, theirs, before)
    lance_goes_on(ours, lists=version == "2.0")


def test_page(tmp_path):
    """Through the dialog of the page, over HTTP and in a real Chromium."""
    ours, theirs = make(tmp_path / "ours.lance", "2.2"), tmp_path / "theirs.lance"
    shutil.copytree(ours, theirs)
    before = segments(ours)
    script = pathlib.Path(__file__).resolve().parents[1] / "support" / "page_compact.mjs"
    done = subprocess.run(["node", str(script), str(tmp_path), "ours", "150"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert "became" in said["text"] and said["problems"] == [], said
    lance.dataset(str(theirs)).optimize.compact_files(num_threads=1, target_rows_per_fragment=150)
    same(ours, theirs, before)
    lance_goes_on(ours)


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_stable_row_ids(version, tmp_path):
    ours, theirs, before, report = both(tmp_path, lambda path: make(path, version, stable=True))
    same(ours, theirs, before)
    columns = ["id", "_row_created_at_version", "_row_last_updated_at_version"]
    assert lance.dataset(str(ours)).to_table(columns=columns).equals(lance.dataset(str(theirs)).to_table(columns=columns))
    lance_goes_on(ours, lists=version == "2.0")


def test_deferred(tmp_path):
    ours, theirs, before, report = both(tmp_path, make, defer=True)
    assert report["segments_remapped"] == 0
    same(ours, theirs, before)
    # A second one on top of the history, by each.
    for path in (ours, theirs):
        lance.write_dataset(rows(np.random.default_rng(3), 50_000, 30, False), str(path), mode="append")
        lance.dataset(str(path)).delete("id % 17 = 4")
    command.run("compact", ours, "--param", "target_rows_per_fragment=100000", "--defer")
    lance.dataset(str(theirs)).optimize.compact_files(target_rows_per_fragment=100_000, defer_index_remap=True, num_threads=1)
    same(ours, theirs, before)
    lance_goes_on(ours)


def test_eager_over_a_deferred_history_loses_nothing(tmp_path):
    """Lance's own remap forgets the history for three methods (refresh-and-compaction §5.6); the plan says so, and ours does not."""
    path = make(tmp_path / "t.lance")
    lance.dataset(str(path)).optimize.compact_files(target_rows_per_fragment=150, defer_index_remap=True, num_threads=1)
    lance.write_dataset(rows(np.random.default_rng(3), 50_000, 30, False), str(path), mode="append")
    theirs = tmp_path / "theirs.lance"
    shutil.copytree(path, theirs)
    plan = command.run("compact", path, "--param", "target_rows_per_fragment=100000", "--dry-run")
    assert [w for w in plan["warnings"] if w["rule"] == "lance_loses_rows"]
    report = command.run("compact", path, "--param", "target_rows_per_fragment=100000")
    assert report["segments_remapped"] >= 3
    lance.dataset(str(theirs)).optimize.compact_files(target_rows_per_fragment=100_000, num_threads=1)
    assert oracle.ids(theirs, "v = 7") != oracle.ids(theirs, "v = 7", use_scalar_index=False), "Lance lost no rows: the warning is out of date"
    oracle.healthy(path)
    queries_agree(path)
    for name in ("v_btree", "c_bitmap"):
        assert command.audit(path, name)["findings"] == []


def test_interleaved_coverage_freezes_it(tmp_path):
    ours, theirs, before, report = both(tmp_path, lambda path: make(path, interleaved=True), target=100_000)
    assert len(report["fragments_added"]) > 1, "two sets of segments, two groups"
    same(ours, theirs, before)


def test_nothing_to_do_changes_nothing(tmp_path):
    path = make(tmp_path / "t.lance", fragments=4)
    command.run("compact", path, "--param", "target_rows_per_fragment=1000000")
    version = lance.dataset(str(path)).version
    report = command.run("compact", path, "--param", "target_rows_per_fragment=1", "--param", "materialize_deletions=false")
    assert report["transaction"] is None and lance.dataset(str(path)).version == version


def test_fragments_of_which_little_is_left(tmp_path):
    path = tmp_path / "t.lance"
    tables.write(path, "int64", [50, 60, 70], np.random.default_rng(1))
    dataset = lance.dataset(str(path))
    dataset.create_scalar_index("v", "BTREE", name="v_btree")
    dataset.delete("id < 49 or (id >= 50 and id < 109)")
    report = command.run("compact", path, "--param", "target_rows_per_fragment=20")
    oracle.healthy(path)
    assert lance.dataset(str(path)).count_rows() == 72 and report["deleted_rows"] == 108


def test_through_sql(tmp_path):
    path = make(tmp_path / "t.lance")
    explained = command.run("sql", path, "EXPLAIN OPTIMIZE t WITH (target_rows_per_fragment = 150)")
    assert explained["report"] is None
    answer = command.run("sql", path, "OPTIMIZE t WITH (target_rows_per_fragment = 150)")
    assert answer["report"]["transaction"] and answer["columns"][0] == "fragments_removed"
    oracle.healthy(path)
    queries_agree(path)


# What comes between plan and commit.


def planned(tmp_path, **options):
    path = make(tmp_path / "t.lance", **options)
    plan = command.run("compact", path, "--param", "target_rows_per_fragment=150", "--dry-run")
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    return path, file


def test_an_append_between_does_no_harm(tmp_path):
    path, file = planned(tmp_path)
    lance.write_dataset(rows(np.random.default_rng(3), 50_000, 30, False), str(path), mode="append")
    count = lance.dataset(str(path)).count_rows()
    report = command.run("compact", path, "--plan", file)
    assert report["transaction"] and lance.dataset(str(path)).count_rows() == count
    oracle.healthy(path)
    queries_agree(path)


@pytest.mark.parametrize("change", ["delete", "update", "compact", "drop_column"])
def test_what_changes_the_sources_ends_it(change, tmp_path):
    path, file = planned(tmp_path)
    dataset = lance.dataset(str(path))
    if change == "delete":
        dataset.delete("id = 1")
    elif change == "update":
        dataset.update({"v": "1000"}, where="id = 1")
    elif change == "compact":
        dataset.optimize.compact_files(target_rows_per_fragment=150, num_threads=1)
    else:
        dataset.drop_columns(["raw"])
    table, data = lance.dataset(str(path)).to_table(), sorted(os.listdir(path / "data"))
    with pytest.raises(command.Failed) as failed:
        command.run("compact", path, "--plan", file)
    assert failed.value.code == "STALE_PLAN" and failed.value.changed == "nothing", failed.value
    assert lance.dataset(str(path)).to_table().equals(table)
    assert sorted(os.listdir(path / "data")) == data, "what was written for nothing is gone"
    oracle.healthy(path)
    queries_agree(path)


def test_an_index_between_is_carried_over_or_ends_it(tmp_path):
    path, file = planned(tmp_path, indexes=("c_bitmap",))
    lance.dataset(str(path)).create_scalar_index("v", "BTREE", name="v_btree")
    report = command.run("compact", path, "--plan", file)
    assert {s["index"]: s["fate"] for s in report["segments"]}["v_btree"] == "REMAPPED"
    oracle.healthy(path)
    queries_agree(path)


def test_a_command_that_is_killed_leaves_the_table_as_it_was(tmp_path):
    path = make(tmp_path / "t.lance")
    before = lance.dataset(str(path)).to_table()
    process = command.start("compact", path, "--param", "target_rows_per_fragment=150", "--json")
    deadline = time.monotonic() + 30
    data = len(os.listdir(path / "data"))
    while process.poll() is None and len(os.listdir(path / "data")) == data and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert lance.dataset(str(path)).to_table().num_rows == before.num_rows
    oracle.healthy(path)
    queries_agree(path)
    command.run("compact", path, "--param", "target_rows_per_fragment=150")
    oracle.healthy(path)
    queries_agree(path)


# What is refused, and how.


def refused(path, *options):
    version, data = lance.dataset(str(path)).version, sorted(os.listdir(path / "data"))
    plan = command.run("compact", path, *options, "--dry-run")
    assert [w for w in plan["warnings"] if w["rule"] == "cannot_run"], "the plan says that it cannot be run"
    with pytest.raises(command.Failed) as failed:
        command.run("compact", path, *options)
    assert failed.value.changed == "nothing"
    assert lance.dataset(str(path)).version == version and sorted(os.listdir(path / "data")) == data
    return failed.value


@pytest.mark.parametrize("name, values", [
    ("nested", pa.array([{"x": 1}] * 20, pa.struct([("x", pa.int32())]))),
    ("lists", pa.array([["a"]] * 20, pa.list_(pa.string()))),
    ("kinds", pa.array(["a"] * 20).dictionary_encode()),
])
def test_columns_that_are_not_written_are_named(name, values, tmp_path):
    path = tmp_path / "t.lance"
    for n in range(2):
        lance.write_dataset(pa.table({"id": pa.array(range(20)), name: values}), str(path), mode="append" if n else "create", data_storage_version="2.1")
    error = refused(path)
    assert error.code in ("UNSUPPORTED_TYPE", "UNSUPPORTED_ENCODING") and f"column {name}" in error.message


def test_stable_row_ids_cannot_be_deferred(tmp_path):
    path = make(tmp_path / "t.lance", stable=True, fragments=4)
    with pytest.raises(command.Failed) as failed:
        command.run("compact", path, "--defer")
    assert failed.value.code == "INVALID_ARGUMENT"


def test_a_tagged_history_is_refused(fixtures, scratch):
    path = scratch(fixtures / "tagged" / "compaction_1hop.lance")
    with pytest.raises(command.Failed) as failed:
        command.run("compact", path, "--defer")
    assert failed.value.code in ("HISTORY_UNSUPPORTED", "UNSUPPORTED_FEATURE") and failed.value.changed == "nothing"


def bits(table):
    """The table with floats as the integers of the same bits: no NaN equals another."""
    wide = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
    plain = lambda c: c.combine_chunks().view(wide[c.type.bit_width]) if pa.types.is_floating(c.type) else c  # noqa: E731
    return pa.table({name: plain(column) for name, column in zip(table.column_names, table.columns)})


def fixture_names():
    names = sorted(fixture_tables.names())
    if os.environ.get("WHETSTONE_FULL"):
        return names
    return [names[int(i)] for i in np.random.default_rng(int(os.environ.get("WHETSTONE_SEED", "1"))).permutation(len(names))[:8]]


@pytest.mark.parametrize("name", fixture_names())
def test_fixture_tables(name, fixtures, scratch, tmp_path):
    """Tables of every history: compacted as Lance does it, or refused by a typed error with nothing changed."""
    ours = scratch(fixtures / "tables" / f"{name}.lance")
    theirs = tmp_path / "theirs.lance"
    shutil.copytree(ours, theirs)
    version = sorted(os.listdir(ours / "_versions"))
    try:
        report = command.run("compact", ours, "--param", "target_rows_per_fragment=10000")
    except command.Failed as failed:
        assert failed.code.startswith("UNSUPPORTED") or failed.code in ("HISTORY_UNSUPPORTED", "CORRUPT_FILE"), str(failed)
        assert sorted(os.listdir(ours / "_versions")) == version
        return
    if report["transaction"] is None:
        return
    try:
        before = segments(theirs)
    except Exception:  # Lance describes no index one of whose segments records no coverage
        before = None
    lance.dataset(str(theirs)).optimize.compact_files(target_rows_per_fragment=10_000, num_threads=1)
    one, other = lance.dataset(str(ours)), lance.dataset(str(theirs))
    assert bits(one.to_table(with_row_id=True)).equals(bits(other.to_table(with_row_id=True)))
    assert [(f.fragment_id, f.physical_rows) for f in one.get_fragments()] == [(f.fragment_id, f.physical_rows) for f in other.get_fragments()]
    if before is not None:
        assert effects(ours, before) == effects(theirs, before)
    oracle.healthy(ours)
