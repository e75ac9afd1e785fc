"""Asks Lance for every recorded query on the tables that `tests/refresh_fixtures.rs` refreshed into a folder.

    WHETSTONE_REFRESHED=folder cargo test --test refresh_fixtures every_index
    python tests/oracle/check_refreshed.py folder
"""

import hashlib
import pathlib
import sys

import lance

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import fixture_tables  # noqa: E402

OURS = {"BTree", "ZoneMap", "Bitmap", "BloomFilter", "NGram", "LabelList"}


def ids(dataset, filter, key):
    return sorted(dataset.scanner(columns=[key], filter=filter).to_table()[key].to_pylist())


def check(path, expected):
    """Differences as texts, and how many queries were asked and read their index."""
    dataset = lance.dataset(str(path))
    wrong, asked, used = [], 0, 0
    if dataset.version != expected["version"]:
        dataset.validate()
    mine = {i["name"] for i in expected["indices"] if i["type"] in OURS}
    for position, query in enumerate(expected["queries"]):
        if query["index"] not in mine or "filter" not in query or "error" in query:
            continue
        indexed = [i for i in expected["indices"] if i["name"] == query["index"]]
        untouched = not any(i["unindexed_fragments"] for i in indexed)
        wanted = query if untouched else query.get("differs_without_index", query)
        found = ids(dataset, query["filter"], expected["key_column"])
        digest = hashlib.sha256(",".join(map(str, found)).encode()).hexdigest()
        asked += 1
        if (len(found), digest) != (wanted["rows"], wanted["ids_sha256"]):
            wrong.append(f"{query['index']}: {query['filter']}: {len(found)} rows, wanted {wanted['rows']}")
        plan = dataset.scanner(columns=[expected["key_column"]], filter=query["filter"]).explain_plan(True)
        reads = f"@{query['index']}(" in plan
        used += reads
        uses = expected["refresh"].get("uses_index", [])
        if position < len(uses) and uses[position] and not reads:
            wrong.append(f"{query['index']}: {query['filter']} does not read the index")
    return wrong, asked, used


def main(folder):
    fixtures = fixture_tables.unpack()
    failed = total = 0
    for path in sorted(pathlib.Path(folder).glob("*.lance")):
        try:
            wrong, asked, used = check(path, fixture_tables.expected(fixtures, path.stem))
        except Exception as error:  # a table Lance refuses is a finding like any other
            wrong, asked, used = [f"{type(error).__name__}: {error}"], 0, 0
        total += asked
        failed += len(wrong)
        print(f"{path.stem}: {asked} queries, {used} through the index, {len(wrong)} wrong")
        for text in wrong:
            print("   ", text)
    print(f"{total} queries, {failed} wrong")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
