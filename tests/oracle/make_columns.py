"""Writes column files with pylance for the Rust test `column_matrix`.

    make_columns.py DIR [full]

For each set of columns `NAME.arrow` (Arrow IPC, the right values) and, per format version, `NAME-VERSION.lance` with the
same columns. Shapes are chosen so that Lance 14 picks every encoding it uses for these types; variants with field metadata
(`lance-encoding:*`) have it in their name. `unwritable.txt` lists the columns that pylance itself refuses or fails to write.
Without `full` a sample: every type, version and shape, some of the row counts, chosen by `WHETSTONE_SEED`.
"""

import os
import pathlib
import random
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute
from lance.file import LanceFileWriter

VERSIONS = ["2.0", "2.1", "2.2", "2.3"]
NUMBERS = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(),
    pa.date32(), pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("ns", "+05:30"),
]
MORE_NUMBERS = [
    pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.duration("s"), pa.duration("ms"), pa.duration("us"), pa.duration("ns"), pa.timestamp("us", "America/St_Johns"),
]
FEW_NUMBERS = [pa.int64(), pa.int32(), pa.uint8(), pa.float64(), pa.timestamp("us", "Europe/Berlin")]
ROWS = [0, 1, 5, 1023, 1024, 1025, 5000]
DAY = {("time32", "s"): 86_400, ("time32", "ms"): 86_400_000, ("time64", "us"): 86_400_000_000, ("time64", "ns"): 86_400_000_000_000}
unwritable = []


