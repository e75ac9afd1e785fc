"""Refresh speed and peak memory against Lance, on the same files in one run: ratios, never absolute promises.

A table of 8 fragments with a deferred index is refreshed by the command (a local folder; the whole process is timed, start-up included)
and, on another copy, indexed by pylance's create_scalar_index (only the call is timed). Each is run in turn, three times; medians count.
WHETSTONE_BENCH_ROWS sets the rows (default ten million), WHETSTONE_BENCH_ROUNDS the rounds.
"""

import json
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

LANCE = """
import sys, time, lance
dataset = lance.dataset(sys.argv[1])
start = time.perf_counter()
dataset.create_scalar_index("v", "BTREE", name="v_idx", replace=True)
print(time.perf_counter() - start)
"""


def int64(rng, rows):
    return pa.array(rng.integers(-(2**62), 2**62, rows), pa.int64())


def short_utf8(rng, rows):
    """About twelve characters, as user names and codes are."""
    numbers = rng.integers(0, 10**9, rows)
    return pa.array(np.char.add("user", numbers.astype("U9")).tolist(), pa.string())


def make(path, values, rng):
    for fragment in range(FRAGMENTS):
        rows = ROWS // FRAGMENTS
        table = pa.table({"id": pa.array(np.arange(fragment * rows, (fragment + 1) * rows)), "v": values(rng, rows)})
        lance.write_dataset(table, str(path), mode="append" if fragment else "create", max_rows_per_file=rows)
    lance.dataset(str(path)).create_scalar_index("v", "BTREE", name="v_idx", train=False)


def ours(path, workers):
    seconds, _, peak, out = measured(["node", str(command.COMMAND), "refresh", str(path), "v_idx", "--num-segments", str(workers), "--workers", str(workers), "--json"])
    report = json.loads(out)
    assert report["fragments_indexed"] == FRAGMENTS, report
    return seconds, peak


def theirs(path):
    _, _, peak, out = measured([sys.executable, "-c", LANCE, str(path)])
    return float(out), peak


RUNNERS = {"Lance create_scalar_index": theirs, "whetstone, 1 worker, N=1": lambda p: ours(p, 1), "whetstone, 2 workers, N=2": lambda p: ours(p, 2)}


def check(path):
    """A fast index that answers wrongly would be no result."""
    oracle.fully_covered(path, "v_idx")
    sample = lance.dataset(str(path)).take([0, ROWS // 2, ROWS // 8 * 8 - 1], columns=["v"])["v"].to_pylist()
    texts = [f"'{v}'" if isinstance(v, str) else str(v) for v in sample]
    oracle.agree(path, "v_idx", [f"v = {texts[0]}", f"v in ({', '.join(texts)})", "v is null"])


def main():
    rows = {}
    with tempfile.TemporaryDirectory(prefix="whetstone-bench-") as folder:
        for name, values in {"int64": int64, "utf8": short_utf8}.items():
            table = pathlib.Path(folder) / f"{name}.lance"
            make(table, values, np.random.default_rng(1))
            results = {runner: [] for runner in RUNNERS}
            for _ in range(ROUNDS):
                for runner, run in RUNNERS.items():
                    copy = pathlib.Path(folder) / "copy.lance"
                    shutil.copytree(table, copy, copy_function=os.link)
                    results[runner].append(run(copy))
                    if runner != "Lance create_scalar_index":
                        check(copy)
                    shutil.rmtree(copy)
            rows[name] = {runner: (statistics.median(t for t, _ in found), max(m for _, m in found)) for runner, found in results.items()}
            shutil.rmtree(table)
    print(f"BTREE over {ROWS:,} rows in {FRAGMENTS} fragments; {os.cpu_count()} cores; medians of {ROUNDS}")
    for name, found in rows.items():
        base = found["Lance create_scalar_index"][0]
        print(f"\n{name:<28}{'seconds':>9}{'speed':>9}{'peak MB':>9}")
        for runner, (seconds, peak) in found.items():
            print(f"  {runner:<26}{seconds:>9.2f}{base / seconds:>8.2f}x{peak / 1e6:>9.0f}")


if __name__ == "__main__":
    main()
