"""The holes of Lance 14.0.2 that a commit of index segments can fall into (refresh-and-compaction §8.1): each shown with Lance alone, and
then with our commit in its place, which refuses or leaves out what is no longer true."""

import dataclasses
import datetime
import json
import subprocess

import lance
import numpy as np
import pyarrow as pa
import pytest

import columns
import command
import oracle
import tables

INDEX = tables.INDEX


class Ours:
    """A refresh of ours that is built and waits to be committed."""

    def __init__(self, path, **options):
        script = command.ROOT / "tests" / "support" / "build_then_commit.mjs"
        self.process = subprocess.Popen(
            ["node", str(script), str(path), INDEX, json.dumps(options)], env=command.clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.built = json.loads(self.process.stdout.readline())
        assert "built" in self.built, self.built

    def commit(self, **changes):
        """The report, or the error as a document."""
        out, _ = self.process.communicate(json.dumps(changes) + "\n", timeout=60)
        return json.loads(out)


@pytest.fixture
def table(tmp_path):
    """Two indexed fragments {0, 1} and three that are not."""
    return str(tables.make(tmp_path / "t.lance", "int64", "BTREE", 3))


def theirs(path, fragments, handle=None, method="BTREE", **options):
    """A segment built by Lance on the handle, not committed."""
    dataset = handle or lance.dataset(path)
    return dataset.create_index_uncommitted("v", method, name=INDEX, fragment_ids=fragments, replace=True, **options)


def names(path):
    return [d.name for d in lance.dataset(path).describe_indices()]


def some_filters(path):
    return columns.filters(oracle.values(path), np.random.default_rng(8))


def wrong(path, filters=None):
    """Filters that Lance answers differently with the index and without."""
    return [f for f in filters or some_filters(path) if oracle.ids(path, f) != oracle.ids(path, f, use_scalar_index=False)]


def clean_up(path):
    """Lance's own cleanup of everything but the newest version. Staged segments are younger than its seven days and stay."""
    tables.write(path, "int64", [5], np.random.default_rng(1), 900_000)
    lance.dataset(path).cleanup_old_versions(older_than=datetime.timedelta(0))


def copy(path, tmp_path):
    import shutil

    return shutil.copytree(path, tmp_path / "alone.lance")


def test_1_a_drop_that_was_cleaned_up(table, tmp_path):
    alone = str(copy(table, tmp_path))
    old = lance.dataset(alone)
    segment = theirs(alone, [2, 3], old)
    lance.dataset(alone).drop_index(INDEX)
    clean_up(alone)
    old.commit_existing_index_segments(INDEX, "v", [segment])
    assert oracle.coverage(alone, INDEX) == [[2, 3]], "Lance brings the dropped index back, with a part of its coverage"

    ours = Ours(table)
    lance.dataset(table).drop_index(INDEX)
    clean_up(table)
    assert ours.commit()["error"]["code"] == "INDEX_DROPPED"
    assert names(table) == []


def test_2_a_drop_racing_a_compaction(table, tmp_path):
    alone = str(copy(table, tmp_path))
    old = lance.dataset(alone)
    lance.dataset(alone).optimize.compact_files(target_rows_per_fragment=100_000)
    old.drop_index(INDEX)
    assert names(alone) == [INDEX], "both succeed, and the index is still there"

    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(command.run("drop-index", table, INDEX, "--dry-run")))
    lance.dataset(table).optimize.compact_files(target_rows_per_fragment=100_000)
    report = command.run("drop-index", table, INDEX, "--plan", plan)
    assert report["segments_removed"] > 0 and names(table) == []


def test_3_a_drop_before_the_commit_opens_the_table(table, tmp_path):
    alone = str(copy(table, tmp_path))
    segment = theirs(alone, [2, 3])
    lance.dataset(alone).drop_index(INDEX)
    lance.dataset(alone).commit_existing_index_segments(INDEX, "v", [segment])
    assert oracle.coverage(alone, INDEX) == [[2, 3]], "Lance makes the dropped index anew"

    ours = Ours(table)
    lance.dataset(table).drop_index(INDEX)
    assert ours.commit()["error"]["code"] == "INDEX_DROPPED"
    assert names(table) == []


