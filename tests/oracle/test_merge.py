"""Many segments made few: Lance finds the rows of a full scan, and its compaction can group fragments again."""

import lance
import lance.optimize
import numpy as np
import pytest

import columns
import command
import oracle
import tables

METHODS = ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"]


@pytest.fixture
def split(tmp_path):
    """A table whose index has a segment per fragment, which no compaction can group."""

    def make(method):
        path = tables.make(tmp_path / f"{method}.lance", "int64", method, 5, base=1)
        command.run("refresh", path, tables.INDEX, "--num-segments", 5)
        assert len(oracle.coverage(path, tables.INDEX)) == 6
        return path

    return make


def filters(path, method):
    found = columns.filters(oracle.values(path), np.random.default_rng(3))
    return [text for text in found if method != "BLOOMFILTER" or text.startswith(("v =", "v in", "v is null"))]


def planned_groups(path):
    return [len(task.fragments) for task in lance.optimize.Compaction.plan(lance.dataset(str(path)), {"target_rows_per_fragment": 100_000}).tasks]


@pytest.mark.parametrize("method", METHODS)
def test_all_into_one_and_into_two(method, split):
    path = split(method)
    assert planned_groups(path) in ([], [1] * len(planned_groups(path))), "every fragment is frozen by a segment of its own"
    report = command.run("merge", path, tables.INDEX, "--num-segments", 2)
    assert (report["segments_added"], report["segments_removed"], len(report["established"])) == (2, 6, 6)
    oracle.healthy(path)
    segments = oracle.fully_covered(path, tables.INDEX)
    assert len(segments) == 2 and segments[0][-1] < segments[1][0], "contiguous"
    oracle.agree(path, tables.INDEX, filters(path, method))
    assert max(planned_groups(path)) > 1
    assert command.run("merge", path, tables.INDEX)["segments_added"] == 1
    oracle.agree(path, tables.INDEX, filters(path, method))
    assert command.run("merge", path, tables.INDEX)["transaction"] is None
    tables.write(path, "int64", [40], np.random.default_rng(1), 10_000)
    lance.dataset(str(path)).optimize.optimize_indices()
    oracle.fully_covered(path, tables.INDEX)
    oracle.agree(path, tables.INDEX, filters(path, method))


def test_files_are_taken_where_they_do(split):
    path = split("ZONEMAP")
    plan = command.run("merge", path, tables.INDEX, "--dry-run")
    (task,) = plan["tasks"]
    (note,) = [w["evidence"] for w in plan["warnings"] if w["rule"].startswith("merge_from")]
    assert len(task["merge_of"]["segments"]) == 6 and "6 segments are taken from their files" in note
    plan = command.run("merge", path, tables.INDEX, "--reread", "--dry-run")
    assert "merge_of" not in plan["tasks"][0] and not [w for w in plan["warnings"] if w["rule"].startswith("merge_from")]

    # Zones that were cut otherwise are read from the column, the others are not.
    tables.write(path, "int64", [70], np.random.default_rng(1), 10_000)
    command.run("refresh", path, tables.INDEX, "--param", "rows_per_zone=16")
    plan = command.run("merge", path, tables.INDEX, "--dry-run")
    notes = {w["rule"]: w["evidence"] for w in plan["warnings"]}
    # The newest segment says how the merged one is built.
    assert plan["index"]["params"]["rows_per_zone"] == 16
    assert len(plan["tasks"][0]["merge_of"]["segments"]) == 1 and "other parameters" in notes["merge_from_column"]
    assert command.run("merge", path, tables.INDEX)["segments_removed"] == 7
    oracle.healthy(path)
    oracle.fully_covered(path, tables.INDEX)
    oracle.agree(path, tables.INDEX, filters(path, "ZONEMAP"))
    assert command.audit(path, tables.INDEX)["findings"] == []


def test_a_damaged_segment_is_read_from_its_column(split):
    path = split("BTREE")
    (uuid,) = [str(s.uuid) for s in oracle.describe(path, tables.INDEX).segments if min(s.fragment_ids) == 3]
    file = path / "_indices" / uuid / "page_data.lance"
    bytes_ = bytearray(file.read_bytes())
    bytes_[-40:-30] = b"\xff" * 10
    file.write_bytes(bytes_)
    assert command.run("merge", path, tables.INDEX)["segments_added"] == 1
    oracle.agree(path, tables.INDEX, filters(path, "BTREE"))
    assert command.audit(path, tables.INDEX)["findings"] == []


def test_chosen_segments_beside_others(split):
    path = split("BTREE")
    chosen = [str(s.uuid) for s in oracle.describe(path, tables.INDEX).segments if min(s.fragment_ids) in (2, 3)]
    report = command.run("merge", path, tables.INDEX, *[word for uuid in chosen for word in ("--only", uuid)])
    assert sorted(report["removed"]) == sorted(chosen) and report["established"] == [2, 3]
    assert oracle.fully_covered(path, tables.INDEX) == [[0], [1], [2, 3], [4], [5]]
    oracle.agree(path, tables.INDEX, filters(path, "BTREE"))


def test_many_small_refreshes_leave_few_segments(tmp_path):
    """With the tiered policy their number stays logarithmic, and every row is found."""
    path = tables.make(tmp_path / "t.lance", "int64", "BTREE", 0, base=1)
    rng, first = np.random.default_rng(2), 100_000
    for _ in range(24):
        first = tables.write(path, "int64", [20], rng, first)
        command.run("refresh", path, tables.INDEX, "--absorb-trailing")
    assert len(oracle.fully_covered(path, tables.INDEX)) <= 5
    oracle.agree(path, tables.INDEX, filters(path, "BTREE"))


def test_what_absorbing_would_do_is_advised(split):
    path = split("BTREE")
    tables.write(path, "int64", [300], np.random.default_rng(2), 100_000)
    plan = command.run("plan", path, tables.INDEX)
    (advice,) = [w for w in plan["warnings"] if w["rule"] == "absorb_trailing"]
    assert "--absorb-trailing" in advice["action"]["command"] and plan["absorbed"] == []
