"""Refresh, create and drop on tables with a tagged reuse history, through the command over `serve --writable`: Lance opens what was
committed, answers every query as a full scan does, reads the index for it, and goes on from there.
"""

import json
import os
import re
import subprocess

import lance
import lance.optimize
import pytest
from lance.query import MatchQuery

import command
import fixture_tables
import hosts
import oracle
import random_layouts

# Its files are below the absolute path of its source.
ELSEWHERE = {"shallow_clone", "shallow_clone_source"}
# Histories with something in them that nobody here knows.
UNKNOWN = {"unknown_record", "unknown_mapping", "record_extra_field", "future_index_version"}
# All methods, every reason for which a segment covers nothing, and what may not be interpreted.
ALWAYS = ["all_types_partition", "partition_1hop", "withdrawn_one_of_two", "missing_bitmap", "unusable_segment", "unknown_record"]
SYSTEM = "__lance_frag_reuse"


def chosen():
    if os.environ.get("WHETSTONE_FULL") != "1":
        return ALWAYS
    return [name for name in fixture_tables.names(tagged=True) if name not in ELSEWHERE]


def column_of(query):
    return re.search(r"\b(id|i|v|s|t|tags|b)\b", query["filter"]).group(1)


def covered(path):
    """{index: fragments} that Lance's reader finds through each index."""
    return {d.name: {f for s in d.segments for f in s.fragment_ids} for d in lance.dataset(str(path)).describe_indices() if d.name != SYSTEM}


def agree(path, queries, key, read=()):
    """Every query answers as a scan does; those on a column of `read` read an index for it."""
    dataset = lance.dataset(path)
    for query in queries:
        scan = dataset.scanner(columns=[key], filter=query["filter"])
        found = sorted(scan.to_table()[key].to_pylist())
        assert found == oracle.ids(path, query["filter"], key, use_scalar_index=False), query["filter"]
        if column_of(query) in read:
            assert "ScalarIndexQuery" in scan.explain_plan(True), f"{query['filter']} reads no index"


def searched(path, word):
    """The rows a full text search finds are those with the word."""
    table = lance.dataset(path).to_table(columns=["id", "t"])
    wanted = sorted(k for k, text in zip(table["id"].to_pylist(), table["t"].to_pylist()) if text and word in text.lower().split())
    found = lance.dataset(path).scanner(columns=["id"], full_text_query=MatchQuery(word, "t"), limit=10_000).to_table()
    assert wanted and sorted(found["id"].to_pylist()) == wanted, word


@pytest.mark.parametrize("name", chosen())
def test_maintained_under_a_history(name, fixtures, webdav):
    expected = fixture_tables.expected(fixtures, name, tagged=True)
    key, indexes = expected["key_column"], expected["indexes"]
    target = webdav.put(fixtures / "tagged" / f"{name}.lance")
    path = webdav.local(target)
    queries = [q for q in expected["queries"] if "filter" in q]
    columns = {index["column"] for index in indexes}
    if name in UNKNOWN:
        return refused(target, path, indexes, queries, key)
    live = set(oracle.live(path))
    recorded = (expected.get("maintenance") or {}).get("refresh", {"outcome": {}})["outcome"]

    for index in indexes:
        report = command.run("refresh", target, index["name"], "--num-segments", 2)
        assert report["left_out"] == []
        assert (report["transaction"] is None) == (not recorded.get(index["name"], {}).get("unindexed")), index
    assert {index["name"]: live for index in indexes} == covered(path)
    if name == "mutually_redundant":
        without_doubles(target, path)
    oracle.healthy(path)
    for query in queries:
        if "ids" in query:
            assert oracle.ids(path, query["filter"], key) == query["ids"], query["filter"]
    agree(path, queries, key, columns)

    # An index more, and without it again.
    made = "i" if "i" in lance.dataset(path).schema.names else key
    command.run("create-index", target, "made", made, "ZONEMAP", "--num-segments", 2)
    assert covered(path)["made"] == live
    agree(path, queries, key, columns | {made})
    command.run("drop-index", target, "made")
    assert "made" not in covered(path)
    agree(path, queries, key, columns)

    goes_on(name, target, path, indexes, queries, key)


def without_doubles(target, path):
    """Two segments that serve the same fragments: Lance's check refuses the table as it came; a prune takes one of the two away."""
    with pytest.raises(OSError, match="[Oo]verlapping"):
        oracle.healthy(path)
    command.run("prune", target)


