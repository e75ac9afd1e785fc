#!/usr/bin/env python3
"""Does the simulation catch what it is there for? Plants bugs, one at a time, and expects a seed to fail: planted.py [NAME...]

The sources are copied and built once, with every bug behind a name that the environment gives; nothing here is changed. A bug whose place
is not found any more is an error: move it along with the code.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEEDS = os.environ.get("WHETSTONE_SIM_SEEDS", "1000")

#: name: (what goes wrong, file, the place, what stands there with the bug; `BUG` is true when it is planted)
BUGS = {
    "certain": (
        "an attempt that may yet arrive is called a failure",
        "src/table/publish.rs",
        "            Some(Pending { version, .. }) => unknown(",
        "            Some(_) if BUG => error,\n            Some(Pending { version, .. }) => unknown(",
    ),
    "placed": (
        "a version that carries our transaction counts wherever it stands",
        "src/table/commit.rs",
        "            CommitOutcome::Landed(table) => self.placed(",
        "            CommitOutcome::Landed(table) if BUG => CommitOutcome::Landed(table),\n            CommitOutcome::Landed(table) => self.placed(",
    ),
    "newest": (
        "a listing that ends above our version settles that we made it",
        "src/table/succession.rs",
        ".filter(|listed| newest.version == version && ",
        ".filter(|listed| BUG && newest.version >= version || newest.version == version && ",
    ),
    "basis": (
        "what ours was built on passes for being there when it was cleaned up",
        "src/table/succession.rs",
        "        Err(error) if is_not_found(&error) => Ok(false),\n",
        "        Err(error) if is_not_found(&error) => Ok(BUG),\n",
    ),
    "gap": (
        "files that a stray version named are named again",
        "src/table/publish.rs",
        "        data || !self.new.is_empty()\n",
        "        !BUG && (data || !self.new.is_empty())\n",
    ),
    "yield": (
        "a refresh takes what another one covers by now",
        "src/refresh/verify.rs",
        "        self.yield_to_others(built, &mut claims);\n",
        "        if !BUG {\n            self.yield_to_others(built, &mut claims);\n        }\n",
    ),
    "outdated": (
        "a segment with old values stands beside one that covers them",
        "src/refresh/verify.rs",
        "        self.drop_outdated(built, &mut claims);\n",
        "        if !BUG {\n            self.drop_outdated(built, &mut claims);\n        }\n",
    ),
    "stale": (
        "segments that came meanwhile are not asked for old rows",
        "src/refresh/verify.rs",
        "            if !freshness.check(",
        "            if !BUG && !freshness.check(",
    ),
    "identity": (
        "a refresh goes to whatever index has the name",
        "src/refresh/verify.rs",
        "    if named.iter().any(|e| planned.contains(&e.uuid))\n",
        "    if BUG || named.iter().any(|e| planned.contains(&e.uuid))\n",
    ),
    "revived": (
        "rows that are live again are not noticed",
        "src/refresh/verify.rs",
        "before.is_none_or(|before| !before.is_subset(&after))",
        "!BUG && before.is_none_or(|before| !before.is_subset(&after))",
    ),
    "dropplan": (
        "a drop goes to whatever index has the name",
        "src/maintain/drop.rs",
        "        if !(seen ||",
        "        if !BUG && !(seen ||",
    ),
    "discard": (
        "staged files go while their commit may still arrive",
        "src/maintain/discard.rs",
        "    if latest.version() < version {",
        "    if !BUG && latest.version() < version {",
    ),
}


def plant(copy):
    for name, (_, file, place, planted) in BUGS.items():
        path = copy / file
        text = path.read_text()
        if text.count(place) != 1:
            sys.exit(f"{name}: its place is {text.count(place)} times in {file}")
        path.write_text(text.replace(place, planted.replace("BUG", f'crate::planted("{name}")')))
    library = copy / "src/lib.rs"
    library.write_text(library.read_text() + '\n/// Whether this bug is planted.\npub fn planted(name: &str) -> bool {\n    std::env::var("PLANTED").is_ok_and(|planted| planted == name)\n}\n')


def run(binary, name):
    """What the run of all seeds said, and whether it went well."""
    environment = {**os.environ, "PLANTED": name, "WHETSTONE_SIM_SEEDS": SEEDS, "RUST_BACKTRACE": "0"}
    done = subprocess.run([binary, "whatever_happens"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout, done.returncode == 0


def main(names):
    copy = ROOT / "target" / "planted"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("target", "node_modules", ".git", "dist"), symlinks=True)
    plant(copy)
    environment = {**os.environ, "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))}
    built = subprocess.run(["cargo", "test", "--locked", "--test", "simulation", "--no-run"], cwd=copy, env=environment, stderr=subprocess.PIPE, text=True)
    found = re.search(r"Executable .*\((.*)\)", built.stderr)
    if built.returncode or not found:
        sys.exit(built.stderr)
    missed = []
    for name in ["none", *(names or BUGS)]:
        text, well = run(found[1], name)
        seed = re.search(r"seed (\d+) failed", text)
        if well != (name == "none"):
            missed.append(name)
        print(f"{name}: {'all seeds pass' if well else f'seed {seed[1]} fails' if seed else text}", flush=True)
    if missed:
        sys.exit(f"not as it should be: {', '.join(missed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
