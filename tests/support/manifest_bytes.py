"""Takes a manifest file apart and puts it together again, so that tests can plant what no writer would write."""

import pathlib
import struct


def latest(table):
    """The newest manifest of a table with V2 names (they count down)."""
    return min((pathlib.Path(table) / "_versions").glob("*.manifest"), key=lambda p: p.name)


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def read_varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(message):
    """[(number, wire type, value)] of the top level of a protobuf message."""
    found, at = [], 0
    while at < len(message):
        key, at = read_varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = read_varint(message, at)
        elif wire == 2:
            size, at = read_varint(message, at)
            value, at = message[at : at + size], at + size
        else:
            size = {1: 8, 5: 4}[wire]
            value, at = message[at : at + size], at + size
        found.append((number, wire, value))
    return found


def encode(found):
    out = bytearray()
    for number, wire, value in found:
        out += varint(number << 3 | wire)
        if wire == 0:
            out += varint(value)
        elif wire == 2:
            out += varint(len(value)) + value
        else:
            out += value
    return bytes(out)


def split(path):
    """(bytes before the manifest message, its fields)."""
    data = pathlib.Path(path).read_bytes()
    assert data[-4:] == b"LANC"
    (position,) = struct.unpack("<Q", data[-16:-8])
    (size,) = struct.unpack("<I", data[position : position + 4])
    return data[:position], fields(data[position + 4 : position + 4 + size])


def join(path, front, found):
    message = encode(found)
    pathlib.Path(path).write_bytes(front + struct.pack("<I", len(message)) + message + struct.pack("<QHH", len(front), 0, 2) + b"LANC")


def set_varint(path, number, value):
    """Sets (or, with None, removes) a varint field of the manifest message."""
    front, found = split(path)
    found = [f for f in found if f[0] != number]
    if value is not None:
        found.append((number, 0, value))
    join(path, front, sorted(found, key=lambda f: f[0]))


def get_varint(path, number):
    return next((value for n, _, value in split(path)[1] if n == number), 0)


VERSION, FRAGMENT, INDEX_SECTION, READER_FLAGS, WRITER_FLAGS, MAX_FRAGMENT_ID = 3, 2, 6, 9, 10, 11
# Where the manifest's file holds its transaction: the old field and the new one.
TRANSACTION_SECTIONS = (21, 23)
