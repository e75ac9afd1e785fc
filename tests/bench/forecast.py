"""A forecast of a million fragments under eight indexes of 200 segments each, in WebAssembly: time, memory, and how many times a plain
pass over the same arrays it takes. Coverage contiguous, as refreshes leave it, and dealt out like cards, the worst there is.

WHETSTONE_BENCH_FRAGMENTS sets the fragments.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import lance  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

import manifest_bytes as mb  # noqa: E402

FRAGMENTS = int(os.environ.get("WHETSTONE_BENCH_FRAGMENTS", "1000000"))
INDEXES, SEGMENTS = 8, 200


def bitmap(ids):
    """The portable roaring format, arrays and bitmaps."""
    containers, offsets, at = [], [], 0
    ids = np.asarray(ids, np.uint32)
    keys = np.unique(ids >> 16)
    head = struct.pack("<II", 12346, len(keys))
    for key in keys:
        low = (ids[(ids >> 16) == key] & 0xFFFF).astype(np.uint16)
        head += struct.pack("<HH", key, len(low) - 1)
        if len(low) <= 4096:
            containers.append(low.tobytes())
        else:
            bits = np.zeros(65536, np.uint8)
            bits[low] = 1
            containers.append(np.packbits(bits, bitorder="little").tobytes())
    at = len(head) + 4 * len(keys)
    for container in containers:
        offsets.append(at)
        at += len(container)
    return head + b"".join(struct.pack("<I", o) for o in offsets) + b"".join(containers)


def make(path, interleaved):
    """A table of one fragment, whose manifest then names as many as were asked for."""
    table = pa.table({f"c{n}": pa.array(range(100), pa.int64()) for n in range(INDEXES)})
    lance.write_dataset(table, str(path))
    for n in range(INDEXES):
        lance.dataset(str(path)).create_scalar_index(f"c{n}", "BTREE", name=f"index_{n}", train=False)
    manifest = mb.latest(path)
    front, found = mb.split(manifest)
    (position,) = [value for number, _, value in found if number == mb.INDEX_SECTION]
    (size,) = struct.unpack("<I", front[position : position + 4])
    entries = [mb.fields(value) for number, _, value in mb.fields(front[position + 4 : position + 4 + size]) if number == 1]
    section, ids = [], np.arange(FRAGMENTS)
    for n, entry in enumerate(entries):
        # Each index is cut elsewhere.
        ids_of = (lambda s: ids[(ids + n) % SEGMENTS == s]) if interleaved else (lambda s: np.array_split(np.roll(ids, n * 7), SEGMENTS)[s])
        for s in range(SEGMENTS):
            fields = [f for f in entry if f[0] not in (1, 5)]
            fields += [(1, 2, mb.encode([(1, 2, uuid.uuid4().bytes)])), (5, 2, bitmap(np.sort(ids_of(s))))]
            section.append((1, 2, mb.encode(sorted(fields, key=lambda f: f[0]))))
    message = mb.encode(section)
    front = b"\0" * 16 + struct.pack("<I", len(message)) + message
    (fragment,) = [value for number, _, value in found if number == 2]
    rest = mb.encode([f for f in mb.fields(fragment) if f[0] != 1])
    kept = [f for f in found if f[0] not in (2, mb.INDEX_SECTION, 11, 21, 23)]
    kept += [(2, 2, mb.varint(8) + mb.varint(i) + rest if i else rest) for i in range(FRAGMENTS)]
    kept += [(mb.INDEX_SECTION, 0, 16), (11, 0, FRAGMENTS - 1)]
    mb.join(manifest, front, sorted(kept, key=lambda f: f[0]))
    return manifest.stat().st_size


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
