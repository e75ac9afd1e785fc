"""Fixtures shared by the oracle and the bad-input tests."""

import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))

import command  # noqa: E402
import fixture_tables  # noqa: E402
import hosts  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def built_command():
    """The tests drive the command as a user would; without it nothing here means anything."""
    assert command.COMMAND.exists(), "pkg/bin/whetstone.js is missing"
    assert command.ENGINE.exists(), "the engine is not built: run `make build`"


@pytest.fixture(scope="session")
def fixtures():
    """The folder of the committed fixture tables; a missing one is an error, never a skip."""
    return fixture_tables.unpack()


@pytest.fixture(scope="session")
def webdav(tmp_path_factory):
    """One `whetstone serve --writable` for the session, over its own folder."""
    host = hosts.ServeHost(tmp_path_factory.mktemp("served"))
    yield host
    host.close()


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """One S3 endpoint (moto) for the session."""
    host = hosts.S3Host(tmp_path_factory.mktemp("s3"))
    yield host
    host.close()


@pytest.fixture(scope="session")
def browser():
    """One Chromium for the session, started when first used."""
    import browser as module

    page = module.Browser()
    yield page
    page.close()


@pytest.fixture
def scratch(tmp_path):
    """Copies a fixture table into a fresh folder: scratch(source) -> path."""

    def copy(source):
        target = tmp_path / pathlib.Path(source).name
        shutil.copytree(source, target, copy_function=shutil.copyfile)
        return target

    return copy
