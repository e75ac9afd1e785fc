"""A child process and what it cost."""

import os
import subprocess
import time

import command


def measured(arguments):
    """(wall seconds, CPU seconds, peak resident bytes, stdout) of a child process."""
    start = time.perf_counter()
    child = subprocess.Popen(arguments, env=command.clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{arguments[:6]} failed: {out}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out
