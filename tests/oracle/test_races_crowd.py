"""Eight of our committers and four Lance writers on one table at once. Afterwards nothing anybody committed is lost, and no index
claims a row it does not serve. The full run takes 300 rounds per store, half of them with eager and half with deferred compactions
(Lance alone breaks an index when the two are mixed: test_races_holes, 11); WHETSTONE_CROWD_ROUNDS sets another number for each half."""

import collections
import json
import os
import random
import subprocess
import threading

import lance
import numpy as np
import pyarrow as pa
import pytest

import columns
import command
import faulty_proxy
import oracle

FULL = os.environ.get("WHETSTONE_FULL") == "1"
SEED = int(os.environ.get("WHETSTONE_SEED", "7"))
ROUNDS = int(os.environ.get("WHETSTONE_CROWD_ROUNDS", "150" if FULL else "3"))
SCRIPTS = command.ROOT / "tests" / "support"
PROCESSES, PER_PROCESS, WRITERS = 2, 4, 4
INDEXES = {"v_idx": ("v", "BTREE"), "z_idx": ("v", "ZONEMAP"), "g_idx": ("g", "BITMAP")}
#: What a job of ours may fail with when others are faster, or the store fails: never a crash, a bug, or a corrupt file.
HONEST = {
    "INDEX_NOT_FOUND", "INDEX_EXISTS", "INDEX_DROPPED", "INDEX_CHANGED", "NOTHING_LEFT", "PARTIAL_REPLACEMENT", "TYPE_CHANGED", "STALE_PLAN",
    "COMMIT_CONFLICT", "COMMIT_UNKNOWN", "STORE_UNREACHABLE", "TIMEOUT",
}  # fmt: skip


def rows(first, count, rng):
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "v": columns.int64(rng, count), "g": pa.array(rng.integers(0, 9, count), pa.int64())})


def make(path):
    rng = np.random.default_rng(SEED)
    for n in range(4):
        lance.write_dataset(rows(n * 50, 50, rng), str(path), mode="append" if n else "create")
    dataset = lance.dataset(str(path))
    for name, (column, method) in INDEXES.items():
        dataset.create_scalar_index(column, method, name=name)
    return path


