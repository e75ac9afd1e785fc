"""Where the rows of a column come from: other roots, second data files, columns that old fragments lack, replaced and renamed ones,
deletions of both kinds, stable row ids. `whetstone column` against Lance's scan: values and row addresses."""

import json
import os
import random
import uuid

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceOperation

import command

VERSIONS = ["2.0", "2.1", "2.2", "2.3"]
ROWS = 300


def versions():
    """One of the versions, by WHETSTONE_SEED; with WHETSTONE_FULL all."""
    if os.environ.get("WHETSTONE_FULL") == "1":
        return VERSIONS
    return random.Random(os.environ.get("WHETSTONE_SEED", "1") + __name__).sample(VERSIONS, 1)


def rows(start, count=ROWS):
    return pa.table({
        "k": pa.array(range(start, start + count), pa.int64()),
        "name": [f"name {i}" if i % 5 else None for i in range(start, start + count)],
        "tags": pa.array([[f"t{i % 7}"] * (i % 3) for i in range(start, start + count)], pa.list_(pa.string())),
        "s": pa.array([None if i % 11 == 0 else {"x": i * 3, "y": f"y{i}"} for i in range(start, start + count)], pa.struct([("x", pa.int32()), ("y", pa.string())])),
    })


def table_of(folder, version, **options):
    """Two fragments, some rows of both deleted."""
    lance.write_dataset(rows(0), folder, data_storage_version=version, **options)
    dataset = lance.write_dataset(rows(ROWS), folder, mode="append")
    dataset.delete("k % 13 = 5")
    return lance.dataset(folder)


def leaves(schema):
    for field in schema:
        if pa.types.is_struct(field.type):
            yield from (f"{field.name}.{child.name}" for child in field.type)
        else:
            yield field.name


def ours(table, path, out, *options):
    command.run("column", table, path, "--arrow", out, *options)
    with pa.OSFile(str(out)) as file, pa.ipc.open_stream(file) as reader:
        return reader.read_all()


def compare(dataset, out, *options):
    """Every column of the table, and of one fragment."""
    for path in leaves(dataset.schema):
        want = dataset.scanner(columns={"value": path}, with_row_address=True, scan_in_order=True).to_table()
        got = ours(dataset.uri, path, out, *options)
        assert got.column("_rowaddr").combine_chunks().equals(want.column("_rowaddr").combine_chunks()), path
        assert got.column(0).combine_chunks().equals(want.column("value").combine_chunks()), path
        assert got.num_rows == dataset.count_rows()
    # The last column read was one of those that the test is about.
    fragment = dataset.get_fragments()[len(dataset.get_fragments()) // 2]
    part = ours(dataset.uri, path, out, "--fragment", fragment.fragment_id, *options)
    assert part.column(0).combine_chunks().equals(fragment.to_table(columns={"value": path}).column("value").combine_chunks()), path


@pytest.mark.parametrize("version", versions())
def test_added_columns_lie_in_a_second_file(tmp_path, version):
    dataset = table_of(str(tmp_path / "t.lance"), version)
    dataset.add_columns({"double": "k * 2", "upper": "upper(name)"})
    dataset = lance.write_dataset(dataset.to_table().slice(0, 40), dataset.uri, mode="append")
    assert sorted(len(fragment.data_files()) for fragment in dataset.get_fragments()) == [1, 2, 2]
    compare(dataset, tmp_path / "out.arrow")


@pytest.mark.parametrize("version", versions())
def test_old_fragments_lack_a_column(tmp_path, version):
    dataset = table_of(str(tmp_path / "t.lance"), version)
    dataset.add_columns(pa.schema([pa.field("late", pa.int32()), pa.field("words", pa.list_(pa.string())), pa.field("small", pa.float16())]))
    more = rows(2 * ROWS, 50)
    more = more.append_column("late", pa.array(range(50), pa.int32())).append_column("words", pa.array([["a", None]] * 50, pa.list_(pa.string())))
    more = more.append_column("small", pa.array(np.arange(50), pa.float16()))
    lance.write_dataset(more.select(dataset.schema.names), dataset.uri, mode="append")
    # And a fragment written without a nullable column.
    dataset = lance.write_dataset(more.select(["k", "late"]), dataset.uri, mode="append")
    compare(dataset, tmp_path / "out.arrow")
    late = ours(dataset.uri, "late", tmp_path / "out.arrow").column(0)
    assert late.null_count == lance.dataset(dataset.uri).count_rows() - 100


@pytest.mark.parametrize("version", versions())
def test_changed_columns_leave_tombstones(tmp_path, version):
    dataset = table_of(str(tmp_path / "t.lance"), version)
    dataset.alter_columns({"path": "k", "data_type": pa.int32()})
    fragment = dataset.get_fragments()[0]
    changed = pa.table({"_rowid": fragment.to_table(with_row_id=True)["_rowid"], "name": [f"new {i}" for i in range(fragment.count_rows())]})
    updated, fields = fragment.update_columns(changed)
    operation = LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
    dataset = lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)
    assert any(field == -2 for fragment in dataset.get_fragments() for file in fragment.data_files() for field in file.fields)
    compare(dataset, tmp_path / "out.arrow")


