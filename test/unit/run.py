#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Run the unit tests: plain, under ASan and UBSan, and under valgrind.

usage: run.py TEST...

Each test is a cmocka program in build/test/ and build/san/test/. Ends with one
line: N passed, N failed, N skipped.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test"))

from lib import swap  # noqa: E402
from lib.errors import Unavailable  # noqa: E402

TIMEOUT = 600
VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full",
            "--errors-for-leak-kinds=definite,indirect", "--child-silent-after-fork=yes"]
LINE = re.compile(r"^\[\s*(OK|FAILED|SKIPPED|ERROR)\s*\] ([A-Za-z_]\w*)$", re.M)


def flavours():
    """Return (name, directory, command before the program) of each way to run."""
    yield "plain", "build/test", []
    yield "sanitized", "build/san/test", []
    if shutil.which("valgrind"):
        yield "valgrind", "build/test", VALGRIND


def run(program, prefix):
    """Run one program; return (exit status, output)."""
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="STDOUT", ASAN_OPTIONS="detect_leaks=1",
               UNDER_VALGRIND="1" if prefix else "")
    try:
        done = subprocess.run(prefix + [program], stdout=subprocess.PIPE, timeout=TIMEOUT,
                              stderr=subprocess.STDOUT, env=env, errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as e:
        return -1, (e.stdout or b"").decode(errors="replace") + "\nno end after %d s" % TIMEOUT


def count(name, status, output):
    """Print what happened in one program; return (passed, failed, skipped)."""
    results = {}
    for result, test in LINE.findall(output):
        results[test] = result
    passed = sum(r == "OK" for r in results.values())
    skipped = sum(r == "SKIPPED" for r in results.values())
    failed = len(results) - passed - skipped
    if status and not failed:
        failed = 1
    if not results:
        failed = failed or 1
    print("%-5s%s: %d passed, %d failed, %d skipped of its cases" %
          ("FAIL" if failed else "ok", name, passed, failed, skipped))
    if failed:
        print(output[-8000:])
    for line in output.splitlines():
        if line.startswith("skip: "):
            print("     " + line)
    sys.stdout.flush()
    return passed, failed, skipped


@contextlib.contextmanager
def some_swap():
    """Swap for the cases that page something out, gone at the end."""
    try:
        with swap.make("file", os.path.join(ROOT, "build")):
            yield
    except Unavailable as why:
        print("no swap of our own: %s" % why)
        yield


def run_all():
    """Run every test in every flavour; return the counts."""
    total = [0, 0, 0]
    if not shutil.which("valgrind"):
        print("skip valgrind: it is not installed")
        total[2] += len(sys.argv) - 1
    for flavour, directory, prefix in flavours():
        for test in sys.argv[1:]:
            status, output = run(os.path.join(directory, test), prefix)
            for i, n in enumerate(count("%s (%s)" % (test, flavour), status, output)):
                total[i] += n
    return total


def main():
    with some_swap():
        total = run_all()
    if not sys.argv[1:]:
        total[1] += 1
    print("%d passed, %d failed, %d skipped" % tuple(total))
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
