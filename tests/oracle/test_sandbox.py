"""Tables made and changed by us from the first version on: Lance opens them, finds the rows that the generators say, and goes on."""

import json
import os
import random
import shutil
import subprocess
import tarfile

import lance
import numpy as np
import pyarrow as pa
import pytest

import command
import generated
import oracle

SCRIPT = command.ROOT / "tests" / "support" / "sandbox_steps.mjs"
SEED = int(os.environ.get("WHETSTONE_SEED", "2"))
ID = {"name": "id", "type": "int64", "nullable": False}

# Columns, the column that is indexed, the method, conditions that the index serves.
SCHEMAS = {
    "numbers": (
        [
            ID,
            {"name": "v", "type": "int32", "shape": "random", "min": -500, "max": 500, "nulls": 0.1},
            {"name": "small", "type": "int8"},
            {"name": "wide", "type": "uint64", "shape": "choice", "min": 10, "step": 7, "distinct": 5},
            {"name": "real", "type": "float64", "shape": "random", "min": -1, "max": 3},
            {"name": "half", "type": "float32", "shape": "sequence", "start": 0.5, "step": 0.25, "nulls": 0.5},
        ],
        "v", "BTREE", ["v > 300", "v = 7 OR v = 8", "v < -490", "v IS NULL"],
    ),
    "texts": (
        [
            ID,
            {"name": "v", "type": "utf8", "shape": "choice", "distinct": 5, "nulls": 0.05},
            {"name": "code", "type": "utf8", "shape": "random"},
            {"name": "name", "type": "utf8", "shape": "sequence"},
            {"name": "note", "type": "utf8", "shape": "sentences", "words": [0, 6], "nulls": 0.2},
        ],
        "v", "BITMAP", ["v = 'amber'", "v IN ('anchor', 'apple')", "v IS NULL"],
    ),
    "times": (
        [ID, {"name": "v", "type": "timestamp", "shape": "random"}, {"name": "day", "type": "date32", "nulls": 0.3}, {"name": "flag", "type": "bool", "nulls": 0.1}],
        "v", "ZONEMAP", ["v < timestamp '2024-02-01 00:00:00'", "v > timestamp '2024-11-11 00:00:00'"],
    ),
    "labels": (
        [ID, {"name": "v", "type": "labels", "distinct": 6, "nulls": 0.1}, {"name": "color", "type": "utf8"}],
        "v", "LABEL_LIST", ["array_has(v, 'amber')", "array_has_any(v, ['apple', 'arrow'])"],
    ),
}  # fmt: skip
VERSIONS = {"numbers": "2.1", "texts": "2.2"}


def steps(folder, *taken, timeout=120):
    done = subprocess.run(["node", str(SCRIPT), str(folder), json.dumps(taken)], capture_output=True, text=True, timeout=timeout, env=command.clean_environment())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(answer):
    assert "error" in answer, answer
    return answer["error"]["code"]


def rows(path):
    return lance.dataset(str(path)).to_table().to_pylist()


def as_set(found):
    """Rows whatever their order."""
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in found)


def compacted_by_lance(path, filters):
    """Lance compacts, and its rows and answers stay; the rows."""
    expected = as_set(rows(path))
    lance.dataset(str(path)).optimize.compact_files()
    oracle.healthy(path)
    oracle.agree_without_plan(path, filters)
    assert as_set(rows(path)) == expected
    return expected


