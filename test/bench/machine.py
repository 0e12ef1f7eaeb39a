# SPDX-License-Identifier: GPL-2.0-only
"""What the cases run on: swap, memory cgroup, bench programs, CRIU.

Theory of operation: a bench program sets up a state, says "ready" and waits.
Only when the pages have gone to the swap that the case is about (others may
switch swap on and off meanwhile) it is told to go on; else all is done again.
"""

import contextlib
import os
import shutil
import subprocess
import threading

from lib import proc, swap
from lib.cgroup import MemoryCgroup
from lib.criu import ROOT, Criu, find_criu
from lib.errors import Unavailable
from lib.tmpfs import Tmpfs

MIB = 1 << 20
GIB = 1 << 30
TRIES = 3
TIMEOUT = 240
SKIP = 77
# Of the pages that are swapped, how many must be on our own swap.
OWN_SWAP = 0.98


def directory():
    """Return where swap files, images and run directories go."""
    return os.path.abspath(os.environ.get("BENCH_DIR", os.path.join(ROOT, "build", "bench-run")))


def built(variable, *names):
    """Return the path of a thing that must have been built."""
    top = os.environ.get(variable)
    path = os.path.join(top, names[-1]) if top else os.path.join(ROOT, "build", *names)
    if not os.path.exists(path):
        raise Unavailable("%s is not built" % os.path.relpath(path, ROOT))
    return path


def parse(lines):
    """Return {name: values} of the output of a bench program."""
    found = {}
    for line in lines:
        name, *values = line.split()
        found[name] = [int(v) if v.isdigit() else v for v in values]
    return found


class Machine:
    """What the cases share; close() leaves the machine as it was."""

    def __init__(self, quick):
        self.quick = quick
        self.dir = directory()
        self.stack = contextlib.ExitStack()
        self.swap = None
        self.kind = None
        self.missing = {}
        self.count = 0
        proc.become_subreaper()
        os.makedirs(self.dir, exist_ok=True)
        self.stack.callback(shutil.rmtree, self.dir, True)
        self.stack.callback(self.swap_off)
        self.stack.callback(self.end_children)

    def close(self):
        """Remove everything."""
        self.stack.close()

    def end_children(self):
        """End what is left of what was started."""
        for pid in proc.tree(os.getpid())[1:]:
            if proc.parents().get(pid, (0, ""))[0] == os.getpid():
                proc.kill_tree(pid)

    def reps(self, full):
        """Return the number of runs."""
        return 3 if self.quick else full

    def size(self, full, quick):
        """Return a size in bytes."""
        return quick if self.quick else full

    def path(self, name):
        """Return a fresh path in the run directory."""
        self.count += 1
        return os.path.join(self.dir, "%s-%d" % (name, self.count))

    # -- swap --

    def swap_off(self):
        """Remove our swap."""
        if self.swap:
            self.swap.close()
        self.swap = self.kind = None

    def want_swap(self, kind):
        """Have our swap of one kind on, large enough for every case."""
        if kind in self.missing:
            raise Unavailable(self.missing[kind])
        if kind == self.kind:
            return
        self.swap_off()
        try:
            self.swap = swap.make(kind, self.dir, self.size(1536, 512) * MIB)
        except Unavailable as err:
            self.missing[kind] = str(err)
            raise
        self.kind = kind

    def swap_used(self):
        """Return the bytes in our swap."""
        used = [u for p, (_, u) in swap.active().items()
                if os.path.realpath(p) == os.path.realpath(self.swap.path)]
        return used[0] if used else 0

    # -- bench programs --

    def measure(self, kind, cold, program, *args, reclaim=False):
        """Run a bench program whose object has so many cold bytes.

        Return its output as {name: values}.
        """
        path = built("BENCH_BIN", "bench", program)
        self.want_swap(kind)
        for _ in range(TRIES):
            run = Run(self, [path] + [str(a) for a in args], cold, reclaim)
            with run:
                code = run.serve()
            if code != SKIP:
                break
        if code == SKIP:
            raise Unavailable(run.why())
        if code:
            raise RuntimeError("%s: exit %d: %s" % (program, code, run.why()))
        return parse(run.lines)

    # -- CRIU --

    def criu_pair(self):
        """Return (stock, with the plugin), both the same binary."""
        plugin = os.environ.get("PLUGIN") or built("", "shmem_plugin.so")
        binary = find_criu()
        return [Criu(binary, p, rundir=self.dir) for p in (None, plugin)]

    @contextlib.contextmanager
    def tmpfs(self, size):
        """Mount a tmpfs for images."""
        where = self.path("images")
        mounted = Tmpfs(where, size)
        try:
            yield where
        finally:
            mounted.close()


class Run:
    """One run of a bench program."""

    def __init__(self, machine, argv, cold, reclaim):
        self.machine = machine
        self.argv = argv
        self.cold = cold
        self.before = machine.swap_used()
        self.cgroup = MemoryCgroup("bench") if reclaim else None
        self.lines = []
        self.reason = ""

    def __enter__(self):
        pipe = subprocess.PIPE
        try:
            self.proc = subprocess.Popen(self.argv, stdin=pipe, stdout=pipe, stderr=pipe,
                                         universal_newlines=True,
                                         preexec_fn=self.cgroup and self.cgroup.enter)
        except BaseException:
            self.close_cgroup()
            raise
        self.timer = threading.Timer(TIMEOUT, self.proc.kill)
        self.timer.start()
        return self

    def __exit__(self, *exc):
        self.timer.cancel()
        self.proc.kill()
        self.proc.wait()
        for stream in (self.proc.stdin, self.proc.stdout, self.proc.stderr):
            with contextlib.suppress(OSError):
                stream.close()
        self.close_cgroup()

    def close_cgroup(self):
        if self.cgroup:
            self.cgroup.close()

    def serve(self):
        """Answer the program until it ends; return its exit code."""
        for line in self.proc.stdout:
            word = line.strip()
            if word == "ready":
                self.answer(self.on_own_swap())
            elif word == "reclaim":
                self.cgroup.squeeze()
                self.answer(True)
            else:
                self.lines.append(word)
        self.reason = self.proc.stderr.read().strip() or self.reason
        return self.proc.wait()

    def answer(self, good):
        self.proc.stdin.write("go\n" if good else "no\n")
        self.proc.stdin.flush()

    def on_own_swap(self):
        """Tell whether the cold pages are on our swap."""
        there = self.machine.swap_used() - self.before
        if there >= self.cold * OWN_SWAP:
            return True
        self.reason = "%d of %d MiB went to another swap" % ((self.cold - there) // MIB,
                                                           self.cold // MIB)
        return False

    def why(self):
        """Return why a run gave nothing."""
        return self.reason or "no answer within %d s" % TIMEOUT
