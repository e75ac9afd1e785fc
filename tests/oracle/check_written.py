"""Reads every file of a directory with pylance and compares it with what the Rust test says it wrote.

Beside `NAME.lance` lies `NAME.arrow`, an Arrow IPC file with the same columns, and optionally `NAME.json` with
`{"metadata": {...}, "global_buffers": [hex, ...]}`. Prints one line per file; any difference ends with status 1.
"""

import json
import pathlib
import sys

import pyarrow as pa
from lance.file import LanceFileReader


def same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    left, right = left.combine_chunks(), right.combine_chunks()
    if left.type != right.type or len(left) != len(right) or left.is_valid() != right.is_valid():
        return False
    if pa.types.is_floating(left.type):
        bits = {2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[left.type.bit_width // 8]
        left, right = left.drop_null().view(bits), right.drop_null().view(bits)
    return left.equals(right)


def main() -> int:
    bad = 0
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.lance")):
        with pa.ipc.open_file(path.with_suffix(".arrow")) as reader:
            expected = reader.read_all()
        reader = LanceFileReader(str(path))
        actual = reader.read_all().to_table()
        problems = []
        if actual.column_names != expected.column_names:
            problems.append(f"columns {actual.column_names}")
        for name in expected.column_names:
            if not same(actual.column(name), expected.column(name)):
                problems.append(f"column {name}: {actual.column(name).slice(0, 5)} is not {expected.column(name).slice(0, 5)}")
        side = path.with_suffix(".json")
        if side.exists():
            want = json.loads(side.read_text())
            have = {k.decode(): v.decode() for k, v in (reader.metadata().schema.metadata or {}).items()}
            if have != want["metadata"]:
                problems.append(f"metadata {have}")
            for index, data in enumerate(want["global_buffers"], 1):
                if bytes(reader.read_global_buffer(index)) != bytes.fromhex(data):
                    problems.append(f"global buffer {index} differs")
        if len(expected) > 3:
            rows = [len(expected) - 1, 0, len(expected) // 2]
            taken = reader.take_rows(sorted(rows)).to_table()
            for name in expected.column_names:
                if not same(taken.column(name), expected.column(name).take(sorted(rows))):
                    problems.append(f"take of column {name} differs")
        print(path.name, "ok" if not problems else "; ".join(problems))
        bad += bool(problems)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
