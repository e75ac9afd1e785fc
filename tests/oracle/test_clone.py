"""A shallow clone of a table with a tagged reuse history: data, segments and row map belong to the table it was cloned from. With leave to
read there everything works that works elsewhere; without it what needs these files is refused by name; and nothing of the other table is
ever changed.
"""

import json
import pathlib
import subprocess

import lance
import pytest

import command
import fixture_tables
import hosts
import histories
import manifest_bytes
import oracle

BASE_PATHS = 18
NAME = "shallow_clone"


class Clone:
    """The clone and its source, copied side by side; the clone told where the source is now."""

    def __init__(self, fixtures, folder):
        self.expected = fixture_tables.expected(fixtures, NAME, tagged=True)
        self.source, self.path = str(folder / f"{NAME}_source.lance"), str(folder / f"{NAME}.lance")
        for path in (self.source, self.path):
            hosts.copy(fixtures / "tagged" / path.rsplit("/", 1)[1], pathlib.Path(path))
        for manifest in histories.manifests(self.path).values():
            front, fields = manifest_bytes.split(manifest)
            manifest_bytes.join(manifest, front, [self.moved(field) for field in fields])
        self.files = histories.files(self.source)
        self.queries = [q for q in self.expected["queries"] if "filter" in q]
        self.key = self.expected["key_column"]

    def moved(self, field):
        number, wire, value = field
        if number != BASE_PATHS:
            return field
        inside = [(n, w, self.source.encode() if w == 2 and v.endswith(b"_source.lance") else v) for n, w, v in manifest_bytes.fields(value)]
        return number, wire, manifest_bytes.encode(inside)

    def agrees(self):
        """Lance reads the clone as it was, by index and by scan, and finds the source as it was."""
        oracle.healthy(self.path)
        dataset = lance.dataset(self.path)
        for query in self.queries:
            assert histories.answer(dataset, query, self.key) == query["ids"], query["filter"]
            assert histories.answer(dataset, query, self.key, use_scalar_index=False) == query["ids"], query["filter"]
        assert histories.files(self.source) == self.files, "files of the source changed"
        oracle.healthy(self.source)


@pytest.fixture
def clone(fixtures, tmp_path):
    made = Clone(fixtures, tmp_path)
    made.agrees()
    return made


def covered(path):
    return {name: {f for s in segments for f in s} for name, segments in histories.coverage(path).items()}


def test_with_leave_everything_is_done(clone):
    path, live = clone.path, set(oracle.live(clone.path))
    leave = "--other-bases"
    for index in ("i_idx", "v_idx"):
        report = command.run("refresh", path, index, leave)
        assert report["established"] == [102] and report["left_out"] == []
        assert not command.audit(path, index, leave)["findings"]
    assert covered(path) == {"i_idx": live, "v_idx": live}
    command.run("create-index", path, "made", "s", "BTREE", "--num-segments", 2, leave)
    assert covered(path)["made"] == live
    clone.agrees()
    # Built anew, nothing of the source's segments is named any more, and they stay where they are.
    for index, column, method in (("i_idx", "i", "BTREE"), ("v_idx", "v", "BITMAP")):
        command.run("create-index", path, index, column, method, "--replace", leave)
    shown = command.run("show", path)
    assert all(s["base_id"] is None for index in shown["indices"] for s in index["segments"])
    clone.agrees()
    assert command.run("trim", path)["entry_removed"]
    command.run("drop-index", path, "made")
    clone.agrees()
    histories.age(path, 30)
    assert command.run("gc", path, "--remove")["removed"] == []
    command.run("orphans", path, "--remove")
    clone.agrees()
    # Lance goes on.
    lance.write_dataset(lance.dataset(path).to_table().slice(0, 5), path, mode="append")
    lance.dataset(path).optimize.optimize_indices()
    oracle.healthy(path)


def test_the_merged_history_of_a_clone_is_pruned_and_trimmed(clone):
    """What only needs the manifest needs no leave: superseded segments of the source go from the clone, and only from there."""
    for index in ("i_idx", "v_idx"):
        command.run("refresh", clone.path, index, "--absorb", "--other-bases")
    clone.agrees()
    command.run("prune", clone.path)
    assert command.run("trim", clone.path)["entry_removed"]
    assert covered(clone.path) == dict.fromkeys(("i_idx", "v_idx"), set(oracle.live(clone.path)))
    clone.agrees()


@pytest.mark.parametrize("where", ["folder", "serve"])
def test_without_leave_what_lies_elsewhere_is_refused_by_name(clone, where, webdav):
    target = clone.path if where == "folder" else webdav.put(clone.path)
    path = clone.path if where == "folder" else webdav.local(target)
    before = histories.files(path)
    jobs = [("refresh", "i_idx"), ("refresh", "v_idx", "--absorb"), ("create-index", "made", "i", "BTREE"), ("audit", "i_idx"), ("probe", "i_idx", "=", "7")]
    for job in jobs:
        with pytest.raises(command.Failed) as failed:
            command.run(job[0], target, *job[1:])
        assert (failed.value.code, failed.value.changed) == ("STORE_DENIED", "nothing"), (job, failed.value)
        assert clone.source in failed.value.message and "--other-bases" in failed.value.message, failed.value.message
    assert histories.files(path) == before
    # The manifest is enough to show, to say why the history is kept, and to take out what is not needed.
    assert {i["name"] for i in command.run("show", target)["indices"]} == {"i_idx", "v_idx"}
    assert command.run("history", target)["row_maps"][0]["base_id"] == 0
    assert command.run("trim", target)["transactions"] == [] and command.run("prune", target)["segments_removed"] == []
    assert command.run("gc", target, "--remove")["removed"] == []
    command.run("drop-index", target, "v_idx")
    assert set(covered(path)) == {"i_idx"}
    clone.agrees()


def test_a_base_that_is_somewhere_else_now(clone, webdav):
    """Over HTTP an absolute path means nothing: `bases` says where it is."""
    target, source = webdav.put(clone.path), webdav.put(clone.source)
    script = command.ROOT / "tests" / "support" / "refresh_with_bases.mjs"
    done = subprocess.run(["node", script, target, json.dumps({clone.source: source}), "i_idx", "v_idx"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)
    assert [r["established"] for r in reports] == [[102], [102]]
    path = webdav.local(target)
    assert covered(path) == dict.fromkeys(("i_idx", "v_idx"), set(oracle.live(path)))
    dataset = lance.dataset(path)
    for query in clone.queries:
        assert histories.answer(dataset, query, clone.key) == query["ids"], query["filter"]
    assert histories.files(webdav.local(source)) == clone.files
