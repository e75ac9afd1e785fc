"""How many requests opening a table takes, counted at the store, not by us alone."""

import lance
import pytest

import command
import fixture_tables
import hosts


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
