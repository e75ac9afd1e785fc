"""Full text indexes: what is built here finds the same documents with the same scores as what Lance builds, and Lance carries it on."""

import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from lance.query import BooleanQuery, FullTextOperator, MatchQuery, Occur, PhraseQuery

import command
import oracle

INDEX = "text_idx"
COLUMN = "text"
WORDS = (
    "the of and is running runner ran runs Fox fox foxes café naïve Straße ÆON İstanbul don't we've user_name snake-case 42 3.14 "
    "日本語 Ωmega running, organizations universal University lazily lazy dogs quick brown jumped über smörgåsbord"
).split()
LONG = "x" * 39, "y" * 40, "z" * 41

SETTINGS = {
    "default": {},
    "positions": {"with_position": True},
    "plain": {"stem": False, "remove_stop_words": False, "lower_case": False, "ascii_folding": False, "max_token_length": None},
    "whitespace": {"base_tokenizer": "whitespace", "with_position": True, "stem": False},
    "raw": {"base_tokenizer": "raw"},
    "ngram": {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 3},
    "german": {"language": "German", "with_position": True},
    "own stop words": {"custom_stop_words": ["fox", "quick"], "stem": False},
}


def texts(rng, rows):
    """Documents of uneven length: words that are everywhere, words that are rare, empty ones and nulls."""
    out = []
    for _ in range(rows):
        kind = rng.random()
        words = [rng.choice(WORDS) for _ in range(rng.randrange(1, 30))] + [f"rare{rng.randrange(400)}"]
        if kind < 0.05:
            words = [rng.choice(LONG)]
        if kind > 0.97:
            words = ["common"] * rng.randrange(1, 200)
        out.append(None if 0.05 < kind < 0.1 else "" if 0.1 < kind < 0.12 else " ".join([*words, "everywhere"]))
    return out


def write(path, rng, sizes, **options):
    first = lance.dataset(str(path)).count_rows() if path.exists() else 0
    for rows in sizes:
        table = pa.table({"id": pa.array(range(first, first + rows), pa.int64()), COLUMN: pa.array(texts(rng, rows), options.pop("type", pa.string()))})
        lance.write_dataset(table, str(path), mode="append" if path.exists() else "create", **options)
        first += rows
    return path


def queries(settings):
    found = [MatchQuery(text, COLUMN) for text in ("fox", "running", "café", "everywhere", "rare7 rare11 quick", "日本語", "organization", "the", "common")]
    found.append(MatchQuery("quick brown fox", COLUMN, operator=FullTextOperator.AND))
    found.append(BooleanQuery([(Occur.MUST, MatchQuery("everywhere", COLUMN)), (Occur.MUST_NOT, MatchQuery("fox", COLUMN)), (Occur.SHOULD, MatchQuery("dogs", COLUMN))]))
    if settings.get("with_position"):
        found += [PhraseQuery("quick brown", COLUMN), PhraseQuery("lazy dogs everywhere", COLUMN), PhraseQuery("common common common", COLUMN)]
    return found


def answers(path, query):
    table = lance.dataset(str(path)).scanner(columns=["id", "_score"], full_text_query=query, limit=100_000).to_table()
    return sorted(zip(table["id"].to_pylist(), table["_score"].to_pylist()))


def parameters(settings):
    return [word for key, value in settings.items() for word in ("--param", f"{key}={json.dumps(value)}")]


def twin(path, other, settings):
    """The same table with an index built by Lance over all of it."""
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(path, other)
    lance.dataset(str(other)).create_scalar_index(COLUMN, "INVERTED", name=INDEX, replace=True, **settings)
    return other


def same_answers(path, other, settings, scores=True):
    some = 0
    asked = queries(settings)
    if settings.get("base_tokenizer") == "raw":
        asked += [MatchQuery(text, COLUMN) for text in oracle.values(path, COLUMN).to_pylist()[:20] if text]
    for query in asked:
        ours, theirs = answers(path, query), answers(other, query)
        assert [i for i, _ in ours] == [i for i, _ in theirs], query
        assert not scores or np.allclose([s for _, s in ours], [s for _, s in theirs], rtol=1e-6), query
        some += len(ours)
    assert some > 0


