"""A million rows in an engine that cannot have more than 128 MB: every method builds its segment, and Lance answers from it.

The engine's memory is given a ceiling of 112 MiB, which leaves the rest of 128 MiB to its code and the host; growing past it traps.
Limits below what building at once takes make it read the column in passes (INVERTED: write partitions).
"""

import json
import pathlib
import subprocess

import lance
import numpy as np
import pyarrow as pa
import pytest

import command
import oracle

ROWS = 1_000_000
MIB = 1 << 20
MEMORY = 112 * MIB
BUILD = pathlib.Path(__file__).resolve().parents[1] / "support" / "limited_build.mjs"

WORDS = np.array([f"{a}{b}{c}" for a in ("ka", "lo", "mi", "ne", "ru") for b in ("ta", "so", "ri", "ven") for c in "abcdefghijklmnopqrst"])


def words(rng, rows, count):
    """Rows of so many words; squaring makes a few frequent and most rare."""
    picked = WORDS[(rng.random((rows, count)) ** 2 * len(WORDS)).astype(int)]
    out = picked[:, 0]
    for at in range(1, count):
        out = np.char.add(np.char.add(out, " "), picked[:, at])
    return pa.array(out.tolist(), pa.string())


def labels(rng, rows):
    lengths = rng.integers(0, 5, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    items = np.char.add("label", rng.integers(0, 2000, offsets[-1]).astype("U4"))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(items.tolist(), pa.string()))


COLUMNS = {
    "number": lambda rng: pa.array(rng.integers(-(2**62), 2**62, ROWS), pa.int64()),
    "name": lambda rng: pa.array(np.char.add("user", rng.integers(0, 10**9, ROWS).astype("U9")).tolist(), pa.string()),
    "category": lambda rng: pa.array(rng.integers(0, 1000, ROWS).astype(np.int32), pa.int32()),
    "labels": lambda rng: labels(rng, ROWS),
    "text": lambda rng: words(rng, ROWS, 6),
}

# Column, bytes a build may hold, whether that is too little to build at once, filters (full text is searched).
BUILDS = {
    "ZONEMAP": ("number", 32 * MIB, False, ["number > 4600000000000000000"]),
    "BLOOMFILTER": ("name", 32 * MIB, False, ["name = '{name}'"]),
    "BITMAP": ("category", 4 * MIB, True, ["category = 17", "category in (3, 999)", "category < 2"]),
    "BTREE": ("number", 22 * MIB, True, ["number > 4611600000000000000", "number = {number}"]),
    "LABEL_LIST": ("labels", 7 * MIB, True, ["array_has_any(labels, ['label3', 'label1999'])", "array_has_all(labels, ['label7'])"]),
    "NGRAM": ("text", 28 * MIB, True, ["contains(text, 'kataa katab')", "contains(text, 'ruvent')"]),
    "INVERTED": ("text", 32 * MIB, True, []),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "million.lance"
    rng = np.random.default_rng(4)
    data = pa.table({"id": pa.array(range(ROWS), pa.int64()), **{name: make(rng) for name, make in COLUMNS.items()}})
    lance.write_dataset(data, str(path), max_rows_per_file=ROWS // 2)
    return path


def build(path, name, method, limit):
    column, *_ = BUILDS[method]
    command_line = ["node", str(BUILD), str(path), name, column, method, str(MEMORY), str(limit)]
    done = subprocess.run(command_line, env=command.clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("method", BUILDS)
def test_a_million_rows_in_128_mb(table, method):
    column, limit, divided, filters = BUILDS[method]
    index = f"{method.lower()}_idx"
    built = build(table, index, method, limit)
    assert isinstance(built, list), built
    (segment,) = built
    assert segment["rows"] == ROWS
    stats = segment["stats"]
    print(method, stats, sum(file["size"] for file in segment["files"]))
    assert (stats.get("passes", stats.get("partitions", 1)) > 1) == divided, stats
    oracle.fully_covered(table, index)
    row = lance.dataset(str(table)).take([ROWS // 3]).to_pylist()[0]
    for text in filters:
        # Several columns have two indexes; what the plan reads is Lance's choice.
        oracle.agree_without_plan(table, [text.format(**row)])
    if method == "INVERTED":
        same_documents_and_scores(table)


def search(path, text):
    found = lance.dataset(str(path)).scanner(columns=["id"], full_text_query={"columns": ["text"], "query": text}, limit=ROWS).to_table()
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


def same_documents_and_scores(path):
    """As from one partition: what a search scores by is summed over all of them."""
    queries = ["kataa", "ruvent", "kasoa ruvent"]
    ours = {text: search(path, text) for text in queries}
    lance.dataset(str(path)).create_scalar_index("text", "INVERTED", name="inverted_idx", replace=True)
    for text, found in ours.items():
        theirs = search(path, text)
        assert found and found.keys() == theirs.keys(), text
        np.testing.assert_allclose([found[key] for key in theirs], list(theirs.values()), rtol=1e-5)


def test_too_little_says_what_would_do(table):
    before = lance.dataset(str(table)).version
    error = build(table, "again_idx", "BTREE", 4 * MIB)["error"]
    assert error["code"] == "MEMORY_LIMIT", error
    needed = error["detail"]["needed_bytes"]
    # The files, of 16 bytes a row, are held until they are stored.
    assert 16 * ROWS < needed < 32 * MIB, error
    assert lance.dataset(str(table)).version == before
    (segment,) = build(table, "again_idx", "BTREE", needed)
    assert segment["rows"] == ROWS
