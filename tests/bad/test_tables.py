"""Broken tables: each gets its typed error, names the object, and nothing is written."""

import json
import pathlib
import random
import struct

import lance
import numpy as np
import pytest

import command
import manifest_bytes
import oracle
import tables


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return tables.make(tmp_path_factory.mktemp("good") / "t.lance", "int64", "BTREE", 3)


@pytest.fixture
def served(good, webdav):
    """A fresh copy behind the server: (target, folder)."""
    target = webdav.put(good)
    return target, pathlib.Path(webdav.local(target))


def refuses(code, *arguments, names=None, **options):
    """The command fails with the code (one or one of several), names the object, and says that nothing was committed."""
    with pytest.raises(command.Failed) as failed:
        command.run(*arguments, **options)
    codes = {code} if isinstance(code, str) else set(code)
    assert failed.value.code in codes, str(failed.value)
    assert failed.value.changed in ("nothing", "staged"), failed.value.text
    assert failed.value.status == 1
    if names:
        assert names in failed.value.message, failed.value.message
    return failed.value


def files(folder):
    return {str(p.relative_to(folder)): p.stat().st_size for p in pathlib.Path(folder).rglob("*") if p.is_file()}


def test_not_a_table(webdav, tmp_path):
    (webdav.folder / "plain").mkdir(exist_ok=True)
    (webdav.folder / "plain" / "notes.txt").write_text("not a table")
    for name in ("plain", "nothing-here"):
        refuses("TABLE_NOT_FOUND", "show", f"{webdav.url}/tables/{name}")
    refuses("TABLE_NOT_FOUND", "show", tmp_path / "no-such-folder")
    refuses("TABLE_NOT_FOUND", "show", tmp_path)


def test_no_manifest_left(served):
    target, folder = served
    for manifest in (folder / "_versions").glob("*.manifest"):
        manifest.unlink()
    refuses("TABLE_NOT_FOUND", "show", target)


@pytest.mark.parametrize("options", [("--at", "99"), ("--tag", "nope"), ("--branch", "nope")])
def test_no_such_version(served, options):
    refuses("VERSION_NOT_FOUND", "show", served[0], *options)


def test_no_such_index(served):
    for action in ("plan", "refresh"):
        refuses("INDEX_NOT_FOUND", action, served[0], "nope_idx")


@pytest.mark.parametrize("arguments", [("--num-segments", "0"), ("--num-segments", "-1"), ("--num-segments", "many"), ("--at", "0x1"), ("--bogus",)])
def test_arguments_that_mean_nothing(served, arguments):
    with pytest.raises((command.Failed, AssertionError)) as failed:
        command.run("plan", served[0], tables.INDEX, *arguments)
    if isinstance(failed.value, command.Failed):
        assert failed.value.status == 2 and failed.value.code == "INVALID_ARGUMENT"
    else:
        assert "exit 2" in str(failed.value)


@pytest.mark.parametrize("left", [0, 1, 3, 15, 16, 40, -1, -4, -16, -60])
def test_truncated_manifest(served, left):
    target, folder = served
    manifest = manifest_bytes.latest(folder)
    data = manifest.read_bytes()
    manifest.write_bytes(data[:left])
    refuses("CORRUPT_FILE", "show", target, names=manifest.name)
    refuses("CORRUPT_FILE", "refresh", target, tables.INDEX, names=manifest.name)


def test_magic_and_positions(served):
    target, folder = served
    manifest = manifest_bytes.latest(folder)
    data = bytearray(manifest.read_bytes())
    for at in range(len(data) - 16, len(data) - 8):  # the position of the manifest message
        broken = bytearray(data)
        broken[at] ^= 0x41
        manifest.write_bytes(broken)
        refuses("CORRUPT_FILE", "show", target, names=manifest.name)
    for at in range(len(data) - 4, len(data)):
        broken = bytearray(data)
        broken[at] ^= 0x20
        manifest.write_bytes(broken)
        refuses("CORRUPT_FILE", "show", target, names=manifest.name)


def test_flipped_bits(served):
    """A flipped bit may be invisible (a text, a time) but never crashes, hangs, or ends in an error that is not about the data."""
    target, folder = served
    manifest = manifest_bytes.latest(folder)
    data = manifest.read_bytes()
    chance = random.Random(7)
    for at in sorted(chance.sample(range(len(data)), 24)):
        broken = bytearray(data)
        broken[at] ^= 1 << chance.randrange(8)
        manifest.write_bytes(broken)
        try:
            command.run("show", target)
        except command.Failed as failed:
            assert failed.code in ("CORRUPT_FILE", "UNSUPPORTED_FEATURE", "NUMBER_TOO_LARGE", "UNSUPPORTED_METHOD", "UNSUPPORTED_TYPE"), f"byte {at}: {failed}"
    manifest.write_bytes(data)
    command.run("show", target)