def deleted_and_restored(path, between):
    """Deletes rows of fragment 3, lets `between` build, and restores the version with these rows."""
    before = lance.dataset(path)
    ids = before.get_fragment(3).to_table(columns=["id"])["id"].to_pylist()[:10]
    lance.dataset(path).delete(f"id in ({', '.join(map(str, ids))})")
    built = between()
    lance.dataset(path, version=before.version).restore()
    return built, f"v in ({', '.join(columns.literal(v) for v in values_of(path, ids))})"


def values_of(path, ids):
    found = lance.dataset(path).to_table(columns=["v"], filter=f"id in ({', '.join(map(str, ids))})")["v"].to_pylist()
    return sorted({v for v in found if v > -(2**63)})


def test_4_a_restore_makes_deleted_rows_live_again(table, tmp_path):
    alone = str(copy(table, tmp_path))
    segment, filter = deleted_and_restored(alone, lambda: theirs(alone, [2, 3, 4]))
    lance.dataset(alone).commit_existing_index_segments(INDEX, "v", [segment])
    assert wrong(alone, [filter]), "the revived rows are missing from the answer"

    ours, filter = deleted_and_restored(table, lambda: Ours(table))
    report = ours.commit()["report"]
    assert report["established"] == [2, 4] and [left["fragment"] for left in report["left_out"]] == [3]
    assert not wrong(table, [filter, *some_filters(table)])


def rewritten_by_merge(path, number=3):
    """A Merge that puts another file behind the column of a fragment, as tools that add columns do."""
    dataset = lance.dataset(path)
    fragment = dataset.get_fragment(number)
    ids = fragment.to_table(columns=["id"])["id"]
    updated, _ = fragment.update_columns(pa.table({"id": ids, "v": pa.array(range(70_000, 70_000 + len(ids)), pa.int64())}), left_on="id", right_on="id")
    fragments = [updated if f.fragment_id == number else f.metadata for f in dataset.get_fragments()]
    lance.LanceDataset.commit(path, lance.LanceOperation.Merge(fragments, dataset.schema), read_version=dataset.version)


def test_5_a_merge_rewrote_the_column(table, tmp_path):
    alone = str(copy(table, tmp_path))
    old = lance.dataset(alone)
    segment = theirs(alone, [2, 3, 4], old)
    rewritten_by_merge(alone)
    old.commit_existing_index_segments(INDEX, "v", [segment])
    assert wrong(alone, ["v >= 70000 and v < 80000"]), "the index holds the values from before the merge"

    ours = Ours(table)
    rewritten_by_merge(table)
    report = ours.commit()["report"]
    assert 3 not in report["established"] and 3 in [left["fragment"] for left in report["left_out"]]
    assert not wrong(table, ["v >= 70000 and v < 80000", *some_filters(table)])


def test_6_the_column_is_gone(table, tmp_path):
    alone = str(copy(table, tmp_path))
    old = lance.dataset(alone)
    segment = theirs(alone, [2, 3], old)
    lance.dataset(alone).drop_columns(["v"])
    old.commit_existing_index_segments(INDEX, "v", [segment])
    left = command.run("show", alone)["indices"]
    assert [index["name"] for index in left] == [INDEX], "Lance publishes a segment on a field that is not in the schema"

    ours = Ours(table)
    lance.dataset(table).drop_columns(["v"])
    assert ours.commit()["error"]["code"] in ("INDEX_CHANGED", "INDEX_DROPPED")
    assert command.run("show", table)["indices"] == []


def test_7_a_uuid_that_another_index_has(table, tmp_path):
    lance.dataset(table).create_scalar_index("id", "BTREE", name="other")
    alone = str(copy(table, tmp_path))
    taken = lance.dataset(alone).describe_indices()
    uuid = next(d for d in taken if d.name == "other").segments[0].uuid
    segment = dataclasses.replace(theirs(alone, [2, 3]), uuid=str(uuid))
    lance.dataset(alone).commit_existing_index_segments(INDEX, "v", [segment])
    assert names(alone) == [INDEX], "the other index's segment vanishes"

    files = [{"path": f.name, "size": f.stat().st_size} for f in sorted((tmp_path / "t.lance" / "_indices" / str(uuid)).iterdir())]
    assert Ours(table).commit(uuid=str(uuid), files=files)["error"]["code"] == "UUID_IN_USE"
    assert sorted(names(table)) == ["other", INDEX]


