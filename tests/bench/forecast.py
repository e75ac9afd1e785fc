"""A forecast of a million fragments under eight indexes of 200 segments each, in WebAssembly: time, memory, and how many times a plain
pass over the same arrays it takes. Coverage contiguous, as refreshes leave it, and dealt out like cards, the worst there is.

WHETSTONE_BENCH_FRAGMENTS sets the fragments.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import numpy as np  # noqa: E402

import huge  # noqa: E402

FRAGMENTS = int(os.environ.get("WHETSTONE_BENCH_FRAGMENTS", "1000000"))
INDEXES, SEGMENTS = 8, 200


def make(path, interleaved):
    """A table of one fragment, whose manifest then names as many as were asked for."""
    table = huge.Table(path, INDEXES)
    section, ids = [], np.arange(FRAGMENTS)
    for n, entry in enumerate(table.entries):
        # Each index is cut elsewhere.
        ids_of = (lambda s: ids[(ids + n) % SEGMENTS == s]) if interleaved else (lambda s: np.array_split(np.roll(ids, n * 7), SEGMENTS)[s])
        for s in range(SEGMENTS):
            section.append(huge.segment(entry, np.sort(ids_of(s))))
    return table.write(section, range(FRAGMENTS), [])


def main():
    script = pathlib.Path(__file__).with_name("forecast.mjs")
    for interleaved in [False, True]:
        with tempfile.TemporaryDirectory(prefix="forecast-") as folder:
            path = pathlib.Path(folder) / "t.lance"
            size = make(path, interleaved)
            done = subprocess.run(["node", str(script), str(path)], capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stderr
            found = json.loads(done.stdout)
            ratio = found["compact_ms"] / found["plain_ms"]
            print(
                f"{'interleaved' if interleaved else 'contiguous '}: {found['fragments']} fragments, {found['segments']} segments, manifest {size / 1e6:.0f} MB: "
                f"open {found['open_ms']:.0f} ms, forecast as it is {found['first_ms']:.0f} ms, with a compaction {found['compact_ms']:.0f} ms, "
                f"{found['plans']} plans compared {found['all_plans_ms']:.0f} ms; a plain pass {found['plain_ms']:.0f} ms, ratio {ratio:.1f}; "
                f"resident {found['start_mb']} MB, open {found['open_mb']} MB, at most {found['after_mb']} MB"
            )


if __name__ == "__main__":
    main()
