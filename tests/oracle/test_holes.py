"""What others do between our build and our commit, where Lance 14.0.2 alone publishes an index that loses rows or comes back from the dead
(refresh-and-compaction §8.1). Each test shows first that Lance alone does so, then that a commit of ours does not."""

import datetime
import json
import os
import random
import shutil
import subprocess

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import command
import oracle

INDEX, COLUMN = "v_idx", "v"
APART = command.ROOT / "tests" / "support" / "build_apart.mjs"
METHODS = ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "NGRAM", "LABEL_LIST", "INVERTED"]
if not os.environ.get("WHETSTONE_FULL"):
    METHODS = random.Random(int(os.environ.get("WHETSTONE_SEED", "3"))).sample(METHODS, 3)
FILTERS = {
    "BTREE": ["v = 7", "v < 5", "v = 1007", "v > 999", "v is null"], "BITMAP": ["v = 7", "v < 5", "v = 1007", "v > 999", "v is null"], "ZONEMAP": ["v = 7", "v < 5", "v = 1007", "v > 999", "v is null"],
    "BLOOMFILTER": ["v = 7", "v in (3, 4, 1003)", "v = 1007", "v is null"], "NGRAM": ["contains(v, 'word7')", "v like '%ord3%'"],
    "LABEL_LIST": ["array_has(v, 'word7')", "array_has_any(v, ['word3', 'word4'])"],
}  # fmt: skip


def values(method, rows, first=0):
    rng = np.random.default_rng(first + rows)
    numbers = [None if n == 0 else int(n) for n in rng.integers(0, 20, rows)]
    if method in ("NGRAM", "INVERTED"):
        return pa.array([None if n is None else f"word{n} everywhere" for n in numbers], pa.string())
    if method == "LABEL_LIST":
        return pa.array([None if n is None else [f"word{n}", "everywhere"] for n in numbers], pa.list_(pa.string()))
    return pa.array(numbers, pa.int64())


def write(path, method, sizes, first=0):
    for rows in sizes:
        table = pa.table({"id": pa.array(range(first, first + rows), pa.int64()), COLUMN: values(method, rows, first)})
        lance.write_dataset(table, str(path), mode="append" if path.exists() else "create")
        first += rows


def found(path, text):
    """Ids of the documents with a word, in the index or beside it."""
    table = lance.dataset(str(path)).scanner(columns=["id", "_score"], full_text_query=text, limit=10_000).to_table()
    return sorted(table["id"].to_pylist())


def wrong(path, method):
    """Queries that do not return the rows of a full scan."""
    if method == "INVERTED":
        table = lance.dataset(str(path)).to_table(columns=["id", COLUMN])
        texts = dict(zip(table["id"].to_pylist(), table[COLUMN].to_pylist()))
        having = lambda word: sorted(i for i, text in texts.items() if text and word in text.split())  # noqa: E731
        return [word for word in ("word7", "word3") if found(path, word) != having(word)]
    return [f for f in FILTERS[method] if oracle.ids(path, f) != oracle.ids(path, f, use_scalar_index=False)]


class Both:
    """A table with two indexed fragments and two others, twice: what Lance built at this version, and what we did."""

    def __init__(self, tmp_path, method):
        self.method, self.tmp = method, tmp_path
        ours = tmp_path / "ours.lance"
        write(ours, method, [60, 50, 40, 45])
        # One row of every fragment is gone before anything is built.
        lance.dataset(str(ours)).delete("id % 50 = 1")
        lance.dataset(str(ours)).create_scalar_index(COLUMN, method, name=INDEX)
        write(ours, method, [30, 35], 195)
        self.rows_before = lance.dataset(str(ours)).version
        lance.dataset(str(ours)).delete("id % 10 = 4")
        self.theirs = tmp_path / "theirs.lance"
        shutil.copytree(ours, self.theirs)
        self.ours = ours
        self.handle = lance.dataset(str(self.theirs))
        self.segment = self.handle.create_index_uncommitted(COLUMN, method, name=INDEX, replace=True, fragment_ids=[4, 5])
        self.plan, self.built = tmp_path / "plan.json", tmp_path / "built.json"
        self.plan.write_text(json.dumps(command.run("plan", ours, INDEX)))
        self.apart("build")

    def apart(self, what):
        words = ["node", str(APART), what, str(self.ours), str(self.plan), str(self.built)]
        done = subprocess.run(words, env=command.clean_environment(), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout) if done.stdout else None

    def meanwhile(self, change):
        for path in (self.theirs, self.ours):
            change(lance.dataset(str(path)))

    def lance_commits(self):
        """Lance commits what it built, on the handle of back then."""
        self.handle.commit_existing_index_segments(INDEX, COLUMN, [self.segment])

    def we_commit(self):
        return self.apart("commit")


