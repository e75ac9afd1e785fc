"""A child process and what it cost."""

import json
import os
import subprocess
import sys

import command

# The peak of a process counts from before it became what it is: a child of a program with a gigabyte of tables would never have less.
# So a small interpreter starts it. It answers [seconds, CPU seconds, peak bytes, status] on the descriptor that is named first.
LAUNCHER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(child.pid, 0)
wall = time.perf_counter() - start
child.returncode = os.waitstatus_to_exitcode(status)
answer = [wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, child.returncode]
os.write(int(sys.argv[1]), json.dumps(answer).encode())
"""


def measured(arguments):
    """(wall seconds, CPU seconds, peak resident bytes, stdout) of a child process."""
    reader, writer = os.pipe()
    launcher = [sys.executable, "-S", "-c", LAUNCHER, str(writer), *map(str, arguments)]
    child = subprocess.Popen(
        launcher, env=command.clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, pass_fds=[writer]
    )
    os.close(writer)
    with os.fdopen(reader) as answer:
        out = child.stdout.read()
        wall, cpu, peak, status = json.loads(answer.read() or "[0, 0, 0, 1]")
    child.wait()
    if status:
        raise SystemExit(f"{arguments[:6]} failed: {out}")
    return wall, cpu, peak, out
