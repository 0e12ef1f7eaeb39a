#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Run all parts of the tests, for `make test`, and sum them up.

usage: run.py MAKE

Each part ends with a line of its own, N passed, N failed, N skipped; it is
shown with the part's name before it, and the sum is the last line. A part that
ends without such a line has failed.
"""

import re
import subprocess
import sys

PARTS = ["test-unit", "test-e2e"]
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")


def run(make, part):
    """Run one part, showing its output; return its counts."""
    counts = None
    print("== %s" % part, flush=True)
    child = subprocess.Popen([make, "--no-print-directory", part], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    for line in child.stdout:
        found = SUMMARY.match(line.strip())
        if found:
            counts = [int(n) for n in found.groups()]
            line = "%s: %s\n" % (part, line.strip())
        print(line, end="", flush=True)
    if child.wait() and not (counts and counts[1]):
        counts = counts or [0, 0, 0]
        counts[1] += 1
        print("%s: failed" % part)
    if counts is None:
        print("%s: no summary" % part)
        counts = [0, 1, 0]
    return counts


def main():
    total = [0, 0, 0]
    for part in PARTS:
        total = [a + b for a, b in zip(total, run(sys.argv[1], part))]
    print("%d passed, %d failed, %d skipped" % tuple(total))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