@pytest.fixture
def both(tmp_path):
    return lambda method: Both(tmp_path, method)


def merge_anew(dataset):
    """A Merge that puts the column of fragment 4 into another file, with other values."""
    fragment = dataset.get_fragment(4)
    table = fragment.to_table(columns=["id", COLUMN])
    # Every value moves to another row, numbers out of what zones bound.
    column = table[COLUMN].combine_chunks().take(pa.array([*range(1, len(table)), 0]))
    moved = pa.table({"id": table["id"], COLUMN: pc.add(column, 1000) if pa.types.is_integer(column.type) else column})
    updated, _ = fragment.update_columns(moved, left_on="id", right_on="id")
    fragments = [updated if f.fragment_id == 4 else f.metadata for f in dataset.get_fragments()]
    lance.LanceDataset.commit(dataset.uri, lance.LanceOperation.Merge(fragments, dataset.schema), read_version=dataset.version)


@pytest.mark.parametrize("method", METHODS)
def test_deleted_rows_are_live_again(method, both):
    """Hole 4: a restore between build and commit makes rows live that the segment never saw."""
    tables = both(method)
    tables.meanwhile(lambda dataset: lance.dataset(dataset.uri, version=tables.rows_before).restore())
    lance.dataset(str(tables.theirs)).commit_existing_index_segments(INDEX, COLUMN, [tables.segment])
    # Zones bound the revived rows as well, as long as their values are like those of the others.
    assert wrong(tables.theirs, method) or method == "ZONEMAP", "Lance alone finds every row: there is no hole to show"
    answer = tables.we_commit()
    # Both fragments have revived rows, so nothing that was built is of use.
    assert answer["error"]["code"] == "NOTHING_LEFT", answer
    assert wrong(tables.ours, method) == []
    assert command.run("refresh", tables.ours, INDEX)["established"] == [4, 5]
    oracle.fully_covered(tables.ours, INDEX)
    assert wrong(tables.ours, method) == []


@pytest.mark.parametrize("method", METHODS)
def test_the_column_was_merged_anew(method, both):
    """Hole 5: a Merge that puts the column into another file, and a commit from an older handle."""
    tables = both(method)
    tables.meanwhile(merge_anew)
    tables.lance_commits()
    assert wrong(tables.theirs, method), "Lance alone finds every row: there is no hole to show"
    answer = tables.we_commit()
    assert answer["report"]["established"] == [5] and [left["fragment"] for left in answer["report"]["left_out"]] == [4]
    assert wrong(tables.ours, method) == []
    # What of the built segment is stale by now is cured on the way.
    assert command.run("refresh", tables.ours, INDEX)["established"] in ([4], [4, 5])
    assert wrong(tables.ours, method) == []


def test_a_dropped_index_does_not_come_back(both):
    """Holes 1 and 3: drop, versions cleaned up, then a commit from an older handle."""

    def drop(dataset):
        dataset.drop_index(INDEX)
        write_path = dataset.uri
        lance.write_dataset(lance.dataset(write_path).to_table().slice(0, 5), write_path, mode="append")
        lance.dataset(write_path).cleanup_old_versions(older_than=datetime.timedelta(0), delete_unverified=False)

    tables = both("BTREE")
    tables.meanwhile(drop)
    try:
        tables.lance_commits()
    except Exception:  # noqa: BLE001 - the older handle may no longer find its version: then the fresh one shows the hole
        lance.dataset(str(tables.theirs)).commit_existing_index_segments(INDEX, COLUMN, [tables.segment])
    assert [i.name for i in lance.dataset(str(tables.theirs)).describe_indices()] == [INDEX], "Lance brings the index back"
    answer = tables.we_commit()
    assert answer["error"]["code"] == "INDEX_DROPPED", answer
    assert lance.dataset(str(tables.ours)).describe_indices() == []


