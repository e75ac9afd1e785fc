"""What a compaction does to random tables: our plan and its effects against Lance's plan and run of it."""

import os

import random_layouts


def test_random_tables_are_compacted_as_forecast():
    full = os.environ.get("WHETSTONE_FULL") == "1"
    seed = int(os.environ.get("WHETSTONE_SEED", "0")) * 100_000
    outcomes = random_layouts.run(500 if full else 40, seed + 1)
    assert outcomes.get("planned", 0) >= 8, f"too few compactions did anything: {outcomes}"
    print(outcomes)
