"""What a manifest on disk says about its reuse history, read without any code under test or of Lance, and what queries answer."""

import hashlib
import os
import pathlib
import struct
import time
import uuid

import lance
from lance.query import MatchQuery

import manifest_bytes
import roaring

ENTRY = "__lance_frag_reuse"
DAY = 24 * 3600


def manifests(table):
    """{version: path} of the manifests of a table's main branch."""
    return {2**64 - 1 - int(p.stem): p for p in (pathlib.Path(table) / "_versions").glob("*.manifest")}


def section(manifest):
    """The entries of an index section, as lists of protobuf fields."""
    data = manifest.read_bytes()
    position = first(manifest_bytes.split(manifest)[1], manifest_bytes.INDEX_SECTION)
    if position is None:
        return []
    (size,) = struct.unpack("<I", data[position : position + 4])
    found = manifest_bytes.fields(data[position + 4 : position + 4 + size])
    return [manifest_bytes.fields(value) for number, _, value in found if number == 1]


def first(fields, number):
    return next((value for n, _, value in fields if n == number), None)


def content(table, manifest):
    """The content of the reuse entry, or None when there is no such entry."""
    for entry in section(manifest):
        if first(entry, 3) == ENTRY.encode():
            envelope = manifest_bytes.fields(first(manifest_bytes.fields(first(entry, 6)), 2))
            inline, external = first(envelope, 1), first(envelope, 2)
            if inline is not None:
                return inline
            name = str(uuid.UUID(bytes=first(manifest_bytes.fields(first(entry, 1)), 1)))
            file = manifest_bytes.fields(external)
            offset, size = first(file, 2) or 0, first(file, 3)
            return (pathlib.Path(table) / "_indices" / name / first(file, 1).decode()).read_bytes()[offset : offset + size]
    return None


def records(data):
    """The exact bytes of every record of a history's content, in order."""
    found, at = [], 0
    while data is not None and at < len(data):
        start = at
        key, at = manifest_bytes.read_varint(data, at)
        assert key & 7 in (0, 2), f"a record of wire type {key & 7}"
        size, at = manifest_bytes.read_varint(data, at)
        at += size if key & 7 == 2 else 0
        found.append(bytes(data[start:at]))
    return found


def maps_named(table):
    """Row maps that the histories of all manifests name."""
    found = set()
    for manifest in manifests(table).values():
        for record in records(content(table, manifest)):
            ((number, wire, body),) = manifest_bytes.fields(record)
            mapping = first(manifest_bytes.fields(body), 4) if number == 2 and wire == 2 else None
            if mapping is not None:
                found.add(first(manifest_bytes.fields(mapping), 1).decode())
    return found


def maps(table):
    """Row maps whose files are there."""
    folder = pathlib.Path(table) / "_fri"
    return {p.parent.name for p in folder.glob("*/*") if p.is_file()} if folder.is_dir() else set()


def age(table, days):
    """Makes every file look as old as this."""
    at = time.time() - days * DAY
    for file in pathlib.Path(table).rglob("*"):
        os.utime(file, (at, at))


def files(table):
    """Every file with a hash of its bytes."""
    root = pathlib.Path(table)
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in root.rglob("*") if p.is_file()}


def scanner(dataset, query, key, **options):
    if "fts" in query:
        return dataset.scanner(columns=[key], full_text_query=MatchQuery(query["fts"], query["column"]), limit=100_000)
    return dataset.scanner(columns=[key], filter=query["filter"], **options)


def answer(dataset, query, key, **options):
    return sorted(scanner(dataset, query, key, **options).to_table()[key].to_pylist())


def answers_as_recorded(path, queries, key, uses_index):
    """Lance answers every recorded query with the recorded rows, as it does by a scan, and reads an index exactly where it did."""
    dataset = lance.dataset(str(path))
    for query, uses in zip(queries, uses_index, strict=True):
        found = answer(dataset, query, key)
        assert len(found) == query["rows"], f"{query}: {len(found)} rows"
        if "ids" in query:
            assert found == query["ids"], f"{query}: {found}"
        if "filter" in query:
            assert found == answer(dataset, query, key, use_scalar_index=False), query
            plan = scanner(dataset, query, key).explain_plan(True)
            assert ("ScalarIndexQuery" in plan) == uses, f"{query}: {plan}"


def answers_as_a_scan(path, queries, key, version=None):
    """Lance finds a version of the table healthy, and answers every query from it as it does by a scan."""
    dataset = lance.dataset(str(path), version=version)
    dataset.validate()
    for query in queries:
        found = answer(dataset, query, key)
        assert found == answer(dataset, query, key, use_scalar_index=False), f"version {dataset.version}: {query}"


def coverage(path):
    """{index: sorted lists of fragments} as Lance's reader lists the segments, without those that are not listed."""
    described = lance.dataset(str(path)).describe_indices()
    return {d.name: sorted(sorted(s.fragment_ids) for s in d.segments) for d in described if d.name != ENTRY}


def named(manifest):
    """{index: the stored bitmap of each of its segments, None where it records none}."""
    found = {}
    for entry in section(manifest):
        stored = first(entry, 5)
        found.setdefault(first(entry, 3).decode(), []).append(None if stored is None else set(roaring.decode(stored)))
    return found


def nothing_twice(table):
    """In no version two segments of a name share an id, retired ones included (spec fragment-reuse §8.1)."""
    for version, manifest in manifests(table).items():
        for name, stored in named(manifest).items():
            ids = [i for one in stored for i in one or ()]
            assert len(ids) == len(set(ids)), f"version {version}: segments of {name} share fragments: {stored}"


def at_work(path, works, stop):
    """Lance at work on a table until `stop`, and until each kind of work has landed: how many of each did."""
    done = dict.fromkeys(works, 0)
    # Others get a turn: without a pause Lance commits hundreds of versions while one of ours starts, and none of its attempts is in time.
    pause = 0.25
    deadline = time.monotonic() + 300
    while not stop() or min(done.values()) == 0:
        assert time.monotonic() < deadline, f"some work never landed: {done}"
        for job, work in works.items():
            time.sleep(pause)
            try:
                before = lance.dataset(path).version
                work()
                done[job] += lance.dataset(path).version > before
            except OSError as error:
                # Lance gives up where we try again.
                assert "conflict" in str(error).lower(), error
    return done
