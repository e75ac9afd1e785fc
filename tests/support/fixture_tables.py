"""The committed fixture tables: unpacked once into the cache, keyed by the archive's own hash."""

import hashlib
import json
import os
import pathlib
import shutil
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "tests" / "data" / "lance-fixtures.tar.xz"


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(os.environ.get("WHETSTONE_CACHE") or os.path.join(home, "whetstone"))


def unpack():
    digest = hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:16]
    target = cache() / "fixtures-python" / digest
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = pathlib.Path(tempfile.mkdtemp(dir=target.parent))
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(staging, filter="data")
        try:
            staging.rename(target)
        except OSError:  # another run was faster; what it unpacked is the same
            shutil.rmtree(staging)
    return target / "fixtures"


def expected(fixtures, name, tagged=False):
    path = fixtures / ("tagged" if tagged else "expected") / f"{name}.json"
    return json.loads(path.read_text())


def names(tagged=False):
    """Names of the fixture tables, read from the archive so that collecting tests needs no unpacking of files."""
    folder = unpack() / ("tagged" if tagged else "tables")
    found = sorted(p.stem for p in folder.glob("*.lance"))
    assert found, f"no fixture tables in {folder}"
    return found
