"""How many requests opening a table takes, counted at the store, not by us alone."""

import json
import shutil

import lance
import pytest

import command
import fixture_tables
import hosts
from cloud_server import CloudServer


@pytest.fixture
def logged(tmp_path):
    """An S3 endpoint of its own, so that its log holds only what this test asked for."""
    host = hosts.S3Host(tmp_path)
    yield host
    host.close()


def requests_in(host):
    """(method, path with query) of every request moto logged."""
    import re

    found = []
    for line in list(host.process.text):
        match = re.search(r'"([A-Z]+) (\S+) HTTP/', line)
        if match:
            found.append(match.groups())
    return found


def test_show_of_200_fragments_over_s3(logged, fixtures, capsys):
    target = logged.put(fixtures / "tables" / "fragments_200.lance")
    before = len(requests_in(logged))
    show = command.run("show", target, env=logged.environment)
    seen = requests_in(logged)[before:]
    assert show["fragments"]["count"] == 200
    assert show["rows"] == fixture_tables.expected(fixtures, "fragments_200")["rows"]
    listings = [r for r in seen if "list-type=2" in r[1]]
    reads = [r for r in seen if r not in listings]
    assert len(listings) == 1 and [r[0] for r in reads] == ["GET"], f"asked for {seen}"
    assert show["requests"]["count"] == 2
    manifest = lance.dataset(logged.local(target)).version
    with capsys.disabled():
        print(f"\nshow of 200 fragments over S3 (version {manifest}): {show['requests']['count']} requests, {show['requests']['bytes']} bytes")


def test_show_over_a_folder_server(fixtures, webdav):
    """V2 names sort newest first, but a folder listing comes whole: still one listing and one read."""
    show = command.run("show", webdav.put(fixtures / "tables" / "fragments_200.lance"))
    assert show["requests"]["count"] <= 2


def test_manifests_with_old_names(fixtures, s3):
    """V1 names do not sort by number: the listing decides, and the newest is still read once."""
    show = command.run("show", s3.put(fixtures / "tables" / "v1_manifest_paths.lance"), env=s3.environment)
    assert show["version"] == fixture_tables.expected(fixtures, "v1_manifest_paths")["version"]
    assert show["requests"]["count"] <= 3


@pytest.mark.parametrize("name,index", [("fragments_200", "k_idx"), ("fragments_200", "v_idx"), ("btree_all_types", "i64_idx"), ("stale_pages_pruned", "k_idx"), ("stale_pages_pruned", "m_idx"), ("stale_pages_pruned", "z_idx")])
def test_opening_and_planning_on_a_store_that_lists_in_order(fixtures, tmp_path, name, index):
    """Open: a listing and a read. Plan: at most two more, and for each kept segment an older manifest for the stale rule."""
    shutil.copytree(fixtures / "tables" / f"{name}.lance", tmp_path / "t.lance")
    with CloudServer(tmp_path) as server:
        command.run("show", "s3://bkt/t.lance", env=server.environment)
        assert len(server.log) <= 2, [entry[:3] for entry in server.log]
        server.log.clear()
        plan = command.run("plan", "s3://bkt/t.lance", index, env=server.environment)
        seen = [entry[:3] for entry in server.log]
        assert len(seen) <= 2 + 2 + len(plan["segments"]), seen
        assert sum("/_versions/" in key for _, key, _ in seen) <= 1 + len(plan["segments"]), seen


def test_a_commit_is_five_requests(fixtures, tmp_path):
    """The listing, the transaction, the manifest, a look at whose it is, and one at whether anything came before it; on a store that was raced before."""
    shutil.copytree(fixtures / "tables" / "fragments_200.lance", tmp_path / "t.lance")
    with CloudServer(tmp_path) as server:
        env = {**server.environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        command.run("drop-index", "s3://bkt/t.lance", "v_idx", env=env)
        assert server.count(r"PUT .*race") == 12 * 20
        plan = tmp_path / "drop.json"
        plan.write_text(json.dumps(command.run("drop-index", "s3://bkt/t.lance", "k_idx", "--dry-run", env=env)))
        server.log.clear()
        command.run("drop-index", "s3://bkt/t.lance", "k_idx", "--plan", plan, env=env)
        seen = [entry[:2] for entry in server.log]
        assert [method for method, _ in seen] == ["GET", "GET", "GET", "PUT", "PUT", "GET", "GET"], seen
        assert [key for _, key in seen].count("") == 3, "listings: to open, before the commit, after it"
