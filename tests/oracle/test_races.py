"""Others change the table while we work: another refresh, a drop, a drop with re-creation, deletes, appends, rewrites, compaction."""

import json
import shutil

import lance
import numpy as np
import pytest

import columns
import command
import oracle
import tables


@pytest.fixture(params=["serve", "s3"])
def host(request):
    return request.getfixturevalue("webdav" if request.param == "serve" else "s3")


@pytest.fixture
def planned(host, tmp_path):
    """A table with four unindexed fragments and a plan for it, kept in a file."""
    source = tables.make(tmp_path / "t.lance", "int64", "BTREE", 4)
    target = host.put(source)
    plan = command.run("plan", target, tables.INDEX, "--num-segments", 2, env=host.environment)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    return target, file


def run_plan(host, target, file):
    return command.run("refresh", target, tables.INDEX, "--plan", file, env=host.environment)


def check(path):
    oracle.healthy(path)
    oracle.agree(path, tables.INDEX, columns.filters(oracle.values(path), np.random.default_rng(8)))


@pytest.mark.parametrize("round", range(3))
def test_two_refreshes_at_once(round, host, tmp_path):
    target = host.put(tables.make(tmp_path / "t.lance", "utf8", "BTREE", 5))
    started = [command.start("refresh", target, tables.INDEX, "--num-segments", n, "--json", env=host.environment) for n in (2, 3)]
    reports = [command.finish(process) for process in started]
    established = [set(report["established"]) for report in reports]
    assert not established[0] & established[1], "both claim to have established the same fragments"
    assert established[0] | established[1] == {2, 3, 4, 5, 6}
    path = host.local(target)
    segments = oracle.fully_covered(path, tables.INDEX)
    for report in reports:
        if report["version"] == report["version_before"]:
            assert report["fragments_indexed"] == 0 and report["transaction"] is None
    assert len({report["version"] for report in reports if report["transaction"]}) == sum(1 for r in reports if r["transaction"])
    assert {f for segment in segments for f in segment} == set(oracle.live(path))
    check(path)


def test_dropped_between_plan_and_commit(host, planned):
    target, file = planned
    lance.dataset(host.local(target)).drop_index(tables.INDEX)
    host.sync(target)
    version = lance.dataset(host.local(target)).version
    with pytest.raises(command.Failed) as failed:
        run_plan(host, target, file)
    assert failed.value.code == "INDEX_DROPPED"
    dataset = lance.dataset(host.local(target))
    assert dataset.describe_indices() == [] and dataset.version == version, "the index has to stay dropped"


@pytest.mark.parametrize("train", [True, False])
def test_dropped_and_made_again(host, planned, train):
    target, file = planned
    path = host.local(target)
    lance.dataset(path).drop_index(tables.INDEX)
    lance.dataset(path).create_scalar_index("v", "BTREE", name=tables.INDEX, train=train)
    host.sync(target)
    before = oracle.coverage(path, tables.INDEX)
    with pytest.raises(command.Failed) as failed:
        run_plan(host, target, file)
    assert failed.value.code == "INDEX_CHANGED"
    assert oracle.coverage(host.local(target), tables.INDEX) == before
    # A deferred index covers nothing, so Lance does not read it.
    (check if train else check_scan)(host.local(target))


def test_another_method_under_the_name(host, planned):
    target, file = planned
    path = host.local(target)
    lance.dataset(path).create_scalar_index("v", "ZONEMAP", name=tables.INDEX, replace=True)
    host.sync(target)
    with pytest.raises(command.Failed) as failed:
        run_plan(host, target, file)
    assert failed.value.code in ("INDEX_CHANGED", "TYPE_CHANGED")
    assert oracle.describe(host.local(target), tables.INDEX).index_type == "ZoneMap"


def test_a_planned_fragment_is_deleted(host, planned):
    target, file = planned
    path = host.local(target)
    gone = lance.dataset(path).get_fragment(3).to_table(columns=["id"])["id"].to_pylist()
    lance.dataset(path).delete(f"id >= {min(gone)} and id <= {max(gone)}")
    host.sync(target)
    report = run_plan(host, target, file)
    assert report["established"] == [2, 4, 5]
    assert [entry["fragment"] for entry in report["left_out"]] == [3]
    path = host.local(target)
    oracle.fully_covered(path, tables.INDEX)
    check(path)


