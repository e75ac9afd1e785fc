"""Refresh, create and drop on tables with a tagged reuse history, through the command over `serve --writable`: Lance opens what was
committed, answers every query as a full scan does, reads the index for it, and goes on from there.
"""

import os
import random
import re

import lance
import pytest
from lance.query import MatchQuery

import command
import fixture_tables
import oracle

# Its files are below the absolute path of its source.
ELSEWHERE = {"shallow_clone", "shallow_clone_source"}
# Histories with something in them that nobody here knows.
UNKNOWN = {"unknown_record", "unknown_mapping", "record_extra_field", "future_index_version"}
# All methods, every reason for which a segment covers nothing, and what may not be interpreted.
ALWAYS = ["all_types_partition", "partition_1hop", "withdrawn_one_of_two", "missing_bitmap", "unusable_segment", "unknown_record"]
SAMPLE = 3
SYSTEM = "__lance_frag_reuse"


def chosen():
    names = [name for name in fixture_tables.names(tagged=True) if name not in ELSEWHERE]
    if os.environ.get("WHETSTONE_FULL") == "1":
        return names
    others = sorted(set(names) - set(ALWAYS))
    return ALWAYS + random.Random(int(os.environ.get("WHETSTONE_SEED", "6"))).sample(others, SAMPLE)


def column_of(query):
    return re.search(r"\b(id|i|v|s|t|tags|b)\b", query["filter"]).group(1)


def covered(path):
    """{index: fragments} that Lance's reader finds through each index."""
    return {d.name: {f for s in d.segments for f in s.fragment_ids} for d in lance.dataset(path).describe_indices() if d.name != SYSTEM}


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
    oracle.healthy(path)
    for query in queries:
        if "ids" in query:
            assert oracle.ids(path, query["filter"], key) == query["ids"], query["filter"]
    agree(path, queries, key, columns)

    # An index more, and without it again.
    command.run("create-index", target, "made", "i", "ZONEMAP", "--num-segments", 2)
    assert covered(path)["made"] == live
    agree(path, queries, key, columns | {"i"})
    command.run("drop-index", target, "made")
    assert "made" not in covered(path)
    agree(path, queries, key, columns)

    goes_on(name, target, path, indexes, queries, key)


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
