"""Servers that misbehave: the documented fallback where there is one, a typed error that says what to do where there is none."""

import shutil
import socket
import threading
import time

import lance
import numpy as np
import pytest

import columns
import command
import oracle
import tables
from bad_server import BadServer
from test_tables import refuses

WORKS = [
    {},
    {"ranges": False},  # small objects are sliced
    {"status_200": True},
    {"etag": 'W/"{size:x}"'},
    {"etag": None},
    {"content_range": False},
    {"content_length": False},
    {"delay": 0.15},
    {"fail": {r"GET .*manifest": [500]}},
    {"fail": {r"PROPFIND": [503]}},
    {"fail": {r"GET .*data/": [500, 502]}},
    # Its folder is named by a uuid of its own: what is not there when it is read back may be sent again.
    {"fail": {r"PUT .*_indices": [500]}},
    {"fail": {r"GET .*": [429]}},
]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return tables.make(tmp_path_factory.mktemp("good") / "t.lance", "int64", "BTREE", 3)


@pytest.fixture
def table(good, tmp_path):
    shutil.copytree(good, tmp_path / "t.lance")
    return tmp_path / "t.lance"


def label(behaviour):
    return ",".join(f"{k}={v}" for k, v in behaviour.items()) or "a good one"


@pytest.mark.parametrize("behaviour", WORKS, ids=label)
def test_it_still_works(table, behaviour):
    expected = lance.dataset(str(table)).version
    with BadServer(table.parent, **behaviour) as server:
        assert command.run("show", f"{server.url}/t.lance")["version"] == expected
        report = command.run("refresh", f"{server.url}/t.lance", tables.INDEX, "--num-segments", 2)
        assert not any(statuses for statuses in behaviour.get("fail", {}).values()), "the scripted failure was never met"
    assert report["established"] == [2, 3, 4]
    oracle.healthy(table)
    oracle.fully_covered(table, tables.INDEX)
    oracle.agree(table, tables.INDEX, columns.filters(oracle.values(table), np.random.default_rng(1)))


REFUSED = [
    ("STORE_DENIED", {"always": {r".": 403}}),
    ("STORE_DENIED", {"always": {r".": 401}}),
    ("STORE_DENIED", {"always": {r"GET .*manifest": 403}}),
    ("STORE_UNREACHABLE", {"always": {r"GET .*manifest": 500}}),
    ("STORE_UNREACHABLE", {"always": {r".": 503}}),
    ("TABLE_NOT_FOUND", {"always": {r".": 404}}),
    (("CORRUPT_FILE", "STORE_ENCODING"), {"encode": True, "encode_marked": False}),
    (("STORE_UNREACHABLE", "CORRUPT_FILE"), {"cut": {r"manifest$": 20}}),
    (("CORRUPT_FILE", "STORE_RANGES"), {"always": {r"GET .*manifest": 416}}),
    (("TABLE_NOT_FOUND", "STORE_UNREACHABLE", "CORRUPT_FILE"), {"everything": b"<!doctype html><title>An app</title>"}),
    (("CORRUPT_FILE", "TABLE_NOT_FOUND"), {"always": {r"GET .*manifest": 404}}),
    (("CORRUPT_FILE", "MEMORY_LIMIT"), {"sizes": {r"manifest$": 1 << 50}}),
    ("CORRUPT_FILE", {"sizes": {r"manifest$": 10}}),
]


@pytest.mark.parametrize("code,behaviour", REFUSED, ids=lambda v: v if isinstance(v, str) else label(v) if isinstance(v, dict) else "/".join(v))
def test_show_is_refused(table, code, behaviour):
    with BadServer(table.parent, **behaviour) as server:
        failed = refuses(code, "show", f"{server.url}/t.lance", timeout=60)
        assert len(server.log) < 60, "it asked again and again"
    assert len(failed.message) > 20


