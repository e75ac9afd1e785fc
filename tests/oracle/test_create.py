"""Creating and dropping indexes: Lance opens, uses, extends and optimizes what was made, and both sides may be at it at once."""

import itertools
import json
import os
import pathlib
import random

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import columns
import command
import oracle
import tables

METHODS = ["BTREE", "ZONEMAP"]
TYPES = list(columns.TYPES)
SEED = int(os.environ.get("WHETSTONE_SEED", "2"))


def cases():
    pairs = list(itertools.product(METHODS, TYPES))
    if os.environ.get("WHETSTONE_FULL"):
        return [(m, t, n, host) for (m, t), n, host in itertools.product(pairs, [1, 3], ["serve", "s3"])]
    random.Random(SEED).shuffle(pairs)
    return [(m, t, [1, 3][i % 2], ["serve", "s3"][i // 2 % 2]) for i, (m, t) in enumerate(pairs[:6])]


@pytest.fixture
def host(request):
    return request.getfixturevalue("webdav")


def plain(path, kind, sizes, **options):
    """A table without an index, with deletions in its first fragment."""
    rng = np.random.default_rng(tables.seed_of(kind, *sizes))
    first = 0
    for rows in sizes:
        table = pa.table({"id": pa.array(range(first, first + rows), pa.int64()), "v": columns.TYPES[kind](rng, rows)})
        lance.write_dataset(table, str(path), mode="append" if path.exists() else "create", **options)
        first += rows
    lance.dataset(str(path)).delete("id % 9 = 4 and id < 60")
    return path


def create(host, target, method, *options, name=tables.INDEX):
    return command.run("create-index", target, name, "v", method, *options, env=host.environment)


def filters(path, seed=3):
    return columns.filters(oracle.values(path), np.random.default_rng(seed))


@pytest.mark.parametrize("case", cases(), ids=lambda case: "-".join(map(str, case)))
def test_lance_uses_and_carries_on_an_index_made_here(case, request, tmp_path):
    method, kind, segments, name = case
    host = request.getfixturevalue("webdav" if name == "serve" else "s3")
    target = host.put(plain(tmp_path / "t.lance", kind, [70, 300, 40, 90], enable_stable_row_ids=segments == 3))
    before = lance.dataset(host.local(target)).version
    report = create(host, target, method, "--num-segments", segments)
    path = host.local(target)
    assert (report["segments_added"], report["established"], report["version"]) == (segments, [0, 1, 2, 3], before + 1)
    oracle.healthy(path)
    assert len(oracle.fully_covered(path, tables.INDEX)) == segments
    oracle.agree(path, tables.INDEX, filters(path))
    # What Lance itself would have written into the manifest.
    lance.dataset(path).create_scalar_index("v", method, name="theirs")
    ours, theirs = ([i for i in lance.dataset(path).describe_indices() if i.name == n][0] for n in (tables.INDEX, "theirs"))
    assert (ours.index_type, ours.type_url, ours.segments[0].index_version) == (theirs.index_type, theirs.type_url, theirs.segments[0].index_version)
    lance.dataset(path).drop_index("theirs")

    tables.write(path, kind, [33], np.random.default_rng(9), 1000)
    oracle.agree(path, tables.INDEX, filters(path))
    lance.dataset(path).optimize.optimize_indices()
    oracle.fully_covered(path, tables.INDEX)
    oracle.agree(path, tables.INDEX, filters(path))
    host.sync(target)
    command.run("drop-index", target, tables.INDEX, env=host.environment)
    path = host.local(target)
    assert lance.dataset(path).describe_indices() == []
    oracle.healthy(path)
    lance.dataset(path).create_scalar_index("v", method, name=tables.INDEX)
    oracle.agree(path, tables.INDEX, filters(path))


@pytest.mark.parametrize("method", METHODS)
def test_a_deferred_index_is_extended_by_lance(method, host, tmp_path):
    target = host.put(plain(tmp_path / "t.lance", "int64", [50, 60]))
    report = create(host, target, method, "--deferred")
    path = host.local(target)
    assert (report["established"], report["segments_added"]) == ([], 1)
    assert oracle.coverage(path, tables.INDEX) == [[]]
    oracle.agree_without_plan(path, filters(path))
    lance.dataset(path).optimize.optimize_indices()
    oracle.fully_covered(path, tables.INDEX)
    oracle.agree(path, tables.INDEX, filters(path))


@pytest.mark.parametrize("method", METHODS)
def test_an_index_on_an_empty_table(method, host, tmp_path):
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}), str(path))
    target = host.put(path)
    assert create(host, target, method)["segments_added"] == 1
    path = host.local(target)
    oracle.healthy(path)
    tables.write(path, "int64", [40, 50], np.random.default_rng(4))
    report = command.run("refresh", target, tables.INDEX, env=host.environment)
    assert report["established"] == oracle.live(path)
    oracle.fully_covered(path, tables.INDEX)
    oracle.agree(path, tables.INDEX, filters(path))


