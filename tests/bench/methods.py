"""Building an index of every method against Lance, on the same files in one run: ratios, never absolute promises.

A table of 8 fragments in a local folder is indexed by the package with two workers, in two segments, and by pylance's
create_scalar_index on another copy: wall time of the call alone (starting the workers included), CPU and memory of the process (half a
second of it is node and the engine starting). Each is run in turn; medians count. WHETSTONE_BENCH_ROWS sets the rows (default ten million; full text has a twentieth), WHETSTONE_BENCH_ROUNDS the
rounds, WHETSTONE_BENCH_METHODS which methods (names with commas), WHETSTONE_BENCH_TABLES a folder that keeps the tables for another run.
"""

import os
import pathlib
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import lance  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

import command  # noqa: E402
import oracle  # noqa: E402
from child import measured  # noqa: E402

ROWS = int(os.environ.get("WHETSTONE_BENCH_ROWS", "10000000"))
ROUNDS = int(os.environ.get("WHETSTONE_BENCH_ROUNDS", "3"))
FRAGMENTS = 8
INDEX = "v_idx"
OURS = command.ROOT / "tests" / "support" / "timed_create.mjs"

LANCE = """
import sys, time, lance
dataset = lance.dataset(sys.argv[1])
start = time.perf_counter()
dataset.create_scalar_index("v", sys.argv[2], name="v_idx", replace=True)
print(time.perf_counter() - start)
"""


def int64(rng, rows):
    return pa.array(rng.integers(-(2**62), 2**62, rows), pa.int64())


def category(rng, rows):
    return pa.array(rng.integers(0, 1000, rows).astype(np.int32), pa.int32())


def user(rng, rows):
    """About twelve characters, as user names and codes are."""
    return pa.array(np.char.add("user", rng.integers(0, 10**9, rows).astype("U9")).tolist(), pa.string())


def labels(rng, rows):
    """Up to four labels of two thousand."""
    lengths = rng.integers(0, 5, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    items = np.char.add("label", rng.integers(0, 2000, offsets[-1]).astype("U4"))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(items.tolist(), pa.string()))


def documents(rng, rows):
    """Twenty words of thirty thousand, frequent and rare ones."""
    picked = (rng.random((rows, 20)) ** 3 * 30_000).astype(int)
    return pa.array([" ".join(f"word{n}" for n in row) for row in picked.tolist()], pa.string())


# Method, what the column is, how to make it, its share of the rows, a filter of a value that is there.
CASES = [
    ("BTREE", "int64", int64, 1, "v = {}"),
    ("BTREE", "string of 12", user, 1, "v = '{}'"),
    ("ZONEMAP", "int64", int64, 1, "v = {}"),
    ("BLOOMFILTER", "int64", int64, 1, "v = {}"),
    ("BITMAP", "int32, 1000 values", category, 1, "v = {}"),
    ("LABEL_LIST", "up to 4 of 2000", labels, 1, "array_has_any(v, ['label7'])"),
    ("NGRAM", "string of 12", user, 1, "contains(v, '{}')"),
    ("INVERTED", "20 words", documents, 20, None),
]


def make(path, values, rows, rng):
    for fragment in range(FRAGMENTS):
        part = rows // FRAGMENTS
        table = pa.table({"id": pa.array(np.arange(fragment * part, (fragment + 1) * part)), "v": values(rng, part)})
        lance.write_dataset(table, str(path), mode="append" if fragment else "create", max_rows_per_file=part)


def kept(folder, values, rows):
    """The table of such a column, made unless it is there."""
    path = folder / f"{values.__name__}-{rows}.lance"
    if not path.exists():
        make(path.with_suffix(".part"), values, rows, np.random.default_rng(1))
        path.with_suffix(".part").rename(path)
    return path


def ours(path, method):
    _, cpu, peak, out = measured(["node", str(OURS), str(path), INDEX, "v", method])
    return float(out), cpu, peak, index_bytes(path)


def theirs(path, method):
    _, cpu, peak, out = measured([sys.executable, "-c", LANCE, str(path), method])
    return float(out), cpu, peak, index_bytes(path)


def link(source, target):
    """A hard link, or a copy across file systems."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def index_bytes(path):
    return sum(file.stat().st_size for file in (pathlib.Path(path) / "_indices").rglob("*") if file.is_file())


def check(path, method, filter):
    """A fast index that answers wrongly would be no result."""
    oracle.fully_covered(path, INDEX)
    dataset = lance.dataset(str(path))
    if filter is None:
        assert dataset.scanner(columns=["id"], full_text_query="word3", limit=10).to_table().num_rows == 10
    else:
        oracle.agree(path, INDEX, [filter.format(dataset.take([dataset.count_rows() // 2], columns=["v"])["v"].to_pylist()[0])])


def main():
    wanted = os.environ.get("WHETSTONE_BENCH_METHODS")
    print(f"{ROWS:,} rows in {FRAGMENTS} fragments (full text {ROWS // 20:,}); {os.cpu_count()} cores; two workers; medians of {ROUNDS}")
    print(f"{'method':<13}{'column':<20}{'wall s':>8}{'Lance':>8}{'speed':>8}{'CPU s':>8}{'Lance':>8}{'peak MB':>9}{'Lance':>7}{'index MB':>10}{'Lance':>7}")
    with tempfile.TemporaryDirectory(prefix="whetstone-bench-") as folder:
        for method, name, values, share, filter in CASES:
            if wanted and method not in wanted.split(","):
                continue
            table = kept(pathlib.Path(os.environ.get("WHETSTONE_BENCH_TABLES", folder)), values, ROWS // share)
            if "--tables-only" in sys.argv:
                continue
            results = {theirs: [], ours: []}
            for _ in range(ROUNDS):
                for run, found in results.items():
                    copy = pathlib.Path(folder) / "copy.lance"
                    shutil.copytree(table, copy, copy_function=link)
                    found.append(run(copy, method))
                    if run is ours:
                        check(copy, method, filter)
                    shutil.rmtree(copy)
            if "WHETSTONE_BENCH_TABLES" not in os.environ:
                shutil.rmtree(table)
            (wall, cpu, peak, size), (wall_, cpu_, peak_, size_) = ([statistics.median(n) for n in zip(*results[run], strict=True)] for run in (ours, theirs))
            print(
                f"{method:<13}{name:<20}{wall:>8.2f}{wall_:>8.2f}{wall_ / wall:>7.2f}x{cpu:>8.2f}{cpu_:>8.2f}"
                f"{peak / 1e6:>9.0f}{peak_ / 1e6:>7.0f}{size / 1e6:>10.1f}{size_ / 1e6:>7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
