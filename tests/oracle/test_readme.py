"""Every example of the README runs as it is written, against the samples that `make start` serves."""

import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

import command
import fixture_tables
import hosts
import oracle

README = (command.ROOT / "README.md").read_text()
ADDRESS = "http://127.0.0.1:8080"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.S | re.M)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    made = subprocess.run([str(command.ROOT / "scripts" / "samples.sh")], capture_output=True, text=True, check=True).stdout.strip()
    folder = tmp_path_factory.mktemp("start")
    shutil.copytree(made, folder / "samples")
    host = hosts.ServeHost(folder)
    host.made = pathlib.Path(made)
    yield host
    host.close()


def uncovered(samples, table, index):
    path = samples.folder / "samples" / f"{table}.lance"
    return set(oracle.live(path)) - {f for segment in oracle.coverage(path, index) for f in segment}


def test_shell(samples):
    lines = [shlex.split(line) for block in blocks("sh") for line in block.strip().splitlines()]
    assert len(lines) == 12 and all(line[0] == "whetstone" for line in lines)
    assert uncovered(samples, "users", "user_id_idx")
    for line in lines:
        done = subprocess.run(["node", str(command.COMMAND), *(word.replace(ADDRESS, samples.url) for word in line[1:])], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.strip()
    assert not uncovered(samples, "users", "user_id_idx")


def test_node(samples):
    (code,) = blocks("js")
    assert len(uncovered(samples, "users", "created_at_idx")) == 8
    done = subprocess.run(
        ["node", "--input-type=module", "-e", code.replace(ADDRESS, samples.url)], cwd=command.ROOT, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("8 fragments indexed, version ")
    assert not uncovered(samples, "users", "created_at_idx")


def test_browser(samples, browser):
    (code,) = blocks("js browser")
    assert len(uncovered(samples, "deferred", "user_id_idx")) == 5
    answer = browser.ask({"kind": "script", "code": code.replace(ADDRESS, samples.url)})
    assert "error" not in answer, answer
    assert answer["console"][-1].startswith("5 fragments indexed, version "), answer
    assert answer["workers"] == 2
    assert not uncovered(samples, "deferred", "user_id_idx")


def test_edge(samples):
    """In Node with the two things that differ on such a host: the `workerd` entry, and wasm imports that are modules."""
    (code,) = blocks("js edge")
    target = samples.put(samples.made / "deferred.lance")
    assert not any(oracle.coverage(samples.local(target), "user_id_idx"))
    # Inside the checkout, so that the bare name of the package resolves as it does for its users.
    module = command.ROOT / "tests" / "artifacts" / "edge-example.mjs"
    module.parent.mkdir(exist_ok=True)
    module.write_text(code)
    like = (command.ROOT / "tests" / "js" / "workerd-like.mjs").as_uri()
    run = f"""import {{ register }} from "node:module"; register("{like}");
const worker = await import("{module.as_uri()}"); await worker.default.scheduled({{}}, {{ TABLE: "{target}" }});"""
    done = subprocess.run(
        ["node", "--conditions=workerd", "--input-type=module", "-e", run], cwd=command.ROOT, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5 fragments indexed, version "), done.stdout
    oracle.fully_covered(samples.local(target), "user_id_idx")


def test_links_lead_somewhere():
    for page in [command.ROOT / "README.md", *(command.ROOT / "docs").glob("*.md"), command.ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_every_error_code_is_explained():
    declared = set(re.findall(r'= "([A-Z_]+)",', (command.ROOT / "src" / "error.rs").read_text()))
    explained = re.findall(r"^\| `([A-Z_]+)` \|", (command.ROOT / "docs" / "errors.md").read_text(), re.M)
    assert len(declared) > 30 and set(explained) == declared and len(explained) == len(declared)


def test_samples_are_small():
    folder = pathlib.Path(subprocess.run([str(command.ROOT / "scripts" / "samples.sh")], capture_output=True, text=True, check=True).stdout.strip())
    assert folder.is_relative_to(fixture_tables.cache())
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 3_000_000