def test_rows_deleted_and_appended_meanwhile(host, planned):
    target, file = planned
    path = host.local(target)
    lance.dataset(path).delete("id % 13 = 4")
    tables.write(path, "int64", [44], np.random.default_rng(4), 100_000)
    host.sync(target)
    report = run_plan(host, target, file)
    assert report["established"] == [2, 3, 4, 5] and report["left_out"] == []
    path = host.local(target)
    assert 6 not in {f for segment in oracle.coverage(path, tables.INDEX) for f in segment}
    check(path)


def test_the_column_is_rewritten_in_place(host, planned):
    """Another value in the same fragment: what was built on the old values must not be published for it."""
    target, file = planned
    path = host.local(target)
    dataset = lance.dataset(path)
    ids = dataset.get_fragment(4).to_table(columns=["id"])["id"]
    import pyarrow as pa

    fragment = dataset.get_fragment(4)
    new_values = pa.table({"id": ids, "v": pa.array(range(50_000, 50_000 + len(ids)), pa.int64())})
    updated, fields = fragment.update_columns(new_values, left_on="id", right_on="id")
    operation = lance.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
    lance.LanceDataset.commit(path, operation, read_version=dataset.version)
    host.sync(target)
    report = run_plan(host, target, file)
    assert 4 not in report["established"] and [entry["fragment"] for entry in report["left_out"]] == [4]
    path = host.local(target)
    check(path)
    assert len(oracle.ids(path, "v >= 50000 and v < 60000")) == len(ids)


def test_everything_planned_is_compacted_away(host, planned):
    target, file = planned
    path = host.local(target)
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=100_000)
    host.sync(target)
    version = lance.dataset(path).version
    left = sorted(set(oracle.live(path)) & {2, 3, 4, 5})
    if left:
        report = run_plan(host, target, file)
        assert report["established"] == left
    else:
        with pytest.raises(command.Failed) as failed:
            run_plan(host, target, file)
        assert failed.value.code == "NOTHING_LEFT"
        assert lance.dataset(host.local(target)).version == version
    check_scan(host.local(target))


def check_scan(path):
    oracle.healthy(path)
    oracle.agree_without_plan(path, columns.filters(oracle.values(path), np.random.default_rng(8)))


def test_v_plan_was_cleaned_up(host, planned, tmp_path):
    """The plan carries what the commit needs to know about its version, so cleaning that version up does no harm."""
    import datetime

    target, file = planned
    path = host.local(target)
    tables.write(path, "int64", [12], np.random.default_rng(4), 200_000)
    lance.dataset(path).cleanup_old_versions(older_than=datetime.timedelta(0), delete_unverified=True)
    host.sync(target)
    try:
        report = run_plan(host, target, file)
    except command.Failed as failed:
        # The build is pinned to V_plan: without its manifest it cannot start, and has to say so.
        assert failed.code in ("VERSION_NOT_FOUND", "STALE_PLAN") and failed.changed == "nothing"
    else:
        assert set(report["established"]) <= {2, 3, 4, 5}
    check(host.local(target))


def test_a_crowd_keeps_the_table_whole(host, tmp_path):
    """Four refreshes of two indexes at once: every commit lands or is told why, and Lance agrees with the scan."""
    source = tables.make(tmp_path / "t.lance", "int64", "BTREE", 6)
    lance.dataset(str(source)).create_scalar_index("id", "ZONEMAP", name="id_idx", train=False)
    target = host.put(source)
    shutil.rmtree(source)
    started = [command.start("refresh", target, index, "--json", env=host.environment) for index in (tables.INDEX, "id_idx", tables.INDEX, "id_idx")]
    for process in started:
        command.finish(process)
    path = host.local(target)
    for index in (tables.INDEX, "id_idx"):
        oracle.fully_covered(path, index)
    check(path)
