"""Stores that refuse, lie or change on the way: typed errors that name the remedy, and a table that is as it was."""

import json
import os
import re
import shutil
import subprocess

import lance
import pytest

import command
import manifest_bytes
import oracle
import tables
from bad_server import BadServer
from cloud_server import CloudServer
from test_tables import files, refuses

TARGET = "s3://bkt/t.lance"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return tables.make(tmp_path_factory.mktemp("good") / "t.lance", "int64", "BTREE", 3)


@pytest.fixture
def table(good, tmp_path):
    shutil.copytree(good, tmp_path / "bucket" / "t.lance")
    return tmp_path / "bucket" / "t.lance"


@pytest.fixture
def remembers(tmp_path):
    """A memory of stores for this test alone; all its servers are the same place to the command only if their ports are."""
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


SECRETS = ("AKIDTOPSECRET", "verysecretkey", "sessionsecret", "X-Amz-Signature", "Signature=")


def no_secrets(text):
    found = [secret for secret in SECRETS if secret in text]
    assert not found, f"{found} in {text[:500]}"


def test_s3_and_gcs_conform(table, remembers):
    """The scripted services, so that what follows is told apart from a server that is merely wrong."""
    with CloudServer(table.parent) as server:
        for target, env in ((TARGET, server.environment), (f"{server.url}/bkt/t.lance", {"GOOGLE_OAUTH_ACCESS_TOKEN": "tokensecret"})):
            before = files(table)
            options = ["--store", "gcs"] if target != TARGET else []
            report = command.run("store-check", target, *options, env={**env, **remembers})
            assert report["commits"] == "safe" and report["readable"], report
            assert [c for c in report["checks"] if c["status"] != "ok" and not c["name"].startswith("cors")] == []
            assert report["left"] == [] and files(table) == before
        spelled = [headers for method, key, _, headers in server.log if method == "PUT" and "race" in key]
        assert len(spelled) == 2 * 240
        assert sum("x-goog-if-generation-match" in {k.lower() for k in headers} for headers in spelled) == 240
        refused = command.run("refresh", f"{server.url}/bkt/t.lance", tables.INDEX, "--store", "gcs", env={"GOOGLE_OAUTH_ACCESS_TOKEN": "tokensecret", **remembers})
        assert refused["established"] == [2, 3, 4]
    oracle.healthy(table)


REFUSALS = [
    # when, what the service answers, our code, what the sentence has to name
    ("keys expire while building", lambda n, m, k, q: (400, "ExpiredToken") if "/data/" in k else None, "STORE_DENIED", "credentials have expired"),
    ("keys expire while uploading", lambda n, m, k, q: (400, "ExpiredToken") if m == "PUT" and "_indices" in k else None, "STORE_DENIED", "credentials have expired"),
    ("keys expire before the manifest", lambda n, m, k, q: (400, "ExpiredToken") if m == "PUT" and "_versions" in k else None, "STORE_DENIED", "credentials have expired"),
    ("clocks are apart", lambda n, m, k, q: (403, "RequestTimeTooSkewed"), "STORE_DENIED", "clock"),
    ("the bucket goes", lambda n, m, k, q: (404, "NoSuchBucket") if "/data/" in k else None, "TABLE_NOT_FOUND", "no such bucket"),
    ("reading only", lambda n, m, k, q: (403, "AccessDenied") if m == "PUT" else None, "STORE_DENIED", "may read but not write"),
    ("writing only elsewhere", lambda n, m, k, q: (403, "AccessDenied") if m == "PUT" and "_indices" in k else None, "STORE_DENIED", "may read but not write"),
    ("over quota", lambda n, m, k, q: (403, "QuotaExceeded") if m == "PUT" and "_indices" in k else None, "STORE_FULL", "quota"),
    ("full at the manifest", lambda n, m, k, q: (507, "XMinioStorageFull") if m == "PUT" and "_versions" in k else None, "STORE_FULL", "no room"),
]


