"""How many requests opening a table takes, counted at the store, not by us alone."""

import json
import shutil
import urllib.parse

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


PLANNED = [
    ("fragments_200", "k_idx"),
    ("fragments_200", "v_idx"),
    ("btree_all_types", "i64_idx"),
    ("bitmap_all_types", "i64_idx"),
    ("zonemap_all_types", "i64_idx"),
    ("bloomfilter_all_types", "str_idx"),
    ("ngram_types", "text_idx"),
    ("label_list_types", "list_i32_idx"),
    ("inverted_types", "text_idx"),
    ("commit_rules_inverted", "t_fts"),
    ("legacy_fri_inverted_ngram", "t_idx"),
    ("legacy_fri_inverted_ngram", "f_idx"),
    ("stable_row_ids", "k_idx"),
    ("stale_pages_pruned", "k_idx"),
    ("stale_pages_pruned", "m_idx"),
    ("stale_pages_pruned", "z_idx"),
]


@pytest.mark.parametrize("name,index", PLANNED)
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
        read = [(key, entry[3].get("Range")) for entry in server.log if (key := entry[1])]
        assert len(read) == len(set(read)), f"the same thing was read twice: {read}"


def kinds(log):
    """What the requests of a log are: listings by folder, objects by folder."""
    found = []
    for method, key, query, _ in log:
        folder = dict(urllib.parse.parse_qsl(query)).get("prefix", "") if not key else key
        found.append((method if key else "LIST", folder.removeprefix("t.lance/").split("/")[0]))
    return found


COMMIT = [("LIST", "_versions"), ("PUT", "_transactions"), ("PUT", "_versions"), ("LIST", "_versions")]


@pytest.fixture
def raced(fixtures, tmp_path):
    """A server with a table, raced before, that may be asked to misbehave."""
    shutil.copytree(fixtures / "tables" / "fragments_200.lance", tmp_path / "t.lance")
    with CloudServer(tmp_path) as server:
        server.env = {**server.environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        command.run("drop-index", "s3://bkt/t.lance", "v_idx", env=server.env)
        assert server.count(r"PUT .*race") == 12 * 20
        server.log.clear()
        yield server


def run_plan(server, tmp_path, *arguments):
    """The requests of a plan's run, its opening left out."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(command.run(*arguments, "--dry-run", env=server.env)))
    server.log.clear()
    report = command.run(*arguments, "--plan", plan, env=server.env)
    return report, kinds(server.log[2:])


def test_a_drop_is_four_requests(raced, tmp_path):
    """The newest version, the transaction, the manifest, and a listing that shows whose it is and that nothing came before it."""
    _, seen = run_plan(raced, tmp_path, "drop-index", "s3://bkt/t.lance", "k_idx")
    assert seen == COMMIT


@pytest.mark.parametrize("runs", [1, 3])
def test_a_refresh_commits_in_four_requests(raced, tmp_path, runs):
    """However many segments it made: their files were looked at when they were written."""
    report, seen = run_plan(raced, tmp_path, "refresh", "s3://bkt/t.lance", "k_idx", "--num-segments", runs)
    assert report["segments_added"] == runs
    last = max(n for n, (_, folder) in enumerate(seen) if folder == "_indices")
    assert seen[last + 1 :] == COMMIT, seen


def test_without_entity_tags_to_compare_the_version_is_read_back(raced, tmp_path):
    """A weak tag proves nothing: the newest version is read again before, ours after."""
    raced.behaviour["tag"] = lambda tag: f"W/{tag}"
    report, seen = run_plan(raced, tmp_path, "drop-index", "s3://bkt/t.lance", "k_idx")
    assert [a["outcome"] for a in report["attempts"]] == ["committed"]
    assert seen == [COMMIT[0], ("GET", "_versions"), *COMMIT[1:3], ("GET", "_versions"), COMMIT[3]]


def test_another_object_under_our_number_is_not_taken_for_ours(raced, tmp_path):
    """The store says that it created our version and lists another object there, of the same size: what can be read decides."""
    raced.behaviour["tag"] = lambda tag: f'"{tag[2:-1]}0"'
    report, seen = run_plan(raced, tmp_path, "drop-index", "s3://bkt/t.lance", "k_idx")
    assert [a["outcome"] for a in report["attempts"]] == ["committed"] and ("GET", "_versions") in seen[3:]
