"""Every index method but full text over every column type it takes, through every way a segment comes about, with row addresses and
with stable row ids, on every host.

Lance makes a table with a column of every type, deletes and updates rows and appends fragments; we build, refresh, populate, merge or
absorb, and Lance answers every kind of filter from our segments, extends and merges them with its own, and compacts.
WHETSTONE_FULL=1 takes every type in every cell; otherwise each method meets each way once, with a seeded choice of types, rows and hosts.
"""

import itertools
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

METHODS = ["BTREE", "ZONEMAP", "BITMAP", "BLOOMFILTER", "NGRAM", "LABEL_LIST"]
WAYS = ["build", "refresh", "deferred", "merge", "absorb"]
PLACES = ["webdav", "s3", "chromium", "chromium-s3"]
SEED = int(os.environ.get("WHETSTONE_SEED", "3"))
SAMPLE = 1
FULL = bool(os.environ.get("WHETSTONE_FULL"))


def cells():
    """(method, way, stable, place): all of them, or each method and way once with every place in turn."""
    if FULL:
        pairs = list(itertools.product(METHODS, WAYS, [False, True]))
        return [(*pair, PLACES[i % 4]) for i, pair in enumerate(pairs)]
    chance = random.Random(SEED)
    stable = [chance.random() < 0.5 for _ in METHODS]
    pairs = list(itertools.product(range(len(METHODS)), range(len(WAYS))))
    # Both kinds of rows with every method, and every place with every way.
    return [(METHODS[m], WAYS[w], stable[m] ^ (w % 2 == 1), PLACES[(m + w) % 4]) for m, w in pairs]


def name_of(cell):
    method, way, stable, place = cell
    return f"{method}-{way}-{'stable' if stable else 'addresses'}-{place}"


def chosen(cell):
    """The types that are indexed in this run."""
    all_of_them = kinds.kinds(cell[0])
    if FULL:
        return all_of_them
    return random.Random(f"{SEED} {cell}").sample(all_of_them, min(SAMPLE, len(all_of_them)))


def write(path, names, sizes, rng, first, value_first=0, **options):
    for rows in sizes:
        data = {"id": pa.array(range(first, first + rows), pa.int64()), **{n: kinds.column(n, rows, rng, value_first) for n in names}}
        mode = "append" if path.exists() else "create"
        lance.write_dataset(pa.table(data), str(path), mode=mode, **options)
        first += rows
    return first


def make(path, cell, names):
    """Fragments with deletions, indexed by Lance up to where this way of ours begins; rows are updated where ids are stable."""
    method, way, stable, _ = cell
    rng = np.random.default_rng(tables.seed_of(*cell[:3]))
    first = write(path, names, [170, 90], rng, 0, enable_stable_row_ids=stable)
    lance.dataset(str(path)).delete("id % 11 = 3")
    if way != "build":
        for name in names:
            lance.dataset(str(path)).create_scalar_index(name, method, name=f"{name}_idx", train=way != "deferred")
    first = write(path, names, [60, 130], rng, first, 40)
    lance.dataset(str(path)).delete("id % 13 = 5")
    if stable and way not in ("build", "deferred"):
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


class Jobs:
    """Runs jobs on a table where it lies, from the command or in a page with real Web Workers."""

    def __init__(self, place, request):
        self.host = request.getfixturevalue("s3" if place.endswith("s3") else "webdav")
        self.page = request.getfixturevalue("browser") if place.startswith("chromium") else None

    def put(self, source):
        self.target = self.host.put(source)
        return self.path()

    def path(self):
        return self.host.local(self.target)

    def run(self, method, words, arguments, **options):
        self.host.sync(self.target)
        report = self._run(method, words, arguments, options)
        self.path()
        return report

    def _run(self, method, words, arguments, options):
        if self.page:
            return self.page.run(method, self.target, arguments, options, self.host.store)
        given = [word for key, value in options.items() for word in ([f"--{OPTIONS[key]}"] if value is True else [f"--{OPTIONS[key]}", str(value)])]
        return command.run(*words, *given, env=self.host.environment)

    def create(self, name, column, method, **options):
        return self.run("createIndex", ["create-index", self.target, name, column, method], [name, column, method], **options)

    def refresh(self, name, **options):
        if options.get("absorb") == "tiered" and not self.page:
            return self.run("refresh", ["refresh", self.target, name, "--absorb-trailing"], [name])
        return self.run("refresh", ["refresh", self.target, name], [name], **options)

    def merge(self, name, **options):
        return self.run("merge", ["merge", self.target, name], [name], **options)

    def audit(self, name):
        """Nothing that Lance reads rightly is found wrong here."""
        self.host.sync(self.target)
        report = command.audit(self.target, name, env=self.host.environment)
        assert report["findings"] == [] and report["exact"], report


OPTIONS = {"segments": "num-segments", "absorb": "absorb"}


def do(jobs, way, method, name, live):
    """What this way of building segments is, and what its report has to say."""
    index = f"{name}_idx"
    if way == "build":
        report = jobs.create(index, name, method, segments=2)
        assert (report["segments_added"], report["established"]) == (2, live)
    elif way == "deferred":
        assert jobs.refresh(index, segments=2)["established"] == live
    elif way == "absorb":
        report = jobs.refresh(index, absorb=True)
        assert (report["segments_added"], report["established"]) == (1, live)
    else:
        report = jobs.refresh(index, segments=2)
        assert report["left_out"] == [] and report["transaction"], name
        assert set(report["established"]) >= set(live) - {0, 1}, name
        if way == "merge":
            report = jobs.merge(index)
            assert report["segments_added"] == 1 and report["established"] == live
            assert len(oracle.coverage(jobs.path(), index)) == 1


@pytest.mark.parametrize("cell", cells(), ids=name_of)
def test_lance_answers_from_it_and_carries_on(cell, request, tmp_path):
    method, way, _, place = cell
    names = chosen(cell)
    source = tmp_path / f"{method}.lance"
    first = make(source, cell, names)
    jobs = Jobs(place, request)
    live = oracle.live(jobs.put(source))
    for name in names:
        do(jobs, way, method, name, live)
        path = jobs.path()
        assert oracle.describe(path, f"{name}_idx").index_type.upper() == method.replace("_", "")
        oracle.fully_covered(path, f"{name}_idx")
    oracle.healthy(path)
    check(path, method, names)
    jobs.audit(f"{names[0]}_idx")

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
    for name in names:
        jobs.refresh(f"{name}_idx", **({"absorb": "tiered"} if way == "absorb" else {"segments": 2}))
    path = jobs.path()
    oracle.healthy(path)
    for name in names:
        oracle.fully_covered(path, f"{name}_idx")
    check(path, method, names)
    jobs.audit(f"{names[-1]}_idx")


def test_the_sample_touches_every_value():
    chosen_cells = cells()
    assert {(c[0], c[1]) for c in chosen_cells} == set(itertools.product(METHODS, WAYS))
    assert {(c[0], c[2]) for c in chosen_cells} == set(itertools.product(METHODS, [False, True]))
    assert {(c[1], c[3]) for c in chosen_cells} == set(itertools.product(WAYS, PLACES))
