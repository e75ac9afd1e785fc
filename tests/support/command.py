"""Runs the `whetstone` command and understands its answers."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "pkg" / "bin" / "whetstone.js"
ENGINE = ROOT / "pkg" / "dist" / "whetstone_bg.wasm"


class Failed(Exception):
    """The command ended with an error: its code, sentence and exit status."""

    def __init__(self, code, message, changed, status, text):
        super().__init__(f"{code}: {message} (exit {status})")
        self.code, self.message, self.changed, self.status, self.text = code, message, changed, status, text


def start(*arguments, env=None):
    """Starts the command; for tests that need two at once."""
    return subprocess.Popen(
        ["node", str(COMMAND), *map(str, arguments)],
        env={**clean_environment(), **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def finish(process, timeout=120):
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"the command did not end within {timeout} s\nstdout: {out}\nstderr: {err}") from None
    if process.returncode != 0:
        raise failure(process.returncode, out, err)
    return json.loads(out)


def finish_all(started):
    """Waits for commands that run at once: the documents of those that worked, and what the others failed with."""
    done, failed = [], []
    for process in started:
        try:
            done.append(finish(process))
        except Failed as error:
            failed.append(error)
    return done, failed


def run(*arguments, env=None, timeout=120):
    """Runs with --json and returns the document; raises Failed with the typed code otherwise."""
    return finish(start(*arguments, "--json", env=env), timeout)


def audit(*arguments, env=None, timeout=120):
    """The report of an audit, whatever it found: findings are exit 1."""
    process = start("audit", *arguments, "--json", env=env)
    out, err = process.communicate(timeout=timeout)
    report = json.loads(out)
    assert process.returncode == (1 if report["findings"] else 0), out + err
    return report


def failure(status, out, err):
    """The error document of a run with --json is the one document on stdout."""
    try:
        error = json.loads(out)["error"]
        return Failed(error["code"], error["message"], error.get("changed"), status, out + err)
    except (ValueError, KeyError, TypeError):
        raise AssertionError(f"exit {status} without an error document\nstdout: {out}\nstderr: {err}") from None


def clean_environment():
    """The environment without anything that would change where the command looks or what it is allowed."""
    return {k: v for k, v in os.environ.items() if not k.upper().startswith(("AWS_", "WHETSTONE_")) and k.upper() not in PROXIES}


PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
