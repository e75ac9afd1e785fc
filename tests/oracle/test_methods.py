"""BITMAP, BLOOMFILTER, NGRAM and LABEL_LIST indexes over every column type they take, with row addresses and with stable row ids.

Lance makes a table with an index on a column of every type, deletes and updates rows and appends fragments; we refresh, and Lance
answers every kind of filter from our segments, merges them with its own, and compacts. WHETSTONE_FULL=1 takes every type, otherwise
a seeded sample.
"""

import os
import random

import lance
import numpy as np
import pyarrow as pa
import pytest

import command
import kinds
import oracle
import tables

METHODS = ["BITMAP", "BLOOMFILTER", "NGRAM", "LABEL_LIST"]
SEED = int(os.environ.get("WHETSTONE_SEED", "3"))
SAMPLE = 4


def chosen(method, stable):
    """The types that are refreshed in this run."""
    all_of_them = kinds.kinds(method)
    if os.environ.get("WHETSTONE_FULL"):
        return all_of_them
    chance = random.Random(f"{SEED} {method} {stable}")
    return chance.sample(all_of_them, min(SAMPLE, len(all_of_them)))


def write(path, names, sizes, rng, first, value_first=0, **options):
    for rows in sizes:
        data = {"id": pa.array(range(first, first + rows), pa.int64()), **{n: kinds.column(n, rows, rng, value_first) for n in names}}
        mode = "append" if path.exists() else "create"
        lance.write_dataset(pa.table(data), str(path), mode=mode, **options)
        first += rows
    return first


def make(path, method, names, stable, train=True):
    """Two indexed fragments and two appended ones; rows are deleted in all of them, and updated where ids are stable."""
    rng = np.random.default_rng(tables.seed_of(method, stable))
    first = write(path, names, [170, 90], rng, 0, enable_stable_row_ids=stable)
    lance.dataset(str(path)).delete("id % 11 = 3")
    for name in names:
        lance.dataset(str(path)).create_scalar_index(name, method, name=f"{name}_idx", train=train)
    first = write(path, names, [60, 130], rng, first, 40)
    lance.dataset(str(path)).delete("id % 13 = 5")
    if stable and train:
        # An update moves rows and keeps their ids: what the segment holds of them is stale.
        dataset = lance.dataset(str(path))
        dataset.update({name: kinds.literal(name, 7) for name in names}, where="id % 17 = 2")
        dataset.update({name: "null" for name in names}, where="id % 17 = 9")
    return first


def check(path, method, names):
    for name in names:
        served, other = kinds.filters(method, name, name)
        oracle.agree(path, f"{name}_idx", served)
        if other:
            oracle.agree_without_plan(path, other)


def refresh(target, names):
    return [command.run("refresh", target, f"{name}_idx", "--num-segments", 2) for name in names]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("method", METHODS)
def test_refresh(method, stable, webdav, tmp_path):
    names = chosen(method, stable)
    source = tmp_path / f"{method}.lance"
    first = make(source, method, names, stable)
    target = webdav.put(source)
    path = webdav.local(target)
    live = oracle.live(path)
    for name, report in zip(names, refresh(target, names)):
        assert report["left_out"] == [] and report["transaction"], name
        assert set(report["established"]) >= set(live) - {0, 1}, name
        assert oracle.describe(path, f"{name}_idx").index_type.upper() == method.replace("_", "")
        oracle.fully_covered(path, f"{name}_idx")
    oracle.healthy(path)
    check(path, method, names)

    # Lance goes on from there: it appends, merges our segments with its own, deletes and compacts.
    rng = np.random.default_rng(5)
    first = write(type(source)(path), names, [45], rng, first, 20)
    lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=10)
    oracle.healthy(path)
    for name in names:
        assert len(oracle.fully_covered(path, f"{name}_idx")) == 1, "Lance merges every segment into one"
    check(path, method, names)
    lance.dataset(path).delete("id % 7 = 1")
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=600)
    write(type(source)(path), names, [30], rng, first, 10)
    for name in names:
        oracle.agree_without_plan(path, [text for part in kinds.filters(method, name, name) for text in part])
    # And we go on from there.
    refresh(target, names)
    oracle.healthy(path)
    for name in names:
        oracle.fully_covered(path, f"{name}_idx")
    check(path, method, names)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("method", METHODS)
def test_a_deferred_index_is_populated(method, stable, webdav, tmp_path):
    names = chosen(method, not stable)[:2]
    source = tmp_path / f"{method}-deferred.lance"
    make(source, method, names, stable, train=False)
    target = webdav.put(source)
    path = webdav.local(target)
    for report in refresh(target, names):
        assert report["established"] == oracle.live(path)
    oracle.healthy(path)
    check(path, method, names)
