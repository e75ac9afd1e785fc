"""Refresh and create on tables with a tagged reuse history while Lance appends, deletes, rewrites values in place, compacts and optimises.

Whatever lands in which order: every version opens and answers through its indexes as a scan does, no two segments of a name ever share a
fragment, and what was reported as committed is in the history once.
"""

import os
import random

import lance
import pyarrow as pa
import pytest

import command
import fixture_tables
import histories
import oracle

CASES = [("partition_1hop", "rewrite"), ("all_types_compaction", "optimize")]
MORE = ["different_coverage", "partition_2hop", "withdrawn_one_of_two", "mixed_partition_then_compaction", "all_types_partition"]
VERSIONS = 25
# What a job may be told when others were faster; nothing is committed then.
REFUSALS = {"INDEX_EXISTS", "INDEX_CHANGED", "INDEX_DROPPED", "NOTHING_LEFT", "COMMIT_CONFLICT", "PARTIAL_REPLACEMENT", "STALE_PLAN", "OVERLAP"}


def works(path, key, other):
    """What Lance does, each on the newest version. It never both rewrites values and optimises here: a segment it adds over a fragment
    whose values were rewritten brings back the old values of those it keeps."""
    rows, turn = lance.dataset(path).to_table().slice(0, 4), iter(range(1_000_000))

    def rewrite():
        """Other values of `i` in a fragment that stays: what was derived for it is withdrawn."""
        dataset = lance.dataset(path)
        fragment = dataset.get_fragments()[0]
        found = fragment.to_table(columns=[key, "i"])
        values = pa.table({key: found[key], "i": found["i"].combine_chunks().take(pa.array(range(len(found) - 1, -1, -1)))})
        updated, fields = fragment.update_columns(values, left_on=key, right_on=key)
        operation = lance.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
        lance.LanceDataset.commit(path, operation, read_version=dataset.version)

    others = {"rewrite": rewrite, "optimize": lambda: lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=0)}
    return {
        "append": lambda: lance.write_dataset(rows, path, mode="append"),
        "delete": lambda: lance.dataset(path).delete(f"{key} % 41 = {next(turn) % 41}"),
        other: others[other],
        "append more": lambda: lance.write_dataset(rows, path, mode="append"),
        "compact": lambda: lance.dataset(path).optimize.compact_files(target_rows_per_fragment=30, defer_index_remap=True),
    }


def cases():
    full = os.environ.get("WHETSTONE_FULL") == "1"
    return CASES + ([(name, other) for name in MORE for other in ("rewrite", "optimize")] if full else [])


@pytest.mark.parametrize("name, other", cases())
def test_jobs_while_lance_commits(name, other, fixtures, webdav):
    expected = fixture_tables.expected(fixtures, name, tagged=True)
    key, queries = expected["key_column"], [q for q in expected["queries"] if "filter" in q]
    target = webdav.put(fixtures / "tagged" / f"{name}.lance")
    path = webdav.local(target)
    indexes = [index["name"] for index in expected["indexes"]]
    first = lance.dataset(path).version
    jobs = [("refresh", index, "--num-segments", 2) for index in indexes[:2]]
    jobs += [("refresh", indexes[0]), ("create-index", "made", "i", "BTREE", "--num-segments", 2), ("create-index", "made", "i", "BTREE")]
    started = [command.start(job[0], target, *job[1:], "--json") for job in jobs]
    done = histories.at_work(path, works(path, key, other), lambda: all(p.poll() is not None for p in started))
    reports, refused = command.finish_all(started)
    assert all(f.changed == "nothing" and f.code in REFUSALS for f in refused), [str(f) for f in refused]
    landed = {r["transaction"]: r["version"] for r in reports if r["transaction"]}
    assert landed, (done, [str(f) for f in refused])
    # One of the two had the name first.
    assert sum(r["index_name"] == "made" and r["transaction"] is not None for r in reports) <= 1

    last = lance.dataset(path).version
    uuids = {version: lance.dataset(path).read_transaction(version).uuid for version in range(first + 1, last + 1)}
    for uuid, version in landed.items():
        assert [v for v, other in uuids.items() if other == uuid] == [version]
    histories.nothing_twice(path)
    draw = random.Random(last)
    for version in {*landed.values(), last}:
        histories.answers_as_a_scan(path, queries, key, version)
    for version in draw.sample(range(first, last + 1), min(VERSIONS, last - first)):
        histories.answers_as_a_scan(path, draw.sample(queries, 1), key, version)

    # In peace again everything is built.
    for index in {*indexes, *(r["index_name"] for r in reports)}:
        command.run("refresh", target, index)
    assert set(histories.coverage(path)) >= set(indexes)
    live = set(oracle.live(path))
    assert all({f for segment in segments for f in segment} == live for segments in histories.coverage(path).values())
    histories.nothing_twice(path)
    histories.answers_as_a_scan(path, queries, key)
