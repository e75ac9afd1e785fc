"""`whetstone column` of the fixture tables: pyarrow reads the stream, and it holds what Lance reads, with the same row addresses."""

import json
import os
import random

import lance
import pyarrow as pa
import pytest

import command
import fixture_tables

FULL = os.environ.get("WHETSTONE_FULL") == "1"
SAMPLE = 24
# What this build does not read, whatever the column: legacy files.
REFUSING = {"storage_legacy"}


def paths(schema):
    """Dotted paths of the leaves below structs; lists are asked for whole."""
    def below(prefix, field):
        name = f"`{field.name}`" if any(c in field.name for c in ".` ") else field.name
        here = f"{prefix}.{name}" if prefix else name
        if pa.types.is_struct(field.type):
            for i in range(field.type.num_fields):
                yield from below(here, field.type.field(i))
        else:
            yield here, field.type

    for field in schema:
        yield from below("", field)


def columns(fixtures):
    found = []
    for name in fixture_tables.names(False):
        if name in REFUSING:
            continue
        for path, kind in paths(lance.dataset(str(fixtures / "tables" / f"{name}.lance")).schema):
            found.append((name, path, kind))
    if FULL:
        return found
    chosen = random.Random(int(os.environ.get("WHETSTONE_SEED", "1"))).sample(found, SAMPLE)
    # One column of each type at least.
    return list({str(kind): (name, path, kind) for name, path, kind in found}.values()) + chosen


def bits(array):
    """Floats by their bits, so that NaNs and zeros of either sign are told apart."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    array = pa.concat_arrays([array]) if not isinstance(array, pa.Array) else array
    widths = {pa.float16(): pa.uint16(), pa.float32(): pa.uint32(), pa.float64(): pa.uint64()}
    return array.view(widths[array.type]) if array.type in widths else array


def lances(table, path, **where):
    scanner = lance.dataset(str(table)).scanner(columns={"value": path}, with_row_address=True, scan_in_order=True, **where)
    return scanner.to_table()


def ours(table, path, out, *options):
    command.run("column", table, path, "--arrow", out, *options)
    with pa.OSFile(str(out)) as file, pa.ipc.open_stream(file) as reader:
        return reader.read_all()


def test_columns_are_what_lance_reads(fixtures, tmp_path):
    compared, refused = 0, []
    for name, path, kind in columns(fixtures):
        table = fixtures / "tables" / f"{name}.lance"
        try:
            got = ours(table, path, tmp_path / "out.arrow")
        except command.Failed as failed:
            assert failed.code in ("UNSUPPORTED_TYPE", "UNSUPPORTED_ENCODING"), f"{name}.{path}: {failed}"
            refused.append(f"{name}.{path} ({kind})")
            continue
        want = lances(table, path)
        assert got.column_names == [path.replace("`", "") if "`" in path and "." not in path.replace("`", "") else path, "_rowaddr"], got.column_names
        assert got.column("_rowaddr").combine_chunks().equals(want.column("_rowaddr").combine_chunks()), f"{name}.{path}: addresses"
        assert bits(got.column(0)).equals(bits(want.column("value"))), f"{name}.{path} ({kind})"
        compared += 1
    print(f"{compared} columns compared; refused by name: {', '.join(refused) or 'none'}")
    assert compared >= (100 if FULL else SAMPLE)
    assert compared > 2 * len(refused)


def test_a_fragment_and_a_limit(fixtures, tmp_path):
    table = fixtures / "tables" / "deletions_large.lance"
    path = next(iter(paths(lance.dataset(str(table)).schema)))[0]
    whole = ours(table, path, tmp_path / "whole.arrow")
    fragment = lance.dataset(str(table)).get_fragments()[-1].fragment_id
    part = ours(table, path, tmp_path / "part.arrow", "--fragment", fragment, "--limit", 7)
    rows = [row for row in whole.to_pylist() if row["_rowaddr"] >> 32 == fragment]
    assert part.to_pylist() == rows[:7]


def test_numbers_past_2_53_are_texts(tmp_path):
    table = tmp_path / "wide.lance"
    values = [0, 2**53, 2**53 + 1, 2**64 - 1, None]
    lance.write_dataset(pa.table({"u": pa.array(values, pa.uint64())}), str(table))
    out, err = command.start("column", table, "u").communicate(timeout=60)
    assert err == ""
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["value"] for line in lines] == [0, 2**53, str(2**53 + 1), str(2**64 - 1), None]
    assert [line["address"] for line in lines] == ["0", "1", "2", "3", "4"]


def test_base_paths(tmp_path):
    """A branch reads the rows it shares with the main table from there, under the main table's base path."""
    table = tmp_path / "t.lance"
    rows = lambda start: pa.table({"k": range(start, start + 50), "s": [f"name {i}" for i in range(50)]})  # noqa: E731
    lance.write_dataset(rows(0), str(table))
    dataset = lance.write_dataset(rows(100), str(table), mode="append")
    branch = lance.write_dataset(rows(200), dataset.create_branch("dev"), mode="append")
    branch.delete("k % 7 = 0")
    branch = lance.dataset(str(table)).checkout_version(("dev", None))
    bases = [f.base_id for fragment in branch.get_fragments() for f in fragment.metadata.files]
    assert None in bases and len(set(bases)) == 2, "some files are shared, some are the branch's own"
    for path in ("k", "s"):
        got = ours(table, path, tmp_path / "out.arrow", "--branch", "dev")
        want = branch.scanner(columns={"value": path}, with_row_address=True, scan_in_order=True).to_table()
        assert got.num_rows == branch.count_rows() < 150
        assert got.column("_rowaddr").combine_chunks().equals(want.column("_rowaddr").combine_chunks())
        assert bits(got.column(0)).equals(bits(want.column("value"))), path
