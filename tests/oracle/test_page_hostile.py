"""The page on a table that means harm: a thousand indexes with markup in their names, ten megabytes of settings. It stays usable and inert."""

import json
import pathlib
import subprocess
import uuid

import lance
import pyarrow as pa
from lance.dataset import Index

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "support" / "page_hostile.mjs"
HARM = ['<img src=x onerror="globalThis.harmed=1">', "<script>globalThis.harmed=2</script>", "\u202eevil", '"><svg/onload=alert(1)>', "javascript:alert(2)", "${globalThis.harmed=3}"]


def test_hostile(tmp_path):
    path = str(tmp_path / "hostile.lance")
    table = lance.write_dataset(pa.table({"k": pa.array(range(100), pa.int64())}), path, max_rows_per_file=10)
    segments = [
        Index(uuid=str(uuid.uuid4()), name=f"{HARM[i % len(HARM)]} index_{i}", fields=[0], dataset_version=table.version, fragment_ids={i % 10}, index_version=0)
        for i in range(1000)
    ]
    table = lance.LanceDataset.commit(path, lance.LanceOperation.CreateIndex(new_indices=segments, removed_indices=[]), read_version=table.version)
    table.update_config({f"{HARM[0]}{i}": HARM[1] + "x" * 1_000_000 for i in range(10)})
    done = subprocess.run(["node", str(SCRIPT), str(tmp_path), "hostile"], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["indexes"] == 1000
    assert found["ran"] is None and found["dialogs"] == [] and found["marked"] == 0, found
    assert found["elsewhere"] == [] and found["problems"] == [] and found["wider"] == 0, found
    assert "index_777" in found["details"]
