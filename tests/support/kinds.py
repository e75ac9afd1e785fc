"""Column types of the method tests: values with nulls, and the filters that each index method serves for them."""

import datetime
import decimal

import numpy as np
import pyarrow as pa

# Arrow type, name for SQL's arrow_cast (None: a plain literal does), values 0..n as Python values.
NUMBERS = {
    "int8": (pa.int8(), None), "int16": (pa.int16(), None), "int32": (pa.int32(), None), "int64": (pa.int64(), None),
    "uint8": (pa.uint8(), None), "uint16": (pa.uint16(), None), "uint32": (pa.uint32(), None), "uint64": (pa.uint64(), None),
    "float16": (pa.float16(), None), "float32": (pa.float32(), None), "float64": (pa.float64(), None),
    "decimal128": (pa.decimal128(12, 2), "Decimal128(12, 2)"), "decimal256": (pa.decimal256(50, 0), "Decimal256(50, 0)"),
    "date32": (pa.date32(), None), "date64": (pa.date64(), None),
    "time32": (pa.time32("s"), "Time32(Second)"), "time64": (pa.time64("us"), "Time64(Microsecond)"),
    "timestamp_s": (pa.timestamp("s"), None), "timestamp_tz": (pa.timestamp("us", "UTC"), None),
    "duration": (pa.duration("ms"), "Duration(Millisecond)"),
}  # fmt: skip
TEXTS = {"utf8": pa.string(), "large_utf8": pa.large_string()}
BINARIES = {"binary": pa.binary(), "large_binary": pa.large_binary(), "fixed": pa.binary(4)}
LISTS = {"list": pa.list_(pa.string()), "large_list": pa.large_list(pa.string()), "list_int64": pa.list_(pa.int64())}
SQL_LISTS = {"list": "List(Utf8)", "large_list": "LargeList(Utf8)", "list_int64": "List(Int64)"}
UNHASHED = {"float16", "decimal128", "decimal256", "duration", "fixed", "bool"}
WORDS = ["alpha", "Beta", "gamma ray", "delta-7", "straße", "CAFÉ au lait", "日本語 text", "", "ab", "x1y2z3", "o'neill", "alphabet"]


def kinds(method):
    """The types a method takes."""
    if method == "NGRAM":
        return list(TEXTS)
    if method == "LABEL_LIST":
        return list(LISTS)
    scalars = ["bool", *NUMBERS, *TEXTS, *BINARIES]
    return [kind for kind in scalars if method != "BLOOMFILTER" or kind not in UNHASHED]


def python(kind, number):
    """The value of a kind with that number; equal numbers give equal values."""
    if kind == "bool":
        return number % 2 == 0
    if kind in TEXTS:
        return f"{WORDS[number % len(WORDS)]}{number // len(WORDS) or ''}"
    if kind in BINARIES:
        return bytes([number % 251, 0, number // 251, 7])
    if kind in LISTS:
        items = [number % 5, number % 7, number % 3, number % 5][: number % 5]
        texts = kind != "list_int64"
        return [None if item == 2 else f"t{item}" if texts else item for item in items]
    if kind in ("date32", "date64"):
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=number)
    if kind == "time32":
        return datetime.time(0, number // 60 % 60, number % 60)
    if kind == "time64":
        return datetime.time(0, 0, 0, number)
    if kind.startswith("timestamp"):
        return datetime.datetime(2001, 1, 1, tzinfo=datetime.timezone.utc if kind.endswith("tz") else None) + datetime.timedelta(seconds=number)
    if kind == "duration":
        return datetime.timedelta(milliseconds=number)
    if kind.startswith("float"):
        return np.float16(number / 2) if kind == "float16" else number / 2
    if kind.startswith("decimal"):
        return decimal.Decimal(number)
    return number


def arrow_type(kind):
    if kind == "bool":
        return pa.bool_()
    return NUMBERS[kind][0] if kind in NUMBERS else {**TEXTS, **BINARIES, **LISTS}[kind]


def column(kind, rows, rng, first=0):
    """Values of numbers from `first` on, one in eight null."""
    numbers = first + rng.integers(0, 60, rows)
    nulls = rng.random(rows) < 0.125
    return pa.array([None if null else python(kind, int(n)) for n, null in zip(numbers, nulls)], arrow_type(kind))


def literal(kind, number):
    value = python(kind, number)
    if kind in NUMBERS and NUMBERS[kind][1]:
        text = f"'{value}'" if kind.startswith("time") else str(number)
        return f"arrow_cast({text}, '{NUMBERS[kind][1]}')"
    if kind in TEXTS:
        return "'" + value.replace("'", "''") + "'"
    if kind in BINARIES:
        return f"X'{value.hex()}'"
    if kind.startswith("date"):
        return f"date '{value}'"
    if kind in LISTS:
        item = lambda v: "null" if v is None else f"'{v}'" if kind != "list_int64" else str(v)  # noqa: E731
        return f"arrow_cast([{', '.join(item(v) for v in value)}], '{SQL_LISTS[kind]}')"
    if kind.startswith("timestamp"):
        return f"timestamp '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    return str(value)


def filters(method, kind, name, first=0):
    """(filters that read the index, filters that need not) for values of numbers from `first` on."""
    if method == "NGRAM":
        served = [f"contains({name}, '{text}')" for text in ("alpha", "Beta", "lait", "nothing like it", "x1y", "ray1")]
        return [*served, f"{name} like '%pha%'", f"{name} like 'del%'"], [f"{name} is null", f"contains({name}, 'ab')", f"contains({name}, 'CAFÉ')"]
    if method == "LABEL_LIST":
        one, two, none = ("'t1'", "'t3'", "'zz'") if kind != "list_int64" else ("1", "3", "77")
        served = [
            f"array_has({name}, {one})", f"array_contains({name}, {two})", f"array_has_any({name}, [{two}, {none}])",
            f"array_has_all({name}, [{one}, {two}])", f"array_has_any({name}, [{none}])", f"not array_has({name}, {one})",
        ]  # fmt: skip
        return served, [f"{name} is null", f"{name} is not null"]
    if kind == "bool":
        served, false = [name, f"{name} is null", f"{name} is not null"], [f"{name} = false", f"not {name}"]
        # Lance asks for the rows that are not true, and no zone tells those.
        return (served, false) if method == "ZONEMAP" else ([*served, *false], [])
    at = [literal(kind, first + n) for n in (0, 7, 30, 59, 63)]
    equal = [*(f"{name} = {value}" for value in at), f"{name} in ({at[1]}, {at[4]}, {at[2]})", f"{name} is null"]
    other = [f"{name} < {at[2]}", f"{name} >= {at[3]}", f"{name} between {at[1]} and {at[2]}", f"{name} is not null", f"{name} != {at[1]}"]
    if kind in TEXTS and method in ("BTREE", "ZONEMAP"):
        other = [f"{name} like 'al%'", f"{name} like 'nothing%'", f"starts_with({name}, 'gamma')", *other]
    if method == "BLOOMFILTER":
        return equal, other
    # Zones cannot tell where a value is not.
    return (equal + other[:-1], other[-1:]) if method == "ZONEMAP" else (equal + other, [])