def segment_files(path, uuid):
    files = {}
    for file in sorted((path / "_indices" / str(uuid)).glob("*.lance")):
        reader = lance.file.LanceFileReader(str(file))
        files[file.name] = (reader.read_all().to_table(), dict(reader.metadata().schema.metadata or {}))
    return files


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("name", SETTINGS)
def test_made_here_searched_by_lance(name, stable, tmp_path):
    settings = SETTINGS[name]
    path = write(tmp_path / "t.lance", random.Random(name), [700, 300], enable_stable_row_ids=stable)
    lance.dataset(str(path)).delete("id % 7 = 3")
    report = command.run("create-index", path, INDEX, COLUMN, "INVERTED", *parameters(settings))
    assert report["established"] == [0, 1]
    oracle.healthy(path)
    other = twin(path, tmp_path / "other.lance", settings)
    same_answers(path, other, settings)
    ours, theirs = oracle.describe(path, INDEX), oracle.describe(other, INDEX)
    assert (ours.details, ours.segments[0].index_version) == (theirs.details, theirs.segments[0].index_version)

    # Byte for byte what Lance writes, but for the last bit of scores.
    mine, lances = segment_files(path, ours.segments[0].uuid), segment_files(other, theirs.segments[0].uuid)
    assert set(mine) == set(lances)
    for file, (table, metadata) in mine.items():
        expected, their_metadata = lances[file]
        if b"params" in metadata:
            assert json.loads(metadata.pop(b"params")) == json.loads(their_metadata.pop(b"params"))
        assert metadata == their_metadata, file
        for column in table.column_names:
            values, known = table[column].to_pylist(), expected[column].to_pylist()
            if column == "_max_score":
                assert np.allclose(values, known, rtol=2e-7)
            elif column == "_posting":
                # A block begins with a score, which hangs on the last bit of a logarithm.
                assert [[b[4:] for b in blocks] for blocks in values] == [[b[4:] for b in blocks] for blocks in known]
                assert np.allclose(*([np.frombuffer(b[:4], "<f4")[0] for blocks in lists for b in blocks] for lists in (values, known)), rtol=2e-7)
            elif name != "raw" or column != "_token_fst_bytes":  # of whole texts the same set may be laid out in another way
                assert values == known, (file, column)

    # Lance appends, searches what is not indexed yet, optimizes and compacts on top of ours.
    write(path, random.Random(3), [90])
    lance.dataset(str(path)).optimize.optimize_indices()
    oracle.fully_covered(path, INDEX)
    same_answers(path, twin(path, other, settings), settings)
    lance.dataset(str(path)).delete("id % 5 = 0")
    lance.dataset(str(path)).optimize.compact_files(target_rows_per_fragment=5000)
    # The statistics of an older segment keep counting rows that were deleted since.
    same_answers(path, twin(path, other, settings), settings, scores=False)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("train", [True, False], ids=["appended", "deferred"])
def test_an_index_of_lance_is_refreshed(train, stable, tmp_path):
    settings = {"with_position": True, "stem": False, "custom_stop_words": ["fox"]}
    path = write(tmp_path / "t.lance", random.Random(5), [300], enable_stable_row_ids=stable)
    lance.dataset(str(path)).create_scalar_index(COLUMN, "INVERTED", name=INDEX, train=train, **settings)
    write(path, random.Random(6), [200, 250])
    lance.dataset(str(path)).delete("id % 3 = 1")
    report = command.run("refresh", path, INDEX, "--num-segments", 2)
    assert report["segments_added"] == 2 and report["established"] == ([1, 2] if train else [0, 1, 2])
    oracle.healthy(path)
    oracle.fully_covered(path, INDEX)
    # Rows deleted since a segment was built still count in its statistics: scores are only comparable where all is new.
    found = [i for i, _ in answers(path, MatchQuery("quick rare7", COLUMN))]
    other = twin(path, tmp_path / "other.lance", settings)
    assert found == [i for i, _ in answers(other, MatchQuery("quick rare7", COLUMN))]
    if not train:
        same_answers(path, other, settings)
    lance.dataset(str(path)).optimize.optimize_indices(num_indices_to_merge=10)
    assert len(oracle.fully_covered(path, INDEX)) == 1, "Lance merges our segments with its own"
    assert found == [i for i, _ in answers(path, MatchQuery("quick rare7", COLUMN))]


PROBES = {
    "match": ["fox", "running", "rare7 rare11 quick", "nothing", "the"],
    "match-all": ["quick brown fox", "everywhere rare3", "fox nothing"],
    "phrase": ["quick brown", "lazy dogs everywhere", "common common common", "brown the fox", "3.14"],
    "boolean": ["+everywhere -fox dogs", "fox dogs", '+"quick brown" +fox', "rare7 -everywhere", '"lazy dogs" rare3 -quick'],
}


def as_lance(op, text):
    """The query of Lance that a probe stands for."""
    if op == "match-all":
        return MatchQuery(text, COLUMN, operator=FullTextOperator.AND)
    if op != "boolean":
        return (MatchQuery if op == "match" else PhraseQuery)(text, COLUMN)
    occurs = {"+": Occur.MUST, "-": Occur.MUST_NOT, "": Occur.SHOULD}
    parts = re.findall(r'([+-]?)(?:"([^"]*)"|(\S+))', text)
    return BooleanQuery([(occurs[sign], PhraseQuery(phrase, COLUMN) if phrase else MatchQuery(word, COLUMN)) for sign, phrase, word in parts])