BUILD_REFUSED = [
    ("STORE_DENIED", {"always": {r"GET .*data/": 403}}),
    ("STORE_UNREACHABLE", {"always": {r"GET .*data/": 500}}),
    (("CORRUPT_FILE",), {"always": {r"GET .*data/": 404}}),
    (("CORRUPT_FILE", "STORE_RANGES"), {"always": {r"GET .*data/": 416}}),
    (("STORE_RANGES", "CORRUPT_FILE"), {"wrong_range": True}),
    (("STORE_UNREACHABLE", "CORRUPT_FILE"), {"cut": {r"/data/": 11}}),
    (("STORE_DENIED", "STORE_UNSAFE"), {"always": {r"PUT ": 403}}),
    (("STORE_DENIED", "STORE_UNSAFE", "STORE_UNREACHABLE"), {"always": {r"PUT ": 405}}),
    ("STORE_FULL", {"always": {r"PUT .*_indices": 507}}),
    # Whole objects are decoded by fetch itself; a slice of an encoded stream cannot be.
    ("STORE_ENCODING", {"encode": True}),
    ("STORE_UNREACHABLE", {"always": {r"PUT .*_indices": 500}}),
]


@pytest.mark.parametrize("code,behaviour", BUILD_REFUSED, ids=lambda v: v if isinstance(v, str) else label(v) if isinstance(v, dict) else "/".join(v))
def test_refresh_is_refused(table, code, behaviour):
    version = lance.dataset(str(table)).version
    with BadServer(table.parent, **behaviour) as server:
        refuses(code, "refresh", f"{server.url}/t.lance", tables.INDEX, timeout=90)
    assert lance.dataset(str(table)).version == version, "nothing may be committed"
    oracle.healthy(table)


def test_ranges_of_a_large_object(tmp_path):
    """Without ranges a large object would have to be fetched whole for every page: refused by name."""
    import pyarrow as pa

    path = tmp_path / "t.lance"
    chance = np.random.default_rng(5)
    lance.write_dataset(pa.table({"id": range(4), "v": [1, 2, 3, 4], "fill": ["a", "b", "c", "d"]}), str(path))
    lance.dataset(str(path)).create_scalar_index("v", "BTREE", name=tables.INDEX)
    rows = 1_200_000
    big = pa.table({"id": pa.array(range(4, rows + 4)), "v": pa.array(chance.integers(0, 2**62, rows)), "fill": pa.array([bytes(b).hex() for b in chance.integers(0, 256, (rows, 24), dtype=np.uint8)])})
    lance.write_dataset(big, str(path), mode="append")
    with BadServer(tmp_path, ranges=False) as server:
        refuses("STORE_RANGES", "refresh", f"{server.url}/t.lance", tables.INDEX)


def test_nobody_listens():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    refuses("STORE_UNREACHABLE", "show", f"http://127.0.0.1:{port}/t.lance", timeout=60)


def test_no_listing(table):
    """Without a listing the version hint leads to the latest; without that, the error says what to give instead."""
    version = lance.dataset(str(table)).version
    with BadServer(table.parent, listing=False) as server:
        assert command.run("show", f"{server.url}/t.lance")["version"] == version
        for hint in (table / "_versions").glob("*hint*"):
            hint.unlink()
        with pytest.raises(command.Failed) as failed:
            command.run("show", f"{server.url}/t.lance")
        assert failed.value.code in ("TABLE_NOT_FOUND", "STORE_UNREACHABLE", "VERSION_NOT_FOUND", "STORE_DENIED"), str(failed.value)
        assert "version" in failed.value.message.lower() or "list" in failed.value.message.lower()
        assert command.run("show", f"{server.url}/t.lance", "--at", version)["version"] == version


def test_a_commit_reply_is_lost(table):
    """The manifest lands, the reply is a 500: the outcome is found out by reading, never by repeating the PUT blindly."""
    version = lance.dataset(str(table)).version
    lost = []

    def before(method, path):
        if method == "PUT" and "_versions" in path and not lost:
            lost.append(path)

    class Loses(BadServer):
        def send(self, request, status, body, headers=None, file=None):
            if request.command == "PUT" and "_versions" in request.path and status == 201:
                status = 500
            super().send(request, status, body, headers, file)

    with Loses(table.parent, before=before) as server:
        report = command.run("refresh", f"{server.url}/t.lance", tables.INDEX)
        assert server.count(r"PUT .*_versions") == 1
    assert lost and report["version"] == version + 1 and report["established"] == [2, 3, 4]
    assert lance.dataset(str(table)).version == version + 1
    oracle.fully_covered(table, tables.INDEX)