@pytest.mark.parametrize("version", versions())
def test_data_replaced_in_place(tmp_path, version):
    dataset = table_of(str(tmp_path / "t.lance"), version)
    dataset.add_columns({"double": "k * 2"})
    fragment = dataset.get_fragments()[1]
    field = dataset.lance_schema.field("double").id()
    name = "replaced.lance"
    with lance.file.LanceFileWriter(f"{dataset.uri}/data/{name}", pa.schema([pa.field("double", pa.int64())]), version=version) as writer:
        writer.write_batch(pa.record_batch({"double": pa.array([-i if i % 4 else None for i in range(fragment.physical_rows)], pa.int64())}))
    major, minor = (2, int(version[2:]))
    file = lance.fragment.DataFile(name, [field], [0], major, minor, os.path.getsize(f"{dataset.uri}/data/{name}"))
    group = LanceOperation.DataReplacementGroup(fragment.fragment_id, file)
    dataset = lance.LanceDataset.commit(dataset.uri, LanceOperation.DataReplacement([group]), read_version=dataset.version)
    assert any(f.path == name for fragment in dataset.get_fragments() for f in fragment.data_files())
    compare(dataset, tmp_path / "out.arrow")


@pytest.mark.parametrize("version", versions())
def test_renamed_and_dropped_columns(tmp_path, version):
    dataset = table_of(str(tmp_path / "t.lance"), version)
    dataset.alter_columns({"path": "name", "name": "label"}, {"path": "s.x", "name": "size"})
    dataset.drop_columns(["tags"])
    dataset.add_columns({"tags": "k + 1"})  # the old name again, another field
    compare(lance.dataset(dataset.uri), tmp_path / "out.arrow")
    with pytest.raises(command.Failed) as failed:
        command.run("column", dataset.uri, "name", "--arrow", tmp_path / "out.arrow")
    assert failed.value.code == "COLUMN_NOT_FOUND"


@pytest.mark.parametrize("version", versions())
def test_base_paths(tmp_path, version):
    """Files below two other roots, one of them a folder of data files only; outside of the table they are read with leave."""
    bases = [lance.DatasetBasePath(str(tmp_path / "files"), name="files", is_dataset_root=False), lance.DatasetBasePath(str(tmp_path / "root"), name="root", is_dataset_root=True)]
    table = str(tmp_path / "t.lance")
    lance.write_dataset(rows(0), table, data_storage_version=version, initial_bases=bases, target_bases=["files"])
    lance.write_dataset(rows(ROWS), lance.dataset(table), mode="append", target_bases=["root"])
    dataset = lance.write_dataset(rows(2 * ROWS, 40), lance.dataset(table), mode="append")
    dataset.delete("k % 13 = 5")
    dataset = lance.dataset(table)
    assert [file.base_id for fragment in dataset.get_fragments() for file in fragment.data_files()] == [1, 2, None]
    compare(dataset, tmp_path / "out.arrow", "--other-bases")


@pytest.mark.parametrize("version", versions())
def test_deletions_of_both_kinds(tmp_path, version):
    dataset = table_of(str(tmp_path / "t.lance"), version)
    dataset.delete("k < 250")
    dataset.delete("k > 500 and k % 2 = 0")
    dataset = lance.dataset(dataset.uri)
    compare(dataset, tmp_path / "out.arrow")


@pytest.mark.parametrize("version", versions())
def test_stable_row_ids(tmp_path, version):
    """Rows that were moved by an update and a compaction keep their ids: what is read is told by address all the same."""
    dataset = table_of(str(tmp_path / "t.lance"), version, enable_stable_row_ids=True)
    dataset.update({"name": "'moved'"}, where="k % 3 = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=200)
    dataset.delete("k % 17 = 1")
    compare(lance.dataset(dataset.uri), tmp_path / "out.arrow")


def test_extension_types_are_read_as_what_they_are_stored_as(tmp_path):
    ids = pa.array([uuid.UUID(int=i).bytes if i % 3 else None for i in range(ROWS)], pa.binary(16))
    texts = pa.array([json.dumps({"a": i}) if i % 4 else None for i in range(ROWS)])
    columns = {"id": pa.ExtensionArray.from_storage(pa.uuid(), ids), "doc": pa.ExtensionArray.from_storage(pa.json_(pa.string()), texts)}
    dataset = lance.write_dataset(pa.table(columns), str(tmp_path / "t.lance"))
    assert ours(dataset.uri, "id", tmp_path / "out.arrow").column(0).combine_chunks().equals(ids)
    # Lance keeps JSON in a binary form of its own.
    docs = ours(dataset.uri, "doc", tmp_path / "out.arrow").column(0).combine_chunks()
    assert docs.type == pa.large_binary() and docs.is_null().equals(texts.is_null())
    assert len(set(docs.drop_null().to_pylist())) == len(texts) - texts.null_count


def test_overlays_are_refused_by_name(tmp_path):
    dataset = table_of(str(tmp_path / "t.lance"), "2.1")
    fragment, field = dataset.get_fragments()[0], dataset.lance_schema.field("k").id()
    name = f"{dataset.uri}/data/overlay.lance"
    with lance.file.LanceFileWriter(name, pa.schema([pa.field("k", pa.int64())]), version="2.1") as writer:
        writer.write_batch(pa.record_batch({"k": pa.array([-1, -2], pa.int64())}))
    file = lance.fragment.DataFile("overlay.lance", [field], [0], 2, 1, os.path.getsize(name))
    overlay = LanceOperation.DataOverlayFile(file, [3, 7])
    group = LanceOperation.DataOverlayGroup(fragment.fragment_id, [overlay])
    lance.LanceDataset.commit(dataset.uri, LanceOperation.DataOverlay([group]), read_version=dataset.version)
    with pytest.raises(command.Failed) as failed:
        command.run("column", dataset.uri, "k", "--arrow", tmp_path / "out.arrow")
    assert failed.value.code == "UNSUPPORTED_FEATURE"
    assert "overlay" in json.dumps([failed.value.message]), failed.value
