"""Why runs are contiguous: what Lance's compaction makes of four single-fragment appends, depending only on the coverage we committed."""

import json
import subprocess

import lance
import numpy as np
import pytest

import columns
import command
import oracle
import tables

SCRIPT = command.ROOT / "tests" / "support" / "commit_runs.mjs"


@pytest.mark.parametrize(
    "runs,become",
    [(None, 1), ([[0, 1, 2, 3]], 1), ([[0, 1], [2, 3]], 2), ([[0, 2], [1, 3]], 4), ([[0], [1], [2], [3]], 4)],
    ids=["no index", "one segment", "two contiguous", "two interleaved", "four of one fragment"],
)
def test_four_appends_compacted(runs, become, webdav, tmp_path):
    source = tmp_path / "t.lance"
    tables.write(source, "int64", [50, 50, 50, 50], np.random.default_rng(3))
    if runs:
        lance.dataset(str(source)).create_scalar_index("v", "BTREE", name=tables.INDEX, train=False)
    target = webdav.put(source)
    path = webdav.local(target)
    if runs:
        contiguous = [f for run in runs for f in run] == [0, 1, 2, 3]
        if contiguous:
            report = command.run("refresh", target, tables.INDEX, "--num-segments", len(runs))
        else:
            done = subprocess.run(["node", str(SCRIPT), target, tables.INDEX, json.dumps(runs)], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            report = json.loads(done.stdout)
        assert report["established"] == [0, 1, 2, 3]
        assert oracle.fully_covered(path, tables.INDEX) == sorted(runs)
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=1000)
    oracle.healthy(path)
    assert len(oracle.live(path)) == become
    if runs:
        oracle.agree(path, tables.INDEX, columns.filters(oracle.values(path), np.random.default_rng(9)))
