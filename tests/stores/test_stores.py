"""The conformance suite against real servers: green where commits are safe, refused with the right sentence where they are not."""

import json
import re
import shutil
import subprocess

import pytest

import command
import hosts
import oracle
import servers
import tables


@pytest.fixture(scope="session")
def installed():
    return servers.home()


@pytest.fixture
def started(installed, tmp_path):
    running = []

    def start(kind):
        folder = tmp_path / "server"
        folder.mkdir()
        running.append(kind(installed, folder))
        return running[-1]

    yield start
    for server in running:
        server.close()


@pytest.fixture
def cache(tmp_path):
    """What the command remembers of stores, for this test alone."""
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def check(server, *options):
    """The report of store-check; its exit status has to agree with it."""
    arguments = ["store-check", server.target, "--json", *options, *(["--store", server.kind] if server.kind else [])]
    process = command.start(*arguments, env=server.environment)
    out, err = process.communicate(timeout=600)
    report = json.loads(out)
    assert "error" not in report, report
    assert process.returncode == (0 if report["readable"] and report["commits"] != "unsafe" else 1), err
    print(f"\n{type(server).__name__}: {report['verdict']} ({report['requests']['count']} requests, {report['ms']} ms)")
    for one in report["checks"]:
        print(f"  {one['status']:8} {one['name']:16} {one['seen']}")
    return report


def conforms(report):
    failed = [c for c in report["checks"] if c["status"] == "failed" or (c["status"] == "skipped" and not c["name"].startswith("cors"))]
    assert failed == [] and report["commits"] == "safe" and report["left"] == []
    assert [c["name"] for c in report["checks"]][:10] == ["write", "names", "ranges", "listing", "many", "read_after_write", "delete", "create", "race", "clock"]


def refreshed(server, table, upload, environment):
    """A refresh on the server lands, and the second one races no more."""
    upload(table)
    arguments = ["refresh", server.target, tables.INDEX, *(["--store", server.kind] if server.kind else [])]
    return command.run(*arguments, env={**server.environment, **environment})


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return tables.make(tmp_path_factory.mktemp("made") / "t.lance", "int64", "BTREE", 3)


def test_moto(s3, table, cache):
    class Moto:
        target, environment, kind = f"s3://{s3.bucket}/checked.lance", s3.environment, None

    conforms(check(Moto))
    target = s3.put(table)
    report = command.run("refresh", target, tables.INDEX, env={**s3.environment, **cache})
    assert report["established"] == [2, 3, 4]
    # What the first run found is remembered: no races any more, and a commit is four requests.
    before = report["requests"]["count"]
    again = command.run("drop-index", target, tables.INDEX, env={**s3.environment, **cache})
    assert again["requests"]["count"] <= 2 + 1 + 4, f"{before} and then {again['requests']}"
    oracle.healthy(s3.local(target))


def test_snailmail_enforces(started):
    conforms(check(started(servers.Snailmail)))


def test_azurite(started, table, cache):
    server = started(servers.Azurite)
    conforms(check(server))
    import urllib.request

    for path in sorted(p for p in table.rglob("*") if p.is_file()):
        url = f"{server.target}/{path.relative_to(table)}?{server.environment['AZURE_STORAGE_SAS_TOKEN']}"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT", data=path.read_bytes(), headers={"x-ms-blob-type": "BlockBlob"}), timeout=30).read()
    report = command.run("refresh", server.target, tables.INDEX, "--store", "azure", env={**server.environment, **cache})
    assert report["established"] == [2, 3, 4]
    # A signature that has run out is said to have; nothing of it is repeated.
    expired = server.sas(start=-7200, expiry=-3600)
    with pytest.raises(command.Failed) as failed:
        command.run("show", server.target, "--store", "azure", env={"AZURE_STORAGE_SAS_TOKEN": expired})
    assert failed.value.code == "STORE_DENIED" and "shared access signature" in failed.value.message
    assert "sig=" not in failed.value.text


def test_r2_binding(installed, fixtures):
    script = command.ROOT / "tests/stores/r2.mjs"
    done = subprocess.run(["node", script, installed, fixtures / "tables/fragments_200.lance"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)
    assert "error" not in answer["check"], answer["check"]
    print(answer["check"]["verdict"], [c["seen"] for c in answer["check"]["checks"]])
    conforms(answer["check"])
    assert answer["refresh"].get("report", {}).get("segments_added") == 2, answer["refresh"]
    assert answer["refresh"]["unindexed"] == [] and answer["refresh"]["left"] == []


REFUSED = [
    (servers.SnailmailIgnore, r"ignores the condition"),
    (servers.SnailmailReject, r"refuses to create an object only if it is absent \(status 501\)"),
    (servers.S3rver, r"ignores the condition"),
    (servers.RcloneS3, r"ignores the condition"),
    (servers.Nginx, r"ignores the condition"),
    (servers.Apache, r"looks right one request at a time, but in \d+ of 20 races of 12 writers"),
]


@pytest.mark.parametrize("kind,sentence", REFUSED, ids=lambda v: v.__name__ if isinstance(v, type) else "")
def test_refused_for_commits(started, table, cache, kind, sentence):
    server = started(kind)
    report = check(server)
    assert report["commits"] == "unsafe"
    assert re.search(sentence, report["verdict"]) or re.search(sentence, str(report["checks"])), report["verdict"]
    assert any(remedy["where"] == "the table's home" for remedy in report["remedies"])


def test_a_refused_store_is_read_only_until_told_otherwise(started, table, cache):
    server = started(servers.Nginx)
    folder = server.folder / "data" / "t.lance"
    shutil.copytree(table, folder)
    before = sorted(str(p) for p in folder.rglob("*") if p.is_file())
    assert command.run("show", server.target)["fragments"]["count"] == 5
    with pytest.raises(command.Failed) as failed:
        command.run("refresh", server.target, tables.INDEX, env=cache)
    assert failed.value.code == "STORE_UNSAFE" and failed.value.changed == "nothing" and failed.value.status == 1
    assert "ignores the condition" in failed.value.message and "store-check" in failed.value.message
    assert sorted(str(p) for p in folder.rglob("*") if p.is_file()) == before
    report = command.run("refresh", server.target, tables.INDEX, "--unsafe-commits", env=cache)
    assert report["established"] == [2, 3, 4]
    oracle.healthy(folder)


def test_serve_and_a_folder_are_known(webdav, table, cache):
    """Neither is raced: what they are is known, or they say so themselves."""
    for target in (webdav.put(table), str(hosts.FolderHost(webdav.folder).put(table))):
        report = command.run("refresh", target, tables.INDEX, env=cache)
        assert report["established"] == [2, 3, 4] and report["requests"]["count"] < 60