@pytest.mark.parametrize("name", SCHEMAS)
def test_lance_finds_the_rows_and_goes_on(name, tmp_path):
    columns, column, method, filters = SCHEMAS[name]
    path = tmp_path / "t.lance"
    seed = SEED + 7
    version = VERSIONS.get(name, "2.0")
    made, appended, gone, whole, moved, index = steps(
        path,
        ["create", {"columns": columns, "rows": 500, "rowsPerFragment": 200, "seed": seed, "dataStorageVersion": version}],
        ["append", 120, {"rowsPerFragment": 80}],
        ["delete", {"where": "id >= 100 AND id < 420", "every": 3}],
        ["delete", "id BETWEEN 500 AND 579"],
        ["update", "id IN (3, 5, 450)", {"id": 100_000}],
        ["index", "v_idx", column, method, {"segments": 2}],
    )
    assert (made, appended["first_row"], appended["fragments_added"]) == ({"version": 1, "rows": 500}, 500, [3, 4])
    model = {row["id"]: row for row in generated.rows(columns, seed, range(620))}
    per_fragment = [range(100, 200), range(200, 400), range(400, 420)]
    for numbers in per_fragment:
        for row in list(numbers)[::3]:
            del model[row]
    assert gone["rows"] == 620 - len(model) and gone["fragments_changed"] == [0, 1, 2]
    for row in range(500, 580):
        del model[row]
    assert whole["fragments_removed"] == [3], "a fragment goes with its last row"
    expected = [row for row in model.values() if row["id"] not in (3, 5, 450)]
    expected += [{**model[row], "id": 100_000} for row in (3, 5, 450)]
    assert moved["rows"] == 3 and moved["fragments_added"] == [5]
    assert rows(path) == expected
    oracle.healthy(path)
    dataset = lance.dataset(str(path))
    assert dataset.data_storage_version == version and dataset.version == 6
    assert [v["version"] for v in dataset.versions()] == list(range(1, 7))
    assert lance.dataset(str(path), version=1).to_table().to_pylist() == generated.rows(columns, seed, range(500))
    assert index["established"] == [0, 1, 2, 4, 5]
    oracle.agree(path, "v_idx", filters)

    # Lance goes on with what we wrote, and we with what Lance wrote.
    extra = dataset.to_table(limit=40)
    extra = extra.set_column(0, pa.field("id", pa.int64(), False), pa.array(range(200_000, 200_040), pa.int64()))
    lance.write_dataset(extra, str(path), mode="append")
    lance.dataset(str(path)).delete("id % 10 = 4")
    lance.dataset(str(path)).update({"id": "id + 1"}, where="id = 200005")
    lance.dataset(str(path)).optimize.optimize_indices()
    before = rows(path)
    again, deleted, refreshed = steps(path, ["open"], ["append", 30, {}], ["delete", {"rows": [0, 25]}], ["refresh", "v_idx", {}])[1:]
    assert again["first_row"] == 620, "the generator goes on where it was"
    assert deleted["rows"] == 25
    assert rows(path) == (before + generated.rows(columns, seed, range(620, 650)))[25:]
    oracle.healthy(path)
    assert refreshed["established"] == again["fragments_added"]
    oracle.agree(path, "v_idx", filters)
    expected = compacted_by_lance(path, filters)
    last = steps(path, ["open"], ["append", 5, {}], ["drop", "v_idx"])
    assert last[1]["first_row"] == 650 and last[2]["segments_removed"] >= 1
    assert lance.dataset(str(path)).count_rows() == len(expected) + 5


def test_random_changes_agree_with_lance(tmp_path):
    """The same deletes and updates by Lance and by us, on copies of the same table, in the same order."""
    rng = random.Random(SEED)
    columns = [ID, {"name": "v", "type": "int16", "shape": "random", "max": 50, "nulls": 0.2}, {"name": "c", "type": "utf8", "distinct": 4}, {"name": "f", "type": "float64"}]
    ours, theirs = tmp_path / "ours.lance", tmp_path / "theirs.lance"
    steps(ours, ["create", {"columns": columns, "rows": 3000, "rowsPerFragment": 400, "seed": SEED}])
    lance.write_dataset(lance.dataset(str(ours)).to_table(), str(theirs), max_rows_per_file=400, data_storage_version="2.0")
    conditions = []
    for _ in range(14):
        low = rng.randrange(50)
        conditions.append(
            rng.choice(
                [
                    f"v = {low}", f"v != {low} AND id < {low * 60}", f"v >= {low} AND v <= {low + 2} AND c = 'amber'", f"id BETWEEN {low * 50} AND {low * 50 + 90}",
                    f"c IN ('anchor', 'apple') AND v < {low // 4}", f"v IS NULL AND id > {3000 - low * 9}", f"f < 0.{low:02} AND c NOT IN ('amber', 'apple')", f"f > 0.9{low:02}",
                ]
            )
        )  # fmt: skip
    taken = [["update", where, {"v": None, "c": f"x{at}"}] if at % 3 == 2 else ["delete", where] for at, where in enumerate(conditions)]
    answers = steps(ours, ["open"], *taken)[1:]
    for at, (where, answer) in enumerate(zip(conditions, answers, strict=True)):
        dataset = lance.dataset(str(theirs))
        count = dataset.count_rows(where)
        assert answer["rows"] == count, (where, answer)
        if at % 3 == 2:
            dataset.update({"v": "NULL", "c": f"'x{at}'"}, where=where)
        else:
            dataset.delete(where)
        fragments = [(f.fragment_id, f.physical_rows, f.count_rows()) for f in lance.dataset(str(ours), version=answer["version"]).get_fragments()]
        assert fragments == [(f.fragment_id, f.physical_rows, f.count_rows()) for f in lance.dataset(str(theirs)).get_fragments()], where
    assert sum(answer["rows"] for answer in answers) > 200
    assert rows(ours) == rows(theirs)
    oracle.healthy(ours)