def test_a_drop_sees_what_a_compaction_renamed(tmp_path):
    """Hole 2: a drop on an older handle and an eager compaction: the compaction's segments survive Lance's drop, not ours."""
    path = tmp_path / "t.lance"
    write(path, "BTREE", [60, 50, 40])
    lance.dataset(str(path)).create_scalar_index(COLUMN, "BTREE", name=INDEX)
    plan = tmp_path / "drop.json"
    plan.write_text(json.dumps(command.run("drop-index", path, INDEX, "--dry-run")))
    other = tmp_path / "theirs.lance"
    shutil.copytree(path, other)
    handle = lance.dataset(str(other))
    for folder in (other, path):
        lance.dataset(str(folder)).optimize.compact_files(target_rows_per_fragment=1000)
    try:
        handle.drop_index(INDEX)
        survives = [i.name for i in lance.dataset(str(other)).describe_indices()]
    except Exception:  # noqa: BLE001
        survives = [INDEX]
    assert survives == [INDEX], "Lance drops it: there is no hole to show"
    command.run("drop-index", path, INDEX, "--plan", plan)
    assert lance.dataset(str(path)).describe_indices() == []


def test_the_column_went(both):
    """Hole 6: a projection takes the column away; a segment on it would dangle."""
    tables = both("BTREE")
    tables.meanwhile(lambda dataset: dataset.drop_columns([COLUMN]))
    version = lance.dataset(str(tables.ours)).version
    answer = tables.we_commit()
    assert answer["error"]["code"] in ("INDEX_CHANGED", "INDEX_DROPPED"), answer
    assert lance.dataset(str(tables.ours)).version == version


def test_the_version_of_the_build_was_cleaned_up(both):
    """Hole 8: Lance then claims nothing of what was built, and says that it succeeded."""

    def clean(dataset):
        write_path = dataset.uri
        lance.write_dataset(pa.table({"id": pa.array([900], pa.int64()), COLUMN: values("BTREE", 1)}), write_path, mode="append")
        lance.dataset(write_path).cleanup_old_versions(older_than=datetime.timedelta(0), delete_unverified=False)

    tables = both("BTREE")
    tables.meanwhile(clean)
    lance.dataset(str(tables.theirs)).commit_existing_index_segments(INDEX, COLUMN, [tables.segment])
    assert oracle.coverage(tables.theirs, INDEX) == [[], [0, 1, 2, 3]], "Lance keeps what was built: there is no hole to show"
    answer = tables.we_commit()
    assert answer["report"]["established"] == [4, 5], answer
    assert oracle.coverage(tables.ours, INDEX) == [[0, 1, 2, 3], [4, 5]]
    assert wrong(tables.ours, "BTREE") == []


def test_another_configuration_of_full_text(tmp_path):
    """Hole 9: Lance accepts a segment that was built with other settings, and then no search works any more."""
    path = tmp_path / "t.lance"
    write(path, "INVERTED", [60, 50])
    lance.dataset(str(path)).create_scalar_index(COLUMN, "INVERTED", name=INDEX, stem=False)
    write(path, "INVERTED", [40], 110)
    dataset = lance.dataset(str(path))
    segment = dataset.create_index_uncommitted(COLUMN, "INVERTED", name=INDEX, replace=True, fragment_ids=[2], stem=True)
    other = tmp_path / "theirs.lance"
    shutil.copytree(path, other)
    lance.dataset(str(other)).commit_existing_index_segments(INDEX, COLUMN, [segment])
    with pytest.raises(Exception, match="(?i)inconsistent"):
        found(other, "word7")
    with pytest.raises(command.Failed) as failed:
        command.run("refresh", path, INDEX, "--param", "stem=true")
    assert failed.value.code == "DETAILS_DIFFER"
    command.run("refresh", path, INDEX)
    assert wrong(path, "INVERTED") == []
    # What Lance made of the other table is named for what it is.
    assert "DETAILS_DIFFER" in command.audit(other, INDEX)["counts"]
