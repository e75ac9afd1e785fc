"""Trims and prunes of ours while others commit, over `serve`: Lance appends, compacts, optimises, remaps segments, builds newer ones beside
them and drops indexes; our own commands create, prune and trim.

Whatever lands between a decision of ours and its commit: what ours takes out is what the version just before does not need.
"""

import os
import random

import lance
import pytest
from lance.dataset import Index

import command
import fixture_tables
import histories
import manifest_bytes
from faulty_proxy import FaultyProxy

FULL = os.environ.get("WHETSTONE_FULL") == "1"
METHODS = {"BTree": "BTREE", "Bitmap": "BITMAP"}


def translating(dataset, stored):
    """(index, column, method, uuids, coverage): segments that Lance serves through the history, together with those that serve the same
    fragments."""
    found = []
    for described in dataset.describe_indices():
        if described.name == histories.ENTRY or described.index_type not in METHODS:
            continue
        parts = []
        for segment in described.segments:
            uuids, covers = {segment.uuid}, set(segment.fragment_ids)
            apart = [part for part in parts if not part[1] & covers]
            for part in parts:
                if part not in apart:
                    uuids, covers = uuids | part[0], covers | part[1]
            parts = [*apart, (uuids, covers)]
        for uuids, covers in parts:
            if covers and (len(uuids) > 1 or covers not in stored[described.name]):
                found.append((described.name, described.field_names[0], METHODS[described.index_type], uuids, covers))
    return found


def rebuild(path, draw, beside):
    """What Lance's own remap commits: a segment that names directly what older ones serve by translation, in their place, or beside them,
    which leaves them superseded. pylance has no call for it, so its parts are called."""
    dataset = lance.dataset(path)
    stored = histories.named(histories.manifests(path)[dataset.version])
    candidates = translating(dataset, stored)
    if beside:
        # Two segments of a name must not both name a fragment.
        candidates = [c for c in candidates if not any(c[-1] & ids for ids in stored[c[0]])]
    if not candidates:
        return
    name, column, method, uuids, covers = draw.choice(candidates)
    new = dataset.create_index_uncommitted(column, method, name=name, replace=True, fragment_ids=sorted(covers))
    old = [Index(uuid=uuid, name=name, fields=new.fields, dataset_version=dataset.version, fragment_ids=set(), index_version=0) for uuid in uuids]
    operation = lance.LanceOperation.CreateIndex(new_indices=[new], removed_indices=[] if beside else old)
    lance.LanceDataset.commit(path, operation, read_version=dataset.version)


def works(path, draw):
    """What Lance does, each on the newest version."""
    rows = lance.dataset(path).to_table().slice(0, 3)
    return {
        "append": lambda: lance.write_dataset(rows, path, mode="append"),
        "compact": lambda: lance.dataset(path).optimize.compact_files(target_rows_per_fragment=draw.choice([30, 1000]), defer_index_remap=True),
        "optimize": lambda: lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=0),
        "remap": lambda: rebuild(path, draw, beside=False),
        "beside": lambda: rebuild(path, draw, beside=True),
    }


def segments(manifest):
    """The uuids of the segments of user indexes that a manifest names."""
    users = [e for e in histories.section(manifest) if histories.first(e, 3) != histories.ENTRY.encode()]
    return {histories.first(manifest_bytes.fields(histories.first(e, 1)), 1).hex() for e in users}


def justified(target, path, report):
    """What a trim or prune reports is what its versions did, and each took out what the version before it did not need."""
    manifests = histories.manifests(path)
    committed = [a["version"] for a in report["attempts"] if a["outcome"] == "committed"]
    removed = set()
    for version in committed:
        plan = command.run("trim", target, "--dry-run", "--at", version - 1)
        before, after = manifests[version - 1], manifests[version]
        gone = segments(before) - segments(after)
        assert not segments(after) - segments(before), f"version {version} brings segments"
        removed |= gone
        if gone:
            assert gone == {p["uuid"].replace("-", "") for p in plan["prune"]}
            assert histories.content(path, before) == histories.content(path, after)
        else:
            had, left = (histories.records(histories.content(path, manifest)) for manifest in (before, after))
            kept = [had[r["record"]] for r in plan["records"] if r["kept"]]
            assert len(left) < len(had)
            if plan["prune"]:
                # Superseded since this trim pruned: what only those need stays until the next one.
                assert all(record in left for record in kept) and all(record in had for record in left)
            else:
                assert left == kept
    assert removed == {s["uuid"].replace("-", "") for s in report["segments_removed"]}
    return committed


def reads_as_a_scan(path, expected):
    histories.nothing_twice(path)
    histories.answers_as_a_scan(path, expected["queries"], expected["key_column"])


