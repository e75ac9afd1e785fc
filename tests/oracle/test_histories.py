"""Reuse histories maintained by the command over `serve`: every fixture table is pruned, trimmed and collected, and afterwards Lance
reads it as before, and its own maintenance finds nothing left to do.
"""

import datetime
import os
import random

import lance
import pytest

import command
import fixture_tables
import histories
import oracle

# Its files are below the absolute path of its source.
ELSEWHERE = {"shallow_clone"}
# Among them everything a trim may do, be refused, or leave.
ALWAYS = ["partially_drained", "record_odd_encoding", "fully_drained", "unknown_record", "orphan_row_maps", "tag_pins_row_map"]
SAMPLE = 4


def chosen():
    names = [name for name in fixture_tables.names(tagged=True) if name not in ELSEWHERE | {"shallow_clone_source"}]
    if os.environ.get("WHETSTONE_FULL") == "1":
        return names
    others = sorted(set(names) - set(ALWAYS))
    return ALWAYS + random.Random(int(os.environ.get("WHETSTONE_SEED", "4"))).sample(others, SAMPLE)


@pytest.mark.parametrize("name", chosen())
def test_maintained_as_by_lance(name, fixtures, webdav):
    expected = fixture_tables.expected(fixtures, name, tagged=True)
    target = webdav.put(fixtures / "tagged" / f"{name}.lance")
    path = webdav.local(target)
    # The large table was not maintained by Lance for the recording: its one record is needed.
    recorded = expected.get("maintenance") or {}
    trim = recorded.get("trim", {"outcome": {"ok": True, "version_after": expected["state"]["version"]}})
    state = trim.get("after", {}).get("state", expected["state"])
    uses_index = [q.get("uses_index") for q in expected["queries"]]
    if not trim["outcome"]["ok"]:
        return refused(target, path, expected, uses_index)
    before = histories.records(histories.content(path, histories.manifests(path)[expected["state"]["version"]]))

    pruned = command.run("prune", target)
    gone = {s["uuid"] for s in expected["state"]["segments"]} - {s["uuid"] for s in state["segments"]}
    assert {s["uuid"] for s in pruned["segments_removed"]} == {u for u in gone if is_user(expected, u)}
    report = command.run("trim", target)
    assert report["version"] == trim["outcome"]["version_after"] == lance.dataset(path).version
    check_read(path, expected, state, uses_index)

    # What stays is byte for byte what it was, whoever reads it.
    after = histories.records(histories.content(path, histories.manifests(path)[report["version"]]))
    assert [r.hex() for r in after if len(r) <= 1024] == [
        r["raw_hex"] for r in (state["history"] or {"records": []})["records"] if "raw_hex" in r
    ]
    assert all(record in before for record in after) and len(after) == (report["records_after"] or 0)

    # Nothing is left to do, for us …
    assert command.run("trim", target)["transactions"] == []
    assert lance.dataset(path).version == report["version"]
    # … nor, where it had nothing to do before, for Lance.
    optimized = recorded.get("optimize", {"outcome": {"ok": False}})["outcome"]
    if optimized["ok"] and optimized["version_after"] == optimized["version_before"]:
        lance.dataset(path).optimize.optimize_indices()
        assert lance.dataset(path).version == report["version"]
    collect(name, target, path, expected, recorded)
    histories.answers_as_recorded(path, expected["queries"], expected["key_column"], uses_index)


def is_user(expected, uuid):
    return next(s["name"] for s in expected["state"]["segments"] if s["uuid"] == uuid) != histories.ENTRY


def check_read(path, expected, state, uses_index):
    oracle.healthy(path)
    histories.answers_as_recorded(path, expected["queries"], expected["key_column"], uses_index)
    listed = {}
    for segment in state["segments"]:
        if segment["name"] != histories.ENTRY and segment["derived"]["listed"]:
            listed.setdefault(segment["name"], []).append(segment["derived"]["coverage"])
    assert histories.coverage(path) == {name: sorted(covers) for name, covers in listed.items()}


def collect(name, target, path, expected, recorded):
    """Old versions expire but for what tags and branches hold; then maps that nobody names are removed, and Lance finds no other."""
    version = lance.dataset(path).version
    kept = {v for v in recorded.get("gc_old_files", {"after": {"versions": []}})["after"]["versions"]} | {version}
    kept -= {expected["state"]["version"]} - {version}
    histories.age(path, 30)
    plan = command.run("gc", target)
    there = histories.maps(path)
    assert {m["map_id"] for m in plan["row_maps"]} == there, "looking removes nothing"
    # As long as every version is there, whatever one of them names stays.
    if recorded:
        assert {m["map_id"] for m in plan["row_maps"] if m["state"] != "aged"} == set(
            recorded["gc_old_files_all_versions_kept"]["after"]["fri_dirs"]
        ) or plan["disabled"]
    for other, manifest in histories.manifests(path).items():
        if other not in kept:
            manifest.unlink()
    report = command.run("gc", target, "--remove")
    assert report["disabled"] is None and histories.maps(path) == there & histories.maps_named(path)
    assert set(report["removed"]) == there - histories.maps(path)
    left = histories.maps(path)
    if name == "branch_pins_row_map":
        return  # the branch names an absolute path that is not here, where Lance would look
    lance.dataset(path).cleanup_old_versions(older_than=datetime.timedelta(0), error_if_tagged_old_versions=False)
    assert histories.maps(path) == left, "Lance found a row map that was left over"


def refused(target, path, expected, uses_index):
    """A history with something unknown in it: nobody touches it, and Lance goes on answering."""
    histories.age(path, 30)
    before = histories.files(path)
    for job in ("prune", "trim"):
        with pytest.raises(command.Failed) as failed:
            command.run(job, target)
        assert (failed.value.code, failed.value.changed) == ("HISTORY_UNSUPPORTED", "nothing")
    report = command.run("gc", target, "--remove")
    assert report["disabled"] and report["removed"] == []
    assert histories.files(path) == before
    readable = [q for q in expected["queries"] if "error" not in q]
    histories.answers_as_recorded(path, readable, expected["key_column"], [q["uses_index"] for q in readable])
