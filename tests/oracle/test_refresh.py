"""The main job against Lance: plan, build and commit over HTTP, from Node and from a browser, then Lance reads, appends and compacts.

The full product of methods, types, appended fragments, segments, hosts and runtimes runs with WHETSTONE_FULL=1; otherwise a seeded
sample in which every method meets every type once and every other value occurs with every host.
"""

import itertools
import os
import random
import shutil

import lance
import numpy as np
import pytest

import columns
import command
import oracle
import tables

METHODS = ["BTREE", "ZONEMAP"]
TYPES = list(columns.TYPES)
APPENDED = [1, 2, 5, 12]
SEGMENTS = [1, 2, 3, 8]
PLACES = [("serve", "node"), ("s3", "node"), ("serve", "chromium"), ("s3", "chromium")]
SEED = int(os.environ.get("WHETSTONE_SEED", "2"))


def cases():
    pairs = list(itertools.product(METHODS, TYPES))
    if os.environ.get("WHETSTONE_FULL"):
        return [(m, t, a, n, p) for (m, t), a, n, p in itertools.product(pairs, APPENDED, SEGMENTS, PLACES)]
    chance = random.Random(SEED)
    chance.shuffle(pairs)
    # Counters of 4, 4 and 4 values shifted against each other by whole rounds: 12 cases see every value three times.
    return [
        (m, t, APPENDED[i % 4], SEGMENTS[(i + i // 4) % 4], PLACES[(i + 2 * (i // 4) + i // 8) % 4])
        for i, (m, t) in enumerate(pairs)
    ]


def name(case):
    method, kind, appended, segments, (host, runtime) = case
    return f"{method}-{kind}-{appended}appended-N{segments}-{host}-{runtime}"


def test_the_sample_touches_every_value():
    chosen = cases()
    for position, values in [(0, METHODS), (1, TYPES), (2, APPENDED), (3, SEGMENTS), (4, PLACES)]:
        assert {case[position] for case in chosen} == set(values)
    assert {(c[0], c[1]) for c in chosen} == set(itertools.product(METHODS, TYPES))


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Tables of this session, each made once."""
    folder, known = tmp_path_factory.mktemp("made"), {}

    def make(kind, method, appended):
        key = (kind, method, appended)
        if key not in known:
            known[key] = tables.make(folder / f"{kind}-{method}-{appended}.lance", kind, method, appended)
        return known[key]

    return make


def heaviest(rows, runs):
    """The smallest possible maximum of `runs` contiguous groups, by dynamic programming (not the algorithm under test)."""
    sums = list(itertools.accumulate(rows, initial=0))
    best = sums[:]
    for _ in range(runs - 1):
        best = [0] + [min(max(best[cut], sums[end] - sums[cut]) for cut in range(end)) for end in range(1, len(sums))]
    return best[-1]


def check_plan(plan, sizes, unindexed, segments):
    runs = [run["fragments"] for run in plan["runs"]]
    assert [f for run in runs for f in run] == unindexed, "the runs are not a contiguous partition of the work"
    assert len(runs) == min(segments, len(unindexed))
    rows = [sum(sizes[f] for f in run) for run in runs]
    assert [run["rows"] for run in plan["runs"]] == rows
    assert plan["heaviest_run_rows"] == max(rows) == heaviest([sizes[f] for f in unindexed], len(runs))
    return runs


@pytest.mark.parametrize("case", cases(), ids=name)
def test_refresh(case, made, request):
    method, kind, appended, segments, (host_name, runtime) = case
    host = request.getfixturevalue("webdav" if host_name == "serve" else "s3")
    target = host.put(made(kind, method, appended))
    path = host.local(target)
    sizes = {f.fragment_id: f.count_rows() for f in lance.dataset(path).get_fragments()}
    before = oracle.coverage(path, tables.INDEX)
    unindexed = sorted(set(sizes) - {f for segment in before for f in segment})
    version = lance.dataset(path).version
    assert len(unindexed) == appended

    plan = command.run("plan", target, tables.INDEX, "--num-segments", segments, env=host.environment)
    runs = check_plan(plan, sizes, unindexed, segments)
    assert plan["v_plan"] == version
    if runtime == "node":
        report = command.run("refresh", target, tables.INDEX, "--num-segments", segments, "--workers", 2, env=host.environment)
    else:
        report = request.getfixturevalue("browser").refresh(target, tables.INDEX, {"segments": segments}, host.store, workers=2)

    path = host.local(target)
    assert report["fragments_indexed"] == appended
    assert report["declared"] == report["established"] == unindexed
    assert report["left_out"] == []
    assert (report["version_before"], report["version"]) == (version, version + 1) and lance.dataset(path).version == version + 1
    oracle.healthy(path)
    assert oracle.fully_covered(path, tables.INDEX) == sorted(before + runs)
    filters = columns.filters(oracle.values(path), np.random.default_rng(tables.seed_of(case)))
    oracle.agree(path, tables.INDEX, filters)

    again = command.run("refresh", target, tables.INDEX, env=host.environment)
    assert (again["fragments_indexed"], again["version"], again["transaction"]) == (0, version + 1, None)
    assert lance.dataset(host.local(target)).version == version + 1

    lance_carries_on(path, kind, filters)
    host.sync(target)
    left = sorted(set(oracle.live(path)) - {f for segment in oracle.coverage(path, tables.INDEX) for f in segment})
    report = command.run("refresh", target, tables.INDEX, "--num-segments", segments, env=host.environment)
    assert report["established"] == left
    path = host.local(target)
    oracle.healthy(path)
    oracle.fully_covered(path, tables.INDEX)
    oracle.agree(path, tables.INDEX, filters)


def lance_carries_on(path, kind, filters):
    """Lance appends, optimizes its indexes and compacts on top of what we wrote; queries agree after each step."""
    rng = np.random.default_rng(tables.seed_of(kind, "more"))
    first = max(oracle.ids(path, None)) + 1
    tables.write(path, kind, [35, 50], rng, first)
    oracle.agree(path, tables.INDEX, filters)
    lance.dataset(path).optimize.optimize_indices()
    oracle.healthy(path)
    oracle.fully_covered(path, tables.INDEX)
    oracle.agree(path, tables.INDEX, filters)
    lance.dataset(path).delete("id % 7 = 1")
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=600)
    oracle.healthy(path)
    oracle.agree_without_plan(path, filters)
    tables.write(path, kind, [25], rng, first + 85)
    oracle.agree_without_plan(path, filters)


def test_a_deferred_index_is_populated(webdav, tmp_path):
    path = tmp_path / "deferred.lance"
    tables.write(path, "int64", [40, 60, 20], np.random.default_rng(5))
    lance.dataset(str(path)).create_scalar_index("v", "BTREE", name=tables.INDEX, train=False)
    target = webdav.put(path)
    shutil.rmtree(path)
    report = command.run("refresh", target, tables.INDEX, "--num-segments", 2)
    local = webdav.local(target)
    assert report["established"] == [0, 1, 2]
    # 40, 60 and 20 rows: the heaviest of two runs is smallest when the cut is after the first fragment (40 against 80).
    assert oracle.fully_covered(local, tables.INDEX) == [[0], [1, 2]]
    oracle.agree(local, tables.INDEX, columns.filters(oracle.values(local), np.random.default_rng(6)))