def test_what_lance_does_to_segments_when_fragments_go(tmp_path):
    """Of several segments those that cover nothing any more go; an only one stays, and so does the oldest if all are empty."""
    path = tmp_path / "t.lance"
    steps(
        path,
        ["create", {"columns": [ID, {"name": "w", "type": "int32"}], "rows": 400, "rowsPerFragment": 100}],
        ["index", "several", "id", "BTREE", {"segments": 4}], ["index", "one", "w", "BTREE", {}],
    )  # fmt: skip
    theirs = tmp_path / "theirs.lance"
    for where in ["id < 100", "id BETWEEN 200 AND 299", "id >= 0"]:
        shutil.rmtree(theirs, ignore_errors=True)
        shutil.copytree(path, theirs)
        lance.dataset(str(theirs)).delete(where)
        (answer,) = steps(path, ["open"], ["delete", where])[1:]
        for name in ("several", "one"):
            assert oracle.coverage(path, name) == oracle.coverage(theirs, name), (where, name)
        assert lance.dataset(str(path)).count_rows() == lance.dataset(str(theirs)).count_rows()
        assert answer["fragments_removed"]
        oracle.healthy(path)


def test_taken_out_of_memory(tmp_path):
    archive, copied = tmp_path / "t.tar", tmp_path / "copied.lance"
    columns = SCHEMAS["labels"][0]
    *_, packed, done, twice = steps(
        tmp_path / "none",
        ["createInMemory", {"columns": columns, "rows": 90, "rowsPerFragment": 40, "seed": 3}],
        ["index", "a_rather_long_name_of_an_index", "v", "LABEL_LIST", {}],
        ["delete", "id < 10"],
        ["archive", str(archive), "t.lance"],
        ["copy", str(copied)],
        ["copy", str(copied)],
    )
    assert packed["bytes"] == archive.stat().st_size and done["objects"] > 6 and refused(twice) == "INVALID_ARGUMENT"
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "out", filter="data")
    again = tmp_path / "again.tar"
    assert steps(copied, ["archiveFolder", str(again), "t.lance"]) == [packed]
    with tarfile.open(again) as tar:
        tar.extractall(tmp_path / "again", filter="data")
    first, second = ({p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()} for root in (tmp_path / "out", tmp_path / "again"))
    assert len(first) == done["objects"] and first == second
    for path in (tmp_path / "out" / "t.lance", copied):
        oracle.healthy(path)
        assert rows(path) == generated.rows(columns, 3, range(10, 90))
        oracle.agree(path, "a_rather_long_name_of_an_index", ["array_has(v, 'amber')"])


