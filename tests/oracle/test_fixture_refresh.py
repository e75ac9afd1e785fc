"""Refreshing the indexes of the fixture tables: the awkward histories (stale pages, missing bitmaps, deferred compactions, stable ids).

After our refresh Lance must answer every recorded query with the recorded rows, and read the index where it did after its own refresh.
"""

import hashlib
import re
import unicodedata

import lance
import pytest
from lance.query import MatchQuery

import command
import fixture_tables
import oracle

OURS = {"BTree", "ZoneMap", "Bitmap", "BloomFilter", "NGram", "LabelList", "Inverted"}
# Tables with files that this build refuses by name; everywhere else a refusal is a failure.
REFUSED = {
    "storage_legacy": {"UNSUPPORTED_ENCODING"},
}


def candidates():
    """(table, index) for every index of a method this build maintains."""
    fixtures = fixture_tables.unpack()
    found = []
    for name in fixture_tables.names():
        expected = fixture_tables.expected(fixtures, name)
        mine = [i["name"] for i in expected["indices"] if i["type"] in OURS]
        if mine:
            found.append((name, mine))
    return found


def documents(path, column, word, key):
    """Keys of the rows with a word, found without an index."""
    table = lance.dataset(path).to_table(columns=[key, column])
    texts = [" ".join(x or "" for x in text) if isinstance(text, list) else text for text in table[column].to_pylist()]
    rows = zip(table[key].to_pylist(), texts)
    plain = lambda w: "".join(c for c in unicodedata.normalize("NFKD", w) if not unicodedata.combining(c))  # noqa: E731
    # Words of the fixtures that have one stem.
    stem = lambda w: {"running": "run", "runs": "run"}.get(plain(w), plain(w))  # noqa: E731
    wanted = {stem(w) for w in re.findall(r"\w+", word.lower())}  # any of the words will do
    return sorted(k for k, text in rows if text is not None and not wanted.isdisjoint(map(stem, re.findall(r"\w+", text.lower()))))


def searched(path, query, key):
    """Keys that a full text search finds."""
    question = MatchQuery(query["fts"], query["column"])
    table = lance.dataset(path).scanner(columns=[key], full_text_query=question, limit=100_000).to_table()
    return sorted(table[key].to_pylist())


def right_answer(query):
    return query.get("differs_without_index", query)


def answers(path, query, key):
    found = oracle.ids(path, query["filter"], key)
    return {"rows": len(found), "ids_sha256": hashlib.sha256(",".join(map(str, found)).encode()).hexdigest()}


@pytest.mark.parametrize("name,indices", candidates(), ids=lambda value: value if isinstance(value, str) else "")
def test_refresh_and_query(name, indices, fixtures, webdav):
    expected = fixture_tables.expected(fixtures, name)
    key = expected["key_column"]
    target = webdav.put(fixtures / "tables" / f"{name}.lance")
    path = webdav.local(target)
    live = {f["id"] for f in expected["fragments"]}
    committed, refused = set(), {}
    for index in indices:
        try:
            report = command.run("refresh", target, index, "--num-segments", 2)
        except command.Failed as failed:
            assert failed.code in REFUSED.get(name, ()), f"{name} {index}: {failed}"
            assert failed.changed == "nothing"
            refused[index] = failed.code
            continue
        assert report["left_out"] == [], f"{name} {index}"
        if report["version"] != report["version_before"]:
            committed.add(index)
            covered = {f for segment in oracle.coverage(path, index) for f in segment} if name not in UNDESCRIBED else set(report["established"])
            assert live <= covered, f"{name} {index} covers {sorted(covered)} of {sorted(live)}"
    assert committed or refused or not any(i["unindexed_fragments"] for i in expected["indices"] if i["name"] in indices)
    oracle.healthy(path)
    uses = expected["refresh"]["uses_index"]
    for query in expected["queries"]:
        if "fts" in query and "error" not in query and query["index"] in committed:
            assert searched(path, query, key) == documents(path, query["column"], query["fts"], key), f"{name}: {query['fts']}"
    if name.startswith(("stale_pages", "pruned_", "list_column")):
        for index in committed:
            assert command.audit(target, index)["findings"] == [], f"{name} {index}"
    for position, query in enumerate(expected["queries"]):
        if "filter" not in query or "error" in query or query["index"] not in committed:
            continue
        wanted = right_answer(query)
        found = answers(path, query, key)
        assert found == {k: wanted[k] for k in found}, f"{name}: {query['filter']}"
        if position < len(uses) and uses[position]:
            assert oracle.uses(path, query["filter"], query["index"], key), f"{name}: {query['filter']} does not read {query['index']}"
    untouched(path, expected, committed, key)


# Lance refuses to describe a table with a segment of unknown coverage beside those of other indexes.
UNDESCRIBED = set()


def untouched(path, expected, committed, key):
    """Queries of the other indexes answer as they did before."""
    for query in expected["queries"]:
        if "filter" in query and "error" not in query and query["index"] not in committed:
            found = answers(path, query, key)
            assert found == {k: query[k] for k in found}, query["filter"]


def test_lists_that_were_not_pruned(fixtures, webdav):
    """Lance left the old lists in the index; nothing in the manifest tells, an audit does, and a new index is right."""
    target = webdav.put(fixtures / "tables" / "list_column_not_pruned.lance")
    path = webdav.local(target)
    report = command.audit(target, "l_idx")
    assert report["counts"] and set(report["counts"]) <= {"ROW_OTHER_VALUE", "ROW_MISSING", "ROW_SURPLUS"}, report["counts"]
    assert command.run("refresh", target, "l_idx")["transaction"] is None, "no fragment is unindexed"
    command.run("create-index", target, "l_idx", "l", "LABEL_LIST", "--replace")
    assert command.audit(target, "l_idx")["findings"] == []
    expected = fixture_tables.expected(fixtures, "list_column_not_pruned")
    for query in (q for q in expected["queries"] if q.get("index") == "l_idx" and "filter" in q):
        wanted = right_answer(query)
        found = answers(path, query, expected["key_column"])
        assert found == {k: wanted[k] for k in found}, query["filter"]


def test_refresh_on_a_branch(webdav, tmp_path):
    """A commit on a branch goes to the branch's own versions; main does not move."""
    import numpy as np

    import tables

    source = tmp_path / "main.lance"
    tables.make(source, "int64", "BTREE", 1)
    target = webdav.put(source)
    path = webdav.local(target)
    branch = lance.dataset(path).create_branch("dev")
    branch = lance.write_dataset(branch.to_table().slice(0, 30), branch.uri, mode="append")
    main_version, branch_version = lance.dataset(path).version, branch.version
    report = command.run("refresh", target, tables.INDEX, "--branch", "dev")
    assert (report["version_before"], report["version"]) == (branch_version, branch_version + 1)
    assert lance.dataset(path).version == main_version
    oracle.fully_covered(branch.uri, tables.INDEX)
    import columns

    oracle.agree(branch.uri, tables.INDEX, columns.filters(oracle.values(branch.uri), np.random.default_rng(3)))