def test_parameters_reach_the_files(host, tmp_path):
    target = host.put(plain(tmp_path / "t.lance", "int64", [500]))
    create(host, target, "ZONEMAP", "--param", "rows_per_zone=64")
    path = host.local(target)
    (segment,) = oracle.describe(path, tables.INDEX).segments
    file = lance.file.LanceFileReader(f"{path}/_indices/{segment.uuid}/zonemap.lance").metadata()
    assert file.schema.metadata[b"rows_per_zone"] == b"64" and file.num_rows == -(-lance.dataset(path).count_rows() // 64)
    oracle.agree(path, tables.INDEX, filters(path))


@pytest.mark.parametrize("round", range(3))
def test_two_creations_of_one_name(round, request, tmp_path):
    host = request.getfixturevalue("webdav" if round == 0 else "s3")
    target = host.put(plain(tmp_path / "t.lance", "utf8", [80, 80, 80]))
    started = [
        command.start("create-index", target, tables.INDEX, "v", method, "--num-segments", "2", "--json", env=host.environment) for method in METHODS
    ]
    done, refused = command.finish_all(started)
    assert len(done) == 1 and [f.code for f in refused] == ["INDEX_EXISTS"]
    assert refused[0].changed == "nothing", "what the loser built is removed"
    path = host.local(target)
    segments = {str(s.uuid) for s in oracle.describe(path, tables.INDEX).segments}
    assert segments == set(done[0]["added"])
    folders = {p.name for p in (pathlib.Path(path) / "_indices").iterdir() if any(p.iterdir())}
    assert folders == segments
    oracle.agree(path, tables.INDEX, filters(path))


@pytest.fixture
def planned(host, tmp_path):
    """A plan to create an index, kept in a file."""
    target = host.put(plain(tmp_path / "t.lance", "int32", [70, 80, 90]))
    plan = create(host, target, "BTREE", "--num-segments", 2, "--dry-run")
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    return target, host.local(target), file


def run_plan(host, target, file):
    return create(host, target, "BTREE", "--plan", file)


def test_lance_made_the_name_meanwhile(host, planned):
    target, path, file = planned
    lance.dataset(path).create_scalar_index("v", "BITMAP", name=tables.INDEX)
    before = oracle.coverage(path, tables.INDEX)
    with pytest.raises(command.Failed) as failed:
        run_plan(host, target, file)
    assert (failed.value.code, failed.value.changed) == ("INDEX_EXISTS", "nothing")
    assert oracle.coverage(path, tables.INDEX) == before
    oracle.agree(path, tables.INDEX, filters(path))


def test_the_column_was_renamed_meanwhile(host, planned):
    target, path, file = planned
    lance.dataset(path).alter_columns({"path": "v", "name": "w"})
    report = run_plan(host, target, file)
    assert report["established"] == [0, 1, 2]
    renamed = [text.replace("v ", "w ") for text in columns.filters(oracle.values(path, "w"), np.random.default_rng(3))]
    oracle.agree(path, tables.INDEX, renamed)
    assert oracle.describe(path, tables.INDEX).field_names == ["w"]


def test_a_refresh_goes_by_the_field_id_too(host, tmp_path):
    target = host.put(tables.make(tmp_path / "t.lance", "int64", "BTREE", 2))
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(command.run("plan", target, tables.INDEX, env=host.environment)))
    path = host.local(target)
    lance.dataset(path).alter_columns({"path": "v", "name": "w"})
    report = command.run("refresh", target, tables.INDEX, "--plan", file, env=host.environment)
    assert report["established"] == [2, 3]
    renamed = [text.replace("v ", "w ") for text in columns.filters(oracle.values(path, "w"), np.random.default_rng(3))]
    oracle.agree(path, tables.INDEX, renamed)