def goes_on(name, target, path, indexes, queries, key):
    """Lance appends, optimises and compacts; what we build after that is right again."""
    words = name.startswith("all_types")
    lance.write_dataset(lance.dataset(path).to_table().slice(0, 7), path, mode="append")
    agree(path, queries, key)
    # Lance optimises nothing at all where trigrams of moved rows would be merged.
    lance.dataset(path).optimize.optimize_indices(**({"num_indices_to_merge": 0} if words else {}))
    oracle.healthy(path)
    agree(path, queries, key)
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
    oracle.healthy(path)
    agree(path, queries, key)
    known = [index for index in indexes if name != "unusable_segment" or index["name"] != "i_idx"]
    for index in known:
        command.run("refresh", target, index["name"])
    live = set(oracle.live(path))
    found = covered(path)
    assert {index["name"]: live for index in known} == {index["name"]: found[index["name"]] for index in known}
    agree(path, queries, key, {index["column"] for index in known})
    if words:
        searched(path, "delta")
    command.run("trim", target)
    oracle.healthy(path)
    agree(path, queries, key, {index["column"] for index in known})


def refused(target, path, indexes, queries, key):
    """Nobody draws conclusions from what is not known; Lance goes on answering by scans."""
    version = lance.dataset(path).version
    jobs = [("refresh", index["name"]) for index in indexes] + [("drop-index", indexes[0]["name"]), ("merge", indexes[0]["name"])]
    for job in [*jobs, ("create-index", "made", "i", "BTREE")]:
        with pytest.raises(command.Failed) as failed:
            command.run(job[0], target, *job[1:])
        assert (failed.value.code, failed.value.changed) == ("HISTORY_UNSUPPORTED", "nothing"), job
    assert lance.dataset(path).version == version


def create_across(target, version, name, column, method, **options):
    """An index that was planned and built on an old version, and is committed on the newest."""
    script = command.ROOT / "tests" / "support" / "create_across.mjs"
    words = [target, version, name, column, method, json.dumps(options)]
    done = subprocess.run(["node", script, *map(str, words)], capture_output=True, text=True, timeout=120, env=command.clean_environment())
    assert done.returncode == 0 and done.stdout, done.stderr
    return json.loads(done.stdout)


def before_history(path):
    """The last version without a reuse history."""
    versions = sorted((v["version"] for v in lance.dataset(path).versions()), reverse=True)
    fragments = {v: {f.fragment_id for f in lance.dataset(path, version=v).get_fragments()} for v in versions}
    # The partitions and compactions of these tables are the first to change which fragments there are.
    return next(v for v in versions if fragments[v] == fragments[versions[-1]])


@pytest.mark.parametrize("name", ["all_types_partition", "all_types_compaction"])
def test_built_before_and_committed_after(name, fixtures, webdav):
    """Rows that moved between building and committing are found through the history, by every method that Lance carries."""
    expected = fixture_tables.expected(fixtures, name, tagged=True)
    target = webdav.put(fixtures / "tagged" / f"{name}.lance")
    path = webdav.local(target)
    queries = [q for q in expected["queries"] if "filter" in q]
    version, live = before_history(path), set(oracle.live(path))
    moved = live - {102}
    for index in expected["indexes"]:
        answer = create_across(target, version, f"{index['name']}_late", index["column"], index["type"].upper(), segments=2)
        if index["type"] == "ngram":
            assert answer["error"]["code"] == "NOTHING_LEFT", answer
            continue
        assert set(answer["report"]["established"]) == moved and answer["report"]["left_out"] == [], (index, answer)
        command.run("drop-index", target, index["name"])
    late = {i["name"] + "_late" for i in expected["indexes"] if i["type"] != "ngram"}
    found = covered(path)
    assert {name: found[name] for name in late} == {name: moved for name in late}
    oracle.healthy(path)
    columns = {i["column"] for i in expected["indexes"]}
    agree(path, queries, expected["key_column"], columns)
    searched(path, "delta")
    for index in late:
        command.run("refresh", target, index)
    assert {name: covered(path)[name] for name in late} == {name: live for name in late}
    agree(path, queries, expected["key_column"], columns)
    searched(path, "delta")


