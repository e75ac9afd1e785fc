"""The values of sandbox tables, said again from their description: an implementation of its own, row by row."""

import datetime
import pathlib
import struct

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
WORDS = (pathlib.Path(__file__).resolve().parents[2] / "src" / "sandbox" / "words.txt").read_text().split()
NULLS, VALUE, LENGTH, ITEMS = 1, 2, 3, 16
NEW_YEAR = datetime.datetime(2024, 1, 1)
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


def mix(z):
    z = (z + GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draw(seed, field, row, salt):
    start = (seed + (field + 1) * GOLDEN) & MASK
    return mix((mix((mix(start) + row) & MASK) + salt) & MASK)


def fraction(bits):
    return (bits >> 11) / (1 << 53)


def word(at):
    return WORDS[at % len(WORDS)] + (str(at // len(WORDS)) if at >= len(WORDS) else "")


def wrapped(value, bits, signed):
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def fields(columns):
    """Field id of each column: a list takes two."""
    ids, at = {}, 0
    for column in columns:
        ids[column["name"]] = at
        at += 2 if column["type"] == "labels" else 1
    return ids


def value(column, field, seed, row):
    kind = column["type"]
    if column.get("nulls", 0) > 0 and fraction(draw(seed, field, row, NULLS)) < column["nulls"]:
        return None
    text = kind == "utf8"
    shape = column.get("shape") or ("words" if text or kind == "labels" else "random" if kind in ("bool", "float32", "float64") else "sequence")
    distinct = column.get("distinct", 64 if shape == "sentences" else 8)
    fewest, most = column.get("words", [0, 3] if kind == "labels" else [4, 12])

    def words():
        length = fewest + draw(seed, field, row, LENGTH) % (most - fewest + 1)
        return [word(draw(seed, field, row, ITEMS + at) % distinct) for at in range(length)]

    if kind == "labels":
        return words()
    if text:
        if shape == "sequence":
            return f"{column['name']}-{row:08}"
        if shape == "random":
            return f"{draw(seed, field, row, VALUE):016x}"
        return " ".join(words()) if shape == "sentences" else word(draw(seed, field, row, VALUE) % distinct)
    if kind == "bool":
        return bool((row if shape == "sequence" else draw(seed, field, row, VALUE)) & 1)
    if kind in ("float32", "float64"):
        low, high, step, start = column.get("min", 0.0), column.get("max", 1.0), column.get("step", 1.0), column.get("start", 0.0)
        number = {
            "sequence": lambda: start + step * row,
            "choice": lambda: low + step * (draw(seed, field, row, VALUE) % distinct),
            "random": lambda: low + fraction(draw(seed, field, row, VALUE)) * (high - low),
        }[shape]()
        return struct.unpack("<f", struct.pack("<f", number))[0] if kind == "float32" else float(number)
    if kind == "timestamp":
        origin = (NEW_YEAR - EPOCH) // MICROSECOND
        low, high, step = origin, origin + 366 * 86_400_000_000, column.get("step", 60_000_000)
    elif kind == "date32":
        origin = (NEW_YEAR - EPOCH).days
        low, high, step = origin, origin + 365, column.get("step", 1)
    else:
        bits = int(kind.lstrip("uint"))
        origin = 0
        low, step = column.get("min", 0), column.get("step", 1)
        high = column.get("max", {"int8": 127, "uint8": 255, "int16": 32767, "uint16": 32767}.get(kind, 1_000_000))
    start = column.get("start", origin)
    number = {
        "sequence": lambda: start + step * row,
        "choice": lambda: low + step * (draw(seed, field, row, VALUE) % distinct),
        "random": lambda: low + draw(seed, field, row, VALUE) % (high - low + 1),
    }[shape]()
    if kind == "timestamp":
        return EPOCH + number * MICROSECOND
    if kind == "date32":
        return EPOCH.date() + datetime.timedelta(days=number)
    return wrapped(number, bits, not kind.startswith("u"))


def rows(columns, seed, numbers):
    """Rows as dictionaries, in the order of the numbers."""
    ids = fields(columns)
    return [{column["name"]: value(column, ids[column["name"]], seed, row) for column in columns} for row in numbers]
