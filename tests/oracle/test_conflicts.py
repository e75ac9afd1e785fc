"""What becomes of our commits when Lance committed first, and of Lance's when we did (refresh-and-compaction §3).

One table: a row per operation of Lance, a column per job of ours. `first` is the outcome of ours when the operation lies between its plan
and its commit; `after` is Lance's when it had opened the table before our commit. Whatever happens, every version opens and every answer of
the index is that of a full scan.
"""

import dataclasses
import json
import os
import shutil
import subprocess

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance.fragment import write_fragments

import columns
import command
import oracle
import tables

INDEX = tables.INDEX
ROWS = 30
JOBS = ("refresh", "merge", "drop")


@pytest.fixture(scope="module")
def jobs():
    """Our side of every row, in one process."""
    script = command.ROOT / "tests" / "support" / "conflict_rows.mjs"
    process = subprocess.Popen(["node", str(script)], env=command.clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(**question):
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    assert process.wait(timeout=30) == 0


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Fragments 0 to 4, each column in a file of its own; segments {0} and {1}; fragment 0 has deleted rows; the last version added 4."""
    path = str(tmp_path_factory.mktemp("base") / "t.lance")
    rng = np.random.default_rng(5)
    for n in range(4):
        ids = pa.array(range(n * ROWS, (n + 1) * ROWS), pa.int64())
        lance.write_dataset(pa.table({"id": ids}), path, mode="append" if n else "create", data_storage_version="2.1")
    dataset = lance.dataset(path)
    values = {int(i): int(v) for i, v in enumerate(rng.integers(-500, 500, 5 * ROWS))}
    dataset.add_columns(lambda batch: pa.record_batch({"v": pa.array([values[i] for i in batch["id"].to_pylist()], pa.int64())}), read_columns=["id"])
    dataset.add_columns({"g": "id * 2"})
    segments = [dataset.create_index_uncommitted("v", "BTREE", name=INDEX, fragment_ids=[n]) for n in (0, 1)]
    dataset.commit_existing_index_segments(INDEX, "v", segments)
    dataset.delete("id in (3, 4, 5)")
    ids = list(range(4 * ROWS, 5 * ROWS))
    last = pa.table({"id": ids, "v": [values[i] for i in ids], "g": [2 * i for i in ids]})
    lance.write_dataset(last, path, mode="append")
    assert oracle.coverage(path, INDEX) == [[0], [1]] and oracle.live(path) == [0, 1, 2, 3, 4]
    return path


def commit(old, operation):
    return lance.LanceDataset.commit(old.uri, operation, read_version=old.version)


def more(first=5, rows=ROWS):
    ids = list(range(first * ROWS, first * ROWS + rows))
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([i % 7 for i in ids], pa.int64()), "g": pa.array(ids, pa.int64())})


def append(old):
    commit(old, LanceOperation.Append(write_fragments(more(), old.uri, data_storage_version="2.1")))


def delete_rows(old):
    old.delete("id % 7 = 1")


def delete_fragment(old):
    old.delete(f"id >= {3 * ROWS} and id < {4 * ROWS}")


def update_rows(old):
    old.update({"v": "v + 1000"}, where=f"id >= {3 * ROWS} and id < {3 * ROWS + 5}")


def rewritten(old, column, number=3):
    """Fragment `number` with other values in a column, and the fields that changed."""
    fragment = old.get_fragment(number)
    ids = fragment.to_table(columns=["id"])["id"]
    return fragment.update_columns(pa.table({"id": ids, column: pa.array(range(70_000, 70_000 + len(ids)), pa.int64())}), left_on="id", right_on="id")


def update_column(old, column="v", number=3):
    updated, fields = rewritten(old, column, number)
    commit(old, LanceOperation.Update(updated_fragments=[updated], fields_modified=fields))


def update_covered_column(old):
    update_column(old, number=1)


def update_other_column(old):
    update_column(old, "g")


def overwrite(old):
    commit(old, LanceOperation.Overwrite(old.schema, write_fragments(more(0, 40), old.uri, data_storage_version="2.1")))


def compact(old):
    old.optimize.compact_files(target_rows_per_fragment=3 * ROWS, materialize_deletions_threshold=0.01, num_threads=1)


def compact_deferred(old):
    old.optimize.compact_files(target_rows_per_fragment=3 * ROWS, materialize_deletions_threshold=0.01, num_threads=1, defer_index_remap=True)


def replace_data(old, column="v", number=3):
    field = old.lance_schema.field(column).id()
    name = f"{old.uri}/data/replaced.lance"
    with lance.file.LanceFileWriter(name, pa.schema([pa.field(column, pa.int64())]), version="2.1") as writer:
        writer.write_batch(pa.record_batch({column: pa.array(range(80_000, 80_000 + ROWS), pa.int64())}))
    file = lance.fragment.DataFile("replaced.lance", [field], [0], 2, 1, os.path.getsize(name))
    commit(old, LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(number, file)]))


def replace_other_data(old):
    replace_data(old, "g")


def overlay(old):
    field = old.lance_schema.field("v").id()
    name = f"{old.uri}/data/overlay.lance"
    with lance.file.LanceFileWriter(name, pa.schema([pa.field("v", pa.int64())]), version="2.1") as writer:
        writer.write_batch(pa.record_batch({"v": pa.array([-1, -2], pa.int64())}))
    file = lance.fragment.DataFile("overlay.lance", [field], [0], 2, 1, os.path.getsize(name))
    group = LanceOperation.DataOverlayGroup(3, [LanceOperation.DataOverlayFile(file, [3, 7])])
    commit(old, LanceOperation.DataOverlay([group]))


def merge_new_column(old):
    old.add_columns({"h": "id + 1"})


def merge_rewritten(old):
    updated, _ = rewritten(old, "v")
    fragments = [updated if f.fragment_id == 3 else f.metadata for f in old.get_fragments()]
    commit(old, LanceOperation.Merge(fragments, old.schema))


def project_other(old):
    old.drop_columns(["g"])


def project_own(old):
    old.drop_columns(["v"])


def project_renamed(old):
    old.alter_columns({"path": "v", "name": "w"})


def configure(old):
    old.update_config({"some.key": "some value"})


def restore(old):
    commit(old, LanceOperation.Restore(old.version - 1))


def create_other(old):
    old.create_scalar_index("g", "BTREE", name="g_idx")


def create_again(old):
    old.create_scalar_index("v", "BTREE", name=INDEX, replace=True)


def refresh(old):
    old.optimize.optimize_indices(num_indices_to_merge=0)


def optimize(old):
    old.optimize.optimize_indices(num_indices_to_merge=10)


def drop(old):
    old.drop_index(INDEX)


NOTHING = "nothing to do"


@dataclasses.dataclass
class Row:
    """An operation of Lance. Ours after it, per job: the fragments established, or for a drop how many segments it took out; an error's
    code; or nothing to do. Lance's after ours: `ok`, or `retryable`, per job or for all."""

    operation: object
    why: str
    refresh: object = (2, 3, 4)
    merge: object = (0, 1)
    drop: object = 2
    after: object = "ok"
    reads: str | None = "v"  # column of the index in the end; None = gone

    def first(self, job):
        return getattr(self, job)

    def second(self, job):
        return self.after if isinstance(self.after, str) else self.after[JOBS.index(job)]


RETRY = "retryable"
MATRIX = [
    Row(append, "new fragments are nobody's work yet"),
    Row(delete_rows, "rows of an index that are gone are hidden by the deletion vector"),
    Row(delete_fragment, "a fragment that is gone is not claimed", refresh=(2, 4)),
    Row(update_rows, "moved rows are deleted in the old fragment, and their new fragment is uncovered"),
    Row(update_column, "old values of a rewritten fragment must not be claimed", refresh=(2, 4)),
    Row(update_covered_column, "what leaves a segment while it is merged is not claimed again", merge=(0,), drop=1),
    Row(update_other_column, "another column of the fragment is not ours"),
    Row(overwrite, "the index is gone with the table's content; theirs takes ours away", refresh="INDEX_DROPPED", merge="INDEX_DROPPED", drop=NOTHING),
    Row(compact, "sources are gone, their index entries have new uuids; theirs sees that we cover its sources", refresh="NOTHING_LEFT", merge=(1,), after=(RETRY, RETRY, "ok")),
    Row(compact_deferred, "sources are gone, and the history carries what covers all of a group", refresh="NOTHING_LEFT", merge=(1,)),
    Row(replace_data, "old values of a replaced file must not be claimed", refresh=(2, 4), after=(RETRY, RETRY, "ok")),
    Row(replace_other_data, "another column of the fragment is not ours"),
    Row(overlay, "a table with overlays is written only by those who know them", refresh="UNSUPPORTED_FEATURE", merge="UNSUPPORTED_FEATURE", drop="UNSUPPORTED_FEATURE", reads=None),
    Row(merge_new_column, "the columns that were there are as they were"),
    Row(merge_rewritten, "Lance itself claims the old values here (hole 5)", refresh=(2, 4)),
    Row(project_other, "another column may go"),
    Row(project_own, "without the column there is no index", refresh="INDEX_DROPPED", merge="INDEX_DROPPED", drop=NOTHING, reads=None),
    Row(project_renamed, "the column is known by its field id", reads="w"),
    Row(configure, "nothing of the index"),
    Row(restore, "the version before is what counts; theirs takes its indexes from there", refresh=(2, 3)),
    Row(create_other, "indexes of other names do not meet"),
    Row(create_again, "one of its segments covers all of it now; a drop takes whatever has the name", refresh=NOTHING, merge=NOTHING, drop=1, after=RETRY),
    Row(refresh, "two refreshes never claim the same fragment; a drop takes the new segment, too", refresh=NOTHING, drop=3, after=RETRY),
    Row(optimize, "what it took together is another segment of the same index", refresh=NOTHING, merge=NOTHING, drop=1, after=RETRY),
    Row(drop, "what was dropped stays dropped", refresh="INDEX_DROPPED", merge="INDEX_DROPPED", drop=NOTHING, after=(RETRY, RETRY, "ok")),
]


def ours(jobs, number):
    """What became of our job, as the table says it."""
    answer = jobs(commit=number)
    if "error" in answer:
        return answer["error"]["code"]
    report = answer["report"]
    if report["transaction"] is None:
        return NOTHING
    return tuple(report["established"]) or report["segments_removed"]


def theirs(operation, old):
    try:
        operation(old)
    except Exception as error:  # pylance raises OSError for conflicts of both kinds
        return RETRY if "Retryable commit conflict" in str(error) else str(error)
    return "ok"


def right(path, row):
    """Every version opens, Lance finds nothing wrong with the table, and with its index it answers as without."""
    if row.operation is overlay:  # pylance opens such a table only when told to, we do not
        with pytest.raises(command.Failed, match="overlays"):
            command.run("show", path)
        return
    for version in lance.dataset(path).versions():
        lance.dataset(path, version=version["version"])
    oracle.healthy(path)
    if row.reads:
        values = oracle.values(path, row.reads)
        filters = [f"{row.reads}{text[1:]}" for text in columns.filters(values, np.random.default_rng(8)) if text.startswith("v ")]
        oracle.agree_without_plan(path, filters)


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.operation.__name__)
def test_conflicts(row, job, jobs, base, tmp_path):
    for before in (True, False):
        path = shutil.copytree(base, tmp_path / f"{before}.lance").as_posix()
        number = jobs(plan=path, job=job, index=INDEX)["number"]
        old = lance.dataset(path)
        if before:
            assert theirs(row.operation, old) == "ok"
            assert ours(jobs, number) == row.first(job), row.why
        else:
            assert ours(jobs, number) == {"refresh": (2, 3, 4), "merge": (0, 1), "drop": 2}[job]
            assert theirs(row.operation, old) == row.second(job), row.why
        right(path, row)
