"""Roaring bitmaps in the portable format, written and read without any code under test or of Lance."""

import struct

import numpy as np

PLAIN, WITH_RUNS = 12346, 12347


def encode(ids):
    """A set of numbers, as arrays and bitmaps."""
    containers, offsets, at = [], [], 0
    ids = np.asarray(ids, np.uint32)
    keys = np.unique(ids >> 16)
    head = struct.pack("<II", PLAIN, len(keys))
    for key in keys:
        low = (ids[(ids >> 16) == key] & 0xFFFF).astype(np.uint16)
        head += struct.pack("<HH", key, len(low) - 1)
        if len(low) <= 4096:
            containers.append(low.tobytes())
        else:
            bits = np.zeros(65536, np.uint8)
            bits[low] = 1
            containers.append(np.packbits(bits, bitorder="little").tobytes())
    at = len(head) + 4 * len(keys)
    for container in containers:
        offsets.append(at)
        at += len(container)
    return head + b"".join(struct.pack("<I", o) for o in offsets) + b"".join(containers)


def decode(data):
    """The numbers of a set, ascending."""
    (word,) = struct.unpack_from("<I", data)
    if word & 0xFFFF == WITH_RUNS:
        count, at = (word >> 16) + 1, 4
        runs = np.unpackbits(np.frombuffer(data, np.uint8, (count + 7) // 8, at), bitorder="little")[:count]
        at += (count + 7) // 8
    else:
        assert word == PLAIN, word
        (count,), at = struct.unpack_from("<I", data, 4), 8
        runs = np.zeros(count, np.uint8)
    heads = [struct.unpack_from("<HH", data, at + 4 * n) for n in range(count)]
    at += 4 * count
    if word == PLAIN or count >= 4:
        at += 4 * count  # where each container begins: they follow one another
    found = []
    for (key, last), run in zip(heads, runs, strict=True):
        if run:
            (pairs,) = struct.unpack_from("<H", data, at)
            at += 2
            low = [value for n in range(pairs) for start, more in [struct.unpack_from("<HH", data, at + 4 * n)] for value in range(start, start + more + 1)]
            at += 4 * pairs
        elif last + 1 <= 4096:
            low = np.frombuffer(data, "<u2", last + 1, at).tolist()
            at += 2 * (last + 1)
        else:
            low = np.flatnonzero(np.unpackbits(np.frombuffer(data, np.uint8, 8192, at), bitorder="little")).tolist()
            at += 8192
        found += [key << 16 | value for value in low]
    return found