def test_version_inside_differs_from_the_name(served):
    target, folder = served
    manifest = manifest_bytes.latest(folder)
    manifest_bytes.set_varint(manifest, manifest_bytes.VERSION, 4711)
    refuses("CORRUPT_FILE", "show", target, names=manifest.name)


def test_version_past_2_53(served):
    """Versions are numbers in JSON: one that would be rounded is refused, never shown as its neighbour."""
    url, folder = served
    manifest = manifest_bytes.latest(folder)
    version = (1 << 53) + 1
    manifest_bytes.set_varint(manifest, manifest_bytes.VERSION, version)
    manifest.rename(manifest.with_name(f"{(1 << 64) - 1 - version:020d}.manifest"))
    refuses("NUMBER_TOO_LARGE", "show", url)


def test_oversized_lengths(served):
    """Lengths that promise more than there is are refused before anything is allocated for them."""
    target, folder = served
    manifest = manifest_bytes.latest(folder)
    front, found = manifest_bytes.split(manifest)
    message = manifest_bytes.encode(found)
    for claimed in (len(message) + 1, 0x7FFF_FFFF, 0xFFFF_FFFF):
        manifest.write_bytes(front + struct.pack("<I", claimed) + message + struct.pack("<QHH", len(front), 0, 2) + b"LANC")
        refuses("CORRUPT_FILE", "show", target, names=manifest.name)
    huge = manifest_bytes.encode(found) + manifest_bytes.varint(2 << 3 | 2) + manifest_bytes.varint(1 << 40)
    manifest.write_bytes(front + struct.pack("<I", len(huge)) + huge + struct.pack("<QHH", len(front), 0, 2) + b"LANC")
    refuses("CORRUPT_FILE", "show", target, names=manifest.name)


@pytest.mark.parametrize("position", [1, 1 << 20, (1 << 64) - 1])
def test_index_section_elsewhere(served, position):
    target, folder = served
    manifest = manifest_bytes.latest(folder)
    manifest_bytes.set_varint(manifest, manifest_bytes.INDEX_SECTION, position)
    refuses(("CORRUPT_FILE", "NUMBER_TOO_LARGE"), "show", target, names=manifest.name)


def test_index_section_missing(served):
    """Without the field the table simply has no index; nothing may bring the old one back."""
    target, folder = served
    manifest_bytes.set_varint(manifest_bytes.latest(folder), manifest_bytes.INDEX_SECTION, None)
    assert command.run("show", target)["indices"] == []
    refuses("INDEX_NOT_FOUND", "refresh", target, tables.INDEX)


def test_index_without_a_bitmap(fixtures, webdav):
    target = webdav.put(fixtures / "tables" / "missing_bitmap.lance")
    show = command.run("show", target)["indices"][0]
    assert show["coverage_known"] is False and show["covered_live_fragments"] == []
    assert [s["fragment_ids"] for s in show["segments"]] == [None]
    plan = command.run("plan", target, "k_idx")
    assert [f for run in plan["runs"] for f in run["fragments"]] == plan["sets"]["live"]
    assert plan["warnings"], "a plan that covers more than was asked has to say so"


@pytest.mark.parametrize("bit", [6, 9, 12, 13, 16, 20, 40])
def test_unknown_reader_flag(served, bit):
    target, folder = served
    manifest = manifest_bytes.latest(folder)
    for field in (manifest_bytes.READER_FLAGS, manifest_bytes.WRITER_FLAGS):
        manifest_bytes.set_varint(manifest, field, manifest_bytes.get_varint(manifest, field) | 1 << bit)
    before = files(folder)
    for action in (("show",), ("plan", tables.INDEX), ("refresh", tables.INDEX)):
        refuses("UNSUPPORTED_FEATURE", action[0], target, *action[1:])
    assert files(folder) == before


@pytest.mark.parametrize("bit", [17, 20, 40])
def test_unknown_writer_flag(served, bit):
    """Reading goes on; writing is refused, naming the flag."""
    target, folder = served
    manifest = manifest_bytes.latest(folder)
    manifest_bytes.set_varint(manifest, manifest_bytes.WRITER_FLAGS, manifest_bytes.get_varint(manifest, manifest_bytes.WRITER_FLAGS) | 1 << bit)
    before = files(folder)
    assert command.run("show", target)["version"]
    refuses("UNSUPPORTED_FEATURE", "refresh", target, tables.INDEX)
    assert files(folder) == before, "a refused refresh must not leave files"


