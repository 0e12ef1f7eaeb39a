# SPDX-License-Identifier: GPL-2.0-only
"""The command-line tool says what the judge sees."""

import json
import os
import subprocess

from lib import runs
from lib.criu import RESIDENCY, ROOT
from lib.errors import Skip
from lib.runner import cases

TOOL = os.path.join(ROOT, "build", "criu-shmem")
GROUP = ("file",)
ALL = ("wl_all", "4M")


def tool(*args):
    """Run the tool; return (exit code, output)."""
    if not os.access(TOOL, os.X_OK):
        raise Skip("%s is not built" % os.path.relpath(TOOL))
    done = subprocess.run([TOOL] + [str(a) for a in args], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode(errors="replace")


def triples(wl):
    """Return the sorted (resident, swapped) of the objects, as the judge sees them."""
    found = [runs.counts(r) for r in wl.observe().values()]
    return sorted((c["R"], c["S"]) for c in found)


def numbers(value):
    """Yield all numbers of a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield int(value)


def test_probe(t):
    """probe works, as text and as JSON."""
    code, text = tool("probe")
    t.expect(code in (0, 1) and text.strip(), "probe: exit %d: %s" % (code, text))
    code, text = tool("probe", "--json")
    t.expect(isinstance(json.loads(text), dict), "probe --json is no object")


@cases(groups=GROUP)
def test_status(t):
    """status PID counts what the judge counts."""
    wl = t.cold_workload(("wl_anon", "8M"))
    code, text = tool("status", wl.pid)
    t.expect(code == 0 and text.strip(), "status: exit %d: %s" % (code, text))
    code, text = tool("status", "--json", wl.pid)
    seen = set(numbers(json.loads(text)))
    page = os.sysconf("SC_PAGESIZE")
    for resident, swapped in triples(wl):
        for count in (resident, swapped):
            t.expect(count in seen or count * page in seen,
                     "status --json does not show %d pages" % count)


@cases(groups=GROUP)
def test_map(t):
    """map PID draws something."""
    wl = t.cold_workload(("wl_anon", "8M"))
    code, text = tool("map", wl.pid)
    t.expect(code == 0 and text.strip(), "map: exit %d: %s" % (code, text))


@cases(groups=GROUP)
def test_show(t):
    """show DIR reads what a dump has written."""
    wl = t.cold_workload(ALL)
    t.dump(t.criu(), wl, "img")
    for args in (("show",), ("show", "--json")):
        code, text = tool(*args, t.path("img"))
        t.expect(code == 0 and text.strip(), "%s: exit %d: %s" % (args, code, text))
    json.loads(text)


@cases("anon", "memfd-fdonly", "sysv-once", "tasks-forked", groups=GROUP)
def test_diff(t, kind):
    """diff says yes after our restore, and no after a stock one."""
    wl = t.cold_workload(kind)
    t.dump(t.criu(), wl, "img")
    t.restore(t.criu(), wl, "img")
    code, text = tool("diff", t.path("img"), wl.pid)
    t.expect(code == 0, "after our restore: exit %d: %s" % (code, text))
    wl.kill()
    t.restore(t.stock(), wl, "img")
    code, text = tool("diff", t.path("img"), wl.pid)
    t.expect(code == 1, "after a stock restore: exit %d: %s" % (code, text))


def test_errors(t):
    """What cannot be done is exit 2 with a message."""
    os.makedirs(t.path("empty"))
    os.makedirs(t.path("broken"))
    with open(os.path.join(t.path("broken"), RESIDENCY), "w") as f:
        f.write("garbage")
    for args in (("status", 999999999), ("status", "abc"), ("map", 999999999),
                 ("show", t.path("none")), ("show", t.path("empty")), ("show", t.path("broken")),
                 ("diff", t.path("empty"), os.getpid()), ("no-such-command",), ("status",)):
        code, text = tool(*args)
        t.expect(code == 2 and text.strip(), "%s: exit %d: %s" % (args, code, text))