def test_values_rewritten_in_between(fixtures, webdav):
    """Where the column was rewritten in place after the partition, what was built before covers nothing of it: no old value is answered."""
    target = webdav.put(fixtures / "tagged" / "withdrawn_one_of_two.lance")
    path = webdav.local(target)
    expected = fixture_tables.expected(fixtures, "withdrawn_one_of_two", tagged=True)
    command.run("drop-index", target, "i_idx")
    report = create_across(target, before_history(path), "late", "i", "BTREE")["report"]
    assert (report["established"], [l["fragment"] for l in report["left_out"]]) == ([12, 13], [0, 1])
    assert covered(path)["late"] == {12, 13}
    queries = [q for q in expected["queries"] if "filter" in q]
    agree(path, queries, expected["key_column"], {"i"})
    command.run("refresh", target, "late")
    assert covered(path)["late"] == set(oracle.live(path))
    agree(path, queries, expected["key_column"], {"i"})


@pytest.mark.parametrize("target_rows", [15, 1000])
def test_compactions_are_planned_as_by_lance(target_rows, fixtures, tmp_path):
    """Every table whose history is understood: our plan, our forecast and Lance's own plan are the same, and so is what Lance then does."""
    options = {"defer_index_remap": True, "target_rows_per_fragment": target_rows}
    engine, planned, lost = random_layouts.Engine(), 0, 0
    for name in fixture_tables.names(tagged=True):
        if name in ELSEWHERE | UNKNOWN:
            continue
        path = tmp_path / f"{name}.lance"
        hosts.copy(fixtures / "tagged" / f"{name}.lance", path)
        answer = engine.ask(path, options, [])
        assert "error" not in answer, f"{name}: {answer}"
        plan, forecast = answer["plan"], answer["forecast"]
        tasks = [[f.id for f in task.fragments] for task in lance.optimize.Compaction.plan(lance.dataset(str(path)), options).tasks]
        assert [task["fragments"] for task in plan["tasks"]] == tasks, name
        numbers = {i["name"]: i["covered_fragments"] for i in forecast["before"]["indexes"]}
        assert {index: len(fragments) for index, fragments in covered(path).items()} == {index: n for index, n in numbers.items() if n}, name
        lance.dataset(str(path)).optimize.compact_files(**options, num_threads=1)
        after = forecast["plans"][0]["after"]
        live = set(oracle.live(path))
        assert after["fragments"] == plan["fragments_after"] == len(live), name
        found = covered(path)
        for index in after["indexes"]:
            assert index["covered_fragments"] == len(found.get(index["name"], ())), (name, index)
        for effect in plan["effects"]:
            assert set(effect["fragment_ids_after"]) & live <= found.get(effect["index"], set()), (name, effect)
        planned += bool(tasks)
        lost += any(w["rule"] == "loses_coverage" for w in forecast["warnings"])
    engine.close()
    assert planned >= 15 and lost >= 1, (planned, lost)


@pytest.mark.parametrize("name", ["partition_1hop", "different_coverage", "compaction_2hop", "withdrawn_one_of_two"])
@pytest.mark.parametrize("order", ["compact_then_refresh", "contiguous"])
def test_orders_are_forecast(name, order, fixtures, webdav):
    """A refresh of ours and a compaction by Lance, in either order, leave what was forecast of them."""
    target = webdav.put(fixtures / "tagged" / f"{name}.lance")
    path = webdav.local(target)
    lance.write_dataset(lance.dataset(path).to_table().slice(0, 7), path, mode="append")
    options = ["--param", "defer_index_remap=true", "--param", "target_rows_per_fragment=15"]
    document = command.run("compaction", target, "--compare", order, "--num-segments", 2, *options)
    forecast = document["forecast"]["plans"][0]["after"]

    def refresh():
        for index in fixture_tables.expected(fixtures, name, tagged=True)["indexes"]:
            command.run("refresh", target, index["name"], "--num-segments", 2)

    def compact():
        lance.dataset(path).optimize.compact_files(target_rows_per_fragment=15, defer_index_remap=True, num_threads=1)

    for job in (compact, refresh) if order == "compact_then_refresh" else (refresh, compact):
        job()
    assert forecast["fragments"] == len(oracle.live(path))
    shown = {index["name"]: index for index in command.run("show", target)["indices"]}
    found = covered(path)
    for index in forecast["indexes"]:
        now = shown[index["name"]]
        assert (index["segments"], index["covered_fragments"]) == (now["num_segments"], len(found.get(index["name"], ()))), (index, now)
