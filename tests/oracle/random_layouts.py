"""Random tables with random coverage, made by Lance; their compactions planned by both and run by Lance.

    random_layouts.py COUNT [SEED]

runs COUNT of them and prints how many agreed; the first that does not ends it.
"""

import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import lance
import lance.optimize
import pyarrow as pa

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = {"BTREE": "k", "BITMAP": "g", "ZONEMAP": "k", "BLOOMFILTER": "k", "NGRAM": "s", "INVERTED": "s", "LABEL_LIST": "l"}
# What follows the rows of a fragment into another one, on tables without and with stable row ids (else its coverage is lost).
FOLLOWS = {"BTREE", "BITMAP", "NGRAM", "INVERTED", "LABEL_LIST"}


class Engine:
    """One process of the package that answers for many tables."""

    def __init__(self):
        script = ROOT / "tests" / "support" / "forecast_many.mjs"
        self.process = subprocess.Popen(["node", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, path, options, pairs):
        self.process.stdin.write(json.dumps({"path": str(path), "options": options, "pairs": pairs}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the package ended"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0


def batch(rng, first, rows):
    words = ["red", "green", "blue", "yellow", "black"]
    return pa.table({
        "id": pa.array(range(first, first + rows), pa.int64()),
        "k": pa.array([rng.randrange(1000) for _ in range(rows)], pa.int64()),
        "g": pa.array([rng.randrange(4) for _ in range(rows)], pa.int32()),
        "s": pa.array([" ".join(rng.choices(words, k=3)) for _ in range(rows)]),
        "l": pa.array([rng.sample(words, rng.randrange(3)) for _ in range(rows)], pa.list_(pa.string())),
    })  # fmt: skip


def append(rng, path, sizes, first, stable):
    for rows in sizes:
        table = batch(rng, first, rows)
        if path.exists():
            lance.write_dataset(table, str(path), mode="append")
        else:
            lance.write_dataset(table, str(path), enable_stable_row_ids=stable)
        first += rows
    return first


def delete(rng, path, share, whole):
    """Deletes a share of the rows of some fragments, or with `whole` all rows of one."""
    dataset = lance.dataset(str(path))
    fragments = dataset.get_fragments()
    if whole and len(fragments) > 2:
        ids = rng.choice(fragments).to_table(columns=["id"])["id"].to_pylist()
        dataset.delete(f"id >= {ids[0]} and id <= {ids[-1]}" if ids else "false")
        return
    for fragment in rng.sample(fragments, max(1, len(fragments) // 3)):
        ids = [i for i in fragment.to_table(columns=["id"])["id"].to_pylist() if rng.random() < share]
        if ids:
            dataset.delete(f"id in ({', '.join(map(str, ids))})")


def index(rng, path, method):
    """An index whose segments are cut at random: neighbours, dealt out, some fragments uncovered."""
    # Two of a thousand are the same one day (seed 904411): the names there are count too.
    there = len(lance.dataset(str(path)).describe_indices())
    name, column = f"ix_{method}_{rng.randrange(1000)}_{there}", COLUMNS[method]
    live = [f.fragment_id for f in lance.dataset(str(path)).get_fragments()]
    covered = [f for f in live if rng.random() < rng.choice([0.6, 1.0, 1.0])]
    if not covered:
        return None
    segments = rng.randint(1, min(4, len(covered)))
    if rng.random() < 0.6:
        cuts = sorted(rng.sample(range(1, len(covered)), segments - 1)) if segments > 1 else []
        runs = [covered[a:b] for a, b in zip([0, *cuts], [*cuts, len(covered)])]
    else:
        runs = [covered[at::segments] for at in range(segments)]
    dataset = lance.dataset(str(path))
    built = [dataset.create_index_uncommitted(column, method, name=name, fragment_ids=run) for run in runs]
    lance.dataset(str(path)).commit_existing_index_segments(name, column, built)
    return name


def options(rng, stable):
    chosen = {"target_rows_per_fragment": rng.choice([5, 20, 40, 60, 100, 1000])}
    if rng.random() < 0.15:
        del chosen["target_rows_per_fragment"]
    if rng.random() < 0.3:
        chosen["materialize_deletions_threshold"] = rng.choice([0.0, 0.05, 0.1, 0.3, 0.5, 1.0, -0.5])
    if rng.random() < 0.15:
        chosen["materialize_deletions"] = rng.random() < 0.5
    if rng.random() < 0.15:
        chosen["excluded_fragment_ids"] = [rng.randrange(10) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.1:
        chosen["max_source_fragments"] = rng.randint(1, 8)
    if rng.random() < 0.1:
        chosen["max_source_rows"] = rng.randint(10, 200)
    if rng.random() < 0.1:
        chosen["max_source_bytes"] = rng.randint(1000, 20_000)
    if not stable and rng.random() < 0.25:
        chosen["defer_index_remap"] = True
    return chosen


def config(rng):
    """What the table itself says about compactions, under the caller's options."""
    return {f"lance.compaction.{key}": value for key, value in {
        "target_rows_per_fragment": str(rng.choice([10, 30, 80])),
        "materialize_deletions": rng.choice(["true", "FALSE"]),
        "materialize_deletions_threshold": rng.choice(["0.2", "0", "nan"]),
        "max_source_rows": "150", "max_source_fragments": "6", "max_source_bytes": "15000",
    }.items() if rng.random() < 0.4}  # fmt: skip


def make(rng, path):
    """A table; answers whether its row ids are stable."""
    stable = rng.random() < 0.3
    first = append(rng, path, [rng.randint(1, 45) for _ in range(rng.randint(2, 8))], 0, stable)
    if rng.random() < 0.5:
        delete(rng, path, rng.choice([0.05, 0.1, 0.4]), False)
    for method in rng.choices(list(COLUMNS), k=rng.choice([0, 1, 1, 2, 2, 3])):
        index(rng, path, method)
    if rng.random() < 0.25:  # fragments that are gone leave their ids in bitmaps
        delete(rng, path, 1.0, True)
    if rng.random() < 0.3:
        delete(rng, path, rng.choice([0.05, 0.2, 0.5]), False)
    if rng.random() < 0.35:
        # An earlier compaction: an eager one retires ids and empties zones, a deferred one leaves a history.
        deferred = not stable and rng.random() < 0.6
        dataset = lance.dataset(str(path))
        dataset.optimize.compact_files(target_rows_per_fragment=rng.choice([30, 60]), num_threads=1, defer_index_remap=deferred)
    if rng.random() < 0.4:
        first = append(rng, path, [rng.randint(1, 30) for _ in range(rng.randint(1, 3))], first, stable)
    if rng.random() < 0.25:
        lance.dataset(str(path)).update_config(config(rng))
    return stable


def segments(dataset):
    """Name, uuid and coverage of every segment, as Lance lists them."""
    listed = dataset.describe_indices()
    return sorted((d.name, str(s.uuid), sorted(s.fragment_ids)) for d in listed for s in d.segments if not d.name.startswith("__"))


def fragments(dataset):
    return {f.fragment_id: (f.physical_rows, f.num_deletions) for f in dataset.get_fragments()}


def compare(engine, path, seed):
    """Makes a table from a seed, lets both plan its compaction, and Lance run it."""
    rng = random.Random(seed)
    stable = make(rng, path)
    chosen = options(rng, stable)
    dataset = lance.dataset(str(path))
    before, listed = fragments(dataset), segments(dataset)
    ids = sorted(before)
    pairs = [list(pair) for pair in zip(ids, ids[1:])]
    about = f"seed {seed}: {chosen} on {before} with {listed}"
    answer = engine.ask(path, chosen, pairs)
    try:
        tasks = [[f.id for f in task.fragments] for task in lance.optimize.Compaction.plan(dataset, chosen).tasks]
    except (ValueError, OSError) as error:
        assert "error" in answer, f"{about}: Lance refuses ({error}), we do not"
        return "refused"
    assert "error" not in answer, f"{about}: {answer['error']}"
    plan = answer["plan"]
    assert [task["fragments"] for task in plan["tasks"]] == tasks, f"{about}: planned otherwise"
    together = {fragment: at for at, task in enumerate(tasks) for fragment in task}
    for (a, b), pair in zip(pairs, answer["pairs"]):
        joined = a in together and together.get(a) == together.get(b)
        assert (pair["joined"], pair["rule"] == "same_task") == (joined, joined), f"{about}: {pair}"
    dataset.optimize.compact_files(**{"target_rows_per_fragment": 1048576, **chosen} if "target_rows_per_fragment" in chosen else chosen, num_threads=1)
    dataset = lance.dataset(str(path))
    kept = {f: counts for f, counts in before.items() if f not in together}
    written = {output["fragment"]: (output["rows"], 0) for task in plan["tasks"] for output in task["outputs"]}
    assert fragments(dataset) == kept | written, f"{about}: {fragments(dataset)}"
    ours = sorted((e["index"], e["uuid"] if e["fate"] != "REMAPPED" else "new", e["fragment_ids_after"]) for e in plan["effects"])
    known = {uuid for _, uuid, _ in listed}
    theirs = sorted((name, uuid if uuid in known else "new", covers) for name, uuid, covers in segments(dataset))
    assert ours == theirs, f"{about}: ours {ours}, Lance's {theirs}"
    after = answer["forecast"]["plans"][0]["after"]
    assert after["fragments"] == len(kept | written), about
    live = set(kept | written)
    for summary in after["indexes"]:
        covered = {f for name, _, covers in theirs if name == summary["name"] for f in covers} & live
        assert (summary["covered_fragments"], summary["unindexed_fragments"]) == (len(covered), len(live - covered)), f"{about}: {summary}"
    if "defer_index_remap" in chosen:
        return "deferred"
    return "planned" if tasks else "empty"


def run(count, first):
    """Compares `count` tables; answers how many of each outcome there were."""
    engine, outcomes = Engine(), {}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="layouts-"))
    try:
        for seed in range(first, first + count):
            path = folder / f"{seed}.lance"
            outcome = compare(engine, path, seed)
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            shutil.rmtree(path)
            if count > 200 and seed % 100 == 0:
                print(seed - first, outcomes, flush=True)
        engine.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcomes


if __name__ == "__main__":
    print(run(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
