"""A real Chromium page with the package in it, driven through a Node script (see browser_driver.mjs)."""

import json
import pathlib
import select
import shutil
import subprocess

import command

DRIVER = pathlib.Path(__file__).with_name("browser_driver.mjs")


def executable():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    raise AssertionError("no Chromium on this machine: run scripts/setup.sh chromium")


class Browser:
    def __init__(self):
        self.child = subprocess.Popen(
            ["node", str(DRIVER), executable()],
            env=command.clean_environment(),
            cwd=command.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert self.read(60) == {"ready": True}

    def read(self, timeout):
        ready, _, _ = select.select([self.child.stdout], [], [], timeout)
        assert ready, f"the page did not answer within {timeout} s"
        line = self.child.stdout.readline()
        assert line, "the browser driver ended"
        return json.loads(line)

    def ask(self, job, timeout=120):
        self.child.stdin.write(json.dumps(job) + "\n")
        self.child.stdin.flush()
        return self.read(timeout)

    def refresh(self, target, index, options, store=None, workers=2):
        """The report of a refresh done in the page; its build ran in Web Workers."""
        return self.run("refresh", target, [index], options, store, workers)

    def run(self, method, target, arguments, options, store=None, workers=2):
        """The report of a job done in the page: a method of its table, whose builds ran in Web Workers."""
        answer = self.ask({"target": target, "method": method, "arguments": arguments, "options": options, "store": store or None, "workers": workers})
        if "error" in answer:
            error = answer["error"]
            raise command.Failed(error["code"], error["message"], error.get("changed"), None, json.dumps(answer))
        assert answer["workers"] >= 1 or not answer["report"]["segments_added"], f"no Web Worker was started: {answer}"
        assert answer["version"] == answer["report"]["version"], "the handle did not advance to what it committed"
        return answer["report"]

    def close(self):
        try:
            self.ask({"kind": "close"}, 20)
        except (AssertionError, OSError):
            self.child.kill()
        self.child.wait(20)
