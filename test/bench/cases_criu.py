# SPDX-License-Identifier: GPL-2.0-only
"""Cases that run CRIU, without and with the plugin in turn.

The order within a pair changes from pair to pair, so that what one run leaves
behind (page cache, free lists) does not favour one side.  What the plugin may
cost is less than what a busy machine adds, so pairs are run until the ratio is
clearly on one side of the limit, or until the time is over; then the figure is
marked as undecided where its median is above the limit.  A second, quiet
figure comes from CRIU's log: the time that passes before each message of the
plugin is the plugin's.
"""

import contextlib
import os
import re
import resource
import select
import shutil
import time

import figures
from figures import Series, decided, told
from lib import runs
from lib.criu import TIMEOUT, read_pid
from lib.errors import Unavailable
from lib.workload import Workload
from machine import GIB, MIB, TRIES, built

PAGE = 4096
SIDES = ("stock", "plugin")
# What the plugin may cost where nothing is swapped.
OVERHEAD_MAX = 1.03
PAIRS_MAX = 100
OVERHEAD_SECONDS = 240
OVERHEAD_SECONDS_QUICK = 40


class Times:
    """Seconds of each side: wall clock, CPU, and in the plugin by CRIU's log."""

    def __init__(self):
        self.wall = {side: [] for side in SIDES}
        self.cpu = {side: [] for side in SIDES}
        self.own = {side: [] for side in SIDES}

    def add(self, side, wall, cpu, own):
        self.wall[side].append(wall)
        self.cpu[side].append(cpu)
        self.own[side].append(own)

    def clear(self):
        """Tell whether the noise hides nothing."""
        return None not in [self.ratio(w).verdict(OVERHEAD_MAX) for w in ("wall", "cpu")]

    def ratio(self, which):
        """Return the ratios plugin / stock of "wall" or "cpu"."""
        times = getattr(self, which)
        return figures.ratio(times["plugin"], times["stock"])

    def seconds(self, which):
        """Return both sides as text."""
        times = getattr(self, which)
        return "; ".join("%s %s" % (side, Series(times[side]).text("%.3f", " s"))
                         for side in SIDES)


def children_cpu():
    """Return the CPU seconds of the children that have been waited for."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def task_cpu(pids):
    """Return the CPU seconds that living tasks have used."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            with open("/proc/%d/schedstat" % pid) as f:
                total += int(f.read().split()[0])
    return total * 1e-9


def own_seconds(log):
    """Return the seconds before the messages of the plugin."""
    total = before = 0
    for line in log.splitlines():
        stamp = re.match(r"\((\d+\.\d+)\)", line)
        if not stamp:
            continue
        now = float(stamp.group(1))
        if "shmem_plugin: " in line or "(shmem_plugin)" in line:
            total += now - before
        before = now
    return total


def wait_for(pid, timeout):
    """Wait until a child has ended, without polling."""
    fd = os.pidfd_open(pid)
    try:
        select.select([fd], [], [], timeout)
    finally:
        os.close(fd)


def timed(criu, verb, images, *options):
    """Run CRIU; return seconds: wall clock, CPU with helpers, in the plugin."""
    cpu, begin = children_cpu(), time.monotonic()
    proc, log = criu.start(verb, images, *options)
    wait_for(proc.pid, TIMEOUT)
    wall = time.monotonic() - begin
    result = criu.finish(proc, log, timeout=1)
    if not result.ok:
        raise RuntimeError("CRIU: %s" % result.why())
    return wall, children_cpu() - cpu, own_seconds(result.log)


