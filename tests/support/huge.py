"""Tables that no machine could make in time: one real fragment and real indexes, under a manifest that names as many as are asked for."""

import struct
import uuid

import lance
import pyarrow as pa

import manifest_bytes as mb
import roaring


def segment(entry, ids):
    """An entry of the index section as `entry` is, of a segment of its own that covers these fragments."""
    fields = [f for f in entry if f[0] not in (1, 5)]
    fields += [(1, 2, mb.encode([(1, 2, uuid.uuid4().bytes)])), (5, 2, roaring.encode(ids))]
    return (1, 2, mb.encode(sorted(fields, key=lambda f: f[0])))


class Table:
    """One fragment of a hundred rows, and empty indexes on as many columns."""

    def __init__(self, path, indexes):
        lance.write_dataset(pa.table({f"c{n}": pa.array(range(100), pa.int64()) for n in range(indexes)}), str(path))
        for n in range(indexes):
            lance.dataset(str(path)).create_scalar_index(f"c{n}", "BTREE", name=f"index_{n}", train=False)
        self.manifest = mb.latest(path)
        front, self.found = mb.split(self.manifest)
        (position,) = [value for number, _, value in self.found if number == mb.INDEX_SECTION]
        (size,) = struct.unpack("<I", front[position : position + 4])
        section = mb.fields(front[position + 4 : position + 4 + size])
        # One entry of each index, to make others of.
        self.entries = [mb.fields(value) for number, _, value in section if number == 1]

    def write(self, section, ids, flags):
        """Names fragments of these ids, each with the real one's file, under this index section; answers the size of the manifest."""
        message = mb.encode(section)
        front = b"\0" * 16 + struct.pack("<I", len(message)) + message
        (fragment,) = [value for number, _, value in self.found if number == mb.FRAGMENT]
        rest = mb.encode([f for f in mb.fields(fragment) if f[0] != 1])
        gone = (mb.FRAGMENT, mb.INDEX_SECTION, mb.MAX_FRAGMENT_ID, *mb.TRANSACTION_SECTIONS, *(number for number, _, _ in flags))
        kept = [f for f in self.found if f[0] not in gone]
        kept += [(mb.FRAGMENT, 2, mb.varint(8) + mb.varint(i) + rest if i else rest) for i in ids]
        kept += [(mb.INDEX_SECTION, 0, 16), (mb.MAX_FRAGMENT_ID, 0, max(ids)), *flags]
        mb.join(self.manifest, front, sorted(kept, key=lambda f: f[0]))
        return self.manifest.stat().st_size