class Between(FaultyProxy):
    """Before the first manifests that go through it, the works given happen, one before each."""

    def __init__(self, url, happens):
        super().__init__(url, 0, lost=0, before=0, after=0, conflict=0)
        self.happens = list(happens)

    def answer(self, request):
        if request.command == "PUT" and "/_versions/" in request.path and self.happens:
            self.happens.pop(0)()
        super().answer(request)


#: What both a prune and a trim have something to do on, and Lance something to remap.
RACED = "partially_drained"
BETWEEN = ["append", "compact", "remap", "beside", "drop", "create", "prune", "trim"]


def pairs():
    """(job of ours, what lands before its manifest, what lands before its second one)."""
    create = [("create", first, None) for first in ("remap", "beside", "prune", "trim")]
    if FULL:
        return [(job, first, second) for job in ("prune", "trim") for first in BETWEEN for second in (None, *BETWEEN)] + create
    others = [(job, first, None) for job in ("prune", "trim") for first in BETWEEN if (job, first) not in ALWAYS] + create
    return [(*pair, None) for pair in ALWAYS] + random.Random(int(os.environ.get("WHETSTONE_SEED", "6"))).sample(others, 2)


ALWAYS = [("prune", "remap"), ("prune", "beside"), ("prune", "create"), ("trim", "remap"), ("trim", "compact")]


@pytest.mark.parametrize("job, first, second", pairs())
def test_what_lands_between_decision_and_commit(job, first, second, fixtures, webdav):
    """The manifest of ours is held back while somebody else commits: it loses, and what it does then fits what it finds."""
    expected = fixture_tables.expected(fixtures, RACED, tagged=True)
    target = webdav.put(fixtures / "tagged" / f"{RACED}.lance")
    path = webdav.local(target)
    column = expected["indexes"][0]["column"]
    happens = works(path, random.Random(3)) | {
        "drop": lambda: lance.dataset(path).drop_index(expected["indexes"][0]["name"]),
        "create": lambda: command.run("create-index", target, "theirs", column, "BTREE"),
        "prune": lambda: command.run("prune", target),
        "trim": lambda: command.run("trim", target),
    }
    versions = []

    def during(name):
        def happen():
            before = lance.dataset(path).version
            happens[name]()
            versions.append(lance.dataset(path).version - before)

        return happen

    with Between(webdav.url, [during(name) for name in (first, second) if name]) as proxy:
        through = target.replace(webdav.url, proxy.url)
        arguments = ["create-index", through, "made", column, "BTREE"] if job == "create" else [job, through]
        report = command.run(*arguments)
        assert versions and versions[0] >= 1, "nothing came in between"
        # A second one has its turn where ours still had something to do.
        assert not proxy.happens or second
    lost = [a for a in report["attempts"] if a["outcome"] == "lost"]
    assert len(lost) >= sum(v > 0 for v in versions), report["attempts"]
    if job == "create":
        assert "made" in histories.coverage(path)
    else:
        justified(target, path, report)
    reads_as_a_scan(path, expected)
    # In peace nothing is left after a trim.
    justified(target, path, command.run("trim", target))
    assert command.run("trim", target)["transactions"] == []
    reads_as_a_scan(path, expected)


@pytest.mark.parametrize("name", ["partially_drained", "superseded"])
def test_removals_are_justified_while_others_commit(name, fixtures, webdav):
    """Trims, prunes and creates of ours at once, again and again, on a table that Lance works on."""
    expected = fixture_tables.expected(fixtures, name, tagged=True)
    target = webdav.put(fixtures / "tagged" / f"{name}.lance")
    path = webdav.local(target)
    column = expected["indexes"][0]["column"]
    rounds = iter(range(12 if FULL else 2))
    removals, creates = [], []

    def over():
        if any(p.poll() is None for p in removals + creates):
            return False
        n = next(rounds, None)
        if n is None:
            return True
        removals.extend(command.start(job, target, "--json") for job in ("trim", "prune", "trim"))
        creates.append(command.start("create-index", target, f"made_{n}", column, "BTREE", "--json"))
        return False

    done = histories.at_work(path, works(path, random.Random(len(name))), over)
    reports = [command.finish(p) for p in removals] + [command.run("trim", target)]
    committed = [version for report in reports for version in justified(target, path, report)]
    assert committed and len(set(committed)) == len(committed)
    made = [command.finish(p) for p in creates]
    for n, report in enumerate(made):
        assert f"made_{n}" in histories.named(histories.manifests(path)[report["version"]]), (done, report)
    assert command.run("trim", target)["transactions"] == []
    reads_as_a_scan(path, expected)