def data_file(folder, fragment):
    return pathlib.Path(folder) / "data" / lance.dataset(str(folder)).get_fragment(fragment).data_files()[0].path


def test_data_file_with_something_after_its_end(served):
    """The recorded size rules: what lies beyond it is never looked at."""
    target, folder = served
    file = data_file(folder, 3)
    file.write_bytes(file.read_bytes() + bytes(9))
    assert command.run("refresh", target, tables.INDEX)["established"] == [2, 3, 4]


@pytest.mark.parametrize("harm", ["gone", "empty", "shorter", "zeroed", "swapped"])
def test_data_file(served, harm):
    target, folder = served
    version = lance.dataset(str(folder)).version
    file, other = data_file(folder, 3), data_file(folder, 4)
    data = file.read_bytes()
    if harm == "gone":
        file.unlink()
    elif harm == "swapped":
        file.write_bytes(other.read_bytes())
    else:
        file.write_bytes({"empty": b"", "shorter": data[:-7], "zeroed": bytes(len(data))}[harm])
    failed = refuses("CORRUPT_FILE", "refresh", target, tables.INDEX, names=file.name)
    assert failed.changed in ("nothing", "staged")
    assert lance.dataset(str(folder)).version == version
    assert command.run("show", target)["version"] == version


def test_deletion_file_is_gone(served):
    target, folder = served
    with_deletions = next(f for f in command.run("fragments", target)["fragments"] if f["id"] >= 2 and f["deletion_file"])
    file = folder / with_deletions["deletion_file"]
    file.unlink()
    refuses("CORRUPT_FILE", "refresh", target, tables.INDEX, names=file.name)


def test_deletion_file_is_broken(served):
    target, folder = served
    with_deletions = next(f for f in command.run("fragments", target)["fragments"] if f["id"] >= 2 and f["deletion_file"])
    file = folder / with_deletions["deletion_file"]
    data = file.read_bytes()
    for broken in (b"", data[: len(data) // 2], bytes(len(data))):
        file.write_bytes(broken)
        refuses("CORRUPT_FILE", "refresh", target, tables.INDEX, names=file.name)


def test_index_files_are_gone(served):
    """A refresh must not depend on files it need not read; when it reads them it says which one is missing."""
    target, folder = served
    for file in (folder / "_indices").rglob("*.lance"):
        file.unlink()
    try:
        report = command.run("refresh", target, tables.INDEX)
        assert report["established"] == [2, 3, 4]
    except command.Failed as failed:
        assert failed.code == "CORRUPT_FILE" and "_indices" in failed.message


def test_overwritten_between_plan_and_commit(served, tmp_path):
    target, folder = served
    plan = command.run("plan", target, tables.INDEX)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    import pyarrow as pa

    lance.write_dataset(pa.table({"id": [1, 2], "v": [3, 4]}), str(folder), mode="overwrite")
    refuses(("INDEX_DROPPED", "STALE_PLAN"), "refresh", target, tables.INDEX, "--plan", tmp_path / "plan.json")
    assert lance.dataset(str(folder)).describe_indices() == []


def test_deleted_and_made_again_between_plan_and_commit(served, tmp_path, webdav):
    """Another table under the same address, same names, same versions: nothing of the old plan may be committed to it."""
    import shutil

    target, folder = served
    plan = command.run("plan", target, tables.INDEX)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    shutil.rmtree(folder)
    tables.write(folder, "int64", [30, 30, 30, 30, 30], np.random.default_rng(77))
    lance.dataset(str(folder)).create_scalar_index("v", "BTREE", name=tables.INDEX, train=False)
    version = lance.dataset(str(folder)).version
    refuses(("INDEX_CHANGED", "STALE_PLAN", "CORRUPT_FILE", "VERSION_NOT_FOUND"), "refresh", target, tables.INDEX, "--plan", tmp_path / "plan.json")
    assert lance.dataset(str(folder)).version == version
    assert oracle.coverage(folder, tables.INDEX) == [[]]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"kind":"refresh"}', '{"format":99,"kind":"refresh"}', "not json"])
def test_plans_that_are_none(served, tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(command.Failed) as failed:
        command.run("refresh", served[0], tables.INDEX, "--plan", tmp_path / "plan.json")
    assert failed.value.code in ("INVALID_ARGUMENT", "STALE_PLAN"), str(failed.value)
