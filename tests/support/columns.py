"""The column types of the oracle: values with every awkward member, and filters written in SQL."""

import datetime
import math

import numpy as np
import pyarrow as pa

EPOCH = datetime.datetime(2020, 1, 1)


def int64(rng, rows):
    values = rng.integers(-1000, 1000, rows).astype(object)
    values[rng.random(rows) < 0.02] = 2**63 - 1
    values[rng.random(rows) < 0.02] = -(2**63)
    return pa.array(list(values), pa.int64())


def int32_nulls(rng, rows):
    return pa.array([None if n < 0.2 else int(v) for n, v in zip(rng.random(rows), rng.integers(-50, 50, rows))], pa.int32())


def float64(rng, rows):
    special = [math.nan, math.inf, -math.inf, -0.0, 0.0, None, 5e-324, 1.7e308]
    values = [special[int(n * 40)] if n * 40 < len(special) else round(float(v), 1) for n, v in zip(rng.random(rows), rng.normal(0, 5, rows))]
    return pa.array(values, pa.float64())


def utf8(rng, rows):
    words = ["", "a", "A", "aa", "b", "bäume", "日本", "zz", "z" * 300, "it's", 'quo"te', "café"]
    values = [words[int(v)] if v < len(words) else f"user-{int(v):05d}" for v in rng.integers(0, 400, rows)]
    return pa.array([None if n < 0.05 else v for n, v in zip(rng.random(rows), values)], pa.string())


def timestamp(rng, rows):
    seconds = rng.integers(-(10**9), 10**9, rows)
    values = [None if n < 0.05 else EPOCH + datetime.timedelta(microseconds=int(s) * 1000 + 1) for n, s in zip(rng.random(rows), seconds)]
    return pa.array(values, pa.timestamp("us"))


def date32(rng, rows):
    return pa.array([None if n < 0.05 else datetime.date(1970, 1, 1) + datetime.timedelta(days=int(d)) for n, d in zip(rng.random(rows), rng.integers(-400, 400, rows))], pa.date32())


TYPES = {"int64": int64, "int32": int32_nulls, "float64": float64, "utf8": utf8, "timestamp": timestamp, "date32": date32}


def literal(value):
    """The SQL literal of a value."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime.datetime):
        return f"timestamp '{value.isoformat(sep=' ', timespec='microseconds')}'"
    if isinstance(value, datetime.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, float):
        return repr(value)
    return str(value)


def filters(values, rng):
    """Equality, comparison, range, null and membership filters over values that occur, one that does not, and the extremes."""
    plain = sorted({v for v in values.to_pylist() if v is not None and not (isinstance(v, float) and not math.isfinite(v))})
    low, middle, high = plain[len(plain) // 4], plain[len(plain) // 2], plain[3 * len(plain) // 4]
    some = sorted({plain[int(i)] for i in rng.integers(0, len(plain), 4)})
    special = []
    if pa.types.is_floating(values.type):
        special = ["v = 0.0", "v = -0.0", "v <= -0.0", "v < 0.0", "v > 0.0", "v = cast('NaN' as double)", "v = cast('inf' as double)", "v > 1.0e300", "v < -1.0e300"]
    if values.type == pa.int64():
        # The most negative number cannot be written as a literal: SQL reads the minus sign as an operator.
        special = ["v < -9223372036854775807", "v = 9223372036854775807"]
        plain = [v for v in plain if v > -(2**63)]
    return special + [
        f"v = {literal(middle)}",
        f"v = {literal(plain[0])}",
        f"v <= {literal(plain[0])}",
        f"v = {literal(plain[-1])}",
        f"v < {literal(low)}",
        f"v >= {literal(high)}",
        f"v between {literal(low)} and {literal(high)}",
        "v is null",
        "v is not null",
        f"v in ({', '.join(literal(v) for v in some)})",
    ]