@pytest.mark.parametrize("name, defer", [*((name, False) for name in SCHEMAS), ("numbers", True), ("labels", True)])
def test_compacted_in_memory_and_taken_along(name, defer, tmp_path):
    """Made, indexed, appended to, deleted from, compacted and packed without a file of this machine: Lance opens it and goes on, and so do we."""
    columns, column, method, filters = SCHEMAS[name]
    seed, archive, path = SEED + 11, tmp_path / "t.tar", tmp_path / "out" / "t.lance"
    *_, report, _ = steps(
        tmp_path / "none",
        ["createInMemory", {"columns": columns, "rows": 400, "rowsPerFragment": 100, "seed": seed, "dataStorageVersion": VERSIONS.get(name, "2.0")}],
        ["index", "v_idx", column, method, {"segments": 2}],
        ["append", 120, {"rowsPerFragment": 40}],
        ["delete", {"where": "id >= 50 AND id < 430", "every": 4}],
        ["compact", {"defer_index_remap": defer}],
        ["archive", str(archive), "t.lance"],
    )  # fmt: skip
    gone = {row for low, high in [(50, 100), (100, 200), (200, 300), (300, 400), (400, 430)] for row in range(low, high, 4)}
    assert (report["fragments_removed"], report["fragments_added"], report["deleted_rows"]) == (list(range(7)), [7, 8, 9], len(gone))
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "out", filter="data")
    oracle.healthy(path)
    assert rows(path) == generated.rows(columns, seed, [row for row in range(520) if row not in gone])
    oracle.agree_without_plan(path, filters)
    if not defer and method != "ZONEMAP":  # zones are not remapped, neither here nor by Lance
        assert oracle.coverage(path, "v_idx") == [[7], [8]] and report["segments_remapped"] == 2
        oracle.agree(path, "v_idx", filters)

    # Lance goes on.
    dataset = lance.dataset(str(path))
    extra = dataset.to_table(limit=30)
    lance.write_dataset(extra.set_column(0, pa.field("id", pa.int64(), False), pa.array(range(200_000, 200_030), pa.int64())), str(path), mode="append")
    lance.dataset(str(path)).delete("id % 10 = 4")
    lance.dataset(str(path)).optimize.optimize_indices()
    oracle.fully_covered(path, "v_idx")
    oracle.agree(path, "v_idx", filters)
    expected = compacted_by_lance(path, filters)

    # And so do we.
    answers = steps(path, ["open"], ["append", 20, {"rowsPerFragment": 10}], ["compact", {}], ["refresh", "v_idx", {}])
    assert not [answer for answer in answers if "error" in answer] and answers[2]["fragments_added"]
    oracle.healthy(path)
    now = as_set(rows(path))
    assert len(now) == len(expected) + 20 and set(expected) <= set(now)
    oracle.fully_covered(path, "v_idx")
    oracle.agree(path, "v_idx", filters)


def test_appends_that_race(tmp_path):
    """Two processes append at once, from plans of the same version: every row has a number of its own, and its values are those of it."""
    columns, path = SCHEMAS["numbers"][0], tmp_path / "t.lance"
    steps(path, ["create", {"columns": columns, "rows": 10, "seed": 6}])
    taken = json.dumps([["open"], *[["append", 25, {"rowsPerFragment": 20}]] * 3])
    racers = [subprocess.Popen(["node", str(SCRIPT), str(path), taken], stdout=subprocess.PIPE, text=True, env=command.clean_environment()) for _ in range(3)]
    reports = [report for racer in racers for report in json.loads(racer.communicate(timeout=120)[0])[1:]]
    assert sorted(report["first_row"] for report in reports) == [10 + 25 * n for n in range(9)]
    assert sorted(rows(path), key=lambda row: row["id"]) == generated.rows(columns, 6, range(235))
    oracle.healthy(path)
    named = {file.path for fragment in lance.dataset(str(path)).get_fragments() for file in fragment.data_files()}
    assert named == set(os.listdir(path / "data")), "rows that were made twice are gone"


def test_plans_that_are_late(tmp_path):
    """A fragment that changed since the plan: nothing is deleted. Other changes do not matter, and an append takes the numbers that come next."""
    path = tmp_path / "t.lance"
    _, stale, fine, late = steps(
        path,
        ["create", {"columns": [ID], "rows": 300, "rowsPerFragment": 100}],
        ["late", "delete", "id < 50", [["delete", "id = 60"]]],
        ["late", "delete", "id < 50", [["delete", "id = 160"], ["append", 10, {}]]],
        ["late", "append", 10, [["append", 10, {}]]],
    )
    assert late["first_row"] == 320
    assert refused(stale) == "STALE_PLAN" and "fragment 0" in stale["error"]["message"] and stale["error"]["changed"] == "nothing"
    assert fine["rows"] == 50 and late["fragments_added"] == [5]
    assert lance.dataset(str(path)).count_rows() == 300 - 1 - 1 - 50 + 30
    oracle.healthy(path)
    used = {name for f in lance.dataset(str(path)).get_fragments() for name in [f.deletion_file()] if name}
    found = {f"_deletions/{p.name}" for p in (path / "_deletions").iterdir()}
    assert used <= found and len(found) == 3, "the stale plan left nothing; versions before still have theirs"


