"""Columns no builder likes, and indexes that are refused: a defined result or a typed error, and nothing committed on failure."""

import os

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import command
import oracle

INDEX = "v_idx"
SCALARS = ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"]
METHODS = [*SCALARS, "NGRAM", "LABEL_LIST", "INVERTED"]
FULL = bool(os.environ.get("WHETSTONE_FULL"))
ROWS_OF_ONE_VALUE = 10_000_000 if FULL else 300_000


def kind(method):
    return {"NGRAM": pa.string(), "INVERTED": pa.string(), "LABEL_LIST": pa.list_(pa.string())}.get(method, pa.int64())


def make(path, values, **options):
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": values})
    lance.write_dataset(table, str(path), **options)
    return path


def create(path, method, *options):
    return command.run("create-index", path, INDEX, "v", method, *options)


def files(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())


def sound(path, filters):
    """Lance and an audit find nothing wrong, and filters return the rows of a full scan."""
    oracle.healthy(path)
    for text in filters:
        assert oracle.ids(path, text) == oracle.ids(path, text, use_scalar_index=False), text
    report = command.audit(path, INDEX)
    assert report["findings"] == [], report["findings"]
    return report


@pytest.mark.parametrize("method", METHODS)
def test_zero_rows_and_all_null(method, tmp_path):
    path = make(tmp_path / "t.lance", pa.array([], kind(method)))
    assert create(path, method)["segments_added"] == 1
    oracle.healthy(path)
    lance.write_dataset(pa.table({"id": pa.array(range(40), pa.int64()), "v": pa.array([None] * 40, kind(method))}), str(path), mode="append")
    live = oracle.live(path)
    assert command.run("refresh", path, INDEX)["established"] == live
    sound(path, ["v is null", "v is not null"])
    # And all of it deleted.
    lance.write_dataset(pa.table({"id": pa.array([77], pa.int64()), "v": pa.array([None], kind(method))}), str(path), mode="append")
    assert command.run("refresh", path, INDEX)["segments_added"] == 1
    assert command.run("merge", path, INDEX)["segments_added"] == 1
    assert sound(path, ["v is null"])["rows"] == 41


@pytest.mark.parametrize("method", METHODS if FULL else ["BTREE", "BITMAP", "INVERTED"])
def test_one_giant_value(method, tmp_path):
    giant = "giant " * 300_000 + "x" * 1_000_000
    texts = ["small", giant, None, "", "tiny giant"]
    if method == "LABEL_LIST":
        path = make(tmp_path / "t.lance", pa.array([[t] if t is not None else None for t in texts], pa.list_(pa.string())))
        filters = ["array_has(v, 'small')", "array_has(v, 'nothing')"]
    else:
        path = make(tmp_path / "t.lance", pa.array(texts, pa.string()))
        filters = ["v = 'small'", "v is null", "v > 'h'", "contains(v, 'giant')"]
    create(path, method)
    sound(path, filters)
    if method != "BTREE":
        return
    # A limit that no pass over the column gets under is told, and leaves nothing.
    before = files(path)
    with pytest.raises(command.Failed) as failed:
        command.run("create-index", path, "other", "v", method, "--max-bytes", 1000)
    assert failed.value.code == "MEMORY_LIMIT" and failed.value.changed == "nothing"
    assert files(path) == before