class Subject:
    """A workload and the two CRIUs that dump and restore it."""

    def __init__(self, machine, images):
        self.machine = machine
        self.images = images
        self.criu = dict(zip(SIDES, machine.criu_pair()))
        self.wl = None
        # A copy: CRIU does not dump a task whose program has been built anew.
        self.program = shutil.copy(built("", "workloads", "wl_anon"), machine.path("program"))

    def start(self, size, layout):
        """Start a workload with one anonymous object."""
        self.wl = Workload(self.program, self.machine.path("wl"),
                           "%dM" % (size // MIB), layout)

    def close(self):
        if self.wl:
            self.wl.kill()
            shutil.rmtree(self.wl.rundir, ignore_errors=True)
        self.wl = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def states(self):
        """Return {state: pages} now."""
        return runs.counts(self.wl.observe()["anon"])

    def planned(self):
        """Return {state: pages} as the workload was to be."""
        return runs.counts(self.wl.objects[0].plan)

    def fresh(self, side):
        """Return an empty images directory."""
        where = os.path.join(self.images, side)
        shutil.rmtree(where, ignore_errors=True)
        os.makedirs(where)
        return where

    def dump(self, side, *options):
        """Dump into a fresh directory; return what timed() does."""
        where = self.fresh(side)
        took = timed(self.criu[side], "dump", where, "-t", str(self.wl.pid), *options)
        if not options:
            self.wl.reap()
        return took

    def restore(self, side):
        """Restore; the CPU time is that of the tasks too: they fill the memory."""
        pidfile = os.path.join(self.images, "pid")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(pidfile)
        wall, cpu, own = timed(self.criu[side], "restore", os.path.join(self.images, side),
                               "-d", "--pidfile", pidfile)
        self.wl.restored(read_pid(pidfile))
        return wall, cpu + task_cpu(self.wl.pids), own


def in_turn(count):
    """Yield the sides, pair by pair, the order changing."""
    for i in range(count):
        yield from SIDES[:: -1 if i % 2 else 1]


def overhead_rows(name, what, times):
    """Rows of wall clock and CPU of one step."""
    for which, words in (("wall", "wall clock"), ("cpu", "user + sys")):
        yield decided(name, "%s, plugin / stock, %s" % (what, words), times.ratio(which),
                      OVERHEAD_MAX, seconds=getattr(times, which))
        yield told(name, "  of it", times.seconds(which))
    own = figures.ratio(times.own["plugin"], times.wall["stock"]).scaled(100)
    yield told(name, "  in the plugin by CRIU's log / stock",
               "%s; %s" % (Series(times.own["plugin"]).scaled(1e3).text("%.1f", " ms"),
                           own.text("%.1f", " %")), own=times.own)


def all_steps(subject, side, size):
    """Dump, dump for good and restore; return {step: seconds}."""
    wanted = {"H": 0, "S": 0, "R": size // PAGE}
    if subject.states() != wanted:
        # Others on this machine may have made memory short; reading brings it in.
        subject.wl.command("verify")
    if subject.states() != wanted:
        raise Unavailable("not all pages are resident: %s" % subject.states())
    return {"dump --leave-running": subject.dump(side, "--leave-running"),
            "dump": subject.dump(side),
            "restore": subject.restore(side)}


def resident(machine, name):
    """Nothing swapped: what the plugin costs."""
    size, pairs = machine.size(GIB, 256 * MIB), machine.reps(7)
    seconds = OVERHEAD_SECONDS_QUICK if machine.quick else OVERHEAD_SECONDS
    step = {"dump": Times(), "dump --leave-running": Times(), "restore": Times()}
    machine.want_swap("file")
    with machine.tmpfs(3 * size) as images, Subject(machine, images) as subject:
        subject.start(size, "hot")
        for side in SIDES:
            # Warms up.
            all_steps(subject, side, size)
        end = time.monotonic() + seconds
        for i, side in enumerate(in_turn(PAIRS_MAX)):
            for key, got in all_steps(subject, side, size).items():
                step[key].add(side, *got)
            done = i % 2 and i // 2 + 1 >= pairs
            if done and (time.monotonic() > end or all(t.clear() for t in step.values())):
                break
        count = len(step["dump"].wall["stock"])
    for key in step:
        yield from overhead_rows(name, "%s of %d MiB, all resident, %d pairs" % (
            key, size // MIB, count), step[key])


def start_half(subject, size):
    """Start a workload that is half swapped, a quarter resident."""
    for _ in range(TRIES):
        subject.close()
        subject.start(size, "mixed")
        if subject.states() == subject.planned():
            return
    raise Unavailable("the workload does not get into its state")


def half_once(subject, side, size, dumps, restores, out):
    """One dump --leave-running and one restore of a half swapped workload."""
    start_half(subject, size)
    dumps.add(side, *subject.dump(side, "--leave-running"))
    out["dump", side].append(subject.states()["S"] * PAGE // MIB)
    subject.wl.kill()
    restores.add(side, *subject.restore(side))
    out["restore", side].append(subject.states()["S"] * PAGE // MIB)


def half(machine, name, kind):
    """Half swapped: times, and what is swapped afterwards."""
    size = machine.size(GIB, 256 * MIB)
    dumps, restores = Times(), Times()
    out = {(step, side): [] for step in ("dump", "restore") for side in SIDES}
    machine.want_swap(kind)
    with machine.tmpfs(3 * size) as images, Subject(machine, images) as subject:
        for side in in_turn(machine.reps(5)):
            half_once(subject, side, size, dumps, restores, out)
        cold = subject.planned()["S"] * PAGE // MIB
    for step, times, words in (("dump", dumps, "dump --leave-running"),
                               ("restore", restores, "restore")):
        yield told(name, "%s of %d MiB, half swapped, %s" % (words, size // MIB, kind),
                   times.seconds("wall"), wall=times.wall, cpu=times.cpu)
        yield told(name, "  plugin / stock", times.ratio("wall").text(unit="x"))
        yield told(name, "  swapped after it, of %d MiB" % cold, "; ".join(
            "%s %s" % (side, Series(out[step, side]).text("%d", " MiB")) for side in SIDES))


CASES = [
    ("half-zram", half, ("zram",)),
    ("half-file", half, ("file",)),
    ("resident", resident, ()),
]