class Writers:
    """Lance's side: four threads, each with handles of its own, that remember what Lance said had worked."""

    def __init__(self, uri, options, deferred):
        self.uri, self.options, self.deferred = uri, options, deferred
        self.lock = threading.Lock()
        self.next = 1000
        self.appended, self.deleted, self.doubtful = set(range(200)), set(), set()
        self.done, self.lost = collections.Counter(), collections.Counter()
        self.stop = threading.Event()

    def open(self):
        return lance.dataset(self.uri, storage_options=self.options)

    def take(self, count):
        with self.lock:
            self.next += count
            return self.next - count

    def run(self, number, rounds):
        dice, rng = random.Random(SEED * 100 + number), np.random.default_rng(SEED * 100 + number)
        jobs = [self.append, self.append, self.delete, self.update, self.compact, self.create, self.drop, self.optimize]
        for _ in range(rounds):
            if self.stop.is_set():
                return
            job = dice.choice(jobs)
            try:
                job(dice, rng)
                with self.lock:
                    self.done[job.__name__] += 1
            except Exception as error:  # noqa: BLE001: Lance's conflicts come as many types; what they cost is in the sets
                with self.lock:
                    self.lost[f"{job.__name__}: {str(error)[:60]}"] += 1

    def append(self, dice, rng):
        first, count = self.take(20), dice.randint(5, 20)
        table, ids = rows(first, count, rng), set(range(first, first + count))
        with self.lock:
            self.doubtful |= ids
        lance.write_dataset(table, self.uri, mode="append", storage_options=self.options)
        with self.lock:
            self.appended |= ids
            self.doubtful -= ids

    def delete(self, dice, _):
        with self.lock:
            pool = sorted(self.appended - self.deleted)
            ids = set(dice.sample(pool, min(6, len(pool) // 4)))
            self.doubtful |= ids
        self.open().delete(f"id in ({', '.join(map(str, sorted(ids)))})")
        with self.lock:
            self.deleted |= ids
            self.doubtful -= ids

    def update(self, dice, _):
        self.open().update({"v": str(dice.randint(-1000, 1000))}, where=f"id % 97 = {dice.randint(0, 96)}")

    def compact(self, dice, _):
        self.open().optimize.compact_files(target_rows_per_fragment=dice.choice([60, 200]), defer_index_remap=self.deferred, num_threads=1)

    def create(self, dice, _):
        name = dice.choice(sorted(INDEXES))
        column, method = INDEXES[name]
        self.open().create_scalar_index(column, method, name=name, replace=dice.random() < 0.5)

    def drop(self, dice, _):
        if dice.random() < 0.3:
            self.open().drop_index(dice.choice(sorted(INDEXES)))

    def optimize(self, dice, _):
        self.open().optimize.optimize_indices(index_names=[dice.choice(sorted(INDEXES))])


def crowd(target, environment, uri, options, deferred):
    """Runs everybody; what our committers said, and Lance's side."""
    writers = Writers(uri, options, deferred)
    jobs = ROUNDS
    arguments = ["node", str(SCRIPTS / "crowd_committers.mjs"), target]
    started = [
        subprocess.Popen([*arguments, str(SEED * 10 + p), str(PER_PROCESS), str(jobs)], env={**command.clean_environment(), **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for p in range(PROCESSES)
    ]  # fmt: skip
    threads = [threading.Thread(target=writers.run, args=(n, ROUNDS), daemon=True) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    said = []
    try:
        for process in started:
            out, err = process.communicate(timeout=300 + 40 * ROUNDS)
            assert process.returncode == 0, err
            said += [json.loads(line) for line in out.splitlines()]
        for thread in threads:
            thread.join(300 + 40 * ROUNDS)
            assert not thread.is_alive()
    finally:
        writers.stop.set()
        for process in started:
            process.kill()
    assert len(said) == PROCESSES * PER_PROCESS * jobs
    return said, writers


def judge(host, target, said, writers, capsys):
    path = host.local(target)
    # Every version opens, and no two segments of a name cover the same fragment.
    listed = subprocess.run(["node", str(SCRIPTS / "crowd_history.mjs"), path], env=command.clean_environment(), capture_output=True, text=True, check=True)
    history = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [h["version"] for h in history] == list(range(1, len(history) + 1)), "a version is missing"
    for entry in history:
        lance.dataset(path, version=entry["version"]).count_rows()
        for name, segments in entry["segments"].items():
            covered = [f for _, fragments in segments for f in fragments or []]
            assert len(covered) == len(set(covered)), f"version {entry['version']}: {name} covers fragments twice: {segments}"
    # Every success of ours is in the history once, at its version; what failed is not there.
    transactions = collections.Counter()
    dataset = lance.dataset(path)
    # pylance 14.0.2 cannot hand out a compaction that remapped an index: it leaves out three arguments of its own class.
    lance.LanceOperation.RewrittenIndex.__init__.__defaults__ = ("", b"", 0)
    version_of = {}
    for entry in history:
        uuid = dataset.read_transaction(entry["version"]).uuid
        transactions[uuid] += 1
        version_of[uuid] = entry["version"]
    assert max(transactions.values()) == 1, "a transaction is in the history twice"
    segments_ever = {uuid for entry in history for segments in entry["segments"].values() for uuid, _ in segments}
    outcomes = collections.Counter()
    for line in said:
        report, error = line.get("report"), line.get("error")
        outcomes[f"{line['kind']}: {error['code'] if error else 'committed' if report['transaction'] else 'nothing to do'}"] += 1
        if report and report["transaction"]:
            assert version_of.get(report["transaction"]) == report["version"], line
        if error:
            assert error["code"] in HONEST, json.dumps(line)
            if error["changed"] in ("nothing", "staged"):
                staged = {path.split("/")[1] for path in error["detail"].get("staged", [])}
                assert not staged & segments_ever, f"said that nothing was committed: {line}"
            if error["code"] == "COMMIT_UNKNOWN":
                told = command.run("transaction", target, error["detail"]["transaction"], env=host.environment)
                landed = version_of.get(error["detail"]["transaction"])
                assert (told or {}).get("version") == landed, f"the command does not find out: {told}"
    # No row anybody appended is lost, and none that was deleted is back.
    ids = set(dataset.to_table(columns=["id"])["id"].to_pylist())
    assert not (writers.appended - writers.deleted - writers.doubtful) - ids, "appended rows are lost"
    assert not (writers.deleted - writers.doubtful) & ids, "deleted rows are back"
    # Every index serves what it claims.
    oracle.healthy(path)
    left = {name for name in INDEXES if name in history[-1]["segments"]}
    for name in sorted(left):
        report = command.run("audit", path, name)
        assert report["findings"] == [], f"{name}: {report['findings']}"
    oracle.agree_without_plan(path, columns.filters(oracle.values(path), np.random.default_rng(8)) + [f"g = {n}" for n in range(9)])
    with capsys.disabled():
        ours = sum(1 for line in said if line.get("report", {}).get("transaction"))
        tries = sum(len(line["report"]["attempts"]) for line in said if line.get("report"))
        print(f"\n{len(history)} versions, {ours} of ours in {tries} attempts, {dict(sorted(outcomes.items()))}\nLance did {dict(writers.done)}, lost {sum(writers.lost.values())}; {sorted(left)} left")
    assert sum(1 for line in said if line.get("report", {}).get("transaction")) >= ROUNDS, "hardly anything was committed: this proves nothing"


def way(host, target):
    """How Lance reaches the same table."""
    if host.name == "s3":
        return target, {"aws_endpoint": host.endpoint, "allow_http": "true", "aws_region": "us-east-1", **host.keys}
    return host.local(target), None


@pytest.mark.parametrize("deferred", [False, True] if FULL else [SEED % 2 == 0], ids=lambda d: "deferred" if d else "eager")
@pytest.mark.parametrize("store", ["serve", "s3"])
def test_a_crowd_with_lance(store, deferred, tmp_path, request, capsys):
    host = request.getfixturevalue("webdav" if store == "serve" else "s3")
    target = host.put(make(tmp_path / "t.lance"))
    said, writers = crowd(target, host.environment, *way(host, target), deferred)
    judge(host, target, said, writers, capsys)


@pytest.mark.parametrize("store", ["serve", "s3"] if FULL else [["serve", "s3"][SEED % 2]])
def test_a_crowd_over_a_failing_network(store, tmp_path, request, capsys):
    host = request.getfixturevalue("webdav" if store == "serve" else "s3")
    target = host.put(make(tmp_path / "t.lance"))
    with faulty_proxy.FaultyProxy(host.url if store == "serve" else host.endpoint, SEED) as proxy:
        environment = {**host.environment, **({"AWS_ENDPOINT_URL": proxy.url} if store == "s3" else {})}
        through = target if store == "s3" else target.replace(host.url, proxy.url)
        said, writers = crowd(through, environment, *way(host, target), False)
        assert all(proxy.counts.values()), f"no fault of some kind happened: {proxy.counts}"
    with capsys.disabled():
        print(f"\nfaults: {proxy.counts}")
    judge(host, target, said, writers, capsys)