@pytest.mark.parametrize(
    "name,stable", [("positions", True), ("whitespace", False), *([("positions", False), ("german", True)] if os.environ.get("WHETSTONE_FULL") else [])]
)
def test_probes_name_the_rows_that_lance_finds(name, stable, tmp_path):
    path = write(tmp_path / "t.lance", random.Random(name), [400, 300], enable_stable_row_ids=stable)
    lance.dataset(str(path)).create_scalar_index(COLUMN, "INVERTED", name=INDEX, **SETTINGS[name])
    write(path, random.Random(6), [200])
    command.run("refresh", path, INDEX)
    some = 0
    every = [(op, text) for op, texts in PROBES.items() for text in texts]
    # Node starts for each of them: every other one is enough for a sample.
    for op, text in every if os.environ.get("WHETSTONE_FULL") else every[stable::2]:
        probe = command.run("probe", path, INDEX, op, text)
        found = lance.dataset(str(path)).scanner(columns=["id"], full_text_query=as_lance(op, text), limit=100_000, with_row_id=True).to_table()
        wanted = sorted(found["_rowid"].to_pylist())
        assert probe["exact"] and probe["rows"] == len(wanted), (op, text)
        assert [int(row) for row in probe["first_rows"]] == wanted[:1000], (op, text)
        some += len(wanted)
    assert some > 500


KINDS = {
    "large_utf8": pa.large_string(), "list": pa.list_(pa.string()), "large_list": pa.large_list(pa.string()),
    "list of large": pa.list_(pa.large_string()), "utf8": pa.string(),
}  # fmt: skip
WAYS = ["build", "refresh", "deferred", "merge", "absorb"]


def cells():
    every = list(itertools.product(KINDS, WAYS, [False, True]))
    if os.environ.get("WHETSTONE_FULL"):
        return every
    seed = int(os.environ.get("WHETSTONE_SEED", "3"))
    kinds, stable = list(KINDS), random.Random(seed).random() < 0.5
    # Every kind and every way once.
    return [(kinds[(i + seed) % len(kinds)], way, stable ^ (i % 2 == 1)) for i, way in enumerate(WAYS)]


def typed(kind, texts_of):
    if "list" not in kind:
        return pa.array(texts_of, KINDS[kind])
    # Elements, a null among them here and there; joined by spaces they are the text again.
    cut = lambda text: None if text is None else [*text.split(" "), *([None] if len(text) % 3 == 0 else [])]  # noqa: E731
    return pa.array([cut(text) for text in texts_of], KINDS[kind])


def write_kind(path, kind, rng, sizes, **options):
    first = lance.dataset(str(path)).count_rows() if path.exists() else 0
    for rows in sizes:
        table = pa.table({"id": pa.array(range(first, first + rows), pa.int64()), COLUMN: typed(kind, texts(rng, rows))})
        lance.write_dataset(table, str(path), mode="append" if path.exists() else "create", **options)
        first += rows
    return path


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: "-".join(map(str, cell)))
def test_every_column_type_in_every_way(cell, tmp_path):
    kind, way, stable = cell
    settings = {"with_position": True, "stem": False}
    rng = random.Random(str(cell))
    path = write_kind(tmp_path / "t.lance", kind, rng, [300, 200], enable_stable_row_ids=stable)
    lance.dataset(str(path)).delete("id % 9 = 2")
    if way != "build":
        lance.dataset(str(path)).create_scalar_index(COLUMN, "INVERTED", name=INDEX, train=way != "deferred", **settings)
    write_kind(path, kind, rng, [150, 100])
    lance.dataset(str(path)).delete("id % 13 = 5")
    if way == "build":
        command.run("create-index", path, INDEX, COLUMN, "INVERTED", "--num-segments", 2, *parameters(settings))
    else:
        command.run("refresh", path, INDEX, *(["--absorb"] if way == "absorb" else ["--num-segments", "2"]))
    if way == "merge":
        plan = command.run("merge", path, INDEX, "--dry-run")
        assert len(plan["tasks"][0]["merge_of"]["segments"]) == 3
        command.run("merge", path, INDEX)
    oracle.healthy(path)
    oracle.fully_covered(path, INDEX)
    assert command.audit(path, INDEX)["findings"] == []
    other = twin(path, tmp_path / "other.lance", settings)
    # Only rows deleted since Lance's own segment was built still count in its statistics.
    same_answers(path, other, settings, scores=way != "refresh")
    write_kind(path, kind, rng, [80])
    lance.dataset(str(path)).optimize.optimize_indices(num_indices_to_merge=10)
    assert len(oracle.fully_covered(path, INDEX)) == 1, "Lance merges our segments with its own"
    same_answers(path, twin(path, other, settings), settings, scores=False)
    lance.dataset(str(path)).delete("id % 5 = 0")
    lance.dataset(str(path)).optimize.compact_files(target_rows_per_fragment=5000)
    same_answers(path, twin(path, other, settings), settings, scores=False)