@pytest.mark.parametrize("method", METHODS if FULL else ["BTREE", "BITMAP", "INVERTED"])
def test_many_rows_of_one_value(method, tmp_path):
    rows = ROWS_OF_ONE_VALUE
    same = {"LABEL_LIST": ["same"], "NGRAM": "same", "INVERTED": "equal"}.get(method, 7)
    path = tmp_path / "t.lance"
    one = pa.array([same] * 10_000, kind(method))
    values = pa.concat_arrays([one] * (rows // len(one)))
    lance.write_dataset(pa.table({"id": pa.array(np.arange(len(values))), "v": values}), str(path))
    report = create(path, method)
    assert report["established"] == oracle.live(path)
    oracle.healthy(path)
    found = command.run("probe", path, INDEX, {"INVERTED": "match", "NGRAM": "contains", "LABEL_LIST": "has"}.get(method, "="), same[0] if method == "LABEL_LIST" else same)
    assert found["rows"] in (None, rows) and found["fragments"] == oracle.live(path)
    if method in SCALARS:
        assert lance.dataset(str(path)).count_rows("v = 7") == rows and lance.dataset(str(path)).count_rows("v = 8") == 0


def test_text_that_is_no_utf8(tmp_path):
    """A large_utf8 page whose bytes are no text: found out while building, nothing is committed."""
    path = make(tmp_path / "t.lance", pa.array([f"plain{n:05d}" for n in range(400)], pa.large_string()), data_storage_version="2.0")
    (file,) = (path / "data").glob("*.lance")
    bytes_ = bytearray(file.read_bytes())
    at = bytes(bytes_).index(b"plain00123")
    bytes_[at : at + 5] = b"\xff\xfe\xff\xfe\xff"
    file.write_bytes(bytes_)
    version = lance.dataset(str(path)).version
    before = files(path)
    for method in ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "NGRAM", "INVERTED"):
        with pytest.raises(command.Failed) as failed:
            create(path, method)
        assert failed.value.code == "CORRUPT_FILE" and failed.value.changed == "nothing", (method, failed.value.message)
        assert file.name in failed.value.message, failed.value.message
    assert files(path) == before and lance.dataset(str(path)).version == version


@pytest.mark.parametrize("data_storage_version", ["2.0", "2.1", "2.2"] if FULL else ["2.1"])
@pytest.mark.parametrize("method", ["LABEL_LIST", "INVERTED"])
def test_lists_of_nothing(method, data_storage_version, tmp_path):
    rows = [None, [], [None], [None, None], None, ["a", None], []] * 9
    path = make(tmp_path / "t.lance", pa.array(rows, pa.list_(pa.string())), data_storage_version=data_storage_version)
    create(path, method)
    sound(path, ["v is null", "v is not null", "array_has(v, 'a')", "array_has_any(v, ['a', 'b'])", "not array_has(v, 'a')"])
    nothing = make(tmp_path / "n.lance", pa.array([None] * 30, pa.list_(pa.string())), data_storage_version=data_storage_version)
    create(nothing, method)
    sound(nothing, ["v is null", "array_has(v, 'a')"])


REFUSED = [
    ("a column that is not there", ["create-index", "{path}", "i", "nope", "BTREE"], "COLUMN_NOT_FOUND", "nope"),
    ("a list under BTREE", ["create-index", "{path}", "i", "l", "BTREE"], "UNSUPPORTED_TYPE", "BTREE"),
    ("a struct under BITMAP", ["create-index", "{path}", "i", "s", "BITMAP"], "UNSUPPORTED_TYPE", "BITMAP"),
    ("a bool under BLOOMFILTER", ["create-index", "{path}", "i", "b", "BLOOMFILTER"], "UNSUPPORTED_TYPE", "BLOOMFILTER"),
    ("a vector under ZONEMAP", ["create-index", "{path}", "i", "vec", "ZONEMAP"], "UNSUPPORTED_TYPE", "ZONEMAP"),
    ("numbers under NGRAM", ["create-index", "{path}", "i", "id", "NGRAM"], "UNSUPPORTED_TYPE", "NGRAM"),
    ("a scalar under LABEL_LIST", ["create-index", "{path}", "i", "id", "LABEL_LIST"], "UNSUPPORTED_TYPE", "LABEL_LIST"),
    ("numbers under INVERTED", ["create-index", "{path}", "i", "id", "INVERTED"], "UNSUPPORTED_TYPE", "INVERTED"),
    ("a method of Lance that is not maintained", ["create-index", "{path}", "i", "id", "FM"], "UNSUPPORTED_METHOD", "FM"),
    ("a method of nobody", ["create-index", "{path}", "i", "id", "SORTED"], "UNSUPPORTED_METHOD", "SORTED"),
    ("a vector method", ["create-index", "{path}", "i", "vec", "IVF_PQ"], "UNSUPPORTED_METHOD", "optimize_indices"),
    ("the name of a system entry", ["create-index", "{path}", "__lance_frag_reuse", "id", "BTREE"], "INVALID_ARGUMENT", "__lance_"),
    ("a name that is there", ["create-index", "{path}", "theirs", "id", "BTREE"], "INDEX_EXISTS", "theirs"),
    ("another parameter", ["create-index", "{path}", "i", "id", "BTREE", "--param", "rows_per_zone=5"], "INVALID_ARGUMENT", "rows_per_zone"),
    ("a vector index", ["refresh", "{path}", "vector"], "UNSUPPORTED_METHOD", "optimize_indices"),
    ("an index that is not there", ["refresh", "{path}", "nothing"], "INDEX_NOT_FOUND", "nothing"),
    ("a merge of a segment that is not there", ["merge", "{path}", "theirs", "--only", "6f1b3f39-0000-4000-8000-000000000000"], "INVALID_ARGUMENT", "6f1b3f39"),
    ("an operator that is not served", ["probe", "{path}", "theirs", "contains", "1"], "INVALID_ARGUMENT", "BTREE"),
    ("a sample of nothing", ["audit", "{path}", "theirs", "--sample", "0"], "INVALID_ARGUMENT", "sample"),
]  # fmt: skip


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed") / "t.lance"
    rng = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(300 * 8, dtype=np.float32)), 8)
    columns = {
        "id": pa.array(range(300), pa.int64()), "b": pa.array([True, False] * 150), "vec": vectors,
        "l": pa.array([[1]] * 300, pa.list_(pa.int64())), "s": pa.array([{"x": 1}] * 300), "t": pa.array(["a b"] * 300),
    }  # fmt: skip
    lance.write_dataset(pa.table(columns), str(path))
    dataset = lance.dataset(str(path))
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2, name="vector")
    dataset.create_scalar_index("id", "BTREE", name="theirs")
    return path


@pytest.mark.parametrize("what,words,code,named", REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals(what, words, code, named, mixed):
    before, version = files(mixed), lance.dataset(str(mixed)).version
    with pytest.raises(command.Failed) as failed:
        command.run(*[word.format(path=mixed) for word in words])
    assert failed.value.code == code, f"{what}: {failed.value}"
    assert named in failed.value.message, failed.value.message
    assert failed.value.changed in ("nothing", None), failed.value.changed
    assert files(mixed) == before and lance.dataset(str(mixed)).version == version
