#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Side-by-side figures: what the plugin costs, and what it is compared with.

python3 test/bench/bench.py [-k NAME] [--quick] [--json] [--report-only] [--list]

Run as root. Both sides of a ratio are measured in turn in the same run; a
figure is the median of all runs, behind it in brackets the lowest and the
highest. Exit code: 0, or 1 when a figure "to reach" is missed.

Environment: CRIU (binary), PLUGIN (default build/shmem_plugin.so), BENCH_BIN
(directory of the bench programs, default build/bench), BENCH_DIR (swap file and
images, default build/bench-run; removed at the end).
"""

import argparse
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import cases_criu  # noqa: E402
import cases_object  # noqa: E402
from figures import UNDECIDED, Row, as_json, table  # noqa: E402
from lib.errors import Failure, Unavailable  # noqa: E402
from machine import Machine  # noqa: E402

# Cases of one swap stand together, so that it is made once.
SWAPS = ("zram", "file")


def all_cases():
    """Return the cases in the order in which they run."""
    found = cases_object.CASES + cases_criu.CASES
    return sorted(found, key=lambda c: SWAPS.index(c[2][0]) if c[2] else len(SWAPS))


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-k", metavar="NAME", default="", dest="name",
                        help="only the cases whose name holds NAME")
    parser.add_argument("--quick", action="store_true", help="3 runs each, on smaller objects")
    parser.add_argument("--json", action="store_true", help="all values, as JSON")
    parser.add_argument("--report-only", action="store_true",
                        help="exit 0 also when a figure is missed")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    return parser.parse_args()


def say(text):
    """Report progress."""
    print(text, file=sys.stderr, flush=True)


def run_case(machine, case, rows, skipped):
    """Run one case; what it lacks or where it fails is said."""
    name, function, args = case
    begin = time.monotonic()
    try:
        rows += list(function(machine, name, *args))
        word = "done"
    except Unavailable as err:
        skipped.append((name, str(err)))
        word = "skipped: %s" % err
    except (Failure, RuntimeError, OSError, TimeoutError) as err:
        rows.append(Row(name, "failed", str(err), "works", False))
        word = "failed: %s" % err
    say("%-20s %s [%.0f s]" % (name, word, time.monotonic() - begin))


def on_signal(signum, frame):
    raise KeyboardInterrupt()


def run_all(machine, cases, rows, skipped):
    """Run the cases; return False when interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, on_signal)
    try:
        for case in cases:
            run_case(machine, case, rows, skipped)
        return True
    except KeyboardInterrupt:
        say("interrupted, cleaning up")
        return False
    finally:
        # A second Ctrl-C must not leave swap behind.
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        machine.close()


def report(options, rows, skipped):
    """Print the figures."""
    if options.json:
        print(as_json(rows, skipped))
        return
    print(table(rows))
    for name, why in skipped:
        print("skipped %s: %s" % (name, why))
    count = [sum(row.ok is word for row in rows) for word in (True, False, UNDECIDED)]
    print("%d figures reached, %d missed, %d undecided (%s: the machine is too busy), "
          "%d cases skipped" % (*count, UNDECIDED, len(skipped)))


def main():
    """Run what the command line asks for; return the exit code."""
    options = arguments()
    cases = [c for c in all_cases() if options.name in c[0]]
    if options.list:
        print("\n".join(c[0] for c in cases))
        return 0
    if not cases:
        sys.exit("bench.py: no case has %r in its name" % options.name)
    if os.geteuid():
        sys.exit("bench.py: must be root (swapon, CRIU)")
    rows, skipped = [], []
    whole = run_all(Machine(options.quick), cases, rows, skipped)
    report(options, rows, skipped)
    missed = any(row.ok is False for row in rows)
    return 1 if not whole or (missed and not options.report_only) else 0


if __name__ == "__main__":
    sys.exit(main())