@pytest.mark.parametrize("fail,code,sentence", [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_refusals_name_their_remedy(table, remembers, fail, code, sentence):
    version, before = lance.dataset(str(table)).version, files(table)
    with CloudServer(table.parent, fail=fail) as server:
        failed = refuses(code, "refresh", TARGET, tables.INDEX, env={**server.environment, **remembers})
        assert len(server.log) < 800
    assert sentence in failed.message, failed.message
    no_secrets(failed.text)
    assert lance.dataset(str(table)).version == version
    left = set(files(table)) - set(before)
    assert not any("check" in name for name in left), left
    # Whatever could not be removed is said.
    assert all(any(part in failed.text for part in (name, name.rsplit("/", 1)[0])) for name in left if "_indices" in name), left
    oracle.healthy(table)


def test_a_listing_that_repeats_names(table, remembers):
    version = lance.dataset(str(table)).version
    with CloudServer(table.parent, listing=lambda page: page + page[:3]) as server:
        env = {**server.environment, **remembers}
        assert command.run("show", TARGET, env=env)["version"] == version
        report = command.run("refresh", TARGET, tables.INDEX, env=env)
        assert report["version"] == version + 1
    oracle.healthy(table)


def test_listings_that_omit_the_newest_for_a_while(table, remembers):
    """The version found is an old one; a commit on it finds the next one taken, overwrites nothing, and lands once the listing is right."""
    newest = manifest_bytes.latest(table)
    content, version = newest.read_bytes(), lance.dataset(str(table)).version
    stale = [3]

    def listing(page):
        if not any(newest.name in row[0] for row in page) or stale[0] == 0:
            return page
        stale[0] -= 1
        return [row for row in page if newest.name not in row[0]]

    with CloudServer(table.parent, listing=listing) as server:
        env = {**server.environment, **remembers}
        assert command.run("show", TARGET, env=env)["version"] == version - 1
        report = command.run("refresh", TARGET, tables.INDEX, env=env, timeout=300)
    assert stale == [0] and report["version"] == version + 1
    assert newest.read_bytes() == content, "a commit overwrote a version that the listing did not name"
    oracle.healthy(table)
    oracle.fully_covered(table, tables.INDEX)


def test_a_listing_that_does_not_end(table, remembers):
    # Old names are in no order that helps: the whole listing is read.
    names = sorted((table / "_versions").glob("*.manifest"))
    for name in names:
        name.rename(name.with_name(f"{(1 << 64) - 1 - int(name.stem)}.manifest"))
    with CloudServer(table.parent, same_token=True, page=2) as server:
        failed = refuses("STORE_UNREACHABLE", "show", TARGET, env={**server.environment, **remembers})
        assert "does not end" in failed.message
        assert len(server.log) < 50


def test_twenty_thousand_versions(table, remembers):
    """One small page and one read, however many there are; listing them all is a page a thousand."""
    versions = table / "_versions"
    newest = manifest_bytes.latest(table)
    manifest_bytes.set_varint(newest, manifest_bytes.VERSION, 20_000)
    top = versions / f"{(1 << 64) - 1 - 20_000:020d}.manifest"
    newest.rename(top)
    for old in versions.glob("*.manifest"):
        if old != top:
            old.unlink()
    for version in range(1, 20_000):
        os.link(top, versions / f"{(1 << 64) - 1 - version:020d}.manifest")
    with CloudServer(table.parent) as server:
        shown = command.run("show", TARGET, env={**server.environment, **remembers})
        assert shown["version"] == 20_000 and shown["requests"]["count"] == 2
    with BadServer(table.parent) as server:
        shown = command.run("show", f"{server.url}/t.lance")
        assert shown["version"] == 20_000 and shown["requests"]["count"] == 2


def test_two_naming_schemes(table, remembers):
    newest = manifest_bytes.latest(table)
    shutil.copyfile(newest, newest.with_name("3.manifest"))
    with CloudServer(table.parent) as server:
        failed = refuses("CORRUPT_FILE", "refresh", TARGET, tables.INDEX, env={**server.environment, **remembers})
        assert "naming schemes" in failed.message and "3.manifest" in failed.message


def test_names_that_need_escaping(good, tmp_path, remembers):
    for name in ("t é+%20 &#'(漢).lance", "100%25 a?b;c=d,e@f$g!~*[x].lance"):
        folder = tmp_path / "bucket" / "a b+c" / name
        shutil.copytree(good, folder)
        import urllib.parse

        with CloudServer(tmp_path / "bucket") as server:
            # In an s3: address a key is percent-encoded, as in any other address.
            target = f"s3://bkt/{urllib.parse.quote('a b+c/' + name)}"
            report = command.run("refresh", target, tables.INDEX, env={**server.environment, **remembers})
            assert report["established"] == [2, 3, 4]
        oracle.healthy(folder)
        oracle.fully_covered(folder, tables.INDEX)
        shutil.rmtree(folder)


def inject(method, key, body):
    """What a portal or a filter does: a script at the end of everything that passes."""
    return body + b"<script>" if method == "GET" else body


def flip(method, key, body):
    """A proxy that turns line ends, in both directions, whatever it is told the bytes are."""
    return body.replace(b"\x0a", b"\x0d")


@pytest.mark.parametrize("rewrite", [inject, flip])
def test_bodies_rewritten_on_the_way(table, remembers, rewrite):
    version = lance.dataset(str(table)).version
    with CloudServer(table.parent, rewrite=rewrite) as server:
        env = {**server.environment, **remembers}
        with pytest.raises(command.Failed) as failed:
            command.run("refresh", TARGET, tables.INDEX, env=env)
        assert failed.value.code in ("CORRUPT_FILE", "UNSUPPORTED_FEATURE", "STORE_RANGES", "NUMBER_TOO_LARGE", "STORE_UNSAFE"), str(failed.value)
        process = command.start("store-check", TARGET, "--json", env=env)
        out, _ = process.communicate(timeout=120)
        report = json.loads(out)
        assert process.returncode == 1 and not report["readable"], report
        assert re.search(r"came back changed|bytes came back instead", str(report["checks"])), report["checks"]
    assert lance.dataset(str(table)).version == version
    oracle.healthy(table)


def test_redirects_get_no_credentials(table, tmp_path, remembers):
    """Neither keys nor what is written goes where a redirect points."""
    (tmp_path / "elsewhere").mkdir()
    with CloudServer(tmp_path / "elsewhere") as other:
        with CloudServer(table.parent, redirect=other.url) as server:
            failed = refuses("STORE_UNREACHABLE", "show", TARGET, env={**server.environment, **remembers})
            assert "redirected" in failed.message
            no_secrets(failed.text)
        assert other.log == [], "the other origin was asked"
    # Also where the address has no keys: a PUT is not sent on.
    with CloudServer(tmp_path / "elsewhere") as other, CloudServer(table.parent, redirect=other.url) as server:
        subprocess.run(["node", str(command.COMMAND), "store-check", f"{server.url}/bkt/t.lance", "--store", "webdav", "--quick", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        assert [entry for entry in other.log if entry[0] != "GET"] == []


def test_secrets_are_in_no_document(table, remembers):
    """Plans, tasks, reports, events and errors hold no key, whatever the command prints."""
    with CloudServer(table.parent) as server:
        env = {**server.environment, **remembers}
        texts = []
        for arguments in (["show"], ["plan"], ["refresh", "--dry-run"], ["refresh"], ["store-check", "--quick"]):
            rest = [tables.INDEX] if arguments[0] in ("plan", "refresh") else []
            process = command.start(arguments[0], TARGET, *rest, *arguments[1:], "--json", env=env)
            texts.append("".join(process.communicate(timeout=120)))
            assert process.returncode == 0, texts[-1]
        no_secrets("".join(texts))
        kept = (table.parent.parent / "cache" / "whetstone" / "stores.json").read_text()
        no_secrets(kept)
        assert "127.0.0.1" in kept
    every = "".join(str(entry) for entry in server.log)
    assert "AKIDTOPSECRET" in every, "the keys were used after all"


def fragment_paths(found, change):
    """Rewrites the path of every data file of a manifest's fields."""
    out = []
    for number, wire, value in found:
        if number == 2:
            files_ = []
            for n, w, v in manifest_bytes.fields(value):
                if n == 2:
                    v = manifest_bytes.encode([(a, b, change(c) if a == 1 else c) for a, b, c in manifest_bytes.fields(v)])
                files_.append((n, w, v))
            value = manifest_bytes.encode(files_)
        out.append((number, wire, value))
    return out


OUTSIDE = [b"../../secret", b"/etc/passwd", b"..", b"a/../../../secret", b"%2e%2e/%2e%2e/secret", b"..%2f..%2fsecret", b"\xff\xfe/../x", b"a\x00b", b"//x", b"\xe2\x80\xae/x"]


@pytest.mark.parametrize("path", OUTSIDE, ids=repr)
def test_data_files_outside_of_the_table(table, tmp_path, webdav, path):
    (tmp_path / "secret").write_bytes(b"not yours")
    (tmp_path / "bucket" / "secret").write_bytes(b"not yours")
    manifest = manifest_bytes.latest(table)
    front, found = manifest_bytes.split(manifest)
    manifest_bytes.join(manifest, front, fragment_paths(found, lambda _: path))
    seen = []
    with BadServer(table.parent, before=lambda method, path: seen.append(path)) as server:
        for target in (f"{server.url}/t.lance", str(table)):
            refuses(("CORRUPT_FILE", "STORE_DENIED", "STORE_UNREACHABLE"), "column", target, "v")
    assert all(name.startswith("/t.lance/") and "/../" not in name for name in seen), seen


BASES = [
    ("file:///etc", "STORE_DENIED"), ("/etc", "STORE_DENIED"), ("/t.lance/../other", "STORE_DENIED"), ("http://127.0.0.1:9/t.lance", "STORE_DENIED"),
    ("{url}/other.lance", "STORE_DENIED"), ("{url}/t.lance/../other.lance", "STORE_DENIED"), ("{url}/t.lance/%2e%2e/other.lance", "STORE_DENIED"),
    ("{url}/t.lance/..%2fother.lance", "INVALID_ARGUMENT"), ("s3://bkt/t.lance", "STORE_DENIED"), ("\u202e", "STORE_DENIED"), ("{folder}/../other", "STORE_DENIED"),
]


@pytest.mark.parametrize("base,code", BASES, ids=lambda v: repr(v))
def test_base_paths_outside_of_the_table(table, base, code):
    """Whoever can write the table must not decide what our credentials read, and where a refresh puts it."""
    seen = []
    with BadServer(table.parent, before=lambda method, path: seen.append(path)) as server:
        path = base.format(url=server.url, folder=table).encode()
        manifest = manifest_bytes.latest(table)
        front, found = manifest_bytes.split(manifest)
        entry = manifest_bytes.encode([(1, 0, 7), (3, 0, 1), (4, 2, path)])

        def with_base(found):
            out = []
            for number, wire, value in found:
                if number == 2:
                    parts = [(n, w, manifest_bytes.encode([*manifest_bytes.fields(v), (7, 0, 7)]) if n == 2 else v) for n, w, v in manifest_bytes.fields(value)]
                    value = manifest_bytes.encode(parts)
                out.append((number, wire, value))
            return sorted([*out, (18, 2, entry)], key=lambda f: f[0])

        manifest_bytes.join(manifest, front, with_base(found))
        for target in (f"{server.url}/t.lance", str(table)):
            failed = refuses((code, "STORE_DENIED", "CORRUPT_FILE", "UNSUPPORTED_FEATURE"), "column", target, "v", "--limit", "3")
            assert "root:" not in failed.text
    assert all(name.startswith("/t.lance/") for name in seen), seen


DENIED = [(403, "AccessDenied"), (401, "Unauthorized"), (405, "MethodNotAllowed")]


@pytest.mark.parametrize("status,word", DENIED, ids=lambda v: str(v))
@pytest.mark.parametrize("job", [("refresh", tables.INDEX), ("create-index", "id_idx", "id", "BTREE"), ("drop-index", tables.INDEX), ("compact",), ("merge", tables.INDEX)], ids=lambda v: v[0])
def test_a_store_that_denies_writing(table, job, status, word):
    """What was refused for certain is not there: nothing was changed, and no file is listed."""
    if job[0] == "merge":
        command.run("refresh", table, tables.INDEX)  # or there is nothing to merge
    before = files(table)
    with CloudServer(table.parent, fail=lambda n, m, k, q: (status, word) if m in ("PUT", "DELETE") else None) as server:
        # Without the race, which would be denied before the job sends anything.
        failed = refuses(("STORE_DENIED", "STORE_UNREACHABLE"), job[0], TARGET, *job[1:], "--unsafe-commits", env=server.environment)
        assert server.count(r"^PUT (?!.*_whetstone_check)") > 0, "nothing was sent"
    assert failed.changed == "nothing" and '"staged"' not in failed.text, failed.text
    assert files(table) == before


@pytest.mark.parametrize("job,named", [(("drop-index", tables.INDEX), "_transactions/"), (("compact",), "data/"), (("refresh", tables.INDEX), "_indices/")], ids=lambda v: v[0])
def test_writes_of_which_nothing_is_known(table, job, named):
    """An answer that tells nothing leaves the object in doubt: it is listed, unless it could be removed."""
    with CloudServer(table.parent, fail=lambda n, m, k, q: (503, "SlowDown") if m == "PUT" else (403, "AccessDenied") if m == "DELETE" else None) as server:
        failed = refuses("STORE_UNREACHABLE", job[0], TARGET, *job[1:], "--unsafe-commits", env=server.environment)
    staged = json.loads(failed.text[: failed.text.rindex("}") + 1])["error"]["detail"]["staged"]
    assert failed.changed == "staged" and staged and all(path.startswith(named) for path in staged), failed.text


def test_a_store_that_keeps_nothing(table, remembers):
    """It answers 201 to every PUT: the race finds out, and says what is wrong with the store, not with an object of ours."""

    class Forgets(BadServer):
        def put(self, request, file, body):
            return self.send(request, 201, b"")

    before = files(table)
    with Forgets(table.parent) as server:
        failed = refuses("STORE_UNSAFE", "refresh", f"{server.url}/t.lance", tables.INDEX, env=remembers)
        assert "is not there when it is read" in failed.message and "_whetstone_check" not in failed.message, failed.message
        process = command.start("store-check", f"{server.url}/t.lance", "--json", env=remembers)
        out, _ = process.communicate(timeout=120)
        report = json.loads(out)
        assert process.returncode == 1 and not report["readable"] and report["commits"] != "safe", report
        write = next(check for check in report["checks"] if check["name"] == "write")
        assert write["status"] == "failed" and "is not there when it is read" in write["seen"], report["checks"]
    assert files(table) == before
