"""Builds indexes of every maintained scalar method with pylance for the Rust test `index_fixtures`.

    make_segments.py DIR

One table per file version, with and without stable row ids: a column of every type that BTREE takes, nulls in runs
and alone, floats of every kind (zeros of both signs, infinities, NaNs of several payloads and signs), deleted rows, pages
and zones of several sizes.
"""

import decimal
import pathlib
import sys

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute
from lance.indices import IndexConfig

ROWS, FRAGMENT = 2600, 900
NUMBERS = {
    "i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(),
    "u8": pa.uint8(), "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64(),
    "f16": pa.float16(), "f32": pa.float32(), "f64": pa.float64(),
    "date32": pa.date32(), "date64": pa.date64(), "time32": pa.time32("ms"), "time64": pa.time64("ns"),
    "ts_s": pa.timestamp("s"), "ts_ms": pa.timestamp("ms", "UTC"), "ts_us": pa.timestamp("us"), "ts_ns": pa.timestamp("ns", "+05:30"),
    "duration": pa.duration("us"),
}  # fmt: skip
# Sign and payload of NaNs per width; the last one is signalling.
NANS = {
    16: [0x7E00, 0xFE00, 0x7E23, 0x7C01],
    32: [0x7FC00000, 0xFFC00000, 0x7FC00123, 0x7F800001],
    64: [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000123, 0x7FF0000000000001],
}
# Columns of types that bloom filters do not take.
UNHASHED = {"f16", "duration", "bool", "fsb3", "fsb12", "dec128", "dec256", "dec_few"}
LIMITS = {pa.time32("ms"): 86_400_000, pa.time64("ns"): 86_400_000_000_000}


def number(kind: pa.DataType, rng) -> pa.Array:
    bits = kind.bit_width
    unsigned = np.dtype(f"u{bits // 8}")
    if pa.types.is_floating(kind):
        odd = np.array([0.0, -0.0, np.inf, -np.inf, 1.0, -1.0], dtype=f"f{bits // 8}").view(unsigned)
        odd = np.concatenate([odd, np.array(NANS[bits], dtype=unsigned)])
        usual = rng.normal(0, 100, ROWS).astype(f"f{bits // 8}").view(unsigned)
        raw = np.where(rng.random(ROWS) < 0.02, odd[rng.integers(0, len(odd), ROWS)], usual)
        raw[100:140] = NANS[bits][1]  # whole small zones of nothing but NaN
        return pa.Array.from_buffers(kind, ROWS, [None, pa.py_buffer(raw.tobytes())])
    raw = np.frombuffer(rng.bytes(ROWS * bits // 8), unsigned).copy()
    if kind in LIMITS:
        raw %= unsigned.type(LIMITS[kind])
    if kind == pa.date64():
        raw = (rng.integers(-30_000, 30_000, ROWS) * 86_400_000).astype(np.int64).view(unsigned)
    raw[raw % 5 == 0] = raw[0]  # one value that fills whole pages
    return pa.Array.from_buffers(kind, ROWS, [None, pa.py_buffer(raw.tobytes())])


def columns(rng) -> dict:
    made = {name: number(kind, rng) for name, kind in NUMBERS.items()}
    letters = np.array(list("abcÄé\u65e5\U0001f600"))
    texts = ["".join(letters[rng.integers(0, len(letters), n)]) for n in rng.integers(0, 30, ROWS)]
    texts[17] = "long" * 3000
    blobs = [rng.bytes(int(n)) for n in rng.integers(0, 12, ROWS)]
    made |= {
        "bool": pa.array(rng.random(ROWS) < 0.01),
        "str": pa.array(texts), "lstr": pa.array(texts, pa.large_string()),
        "bin": pa.array(blobs), "lbin": pa.array(blobs, pa.large_binary()),
        "fsb3": pa.array([rng.bytes(3) for _ in range(ROWS)], pa.binary(3)),
        "fsb12": pa.array([rng.bytes(12) for _ in range(ROWS)], pa.binary(12)),
    }  # fmt: skip
    whole = [int.from_bytes(rng.bytes(12), "little", signed=True) for _ in range(ROWS)]
    whole[50:90] = [7 * 10**30] * 40
    made |= {
        "dec128": pa.array([decimal.Decimal(n).scaleb(-5) for n in whole], pa.decimal128(38, 5)),
        "dec256": pa.array([decimal.Decimal(n).scaleb(-3) for n in whole], pa.decimal256(60, 3)),
        "dec_few": pa.array([decimal.Decimal(n % 7).scaleb(-2) for n in whole], pa.decimal128(9, 2)),
    }
    valid = rng.random(ROWS) > 0.1
    valid[1000:1300] = False
    made = {name: pa.compute.if_else(pa.array(valid), values, pa.scalar(None, values.type)) for name, values in made.items()}
    made["nothing"] = pa.nulls(ROWS, pa.int32())
    made["full"] = pa.array(np.arange(ROWS) // 3)
    return {"id": pa.array(np.arange(ROWS)), **made}


def main(folder):
    for version in ["2.0", "2.1", "2.2"]:
        for stable in [False, True]:
            rng = np.random.default_rng(15)
            table = pa.table(columns(rng))
            path = pathlib.Path(folder) / f"{version}{'-stable' if stable else ''}.lance"
            dataset = lance.write_dataset(
                table, str(path), max_rows_per_file=FRAGMENT, data_storage_version=version, enable_stable_row_ids=stable
            )
            dataset.delete("id % 7 = 3 OR (id >= 200 AND id < 260) OR (id >= 1800 AND id < 1950)")
            for at, column in enumerate(table.column_names):
                pages, zones = [(4096, 8192), (7, 10), (100, 64), (1, 1)][at % 4]
                btree = IndexConfig("btree", {"zone_size": pages})
                dataset.create_scalar_index(column, btree, name=f"{column}_btree")
                zonemap = IndexConfig("zonemap", {"rows_per_zone": zones})
                dataset.create_scalar_index(column, zonemap, name=f"{column}_zonemap")
                dataset.create_scalar_index(column, "BITMAP", name=f"{column}_bitmap")
                if column not in UNHASHED:
                    items, probability = [(8192, 0.00057), (10, 0.01), (64, 0.25), (1, 1e-6)][at % 4]
                    bloom = IndexConfig("bloomfilter", {"number_of_items": items, "probability": probability})
                    dataset.create_scalar_index(column, bloom, name=f"{column}_bloomfilter")
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
