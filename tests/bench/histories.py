"""Deriving what 50 segments cover through a reuse history of many transitions over 100 000 fragments, in WebAssembly: time, growth as the
transitions double, and how many times decoding the same history alone it takes (the same table without a segment).

Every transition partitions 40 fragments into 40 others; generations of them lie one on top of the other, and every one of the segments
holds rows of every transition, the worst there is.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import numpy as np  # noqa: E402

import manifest_bytes as mb  # noqa: E402
import huge  # noqa: E402

FRAGMENTS, WIDTH, INDEXES, SEGMENTS = 100_000, 40, 5, 10
GENERATIONS = [1, 2, 4, 8]
TAGGED = 1 << 10


def content(generations):
    """Generation g partitions fragments [g * FRAGMENTS, (g + 1) * FRAGMENTS) into those of the next."""
    digest = lambda i: mb.encode([(1, 0, i), (2, 0, 100)])  # noqa: E731
    out = bytearray()
    for first in range(0, generations * FRAGMENTS, WIDTH):
        mapping = mb.encode([(1, 2, str(uuid.uuid4()).encode()), (2, 0, 1000)])
        fields = [(1, 2, digest(first + i)) for i in range(WIDTH)] + [(2, 2, digest(first + FRAGMENTS + i)) for i in range(WIDTH)]
        message = mb.encode([*fields, (4, 2, mapping)])
        out += mb.encode([(2, 2, message)])
    return bytes(out)


def make(path, generations, segments):
    """A table of one fragment, whose manifest then names as many as were asked for, and a history that led to them."""
    table = huge.Table(path, INDEXES)
    section, ids = [], np.arange(FRAGMENTS)
    for entry in table.entries if segments else []:
        for s in range(SEGMENTS):
            section.append(huge.segment(entry, ids[ids % SEGMENTS == s]))
    history, records = uuid.uuid4(), content(generations)
    folder = path / "_indices" / str(history)
    folder.mkdir(parents=True)
    (folder / "details.binpb").write_bytes(records)
    external = mb.encode([(2, 2, mb.encode([(1, 2, b"details.binpb"), (3, 0, len(records))]))])
    details = mb.encode([(1, 2, b"/lance.table.FragmentReuseIndexDetails"), (2, 2, external)])
    reuse = [(1, 2, mb.encode([(1, 2, history.bytes)])), (3, 2, b"__lance_frag_reuse"), (4, 0, 1), (6, 2, details), (7, 0, 1)]
    section.append((1, 2, mb.encode(reuse)))
    first = generations * FRAGMENTS
    table.write(section, range(first, first + FRAGMENTS), [(mb.READER_FLAGS, 0, TAGGED), (mb.WRITER_FLAGS, 0, TAGGED)])
    return len(records)


def main():
    script = pathlib.Path(__file__).with_name("histories.mjs")
    with tempfile.TemporaryDirectory(prefix="histories-") as folder:
        tables, sizes = [], []
        for generations in GENERATIONS:
            for segments in [False, True]:
                tables.append(pathlib.Path(folder) / f"{generations}-{segments}.lance")
                size = make(tables[-1], generations, segments)
            sizes.append(size)
        done = subprocess.run(["node", str(script), *map(str, tables)], capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        before = None
        for at, generations in enumerate(GENERATIONS):
            alone, whole = found[2 * at]["ms"], found[2 * at + 1]["ms"]
            growth = "" if before is None else f", {whole / before:.2f} times as long as half of them"
            print(
                f"{generations * FRAGMENTS // WIDTH} transitions ({sizes[at] / 1e6:.1f} MB), {FRAGMENTS} fragments, {INDEXES * SEGMENTS} segments: "
                f"decoded in {alone:.0f} ms, decoded and derived in {whole:.0f} ms, ratio {whole / alone:.2f}{growth}"
            )
            before = whole


if __name__ == "__main__":
    main()
