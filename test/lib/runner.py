# SPDX-License-Identifier: GPL-2.0-only
"""A minimal test runner.

Each test runs with a time limit and a run directory of its own; one line is
printed per test, and one line with the totals at the end.  The directories of
failed tests are kept.
"""

import argparse
import fnmatch
import os
import shutil
import signal
import sys
import time
import traceback

from .errors import Failure, Skip, Unavailable

TIMEOUT = 120


class TestTimeout(Exception):
    """The time limit of a test has passed."""


class Case:
    """One test: a function and its arguments."""

    def __init__(self, name, function, args=(), group="", timeout=TIMEOUT):
        self.name = name
        self.function = function
        self.args = args
        self.group = group
        self.timeout = timeout


def cases(*labels, groups=("",), timeout=TIMEOUT):
    """Decorate a test: run it once per label, and per group (of a resource)."""
    def mark(function):
        function.labels = labels
        function.groups = groups
        function.timeout = timeout
        return function
    return mark


def expand(function):
    """Yield the cases of a test function."""
    base = function.__name__[len("test_"):]
    for group in getattr(function, "groups", ("",)):
        for label in getattr(function, "labels", ()) or (None,):
            inside = ",".join(x for x in (label, group) if x)
            yield Case("%s[%s]" % (base, inside) if inside else base, function,
                       () if label is None else (label,), group,
                       getattr(function, "timeout", TIMEOUT))


def discover(modules):
    """Return the cases of all test functions, in the order of the source."""
    found = []
    for module in modules:
        functions = [f for n, f in vars(module).items()
                     if n.startswith("test_") and callable(f)]
        for function in functions:
            found += list(expand(function))
    return found


def on_alarm(signum, frame):
    raise TestTimeout()


def on_signal(signum, frame):
    raise KeyboardInterrupt()


def run_case(case, context):
    """Run one test; return (word, reason)."""
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(case.timeout)
    try:
        case.function(context, *case.args)
        signal.alarm(0)
        return ("FAIL", "; ".join(context.failures)) if context.failures else ("ok", "")
    except (Skip, Unavailable) as err:
        return "skip", str(err)
    except TestTimeout:
        return "FAIL", "; ".join(context.failures + ["time limit of %d s" % case.timeout])
    except Failure as err:
        return "FAIL", "; ".join(context.failures + [str(err)])
    except Exception as err:
        context.note(traceback.format_exc())
        return "FAIL", "; ".join(context.failures + ["%s: %s" % (type(err).__name__, err)])
    finally:
        signal.alarm(0)


def run_one(case, make_context, top):
    """Run one test in its directory; return the word and the line to print."""
    directory = os.path.join(top, case.name.replace("[", "-").replace("]", "").replace(",", "-"))
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    begin = time.monotonic()
    context = None
    try:
        context = make_context(case, directory)
        word, reason = run_case(case, context)
    except Unavailable as err:
        word, reason = "skip", str(err)
    finally:
        if context:
            context.close()
    if word != "FAIL":
        shutil.rmtree(directory, ignore_errors=True)
    else:
        reason += "  (logs: %s)" % os.path.relpath(directory)
    line = "%-4s %s" % (word, case.name) + (": %s" % reason if reason else "")
    return word, line + "  [%.1f s]" % (time.monotonic() - begin)


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-k", metavar="PATTERN", default="", dest="pattern",
                        help="only tests whose name holds or matches PATTERN")
    parser.add_argument("--list", action="store_true", help="list the tests and stop")
    return parser.parse_args()


def selected(name, pattern):
    """Tell whether a test is asked for; several patterns are split by '|'."""
    return any(p in name or fnmatch.fnmatch(name, p) for p in pattern.split("|"))


def run_all(found, make_context, top):
    """Run cases grouped by their resource; return the exit code."""
    total = {"ok": 0, "FAIL": 0, "skip": 0}
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGHUP, on_signal)
    groups = list(dict.fromkeys(c.group for c in found))
    try:
        for case in sorted(found, key=lambda c: groups.index(c.group)):
            word, line = run_one(case, make_context, top)
            total[word] += 1
            print(line, flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        total["FAIL"] += 1
    print("%d passed, %d failed, %d skipped" % (total["ok"], total["FAIL"], total["skip"]))
    return 1 if total["FAIL"] else 0


def main(modules, make_context, top):
    """Run what the command line asks for; return the exit code."""
    options = arguments()
    found = [c for c in discover(modules) if selected(c.name, options.pattern)]
    if options.list:
        print("\n".join(c.name for c in found))
        return 0
    return run_all(found, make_context, top)