def with_nulls(values: pa.Array, valid: np.ndarray) -> pa.Array:
    try:
        return pa.compute.if_else(pa.array(valid), values, pa.scalar(None, values.type))
    except pa.ArrowNotImplementedError:
        return values.take(pa.array([i if ok else None for i, ok in enumerate(valid)], pa.int64()))


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
    if pa.types.is_time(kind):
        top = DAY["time32" if bits == 32 else "time64", kind.unit]
    shapes = {
        "sorted": of(np.arange(n) % min(top // 2, 2**40)),
        "small": of(rng.integers(0, 100, n)),
        "wide": of(rng.integers(0, top // 8, n)),
        "constant": of(np.full(n, 42)),
        "low": of(rng.integers(0, top, 7).astype(unsigned)[rng.integers(0, 7, n)]),
        "runs": of((np.arange(n) // 97) % 120),
        "long_runs": of((np.arange(n) // 1500) % 2),
    }
    if not pa.types.is_time(kind):
        shapes["random"] = of(np.frombuffer(rng.bytes(n * bits // 8), unsigned))
        shapes["negative"] = of((rng.integers(-100, 100, n)).astype(np.int64))
    if pa.types.is_floating(kind):
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.25e-3], kind.to_pandas_dtype())
        shapes["special"] = pa.array(special[rng.integers(0, 7, n)], kind)
    for name, valid in masks(n, rng).items():
        shapes[f"null_{name}"] = with_nulls(shapes["wide"], valid)
    shapes["null_constant"] = with_nulls(shapes["constant"], rng.random(n) > 0.3)
    shapes["null_low"] = with_nulls(shapes["low"], rng.random(n) > 0.3)
    return shapes


def wide_values(kind: pa.DataType, n: int, rng) -> dict:
    """Decimals and binaries of a fixed size."""
    width = kind.bit_width // 8
    if pa.types.is_decimal(kind):
        limit = min(10**kind.precision, 2**62)
        raw = [int(v).to_bytes(width, "little", signed=True) for v in rng.integers(-limit + 1, limit, n)]
    else:
        raw = [rng.bytes(width) for _ in range(n)]

    def of(parts) -> pa.Array:
        return pa.Array.from_buffers(kind, len(parts), [None, pa.py_buffer(b"".join(parts))])

    random = of(raw)
    shapes = {"random": random, "sorted": of(sorted(raw)), "constant": of([raw[0]] * n) if n else random}
    shapes["low"] = of([raw[i % 5 % n] for i in rng.integers(0, 1000, n)]) if n else random
    for name, valid in masks(n, rng).items():
        shapes[f"null_{name}"] = with_nulls(random, valid)
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


def words(rng) -> list:
    letters = np.array(list("abcdefghijklmnopqrstuvwxyzäöü€𝄞"))
    return ["".join(letters[rng.integers(0, len(letters), rng.integers(3, 9))]) for _ in range(300)]


def strings(n: int, rng, kind: pa.DataType, huge: bool) -> dict:
    def of(values) -> pa.Array:
        return pa.array(values, pa.string()).cast(kind)

    vocabulary = words(rng)
    pick = rng.integers(0, 300, (n, 3))
    shapes = {
        "unique": of([f"user-{i:08d}" for i in range(n)]),
        "short": of([format(i % 4096, "x") for i in range(n)]),
        "words": of([f"{vocabulary[a]} {vocabulary[b]}/{i}/{vocabulary[c]}" for i, (a, b, c) in enumerate(pick)]),
        "low": of([vocabulary[a % 20] for a, _, _ in pick]),
        "medium": of([vocabulary[a] + vocabulary[b % 9] for a, b, _ in pick]),
        "constant": of(["always the same"] * n),
        "long_constant": of(["always the same, and longer than what fits inline"] * n),
        "empty": of([""] * n),
        "some_empty": of(["" if i % 3 else f"{i}" for i in range(n)]),
        "long": of([f"{i}:" + vocabulary[a] * (40 if i % 5 == 0 else 2) for i, (a, _, _) in enumerate(pick)]),
    }
    if huge:
        shapes["huge"] = of([f"{i}" + "-".join(vocabulary[a % 50 :]) * (30 if i % 300 == 7 else 1) for i, (a, _, _) in enumerate(pick)])
        shapes["over_64k"] = of([f"{i}" + vocabulary[a] * (15_000 if i % 400 == 7 else 1) for i, (a, _, _) in enumerate(pick)])
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


def more_types(n: int) -> pa.Table:
    rng = np.random.default_rng(n + 2)
    found = {"null": pa.nulls(n)}
    for kind in MORE_NUMBERS:
        found.update({f"{kind} {k}": v for k, v in numbers(kind, n, rng).items()})
    for kind in [pa.decimal128(38, 5), pa.decimal128(9, 2), pa.decimal256(76, 3), pa.binary(5), pa.binary(8), pa.binary(16), pa.binary(300)]:
        found.update({f"{kind} {k}": v for k, v in wide_values(kind, n, rng).items()})
    vocabulary = words(rng)
    for key in [pa.int8(), pa.uint16(), pa.int32(), pa.int64()]:
        text = pa.array([vocabulary[i] for i in rng.integers(0, 40, n)], pa.string())
        number = pa.array(rng.integers(-(2**40), 2**40, 9)[rng.integers(0, 9, n)] if n else [], pa.int64())
        for name, values in {"string": text, "int64": number, "large_string": text.cast(pa.large_string()), "binary": text.cast(pa.binary())}.items():
            for shape, valid in {"valid": np.ones(n, dtype=bool), **masks(n, rng)}.items():
                found[f"dict {key} {name} {shape}"] = with_nulls(values, valid).dictionary_encode().cast(pa.dictionary(key, values.type))
    return pa.table(found)


def lists_of(n: int, rng, items: pa.Array, lengths: np.ndarray, valid=None, large=False) -> pa.Array:
    """Lists of these lengths over `items`, whose nulls own nothing."""
    valid = np.ones(n, dtype=bool) if valid is None else valid
    lengths = np.where(valid, lengths, 0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    kind, make = (pa.int64(), pa.LargeListArray) if large else (pa.int32(), pa.ListArray)
    return make.from_arrays(pa.array(offsets, kind), items.slice(0, int(offsets[-1])), mask=pa.array(~valid))


def list_items(m: int, rng) -> dict:
    vocabulary = words(rng)
    sparse = rng.random(m) > 0.2
    number = pa.array(rng.integers(0, 1000, m), pa.int32())
    text = pa.array([vocabulary[i] for i in rng.integers(0, 300, m)], pa.string())
    stamps = pa.array(rng.integers(0, 2**50, m), pa.int64()).view(pa.timestamp("us", "UTC"))
    return {
        "int32": number,
        "int32?": with_nulls(number, sparse),
        "int64 wide": pa.array(rng.integers(-(2**60), 2**60, m), pa.int64()),
        "uint8 constant": pa.array(np.full(m, 7, np.uint8)),
        "double?": with_nulls(pa.array(rng.random(m)), sparse),
        "half": pa.array(rng.random(m).astype(np.float16)),
        "bool?": with_nulls(pa.array(rng.random(m) > 0.5), sparse),
        "string": text,
        "string?": with_nulls(text, sparse),
        "string low": pa.array([vocabulary[i] for i in rng.integers(0, 12, m)], pa.string()),
        "string unique": pa.array([f"label-{i:07d}" for i in range(m)]),
        "string long": pa.array([vocabulary[i % 300] * 60 for i in range(m)]),
        "large_binary?": with_nulls(text.cast(pa.large_binary()), sparse),
        "timestamp": stamps,
        "decimal": pa.Array.from_buffers(pa.decimal128(20, 2), m, [None, pa.py_buffer(rng.integers(0, 99, 2 * m).tobytes())]),
        "fsb": pa.array([rng.bytes(3) for _ in range(m)], pa.binary(3)),
        "all null": pa.nulls(m, pa.int16()),
        "fsl": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(2 * m).astype("f4")), 2),
        "dict": text.dictionary_encode(),
    }


def lists(n: int) -> pa.Table:
    rng = np.random.default_rng(n + 3)
    found = {}
    most = 4 * n + 1
    for name, items in list_items(most, rng).items():
        lengths = rng.integers(0, 5, n)
        found[f"list {name} full"] = lists_of(n, rng, items, np.full(n, 3))
        found[f"list {name} nulls"] = lists_of(n, rng, items, lengths, rng.random(n) > 0.2)
        found[f"list {name} empties"] = lists_of(n, rng, items, lengths, large=True)
    text, number = found["list string? nulls"], found["list int32? nulls"]
    found["list none"] = pa.nulls(n, pa.list_(pa.string()))
    found["list empty"] = lists_of(n, rng, pa.array([], pa.int64()), np.zeros(n, int))
    found["list sparse"] = lists_of(n, rng, pa.array(np.arange(most)), (np.arange(n) % 50 == 0) * 2, np.arange(n) % 20 == 0)
    if n > 100:
        long = np.where(np.arange(n) == n // 2, 3 * n, np.arange(n) % 2)
        found["list one long"] = lists_of(n, rng, pa.array(rng.integers(0, 9, most)), long)
        found["list string one long"] = lists_of(n, rng, pa.array([f"{i}" for i in range(most)]), long, np.arange(n) % 7 > 0)
    for name, inner in {"string": text, "int32": number, "dict": found["list dict full"]}.items():
        lengths = rng.integers(0, 3, n)
        doubled = pa.concat_arrays([inner, inner, inner])
        found[f"list list {name}"] = lists_of(n, rng, doubled, lengths, rng.random(n) > 0.1)
        deep = lists_of(n, rng, lists_of(3 * n, rng, doubled, np.full(3 * n, 1)), lengths, rng.random(n) > 0.1, large=True)
        found[f"list list list {name}"] = deep
    return pa.table(found)


def fixed_lists(n: int) -> pa.Table:
    rng = np.random.default_rng(n + 4)
    found = {}

    def of(items, dimension, valid=None):
        return pa.FixedSizeListArray.from_arrays(items, dimension, mask=None if valid is None else pa.array(~valid))

    for dimension in [1, 3, 100]:
        m = n * dimension
        number = pa.array(rng.integers(-1000, 1000, m), pa.int32())
        real = pa.array(rng.random(m).astype("f4"))
        gaps = rng.random(m) > 0.2
        valid = rng.random(n) > 0.2
        for name, items in {"int32": number, "float": real, "bool": pa.array(rng.random(m) > 0.5), "half": pa.array(rng.random(m).astype(np.float16)),
                            "int64 constant": pa.array(np.full(m, 5)), "date": number.view(pa.date32())}.items():
            found[f"fsl {name} {dimension}"] = of(items, dimension)
            found[f"fsl {name} {dimension} null rows"] = of(items, dimension, valid)
            found[f"fsl {name} {dimension} null items"] = of(with_nulls(items, gaps), dimension)
            found[f"fsl {name} {dimension} nulls"] = of(with_nulls(items, gaps), dimension, valid)
    found["fsl none"] = pa.nulls(n, pa.list_(pa.int32(), 4))
    six = pa.array(rng.integers(0, 99, 6 * n), pa.int16())
    found["fsl fsl"] = of(of(six, 3), 2)
    found["fsl fsl nulls"] = of(of(with_nulls(six, rng.random(6 * n) > 0.3), 3, rng.random(2 * n) > 0.3), 2, rng.random(n) > 0.3)
    return pa.table(found)


def sparse(n: int, compression: str | None) -> pa.Table:
    """One value, with nulls and lists at positions of every pattern: in 2.3 they are sequences, each in the form that fits it."""
    rng = np.random.default_rng(n + 6)
    found = {}
    same, many = pa.array(np.full(n, 7)), pa.array(np.full(50 * n, 7))

    def chosen(count):
        return np.sort(rng.choice(n, count, replace=False))

    places = {f"{count} nulls": chosen(count) for count in [1, 2, 3, 10, 40, 320, n // 4]}
    places |= {"runs": np.r_[100:200, 900:950, 2000:2300], "steps": np.arange(3, n, 50), "doubling": 2 ** np.arange(1, 12), "tail": np.arange(n - 500, n)}
    places |= {"two steps": np.sort(np.r_[np.arange(0, 1000, 10), np.arange(1003, n, 7)]), "blocks": np.concatenate([np.arange(i, i + 5) for i in range(0, n - 100, 100)])}
    places |= {"run lengths": np.cumsum(np.repeat([1, 3, 2, 9], [50, 100, 200, 60])), "most": chosen(n - n // 10)}
    for name, at in places.items():
        valid = np.ones(n, dtype=bool)
        valid[at] = False
        found[name] = with_nulls(same, valid)
    everywhere = np.arange(n)
    lengths = {
        "lists few": (chosen(5), rng.integers(1, 2000, 5)), "lists of runs": (chosen(60), np.repeat([1, 7, 3], 20)), "lists of long runs": (chosen(200), np.repeat(rng.integers(1, 90, 4), 50)),
        "lists random": (chosen(n // 5), rng.integers(1, 30, n // 5)), "lists of three": (everywhere, np.full(n, 3)), "lists everywhere": (everywhere, rng.integers(1, 20, n)),
        "lists rising": (everywhere, np.repeat([1, 2, 3, 4, 5], n // 5)), "lists of two sizes": (everywhere, np.where(everywhere % 100 == 0, 500, 1)), "lists wide": (chosen(50), rng.integers(1, 2**11, 50)),
    }
    for name, (at, count) in lengths.items():
        all_lengths = np.zeros(n, dtype=int)
        all_lengths[at] = count
        found[name] = lists_of(n, rng, many, all_lengths)
        found[f"{name} nulls"] = lists_of(n, rng, many, all_lengths, rng.random(n) > 0.02)
    metadata = {"lance-encoding:compression": compression} if compression else None
    return pa.table(list(found.values()), schema=pa.schema([pa.field(name, values.type, metadata=metadata) for name, values in found.items()]))


VARIANTS = [
    {"compression": "zstd"}, {"compression": "lz4"}, {"compression": "none"}, {"compression": "fsst"},
    {"compression": "zstd", "compression-level": "9"}, {"compression": "lz4", "bss": "on"}, {"compression": "zstd", "bss": "on"}, {"bss": "off"},
    {"rle-threshold": "1.0"}, {"rle-threshold": "0.0"}, {"structural-encoding": "miniblock"}, {"structural-encoding": "fullzip"},
    {"minichunk-size": "65536"}, {"dict-divisor": "1"}, {"dict-divisor": "1", "dict-values-compression": "zstd"},
    {"dict-divisor": "1", "dict-values-compression": "lz4"}, {"dict-values-compression": "none"}, {"dict-size-ratio": "0.99"},
    {"dict-divisor": "1", "structural-encoding": "fullzip", "compression": "zstd"}, {"structural-encoding": "fullzip", "compression": "lz4"},
]


def variants(n: int, full: bool) -> pa.Table:
    """The same data under every field metadata."""
    rng = np.random.default_rng(n + 5)
    found, fields = [], []
    kinds = [pa.int32(), pa.int64(), pa.float32(), pa.float64()] + ([pa.uint8(), pa.int16(), pa.float16(), pa.date64()] if full else [])
    picked = {"small", "low", "long_runs", "null_sparse", "special", "constant"} | ({"random", "sorted", "null_runs", "wide"} if full else set())
    data = {f"{kind} {k}": v for kind in kinds for k, v in numbers(kind, n, rng).items() if k in picked}
    texts = {"words", "low", "huge", "null_sparse", "empty", "constant"}
    for kind in [pa.string(), pa.binary()] + ([pa.large_string()] if full else []):
        data.update({f"{kind} {k}": v for k, v in strings(n, rng, kind, n < 1500).items() if k in texts})
    data.update({f"bool {k}": v for k, v in booleans(n, rng).items() if k in {"random", "null_runs"}})
    data.update({f"{kind} {k}": v for kind in [pa.decimal128(20, 3), pa.binary(16)] for k, v in wide_values(kind, n, rng).items() if k in {"low", "random", "null_sparse"}})
    tall = lists(n)
    data.update({k: tall.column(k).combine_chunks() for k in ["list int32? nulls", "list string? nulls", "list string long empties"]})
    fixed = fixed_lists(n)
    data.update({k: fixed.column(k).combine_chunks() for k in ["fsl float 3 nulls", "fsl float 100", "fsl float 100 nulls"]})
    for variant in VARIANTS:
        label = ",".join(f"{k}={v}" for k, v in variant.items()).replace(".", ",")
        for name, values in data.items():
            found.append(values)
            fields.append(pa.field(f"{name} ({label})", values.type, metadata={f"lance-encoding:{k}": v for k, v in variant.items()}))
    return pa.table(found, schema=pa.schema(fields))


def nested(n: int, nulls: bool) -> pa.Table:
    rng = np.random.default_rng(7)
    a = with_nulls(pa.array(rng.integers(0, 1000, n), pa.int32()), rng.random(n) > 0.2)
    b = pa.array([f"row {i}" for i in range(n)])
    mask = (lambda p: pa.array(rng.random(n) < p)) if nulls else (lambda p: None)
    inner = pa.StructArray.from_arrays([b], ["b"], mask=mask(0.2))
    tags = lists(n).column("list string? nulls").combine_chunks()
    same = pa.array(np.full(n, 9))
    outer = pa.StructArray.from_arrays([a, inner, tags, same, pa.nulls(n, pa.int8())], ["a", "t", "l", "c", "n"], mask=mask(0.1))
    return pa.table({"s": outer})


def flattened(table: pa.Table) -> pa.Table:
    """The leaves as columns of their own: null where an ancestor is."""
    outer = table.column("s").combine_chunks()
    a, inner, tags, same, none = outer.flatten()
    return pa.table({"s.a": a, "s.t.b": inner.flatten()[0], "s.l": tags, "s.c": same, "s.n": none})


def packed(n: int, variable: bool, lists: bool = False, more: dict = {}) -> pa.Table:
    rng = np.random.default_rng(8)
    parts = {"a": pa.array(rng.integers(0, 1000, n), pa.int32()), "b": pa.array(rng.random(n)), "d": pa.array(rng.integers(0, 9, n), pa.int8())}
    if variable:
        parts["s"] = pa.array(["x" * (i % 70) + str(i) for i in range(n)])
        parts["e"] = pa.array(rng.integers(0, 9, n), pa.int16())
    elif lists:
        parts["f"] = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(3 * n).astype("f4")), 3)
    struct = pa.StructArray.from_arrays(list(parts.values()), list(parts))
    return pa.table([struct], schema=pa.schema([pa.field("p", struct.type, metadata={"lance-encoding:packed": "true", **more})]))


def members(table: pa.Table) -> pa.Table:
    struct = table.column("p").combine_chunks()
    return pa.table({f"p.{field.name}": values for field, values in zip(struct.type, struct.flatten())})


def decoded(values) -> pa.Array:
    """Arrow dictionaries, also inside lists, as their values."""
    values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    kind = values.type
    if pa.types.is_dictionary(kind):
        return values.cast(kind.value_type)
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and "dictionary" in str(kind):
        make = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
        return make.from_arrays(values.offsets, decoded(values.values), mask=values.is_null())
    return values


def try_write(path: pathlib.Path, table: pa.Table, version: str, batch: int | None, cache: int | None) -> str | None:
    """None, or why pylance does not."""
    try:
        with LanceFileWriter(str(path), table.schema, version=version, data_cache_bytes=cache) as writer:
            for part in table.combine_chunks().to_batches(batch):
                writer.write_batch(part)
    except BaseException as error:  # a panic of the library is none of Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        path.unlink(missing_ok=True)
        return str(error).split(", /home/")[0].splitlines()[0][:160]
    return None


def write(path: pathlib.Path, table: pa.Table, version: str, batch: int | None, cache: int | None) -> None:
    """Writes the columns that pylance can; the search for the others halves the table."""
    why = try_write(path, table, version, batch, cache)
    if why is None:
        return
    bad = set()

    def search(names: list, reason: str) -> None:
        if len(names) == 1:
            bad.add(names[0])
            unwritable.append(f"{version}\t{names[0]}\t{reason}")
            return
        for half in (names[: len(names) // 2], names[len(names) // 2 :]):
            found = try_write(path, table.select(half), version, batch, cache)
            if found is not None:
                search(half, found)

    search(table.column_names, why)
    rest = table.select([name for name in table.column_names if name not in bad])
    if rest.num_columns:
        again = try_write(path, rest, version, batch, cache)
        if again is not None:
            raise SystemExit(f"{path.name}: {again}")


def save(root: pathlib.Path, name: str, table: pa.Table, batch=None, cache=None, expected=None, versions=VERSIONS) -> None:
    expected = table if expected is None else expected
    expected = pa.table([decoded(column) for column in expected.columns], names=expected.column_names) if len(expected) else None
    if expected is None:
        expected = pa.table([pa.array([], decoded_type(field.type)) for field in table.schema], names=table.column_names)
    with pa.ipc.new_file(root / f"{name}.arrow", expected.schema) as out:
        out.write_table(expected.combine_chunks())
    for version in versions:
        write(root / f"{name}-{version}.lance", table, version, batch, cache)


def decoded_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(decoded_type(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(decoded_type(kind.value_type))
    return kind


def main() -> None:
    root, full = pathlib.Path(sys.argv[1]), "full" in sys.argv[2:]
    root.mkdir(parents=True, exist_ok=True)
    seed = int(os.environ.get("WHETSTONE_SEED", "1"))
    rows = ROWS if full else sorted({0, 1025, random.Random(seed).choice(ROWS)} | {5000})
    for n in rows:
        save(root, f"rows{n}", columns(n, NUMBERS, [pa.string()]))
        if full or n in (0, 1025):
            save(root, f"types{n}", more_types(n))
            save(root, f"lists{n}", lists(n))
            save(root, f"fixed{n}", fixed_lists(n))
    save(root, "types1500", more_types(1500))
    save(root, "lists2100", lists(2100))
    save(root, "fixed1500", fixed_lists(1500))
    for n in [1, 1024, 2000] if full else [1300]:
        save(root, f"variants{n}", variants(n, full))
    save(root, "binaries", columns(1000, [], [pa.binary(), pa.large_binary(), pa.large_string()]))
    large = ["int64 wide", "int64 random", "int64 low", "int64 null_sparse", "int64 null_runs", "uint8 runs", "double special"]
    large += ["string unique", "string words", "string null_sparse", "bool random", "bool null_runs"]
    save(root, "rows200000", columns(200_000, FEW_NUMBERS, [pa.string()], lambda name: name in large))
    save(root, "pages", columns(9000, FEW_NUMBERS, [pa.string()]), batch=1500, cache=1)
    several = lists(6000)
    save(root, "list_pages", several.select(range(0, several.num_columns, 3 if full else 7)), batch=1100, cache=1)
    save(root, "nested", nested(3000, True), expected=flattened(nested(3000, True)), versions=["2.1", "2.2", "2.3"])
    save(root, "nested_valid", nested(3000, False), expected=flattened(nested(3000, False)))
    save(root, "packed", packed(2500, False), expected=members(packed(2500, False)))
    save(root, "packed_lists", packed(2500, False, True), expected=members(packed(2500, False, True)))
    save(root, "packed_variable", packed(2500, True), expected=members(packed(2500, True)), versions=["2.2", "2.3"])
    zipped = packed(2500, False, more={"lance-encoding:structural-encoding": "fullzip"})
    save(root, "packed_zipped", zipped, expected=members(packed(2500, False)), versions=["2.3"])
    for compression in [None, "zstd"]:
        save(root, f"sparse_{compression}", sparse(5000, compression))
    (root / "unwritable.txt").write_text("".join(f"{line}\n" for line in sorted(set(unwritable))))
    (root / "done").write_text("complete\n")


if __name__ == "__main__":
    main()
