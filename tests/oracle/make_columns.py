"""Writes column files with pylance for the Rust test `column_matrix`.

    make_columns.py DIR

For each set of columns `NAME.arrow` (Arrow IPC, the right values) and, per format version, `NAME-VERSION.lance` with the
same columns. Shapes are chosen so that Lance 14 picks every encoding it uses by default for these types.
"""

import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute
from lance.file import LanceFileWriter

VERSIONS = ["2.0", "2.1", "2.2"]
NUMBERS = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(),
    pa.date32(), pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("ns", "+05:30"),
]
FEW_NUMBERS = [pa.int64(), pa.int32(), pa.uint8(), pa.float64(), pa.timestamp("us", "Europe/Berlin")]


def with_nulls(values: pa.Array, valid: np.ndarray) -> pa.Array:
    return pa.compute.if_else(pa.array(valid), values, pa.scalar(None, values.type))


def masks(n: int, rng) -> dict:
    index = np.arange(n)
    return {
        "alternating": index % 2 == 0,
        "runs": (index // 700) % 2 == 1,
        "sparse": rng.random(n) > 0.01,
        "one_valid": index == n // 2,
        "all": np.zeros(n, dtype=bool),
    }


def numbers(kind: pa.DataType, n: int, rng) -> dict:
    bits = kind.bit_width
    storage = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]
    unsigned = np.dtype(f"u{bits // 8}")

    def of(raw) -> pa.Array:
        return pa.array(raw.astype(unsigned).view(storage.to_pandas_dtype()), storage).view(kind)

    top = 2 ** min(bits, 63)
    shapes = {
        "sorted": of(np.arange(n) % min(top // 2, 2**40)),
        "small": of(rng.integers(0, 100, n)),
        "wide": of(rng.integers(0, top // 8, n)),
        "random": of(np.frombuffer(rng.bytes(n * bits // 8), unsigned)),
        "constant": of(np.full(n, 42)),
        "low": of(rng.integers(0, top, 7).astype(unsigned)[rng.integers(0, 7, n)]),
        "runs": of((np.arange(n) // 97) % 120),
        "long_runs": of((np.arange(n) // 1500) % 2),
        "negative": of((rng.integers(-100, 100, n)).astype(np.int64)),
    }
    if pa.types.is_floating(kind):
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.25e-30], kind.to_pandas_dtype())
        shapes["special"] = pa.array(special[rng.integers(0, 7, n)], kind)
    for name, valid in masks(n, rng).items():
        shapes[f"null_{name}"] = with_nulls(shapes["wide"], valid)
    shapes["null_constant"] = with_nulls(shapes["constant"], rng.random(n) > 0.3)
    shapes["null_low"] = with_nulls(shapes["low"], rng.random(n) > 0.3)
    return shapes


def booleans(n: int, rng) -> dict:
    shapes = {
        "random": pa.array(rng.random(n) > 0.5),
        "true": pa.array(np.ones(n, dtype=bool)),
        "runs": pa.array((np.arange(n) // 333) % 2 == 1),
    }
    for name, valid in masks(n, rng).items():
        shapes[f"null_{name}"] = with_nulls(shapes["random"], valid)
    return shapes


def strings(n: int, rng, kind: pa.DataType, huge: bool) -> dict:
    def of(values) -> pa.Array:
        return pa.array(values, pa.string()).cast(kind)

    letters = np.array(list("abcdefghijklmnopqrstuvwxyzäöü€𝄞"))
    words = ["".join(letters[rng.integers(0, len(letters), rng.integers(3, 9))]) for _ in range(300)]
    pick = rng.integers(0, 300, (n, 3))
    shapes = {
        "unique": of([f"user-{i:08d}" for i in range(n)]),
        "short": of([format(i % 4096, "x") for i in range(n)]),
        "words": of([f"{words[a]} {words[b]}/{i}/{words[c]}" for i, (a, b, c) in enumerate(pick)]),
        "low": of([words[a % 20] for a, _, _ in pick]),
        "medium": of([words[a] + words[b % 9] for a, b, _ in pick]),
        "constant": of(["always the same"] * n),
        "long_constant": of(["always the same, and longer than what fits inline"] * n),
        "empty": of([""] * n),
        "some_empty": of(["" if i % 3 else f"{i}" for i in range(n)]),
        "long": of([f"{i}:" + words[a] * (40 if i % 5 == 0 else 2) for i, (a, _, _) in enumerate(pick)]),
    }
    if huge:
        shapes["huge"] = of([f"{i}" + "-".join(words[a % 50 :]) * (60 if i % 50 == 7 else 1) for i, (a, _, _) in enumerate(pick)])
        shapes["null_huge"] = with_nulls(shapes["huge"], np.arange(n) % 3 > 0)
    for name, valid in masks(n, rng).items():
        shapes[f"null_{name}"] = with_nulls(shapes["words"], valid)
    for name in ["low", "constant", "long", "empty"]:
        shapes[f"null_{name}"] = with_nulls(shapes[name], rng.random(n) > 0.3)
    return shapes


def columns(n: int, kinds, text_kinds, only=None) -> pa.Table:
    rng = np.random.default_rng(n + 1)
    found = {}
    for kind in kinds:
        found.update({f"{kind} {k}": v for k, v in numbers(kind, n, rng).items()})
    found.update({f"bool {k}": v for k, v in booleans(n, rng).items()})
    for kind in text_kinds:
        found.update({f"{kind} {k}": v for k, v in strings(n, rng, kind, n in (1000, 5000)).items()})
    return pa.table({k: v for k, v in found.items() if only is None or only(k)})


def nested(n: int, nulls: bool) -> pa.Table:
    rng = np.random.default_rng(7)
    a = with_nulls(pa.array(rng.integers(0, 1000, n), pa.int32()), rng.random(n) > 0.2)
    b = pa.array([f"row {i}" for i in range(n)])
    mask = (lambda p: pa.array(rng.random(n) < p)) if nulls else (lambda p: None)
    inner = pa.StructArray.from_arrays([b], ["b"], mask=mask(0.2))
    outer = pa.StructArray.from_arrays([a, inner], ["a", "t"], mask=mask(0.1))
    return pa.table({"s": outer})


def flattened(table: pa.Table) -> pa.Table:
    """The leaves as columns of their own: null where an ancestor is."""
    outer = table.column("s").combine_chunks()
    a, inner = outer.flatten()
    return pa.table({"s.a": a, "s.t.b": inner.flatten()[0]})


def write(path: pathlib.Path, table: pa.Table, version: str, batch: int | None, cache: int | None) -> None:
    with LanceFileWriter(str(path), table.schema, version=version, data_cache_bytes=cache) as writer:
        for part in table.combine_chunks().to_batches(batch):
            writer.write_batch(part)


def save(root: pathlib.Path, name: str, table: pa.Table, batch=None, cache=None, expected=None, versions=VERSIONS) -> None:
    expected = table if expected is None else expected
    with pa.ipc.new_file(root / f"{name}.arrow", expected.schema) as out:
        out.write_table(expected.combine_chunks())
    for version in versions:
        write(root / f"{name}-{version}.lance", table, version, batch, cache)


def main() -> None:
    root = pathlib.Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    for n in [0, 1, 5, 1023, 1024, 1025, 5000]:
        save(root, f"rows{n}", columns(n, NUMBERS, [pa.string()]))
    save(root, "binaries", columns(1000, [], [pa.binary(), pa.large_binary(), pa.large_string()]))
    large = ["int64 wide", "int64 random", "int64 low", "int64 null_sparse", "int64 null_runs", "uint8 runs", "double special"]
    large += ["string unique", "string words", "string null_sparse", "bool random", "bool null_runs"]
    save(root, "rows200000", columns(200_000, FEW_NUMBERS, [pa.string()], lambda name: name in large))
    save(root, "pages", columns(9000, FEW_NUMBERS, [pa.string()]), batch=1500, cache=1)
    save(root, "nested", nested(3000, True), expected=flattened(nested(3000, True)), versions=["2.1", "2.2"])
    save(root, "nested_valid", nested(3000, False), expected=flattened(nested(3000, False)))
    (root / "done").write_text("complete\n")


if __name__ == "__main__":
    main()