@pytest.mark.parametrize("how", ["dropped", "dropped and added again", "cast"])
def test_the_column_is_another_meanwhile(how, host, planned):
    target, path, file = planned
    if how == "cast":
        lance.dataset(path).alter_columns({"path": "v", "data_type": pa.int64()})
    else:
        lance.dataset(path).drop_columns(["v"])
    if how == "dropped and added again":
        lance.dataset(path).add_columns({"v": "id"})
    version = lance.dataset(path).version
    with pytest.raises(command.Failed) as failed:
        run_plan(host, target, file)
    assert (failed.value.code, failed.value.changed) == ("INDEX_CHANGED", "nothing")
    assert lance.dataset(path).version == version and lance.dataset(path).describe_indices() == []


def test_rows_come_and_go_meanwhile(host, planned):
    target, path, file = planned
    gone = lance.dataset(path).get_fragment(1).to_table(columns=["id"])["id"].to_pylist()
    lance.dataset(path).delete(f"id >= {min(gone)} and id <= {max(gone)}")
    tables.write(path, "int32", [44], np.random.default_rng(4), 100_000)
    report = run_plan(host, target, file)
    assert report["established"] == [0, 2] and [entry["fragment"] for entry in report["left_out"]] == [1]
    oracle.healthy(path)
    oracle.agree(path, tables.INDEX, filters(path))


def test_lance_drops_what_is_to_be_replaced_or_dropped(host, tmp_path):
    target = host.put(tables.make(tmp_path / "t.lance", "int64", "BTREE", 2))
    path = host.local(target)
    plan = create(host, target, "ZONEMAP", "--replace", "--dry-run")
    drop = command.run("drop-index", target, tables.INDEX, "--dry-run", env=host.environment)
    assert [s["fate"] for s in plan["segments"]] == [s["fate"] for s in drop["segments"]] == ["REMOVED"]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "drop.json").write_text(json.dumps(drop))
    lance.dataset(path).drop_index(tables.INDEX)
    report = command.run("drop-index", target, tables.INDEX, "--plan", tmp_path / "drop.json", env=host.environment)
    assert (report["transaction"], report["segments_removed"]) == (None, 0)
    report = create(host, target, "ZONEMAP", "--plan", tmp_path / "plan.json")
    assert report["segments_removed"] == 0 and report["established"] == oracle.live(path)
    oracle.agree(path, tables.INDEX, filters(path))
    with pytest.raises(command.Failed) as failed:
        command.run("drop-index", target, tables.INDEX, "--plan", tmp_path / "drop.json", env=host.environment)
    assert failed.value.code == "INDEX_CHANGED"


def test_an_index_of_any_method_is_dropped(host, tmp_path):
    path = tmp_path / "t.lance"
    rng = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(300 * 8, dtype=np.float32)), 8)
    lance.write_dataset(pa.table({"id": pa.array(range(300), pa.int64()), "v": vectors}), str(path))
    lance.dataset(str(path)).create_index("v", "IVF_FLAT", num_partitions=2, name="vector")
    target = host.put(path)
    command.run("drop-index", target, "vector", env=host.environment)
    assert lance.dataset(host.local(target)).describe_indices() == []
    oracle.healthy(host.local(target))
