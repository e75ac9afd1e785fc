"""Decoding speed per encoding against Lance's scan of the same column, in one run: ratios, never absolute promises.

A table per encoding with one column, on the local disk and read before it is timed. Ours: natively (the release profile, which is tuned
for size) and in wasm with SIMD, through the package in Node. Lance: pylance's scanner on one thread; what each batch costs it in calls
is found by timing two batch sizes and left out. WHETSTONE_BENCH_DECODE_ROWS sets the rows (default two million), WHETSTONE_BENCH_ROUNDS the rounds.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import lance  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

import command  # noqa: E402

ROWS = int(os.environ.get("WHETSTONE_BENCH_DECODE_ROWS", "2000000"))
ROUNDS = int(os.environ.get("WHETSTONE_BENCH_ROUNDS", "3"))
ROOT = pathlib.Path(__file__).resolve().parents[2]

# Best of the rounds for two batch sizes; what is left at an endless batch is the work itself.
LANCE = """
import json, sys, time, lance
rounds, answer = int(sys.argv[1]), {}
for folder in sys.argv[2:]:
    dataset = lance.dataset(folder)
    def scan(size):
        best, rows = float("inf"), 0
        for _ in range(rounds):
            start = time.perf_counter()
            batches = [batch.num_rows for batch in dataset.scanner(columns=["v"], batch_size=size, scan_in_order=True).to_batches()]
            best, rows = min(best, time.perf_counter() - start), sum(batches)
        return best, len(batches), rows
    (small, many, rows), (large, few, _) = scan(8192), scan(65536)
    call = max(0.0, (small - large) / max(1, many - few))
    answer[folder] = {"seconds": max(large - call * few, large / 2), "call": call, "rows": rows}
print(json.dumps(answer))
"""


def words(rng, rows, distinct, length):
    pool = ["".join(chr(97 + c) for c in rng.integers(0, 26, length)) for _ in range(distinct)]
    return pa.array(np.array(pool, dtype=object)[rng.integers(0, distinct, rows)], pa.string())


def cases():
    """Name, version, values, field metadata."""
    rng = np.random.default_rng(7)
    wide = rng.integers(-(2**62), 2**62, ROWS)
    small = rng.integers(0, 1000, ROWS)
    nulls = rng.random(ROWS) < 0.1
    names = pa.array(np.char.add("user", rng.integers(0, 10**9, ROWS).astype("U9")).tolist(), pa.string())
    yield "int64 flat", "2.2", pa.array(wide), {}
    yield "int64 flat, file 2.0", "2.0", pa.array(wide), {}
    yield "int64 bit-packed", "2.2", pa.array(small), {}
    yield "int32 bit-packed, nulls", "2.2", pa.array(small.astype("int32"), mask=nulls), {}
    yield "int64 runs", "2.2", pa.array(np.repeat(wide[: ROWS // 50 + 1], 50)[:ROWS]), {"lance-encoding:rle-threshold": "0.9"}
    yield "int64 zstd", "2.2", pa.array(small * 1_000_003), {"lance-encoding:compression": "zstd"}
    yield "int64 lz4", "2.2", pa.array(small * 1_000_003), {"lance-encoding:compression": "lz4"}
    yield "float64 flat", "2.2", pa.array(rng.standard_normal(ROWS)), {}
    yield "float32 byte streams", "2.2", pa.array(rng.random(ROWS).astype("float32")), {"lance-encoding:bss": "on", "lance-encoding:compression": "lz4"}
    yield "bool", "2.2", pa.array(nulls), {}
    yield "utf8 fsst", "2.2", names, {}
    yield "utf8 variable", "2.2", names, {"lance-encoding:compression": "none"}
    yield "utf8 dictionary", "2.2", words(rng, ROWS, 100, 12), {}
    yield "utf8, file 2.0", "2.0", names, {}
    yield "constant", "2.2", pa.array(np.full(ROWS, 7)), {}


def child(arguments, **environment):
    done = subprocess.run(arguments, env={**command.clean_environment(), **environment}, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments[:4]} failed: {done.stdout}{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def write(folder):
    """Folder of each table, and the name of its case."""
    tables = {}
    for name, version, values, metadata in cases():
        path = os.path.join(folder, name.replace(" ", "_").replace(",", ""))
        schema = pa.schema([pa.field("v", values.type, metadata=metadata or None)])
        lance.write_dataset(pa.table({"v": values}, schema=schema), path, data_storage_version=version, max_rows_per_file=max(ROWS, 1))
        tables[path] = name
    return tables


def main():
    with tempfile.TemporaryDirectory() as folder:
        tables = write(folder)
        paths = list(tables)
        theirs = child([sys.executable, "-c", LANCE, str(ROUNDS), *paths], LANCE_CPU_THREADS="1", LANCE_IO_THREADS="1", TOKIO_WORKER_THREADS="1")
        native = child(["cargo", "bench", "--quiet", "--locked", "--bench", "decode", "--", str(ROUNDS), *paths], PATH=os.environ["PATH"])
        wasm = child(["node", str(ROOT / "tests/bench/decode.mjs"), str(ROUNDS), *paths])
    print(f"{ROWS} rows each; times of pylance on one thread are 1\n")
    print(f"{'encoding':<26}{'pylance, M rows/s':>20}{'native':>10}{'wasm':>10}")
    for path, name in tables.items():
        lances = theirs[path]["seconds"]
        print(f"{name:<26}{ROWS / lances / 1e6:>20.1f}{ratio(native[path], lances):>10}{ratio(wasm[path], lances):>10}")


def ratio(answer, lances):
    if "refused" in answer:
        return "refused"
    assert answer["rows"] == ROWS, answer
    return f"{lances / answer['seconds']:.2f}×"


if __name__ == "__main__":
    # With a folder: only write the tables there (few rows of them are good inputs for `make fuzz`).
    write(sys.argv[1]) if len(sys.argv) > 1 else main()