@pytest.mark.parametrize("version", [1, 3])
def test_other_posting_formats_of_lance(version, tmp_path):
    """Segments of format 1 are extended by ours of format 2 and audited with them, those of format 3 are refused by name."""
    path = write(tmp_path / "t.lance", random.Random(4), [200])
    settings = {"stem": False, **({"block_size": 256} if version == 3 else {})}
    script = f"import lance; lance.dataset({str(path)!r}).create_scalar_index({COLUMN!r}, 'INVERTED', name={INDEX!r}, **{settings!r})"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "LANCE_FTS_FORMAT_VERSION": str(version)})
    assert oracle.describe(path, INDEX).segments[0].index_version == version
    write(path, random.Random(5), [150])
    if version == 3:
        with pytest.raises(command.Failed) as failed:
            command.run("refresh", path, INDEX)
        assert failed.value.code == "UNSUPPORTED_FEATURE" and failed.value.changed == "nothing"
        return
    assert command.run("refresh", path, INDEX)["established"] == [1]
    oracle.healthy(path)
    same_answers(path, twin(path, tmp_path / "other.lance", settings), settings, scores=False)
    # Rows of both are held against the column, token by token.
    report = command.audit(path, INDEX)
    assert (report["findings"], report["notes"], report["rows"]) == ([], [], 350), report
    assert command.run("merge", path, INDEX)["established"] == [0, 1], "it is read from its column"
    assert oracle.describe(path, INDEX).segments[0].index_version == 2
    same_answers(path, twin(path, tmp_path / "other.lance", settings), settings)


def test_other_settings_are_refused_before_anything_is_built(tmp_path):
    path = write(tmp_path / "t.lance", random.Random(8), [100])
    lance.dataset(str(path)).create_scalar_index(COLUMN, "INVERTED", name=INDEX, stem=False)
    write(path, random.Random(9), [100])
    folders = sorted(p.name for p in (path / "_indices").iterdir())
    for parameter in ("stem=true", "with_position=true", 'custom_stop_words=["fox"]'):
        with pytest.raises(command.Failed) as failed:
            command.run("refresh", path, INDEX, "--param", parameter)
        assert (failed.value.code, failed.value.changed) == ("DETAILS_DIFFER", "nothing")
    assert sorted(p.name for p in (path / "_indices").iterdir()) == folders
    # All of it anew may have any settings.
    report = command.run("refresh", path, INDEX, "--param", "stem=true", "--absorb")
    assert report["established"] == [0, 1]
    assert oracle.describe(path, INDEX).details["stem"] is True


def test_tokenizers_that_need_models_are_refused_by_name(tmp_path):
    path = write(tmp_path / "t.lance", random.Random(8), [10])
    for tokenizer in ("jieba/default", "lindera/ipadic", "icu", "code"):
        with pytest.raises(command.Failed) as failed:
            command.run("create-index", path, INDEX, COLUMN, "INVERTED", "--param", f"base_tokenizer={tokenizer}")
        assert failed.value.code == "UNSUPPORTED_FEATURE" and tokenizer in failed.value.message
    with pytest.raises(command.Failed) as failed:
        command.run("create-index", path, INDEX, "id", "INVERTED")
    assert failed.value.code == "UNSUPPORTED_TYPE"


@pytest.mark.parametrize("language", ["Arabic", "Danish", "Dutch", "Finnish", "French", "Greek", "Hungarian", "Italian", "Norwegian", "Portuguese", "Romanian", "Russian", "Spanish", "Swedish", "Tamil", "Turkish"])
def test_every_language_cuts_the_same_tokens(language, tmp_path):
    samples = ["organizaciones nacionales las", "les chevaux mangent", "die Häuser der Städte", "бегущие собаки и кошки", "οι άνθρωποι και τα βιβλία", "الكتب والمدارس في المدينة",
               "kitapların içinde ve ama", "மரங்கள் அவர் வீடுகள்", "hundene løber og katte", "hästarna springer och", "talojen välissä ja", "házakban és a kertekben", "copiii și cărțile acesta"]
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": range(len(samples)), COLUMN: samples}), str(path))
    command.run("create-index", path, INDEX, COLUMN, "INVERTED", "--param", f"language={language}")
    lance.dataset(str(path)).create_scalar_index(COLUMN, "INVERTED", name="theirs", language=language)
    tokens = []
    for name in (INDEX, "theirs"):
        files = segment_files(path, oracle.describe(path, name).segments[0].uuid)
        tokens.append(files["part_0_tokens.lance"][0]["_token_fst_bytes"].to_pylist())
    assert tokens[0] == tokens[1]
