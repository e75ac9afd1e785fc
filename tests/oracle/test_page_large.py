"""The page on a table of 100 000 fragments and eight indexes whose manifest Lance wrote: it opens, pans and zooms; what a frame costs is printed."""

import json
import pathlib
import random
import subprocess
import uuid

import lance
import pyarrow as pa
import pytest
from lance.dataset import Index

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "support" / "page_frames.mjs"
FRAGMENTS = 100_000
LANES = 8
SEGMENTS = 50


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """All fragments share one file, and the segments have no files: what is looked at is the manifest."""
    folder = tmp_path_factory.mktemp("large")
    path = str(folder / "large.lance")
    table = lance.write_dataset(pa.table({"k": pa.array(range(100), pa.int64())}), path)
    one = json.dumps({**table.get_fragments()[0].metadata.to_json(), "id": 0})
    fragments = [lance.FragmentMetadata.from_json(one) for _ in range(FRAGMENTS - 1)]
    table = lance.LanceDataset.commit(path, lance.LanceOperation.Append(fragments), read_version=table.version)
    draw = random.Random(5)
    segments = []
    for lane in range(LANES):
        covered = FRAGMENTS - 137 * lane
        for s in range(SEGMENTS):
            part = range(s, covered, SEGMENTS) if lane % 2 else range(covered * s // SEGMENTS, covered * (s + 1) // SEGMENTS)
            segments.append(
                Index(
                    uuid=str(uuid.UUID(int=draw.getrandbits(128), version=4)), name=f"index_{lane}", fields=[0], dataset_version=table.version,
                    fragment_ids=set(part), index_version=0,
                )
            )
    lance.LanceDataset.commit(path, lance.LanceOperation.CreateIndex(new_indices=segments, removed_indices=[]), read_version=table.version)
    return folder


def test_frames(large):
    done = subprocess.run(["node", str(SCRIPT), str(large), "large"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    print(json.dumps(result, indent=1))
    assert (result["fragments"], result["lanes"]) == (FRAGMENTS, LANES)
    assert result["problems"] == []
    assert result["window"], "the map moved"
    for part in ("zoom_from_all", "pan_near", "zoom_out", "pan_middle"):
        assert result[part]["frames"] >= 60
