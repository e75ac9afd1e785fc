"""Tables whose segments hold rows of fragments they no longer cover, for the Rust test `index_copies`.

    stale_tables.py make DIR     writes plain.lance and stable.lance (stable row ids), and shows that Lance's own delta
                                 segment beside such a stale one gives wrong rows: the cure is needed
    stale_tables.py check DIR    asks Lance about the cured tables: every filter gives the rows of a full scan

Fragments 2 and 5 of seven are rewritten in place, so that the values and nulls they had are in the indexes still.
"""

import pathlib
import shutil
import sys

import lance
import numpy as np
import pyarrow as pa
from lance.indices import IndexConfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import oracle  # noqa: E402

ROWS, FRAGMENT, REWRITTEN = 2100, 300, [2, 5]
INDEXES = {
    "k_btree": ("k", IndexConfig("btree", {"zone_size": 70})),
    "s_btree": ("s", IndexConfig("btree", {"zone_size": 4096})),
    "d_btree": ("d", IndexConfig("btree", {"zone_size": 33})),
    "z_zonemap": ("z", IndexConfig("zonemap", {"rows_per_zone": 40})),
    "t_zonemap": ("t", IndexConfig("zonemap", {"rows_per_zone": 1000})),
    "m_bitmap": ("m", "BITMAP"),
    "n_bitmap": ("n", "BITMAP"),
    "f_bloomfilter": ("f", IndexConfig("bloomfilter", {"number_of_items": 40, "probability": 0.01})),
    "g_bloomfilter": ("g", IndexConfig("bloomfilter", {"number_of_items": 1000, "probability": 0.1})),
}
FILTERS = {
    "k_btree": ["k = 17", "k < 40", "k IS NULL", "k IS NOT NULL", "k IN (3, 90, 100100)", "NOT (k = 17)", "k >= 100000"],
    "s_btree": ["s = 'v7'", "s < 'v2'", "s IS NULL", "s LIKE 'v1%'", "s LIKE 'new%'", "s != 'v9'"],
    "d_btree": ["d < 0", "d = 3.5", "d IS NULL", "d BETWEEN -2 AND 2", "d > 1e300"],
    "z_zonemap": ["z IS NULL", "z < 1.0", "z IS NOT NULL", "z = 2.5", "z >= 900"],
    "t_zonemap": ["t IS NULL", "t = 'v7'", "t IS NOT NULL", "t LIKE 'new%'"],
    "m_bitmap": ["m = 17", "m < 40", "m IS NULL", "m IS NOT NULL", "m IN (3, 90, 100100)", "NOT (m = 17)", "m >= 100000"],
    "n_bitmap": ["n = 'v7'", "n < 'v2'", "n IS NULL", "n != 'v9'", "n = 'new3'"],
    "f_bloomfilter": ["f = 17", "f IN (3, 90, 100100)", "f IS NULL", "f = 5000"],
    "g_bloomfilter": ["g = 'v7'", "g = 'new3'", "g IS NULL", "g IN ('v1', 'nothing')"],
}


def values(n, rng, new):
    """The columns that are indexed; the rewritten ones hold no null and other values."""
    start = 100_000 if new else 0
    numbers = rng.integers(0, 200, n) + start
    floats = rng.integers(-10, 10, n) / 2 + (1e301 if new else 0)
    zones = rng.integers(0, 20, n) / 2 + (1000 if new else 0)
    zones = np.where(rng.random(n) < 0.05, np.nan, zones)
    texts = [f"{'new' if new else 'v'}{i}" for i in rng.integers(0, 30, n)]
    null = np.zeros(n, dtype=bool) if new else rng.random(n) < 0.2
    return {
        "k": pa.array(numbers, pa.int64(), mask=null),
        "s": pa.array(texts, pa.string(), mask=null),
        "d": pa.array(floats, pa.float64(), mask=null),
        "z": pa.array(zones, pa.float64(), mask=null),
        "t": pa.array(texts, pa.large_string(), mask=null),
        "m": pa.array(numbers, pa.int32(), mask=null),
        "n": pa.array(texts, pa.string(), mask=null),
        "f": pa.array(numbers, pa.int64(), mask=null),
        "g": pa.array(texts, pa.string(), mask=null),
    }


def make(path, stable):
    rng = np.random.default_rng(29)
    table = pa.table({"id": pa.array(np.arange(ROWS)), **values(ROWS, rng, False)})
    dataset = lance.write_dataset(table, path, max_rows_per_file=FRAGMENT, enable_stable_row_ids=stable)
    for name, (column, config) in INDEXES.items():
        dataset.create_scalar_index(column, config, name=name)
    dataset.delete("id % 50 = 11")
    for number in REWRITTEN:
        fragment = dataset.get_fragment(number)
        ids = fragment.to_table(columns=["id"])["id"]
        updated, fields = fragment.update_columns(
            pa.table({"id": ids, **values(len(ids), rng, True)}), left_on="id", right_on="id"
        )
        operation = lance.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
        dataset = lance.LanceDataset.commit(path, operation, read_version=dataset.version)
    for name in INDEXES:
        assert oracle.coverage(path, name) == [[0, 1, 3, 4, 6]], oracle.coverage(path, name)


def wrong(path, name):
    """Filters that give other rows with the index than without."""
    return [f for f in FILTERS[name] if oracle.ids(path, f) != oracle.ids(path, f, use_scalar_index=False)]


def without_cure(path):
    lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=0)
    for name in INDEXES:
        assert oracle.coverage(path, name) == [[0, 1, 3, 4, 6], REWRITTEN], oracle.coverage(path, name)
        assert any("IS NULL" in text for text in wrong(path, name)), f"{name} is right without a cure: nothing is shown"


def check(path):
    oracle.healthy(path)
    for name, filters in FILTERS.items():
        assert oracle.fully_covered(path, name) == [[0, 1, 3, 4, 6], REWRITTEN]
        oracle.agree_without_plan(path, filters)
        assert sum(oracle.uses(path, text, name) for text in filters) >= len(filters) - 1, f"{name} is hardly read"
    # The copies are segments like others: Lance merges them with the new ones and is still right.
    lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=10)
    for name, filters in FILTERS.items():
        assert len(oracle.coverage(path, name)) == 1, oracle.coverage(path, name)
        oracle.agree_without_plan(path, filters)


def main(what, folder):
    for name in ["plain", "stable"]:
        path = str(pathlib.Path(folder) / f"{name}.lance")
        if what == "make":
            make(path, name == "stable")
            control = f"{path}-control"
            shutil.copytree(path, control)
            without_cure(control)
        else:
            check(path)
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
