"""Tables of the oracle, written by Lance: an indexed base, then appended fragments, some with deletions."""

import hashlib
import pathlib

import lance
import numpy as np
import pyarrow as pa

import columns

INDEX = "v_idx"


def seed_of(*parts):
    """A seed that stays the same from run to run (Python's own hash of a text does not)."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little")


def write(path, kind, sizes, rng, first=0):
    """Appends one fragment per entry of `sizes`; returns the next id."""
    for rows in sizes:
        table = pa.table({"id": pa.array(range(first, first + rows), pa.int64()), "v": columns.TYPES[kind](rng, rows)})
        lance.write_dataset(table, str(path), mode="append" if pathlib.Path(path).exists() else "create")
        first += rows
    return first


def make(path, kind, method, appended, base=2):
    """`base` indexed fragments, `appended` unindexed ones; every third fragment of each has deletions."""
    rng = np.random.default_rng(seed_of(kind, method, appended, base))
    sizes = [int(n) for n in rng.integers(20, 400, base + appended)]
    first = write(path, kind, sizes[:base], rng)
    lance.dataset(str(path)).delete(f"id % 11 = 3 and id < {sizes[0]}")
    lance.dataset(str(path)).create_scalar_index("v", method, name=INDEX)
    write(path, kind, sizes[base:], rng, first)
    starts = np.cumsum([0, *sizes])
    for fragment in range(0, base + appended, 3):
        low, high = starts[fragment], starts[fragment + 1]
        lance.dataset(str(path)).delete(f"id >= {low} and id < {high} and id % 5 = 2")
    return path
