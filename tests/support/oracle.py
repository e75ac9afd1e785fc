"""What Lance says about a table we wrote. Every check opens the dataset anew: nothing is answered from a cache."""

import lance


def describe(path, index):
    """The named index as `describe_indices` gives it."""
    found = [d for d in lance.dataset(str(path)).describe_indices() if d.name == index]
    assert len(found) == 1, f"Lance lists {[d.name for d in lance.dataset(str(path)).describe_indices()]}, wanted one {index}"
    return found[0]


def coverage(path, index):
    """Fragment ids per segment, sorted."""
    return sorted(sorted(s.fragment_ids) for s in describe(path, index).segments)


def live(path):
    return sorted(f.fragment_id for f in lance.dataset(str(path)).get_fragments())


def values(path, column="v"):
    return lance.dataset(str(path)).to_table(columns=[column])[column]


def ids(path, filter, key="id", **options):
    table = lance.dataset(str(path)).scanner(columns=[key], filter=filter, **options).to_table()
    return sorted(table[key].to_pylist())


def uses(path, filter, index, key="id"):
    return f"@{index}(" in lance.dataset(str(path)).scanner(columns=[key], filter=filter).explain_plan(True)


def agree(path, index, filters, key="id"):
    """Every filter returns the rows of a full scan, and reads the index for it."""
    agree_without_plan(path, filters, key)
    for text in filters:
        assert uses(path, text, index, key), f"{text!r}: the plan does not read {index}"


def agree_without_plan(path, filters, key="id"):
    """Every filter returns the rows of a full scan, whether or not the index covers anything (a compaction may empty it)."""
    any_rows = False
    for text in filters:
        scanned = ids(path, text, key, use_scalar_index=False)
        assert ids(path, text, key) == scanned, f"{text!r}: with the index other rows than without"
        any_rows |= bool(scanned)
    assert any_rows, "no filter matched any row: these filters prove nothing"


def healthy(path):
    """Lance's own check of the table."""
    lance.dataset(str(path)).validate()


def fully_covered(path, index):
    """Each live fragment is in exactly one segment, and Lance counts all rows as indexed."""
    segments = coverage(path, index)
    named = [f for segment in segments for f in segment]
    assert len(named) == len(set(named)), f"overlapping segments: {segments}"
    assert set(live(path)) <= set(named), f"uncovered fragments: {sorted(set(live(path)) - set(named))}"
    dataset = lance.dataset(str(path))
    assert describe(path, index).num_rows_indexed == dataset.count_rows()
    return segments