def test_a_commit_that_fails_and_cannot_be_found_out(table):
    """After the manifest PUT nothing can be read any more: outcome unknown, exit 3, nothing deleted."""

    class Vanishes(BadServer):
        gone = False

        def answer(self, request):
            if self.gone:
                request.rfile.read(int(request.headers.get("Content-Length") or 0))
                return self.send(request, 500, b"")
            if request.command == "PUT" and "_versions" in request.path:
                self.gone = True
                request.rfile.read(int(request.headers.get("Content-Length") or 0))
                return self.send(request, 500, b"")
            return super().answer(request)

    with Vanishes(table.parent) as server:
        with pytest.raises(command.Failed) as failed:
            command.run("refresh", f"{server.url}/t.lance", tables.INDEX, timeout=180)
        assert failed.value.code == "COMMIT_UNKNOWN" and failed.value.changed == "unknown" and failed.value.status == 3
        assert server.count(r"DELETE (?!.*_whetstone_check-)") == 0
    oracle.healthy(table)


def test_conditions_are_ignored(table):
    """A store that overwrites on If-None-Match cannot be committed to safely; at the least a loser must not claim success.

    Finding such stores out by a racing check belongs to a later issue; here the commit is verified by reading back what the version holds.
    """

    class Ignores(BadServer):
        def put(self, request, file, body):
            if "_versions" in str(file):
                # Another writer wins between our PUT and our look at what is there.
                file.write_bytes(stolen)
                return self.send(request, 201, b"")
            return super().put(request, file, body)

    other = table.parent / "other.lance"
    shutil.copytree(table, other)
    tables.write(other, "int64", [9], np.random.default_rng(1), 90_000)
    import manifest_bytes

    stolen = manifest_bytes.latest(other).read_bytes()
    data = {p.name for p in (other / "data").iterdir()} - {p.name for p in (table / "data").iterdir()}
    for name in data:
        shutil.copyfile(other / "data" / name, table / "data" / name)
    for name in (other / "_transactions").iterdir():
        if not (table / "_transactions" / name.name).exists():
            shutil.copyfile(name, table / "_transactions" / name.name)
    with Ignores(table.parent) as server:
        try:
            report = command.run("refresh", f"{server.url}/t.lance", tables.INDEX, timeout=180)
        except command.Failed as failed:
            assert failed.code in ("COMMIT_CONFLICT", "COMMIT_UNKNOWN", "STORE_UNSAFE"), str(failed)
        else:
            raise AssertionError(f"claimed success although another commit is there: {report}")


def test_the_table_is_replaced_between_listing_and_reading(table, tmp_path):
    """What is shown is one table or the other or a typed error, never a mixture."""
    other = tmp_path / "other.lance"
    tables.make(other, "int64", "BTREE", 2)
    versions = {lance.dataset(str(p)).version: len(oracle.live(p)) for p in (table, other)}
    state = {"listed": False}

    def before(method, path):
        if method == "GET" and "manifest" in path and state["listed"]:
            shutil.rmtree(table)
            shutil.copytree(other, table)
            state["listed"] = False
        if method == "PROPFIND":
            state["listed"] = True

    with BadServer(table.parent, before=before) as server:
        try:
            show = command.run("show", f"{server.url}/t.lance")
        except command.Failed as failed:
            assert failed.code in ("CORRUPT_FILE", "TABLE_NOT_FOUND", "VERSION_NOT_FOUND", "STALE_PLAN"), str(failed)
        else:
            assert versions[show["version"]] == show["fragments"]["count"]


def test_the_table_is_deleted_while_building(table):
    deleted = threading.Event()

    def before(method, path):
        if method == "GET" and "/data/" in path and not deleted.is_set():
            deleted.set()
            shutil.rmtree(table)

    with BadServer(table.parent, before=before) as server:
        refuses(("CORRUPT_FILE", "TABLE_NOT_FOUND"), "refresh", f"{server.url}/t.lance", tables.INDEX)
    assert deleted.is_set()
    assert not list(table.rglob("*.manifest")), "a commit brought a deleted table back"


def test_a_server_that_never_answers(table):
    """Silence ends in a typed error, not in a command that hangs for ever."""
    start = time.monotonic()
    with BadServer(table.parent, delay=600) as server:
        failed = refuses(("TIMEOUT", "STORE_UNREACHABLE"), "show", f"{server.url}/t.lance", timeout=240)
    assert "no answer to PROPFIND /t.lance/_versions for 3" in failed.text, "whoever waits hears why"
    assert time.monotonic() - start < 240
