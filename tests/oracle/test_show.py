"""`show`, `fragments` and `segments` of every fixture table, over HTTP, against what Lance says about it.

A table this build must not interpret (a tagged reuse history) has to be refused with its own code, not shown half.
"""

import concurrent.futures
import os

import pytest

import command
import fixture_tables
import hosts


@pytest.fixture(scope="module")
def shown(fixtures):
    """Every document of every table, asked for once; two commands at a time."""
    servers = {False: hosts.ServeHost(fixtures / "tables", writable=False), True: hosts.ServeHost(fixtures / "tagged", writable=False)}

    def ask(job):
        tagged, name, document = job
        try:
            return command.run(document, f"{servers[tagged].url}/tables/{name}.lance")
        except command.Failed as failed:
            return failed

    jobs = [(tagged, name, document) for tagged in servers for name in fixture_tables.names(tagged) for document in ("show", "fragments", "segments")]
    try:
        with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            yield dict(zip(jobs, pool.map(ask, jobs)))
    finally:
        for server in servers.values():
            server.close()


def document(shown, tagged, name, kind):
    answer = shown[(tagged, name, kind)]
    if isinstance(answer, command.Failed):
        raise answer
    return answer


def same(ours, theirs, keys, where):
    for key in keys:
        assert ours[key] == theirs[key], f"{where}: {key}"


def user_indices(expected):
    return {index["name"]: index for index in expected["indices"] if not index["name"].startswith("__lance_")}


@pytest.mark.parametrize("name", fixture_tables.names())
def test_show(name, shown, fixtures):
    expected = fixture_tables.expected(fixtures, name)
    show = document(shown, False, name, "show")
    same(show, expected, ["version", "rows", "data_storage_version", "has_stable_row_ids"], name)
    same(show, expected["manifest"], ["reader_feature_flags", "writer_feature_flags"], name)
    assert show["fragments"]["count"] == len(expected["fragments"])
    assert show["fragments"]["rows"] == expected["rows"]
    assert show["fragments"]["deleted"] == sum(f["num_deletions"] for f in expected["fragments"])
    wanted = user_indices(expected)
    ours = {index["name"]: index for index in show["indices"]}
    assert ours.keys() == wanted.keys()
    for index_name, theirs in wanted.items():
        mine, where = ours[index_name], f"{name} {index_name}"
        same(mine, theirs, [k for k in ("type", "type_url", "fields", "field_names", "covered_live_fragments", "unindexed_fragments") if k in theirs], where)
        assert mine["num_segments"] == len(theirs["segments"])
        assert mine["coverage_known"] == all(s["fragment_ids"] is not None for s in theirs["segments"]), where
        if "num_rows_indexed" in theirs:
            assert mine["num_rows_indexed"] == theirs["num_rows_indexed"], where
            assert mine["num_rows_unindexed"] == expected["rows"] - theirs["num_rows_indexed"], where
            assert mine["size_bytes"] == theirs["total_size_bytes"], where
            covered = theirs["num_rows_indexed"]
            assert mine["indexed_percent"] == (10000 * covered // expected["rows"] / 100 if expected["rows"] else None), where
        same_segments(mine["segments"], theirs["segments"], where)


def same_segments(ours, theirs, where):
    assert [s["uuid"] for s in ours] == [s["uuid"] for s in theirs] or sorted(s["uuid"] for s in ours) == sorted(s["uuid"] for s in theirs), where
    by_uuid = {s["uuid"]: s for s in ours}
    for segment in theirs:
        keys = [k for k in ("fragment_ids", "dataset_version", "index_version", "size_bytes", "base_id") if k in segment]
        same(by_uuid[segment["uuid"]], segment, keys, f"{where} {segment['uuid']}")


@pytest.mark.parametrize("name", fixture_tables.names())
def test_fragments(name, shown, fixtures):
    expected = fixture_tables.expected(fixtures, name)
    ours = document(shown, False, name, "fragments")
    ours = ours["fragments"] if isinstance(ours, dict) else ours
    assert [f["id"] for f in ours] == [f["id"] for f in expected["fragments"]]
    segments = {index["name"]: index["segments"] for index in user_indices(expected).values()}
    for mine, theirs in zip(ours, expected["fragments"]):
        same(mine, theirs, ["physical_rows", "num_deletions", "rows", "deletion_file"], f"{name} fragment {theirs['id']}")
        assert len(mine["data_files"]) == len(theirs["data_files"])
        for file, wanted in zip(mine["data_files"], theirs["data_files"]):
            same(file, wanted, ["path", "fields", "column_indices", "file_version", "size"], f"{name} {wanted['path']}")
        covering = {index: sorted(s["uuid"] for s in found if s["fragment_ids"] is not None and theirs["id"] in s["fragment_ids"]) for index, found in segments.items()}
        assert {k: sorted(v) for k, v in mine["covered_by"].items() if v} == {k: v for k, v in covering.items() if v}, f"{name} fragment {theirs['id']}"


@pytest.mark.parametrize("name", fixture_tables.names())
def test_segments(name, shown, fixtures):
    expected = fixture_tables.expected(fixtures, name)
    ours = document(shown, False, name, "segments")
    stored = {entry["uuid"]: entry for entry in expected["manifest"]["indices"]}
    by_name = {index["name"]: index["segments"] for index in (ours["indices"] if isinstance(ours, dict) else ours)}
    wanted = user_indices(expected)
    assert {k for k, v in by_name.items() if not k.startswith("__lance_")} == set(wanted)
    for index_name, theirs in wanted.items():
        same_segments(by_name[index_name], theirs["segments"], f"{name} {index_name}")
        for segment in by_name[index_name]:
            files = stored[segment["uuid"]].get("files")
            if files:
                assert [(f["path"], f["size"]) for f in segment["files"]] == [(f["path"], f["size_bytes"]) for f in files], f"{name} {segment['uuid']}"


@pytest.mark.parametrize("name", fixture_tables.names(tagged=True))
def test_tagged(name, shown, fixtures):
    if not (fixtures / "tagged" / f"{name}.json").exists():
        assert name == "shallow_clone_source"
        return
    state = fixture_tables.expected(fixtures, name, tagged=True)["state"]
    show = shown[(True, name, "show")]
    if isinstance(show, command.Failed):
        assert show.code in ("HISTORY_UNSUPPORTED", "UNSUPPORTED_FEATURE"), str(show)
        assert state["history"] is not None, f"{name} has no history any more: an ordinary table, yet refused with {show}"
        return
    same(show, state, ["version", "reader_feature_flags", "writer_feature_flags"], name)
    fragments = document(shown, True, name, "fragments")
    fragments = fragments["fragments"] if isinstance(fragments, dict) else fragments
    assert [(f["id"], f["physical_rows"], f["num_deletions"]) for f in fragments] == [(f["id"], f["physical_rows"], f["num_deleted_rows"]) for f in state["fragments"]]
    ours = {s["uuid"]: s for index in show["indices"] for s in index["segments"]}
    stored = {s["uuid"]: s["stored_bitmap"] for s in state["segments"] if not s["name"].startswith("__lance_")}
    assert {uuid: s["fragment_ids"] for uuid, s in ours.items()} == stored