def test_8_the_version_built_on_was_cleaned_up(table, tmp_path):
    alone = str(copy(table, tmp_path))
    segment = theirs(alone, [2, 3, 4])
    clean_up(alone)
    lance.dataset(alone).commit_existing_index_segments(INDEX, "v", [segment])
    assert [] in oracle.coverage(alone, INDEX), "the commit succeeds, and its coverage is empty"

    ours = Ours(table)
    clean_up(table)
    report = ours.commit()["report"]
    assert report["established"] == [2, 3, 4] and report["left_out"] == []
    assert not wrong(table)


def test_9_full_text_settings_differ(tmp_path):
    path = tmp_path / "t.lance"
    text = pa.array(["Running dogs", "a dog runs", "DOGS", "cats"] * 10)
    lance.write_dataset(pa.table({"id": pa.array(range(40)), "v": text}), str(path))
    lance.dataset(str(path)).create_scalar_index("v", "INVERTED", name=INDEX, stem=False, lower_case=False)
    lance.write_dataset(pa.table({"id": pa.array(range(40, 80)), "v": text}), str(path), mode="append")
    alone = str(copy(path, tmp_path))
    segment = theirs(alone, [1], method="INVERTED", stem=True, lower_case=True)
    lance.dataset(alone).commit_existing_index_segments(INDEX, "v", [segment])
    assert oracle.coverage(alone, INDEX) == [[0], [1]], "Lance accepts two configurations under one name"

    with pytest.raises(command.Failed) as failed:
        command.run("refresh", str(path), INDEX, "--param", "stem=true", "--param", "lower_case=true")
    assert failed.value.code == "DETAILS_DIFFER"
    assert oracle.coverage(str(path), INDEX) == [[0]]


def rewritten_in_place(path, number):
    dataset = lance.dataset(path)
    fragment = dataset.get_fragment(number)
    ids = fragment.to_table(columns=["id"])["id"]
    updated, fields = fragment.update_columns(pa.table({"id": ids, "v": pa.array(range(70_000, 70_000 + len(ids)), pa.int64())}), left_on="id", right_on="id")
    lance.LanceDataset.commit(path, lance.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields), read_version=dataset.version)


def test_10_old_values_in_a_segment_that_stays(table, tmp_path):
    old_values = some_filters(table)
    rewritten_in_place(table, 1)
    alone = str(copy(table, tmp_path))
    lance.dataset(alone).commit_existing_index_segments(INDEX, "v", [theirs(alone, [1, 2, 3, 4])])
    assert wrong(alone, old_values), "the old values of fragment 1 are served again"

    command.run("refresh", table, INDEX)
    assert not wrong(table, [*old_values, *some_filters(table)])
    assert command.run("audit", table, INDEX)["findings"] == []


def test_11_an_eager_compaction_after_a_deferred_one(tmp_path):
    table = str(tmp_path / "t.lance")
    tables.write(table, "int64", [50] * 8, np.random.default_rng(3))
    lance.dataset(table).create_scalar_index("v", "BTREE", name=INDEX)

    # Two by two without touching the index, then all of it.
    def compact(target, deferred):
        lance.dataset(table).optimize.compact_files(target_rows_per_fragment=target, defer_index_remap=deferred, num_threads=1)

    compact(100, True)
    tables.write(table, "int64", [50], np.random.default_rng(4), 400)
    alone = str(copy(table, tmp_path))
    lance.dataset(alone).optimize.compact_files(target_rows_per_fragment=100_000, num_threads=1)
    filters = some_filters(alone)
    assert wrong(alone, filters), "Lance finds nothing in fragments that it says are indexed"
    report = subprocess.run(["node", str(command.COMMAND), "audit", alone, INDEX, "--json"], capture_output=True, text=True)
    assert report.returncode == 1 and json.loads(report.stdout)["findings"], "the audit sees it"

    # What a refresh of ours builds anew is covered by itself, not through the history: the same compaction is right.
    command.run("refresh", table, INDEX, "--absorb")
    compact(100_000, False)
    assert not wrong(table, filters)
    assert command.run("audit", table, INDEX)["findings"] == []
    # The damage that Lance alone did is cured by building anew, all of it: nothing tells an entry that leads nowhere from none.
    other = str(copy(alone, tmp_path / "other"))
    command.run("refresh", other, INDEX, "--absorb")
    assert not wrong(other, filters) and command.run("audit", other, INDEX)["findings"] == []
    command.run("create-index", alone, INDEX, "v", "BTREE", "--replace")
    assert not wrong(alone, filters) and command.run("audit", alone, INDEX)["findings"] == []