def test_bad_requests(tmp_path):
    path = tmp_path / "t.lance"

    wrong = []

    def made(code, **options):
        wrong.append((code, {"columns": [ID], **options}))

    made("INVALID_ARGUMENT", columns=[])
    for name in ["", "a.b", "_rowid", "x" * 300, "a\nb"]:
        made("INVALID_ARGUMENT", columns=[{"name": name, "type": "int64"}])
    made("INVALID_ARGUMENT", columns=[ID, ID])
    for kind in ["", "int65", "struct", "list<int64>", "decimal:128:9:2", "binary"]:
        made("UNSUPPORTED_TYPE", columns=[{"name": "v", "type": kind}])
    for part in [
        {"nulls": 2}, {"nulls": -1}, {"distinct": 0}, {"shape": "sentences"}, {"min": 5, "max": 4, "shape": "random"}, {"min": "x"}, {"shape": "spiral"}, {"colour": 1},
        {"nulls": 0.5, "nullable": False}, {"words": [3, 1]}, {"start": [1]},
    ]:  # fmt: skip
        made("INVALID_ARGUMENT", columns=[{"name": "v", "type": "int32", **part}])
    made("INVALID_ARGUMENT", rows=10**9)
    made("INVALID_ARGUMENT", rows=2**60)
    made("INVALID_ARGUMENT", rows=-1)
    made("INVALID_ARGUMENT", rows=20_000_000, rowsPerFragment=1)
    made("INVALID_ARGUMENT", rows=5, rowsPerFragment=0)
    wide = [{"name": "t", "type": "utf8", "shape": "sentences", "words": [900, 1000]}]
    made("MEMORY_LIMIT", rows=20_000_000, rowsPerFragment=20_000_000, columns=wide)
    made("INVALID_ARGUMENT", dataStorageVersion="9.9")
    made("UNSUPPORTED_TYPE", dataStorageVersion="2.2", columns=[{"name": "l", "type": "labels"}])
    answers = steps(path, *(["create", options] for _, options in wrong))
    for (code, options), answer in zip(wrong, answers, strict=True):
        assert refused(answer) == code, options
    assert not list(path.rglob("*.lance")) and not list(path.rglob("*.manifest")), "nothing was written"

    answers = steps(
        path,
        ["create", {"columns": [ID, {"name": "c", "type": "utf8"}, {"name": "l", "type": "labels"}], "rows": 20}],
        ["create", {"columns": [ID]}],
        ["append", 0, {}], ["append", 10**9, {}], ["append", 1.5, {}],
        ["delete", "id <"], ["delete", "id ~ 3"], ["delete", "nope = 1"], ["delete", "id = 'x'"], ["delete", "id = 1 OR id = 2"], ["delete", "l = 'a'"],
        ["delete", {}], ["delete", {"fragments": [9]}], ["delete", {"rows": [5, 2]}], ["delete", {"every": 0}], ["delete", ""],
        ["update", "id = 1", {}], ["update", "id = 1", {"id": None}], ["update", "id = 1", {"id": "x"}], ["update", "id = 1", {"z": 1}], ["update", "id = 1", {"c": 5}],
        ["delete", "id > 1000"],
    )  # fmt: skip
    codes = [refused(a) if "error" in a else a.get("rows") for a in answers[1:]]
    assert codes == [
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT",
        "SQL_SYNTAX", "SQL_SYNTAX", "COLUMN_NOT_FOUND", "INVALID_ARGUMENT", "SQL_SYNTAX", "UNSUPPORTED_TYPE",
        "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "SQL_SYNTAX",
        "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "COLUMN_NOT_FOUND", "INVALID_ARGUMENT",
        0,
    ]  # fmt: skip
    dataset = lance.dataset(str(path))
    assert (dataset.version, dataset.count_rows()) == (1, 20)
    lance.write_dataset(pa.table({"id": pa.array(np.arange(5))}), str(tmp_path / "s.lance"), enable_stable_row_ids=True)
    assert refused(steps(tmp_path / "s.lance", ["open"], ["delete", "id = 1"])[1]) == "UNSUPPORTED_FEATURE"
    lance.write_dataset(pa.table({"v": pa.array([{"a": 1}])}), str(tmp_path / "n.lance"))
    assert refused(steps(tmp_path / "n.lance", ["open"], ["append", 3, {}])[1]) == "UNSUPPORTED_TYPE"
