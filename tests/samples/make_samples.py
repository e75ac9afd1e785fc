"""Makes the sample tables that `make start` serves: make_samples.py FOLDER.

They are written by Lance itself, small (under 3 MB together), and each shows one thing a person should see on the page:
an index that fell behind, coverage that freezes compaction, coverage that does not, and an index that covers nothing yet.
"""

import datetime
import json
import pathlib
import sys

import lance
import numpy as np
import pyarrow as pa

CITIES = ["Aarhus", "Bergen", "Cork", "Delft", "Espoo", "Fribourg", "Ghent", "Halle", "Izmir", "Jena", "Kyiv", "Lyon"]
START = datetime.datetime(2025, 3, 1, tzinfo=datetime.timezone.utc)


def users(rng, first, rows):
    """Rows of the users table with ids from `first` on; time goes forward with the id, as it does for sign-ups."""
    ids = np.arange(first, first + rows)
    seconds = ids * 37 + rng.integers(0, 37, rows)
    created = [None if i % 97 == 0 else START + datetime.timedelta(seconds=int(s)) for i, s in zip(ids, seconds)]
    return pa.table(
        {
            "user_id": pa.array(ids * 7919 % 1_000_003, pa.int64()),
            "name": pa.array([f"user {i:06d}" for i in ids], pa.string()),
            "city": pa.array([None if c == len(CITIES) else CITIES[c] for c in rng.integers(0, len(CITIES) + 1, rows)], pa.string()),
            "created_at": pa.array(created, pa.timestamp("us", "UTC")),
            "score": pa.array(rng.normal(50, 15, rows).round(2), pa.float32()),
        }
    )


def write(path, rng, sizes, first=0, mode="create"):
    """Writes one fragment per entry of `sizes`."""
    for rows in sizes:
        lance.write_dataset(users(rng, first, rows), str(path), mode=mode)
        first, mode = first + rows, "append"
    return first


def in_segments(path, name, column, method, groups):
    """Indexes `column` in one segment per group of fragment ids, as distributed builds do."""
    dataset = lance.dataset(str(path))
    built = [dataset.create_index_uncommitted(column, method, name=name, fragment_ids=group) for group in groups]
    lance.dataset(str(path)).commit_existing_index_segments(name, column, built)


def make_users(path, rng):
    first = write(path, rng, [3000, 3000, 2500, 2500])
    dataset = lance.dataset(str(path))
    dataset.create_scalar_index("user_id", "BTREE", name="user_id_idx")
    lance.dataset(str(path)).create_scalar_index("created_at", "ZONEMAP", name="created_at_idx")
    first = write(path, rng, [900, 1200], first, "append")
    lance.dataset(str(path)).optimize.optimize_indices(num_indices_to_merge=0, index_names=["user_id_idx"])
    write(path, rng, [400, 800, 150, 1100, 600, 250], first, "append")
    lance.dataset(str(path)).delete("score < 26")


def make_interleaved(path, rng):
    write(path, rng, [400] * 8)
    in_segments(path, "user_id_idx", "user_id", "BTREE", [[0, 2, 4, 6], [1, 3, 5, 7]])


def make_contiguous(path, rng):
    write(path, rng, [400] * 8)
    in_segments(path, "user_id_idx", "user_id", "BTREE", [[0, 1, 2, 3], [4, 5, 6, 7]])


def make_deferred(path, rng):
    write(path, rng, [700, 300, 900, 500, 600])
    lance.dataset(str(path)).create_scalar_index("user_id", "BTREE", name="user_id_idx", train=False)
    lance.dataset(str(path)).create_scalar_index("city", "BTREE", name="city_idx", train=False)


SAMPLES = [
    ("users", "Users, six appends behind", "Two indexes over the first fragments; the newest ones are scanned by every query.", make_users),
    ("interleaved", "Interleaved segments", "Two segments that take turns: no two neighbours match, so compaction groups nothing.", make_interleaved),
    ("contiguous", "Contiguous segments", "The same rows in two contiguous segments: each half can be compacted.", make_contiguous),
    ("deferred", "Deferred indexes", "Indexes created without training: they cover nothing until the first refresh.", make_deferred),
]


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    listing = []
    for number, (name, title, description, make) in enumerate(SAMPLES):
        make(folder / f"{name}.lance", np.random.default_rng(number))
        listing.append({"name": name, "title": title, "description": description})
    (folder / "index.json").write_text(json.dumps(listing, indent=2) + "\n")
    total = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    if total > 3_000_000:
        raise SystemExit(f"the samples take {total} bytes, more than 3 MB")
    print(f"sample tables: {len(listing)}, {total / 1e6:.2f} MB")


if __name__ == "__main__":
    main(sys.argv[1])
