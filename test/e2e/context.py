# SPDX-License-Identifier: GPL-2.0-only
"""What a test gets: workloads, CRIU, swap, checks; and the machine below."""

import os

import checks
from kinds import KINDS
from lib import swap
from lib.criu import ROOT, Criu, find_criu
from lib.errors import Failure, Unavailable
from lib.workload import Workload

WORKLOADS = os.path.join(ROOT, "build", "workloads")

# The machine pages out and in on its own too: a set-up may need another start.
SETUPS = 4


class Machine:
    """What outlives a test: the binaries, the swap that is on."""

    def __init__(self):
        self.top = os.path.abspath(os.environ.get("E2E_DIR", os.path.join(ROOT, "build", "e2e")))
        self.plugin = os.environ.get("PLUGIN", os.path.join(ROOT, "build", "shmem_plugin.so"))
        self.criu = find_criu()
        for path in (self.plugin, WORKLOADS):
            if path != "none" and not os.path.exists(path):
                raise Unavailable("%s is not built" % path)
        os.makedirs(self.top, exist_ok=True)
        self.swap = None
        self.kind = None
        self.missing = {}

    def want_swap(self, kind):
        """Have a swap of a kind switched on and nothing else of ours."""
        if kind in self.missing:
            raise Unavailable(self.missing[kind])
        if kind == self.kind and self.swap.is_on:
            return
        self.close()
        if not kind:
            return
        try:
            self.swap = swap.make(kind, self.top)
        except Unavailable as err:
            self.missing[kind] = str(err)
            raise
        self.kind = kind

    def close(self):
        """Switch our swap off and remove it."""
        if self.swap:
            self.swap.close()
        self.swap = None
        self.kind = None


class Context:
    """One test."""

    def __init__(self, machine, case, directory):
        self.machine = machine
        self.kind = case.group
        self.dir = directory
        self.failures = []
        self.cleanups = []
        machine.want_swap(case.group)

    @property
    def swap(self):
        return self.machine.swap

    def path(self, name):
        """Return a path in the run directory."""
        return os.path.join(self.dir, name)

    def note(self, text):
        """Keep a text with the logs."""
        with open(self.path("notes"), "a") as f:
            f.write(text + "\n")

    def expect(self, condition, text):
        """Record a failure and go on."""
        if not condition:
            self.failures.append(text)
        return condition

    def require(self, condition, text):
        """Fail at once."""
        if not condition:
            raise Failure(text)

    def cleanup(self, function):
        """Call a function at the end of the test, last come first served."""
        self.cleanups.append(function)

    def close(self):
        """End of the test."""
        for function in reversed(self.cleanups):
            try:
                function()
            except Exception as err:
                self.note("clean-up: %r" % err)

    # -- CRIU --

    def criu(self, plugin=True, **env):
        """Return a CRIU with the plugin and an environment for it."""
        path = self.machine.plugin if plugin and self.machine.plugin != "none" else None
        return Criu(self.machine.criu, path, env, self.dir)

    def stock(self):
        """Return a CRIU without the plugin."""
        return self.criu(plugin=False)

    # -- workloads --

    def start(self, program, *args, preexec=None, name="wl"):
        """Start a workload."""
        wl = Workload(os.path.join(WORKLOADS, program), self.path(name), *args, preexec=preexec)
        self.cleanup(wl.kill)
        return wl

    def cold_workload(self, kind, name="wl", **kw):
        """Start a workload of a kind; its cold pages are out, the hot ones in."""
        for i in range(SETUPS):
            wl = self.start(*KINDS.get(kind, kind), name="%s%s" % (name, i or ""), **kw)
            wl.before = wl.observe()
            plan = {o.name: o.plan for o in wl.objects}
            wrong = checks.compare_all(plan, wl.before)
            if not wrong:
                return wl
            self.note("set-up %d: %s" % (i, "; ".join(wrong)))
            wl.kill()
        raise Failure("set-up: " + "; ".join(wrong))

    # -- steps, each with its checks --

    def same(self, wl, when, **limits):
        """Check that the objects are as they were before."""
        wrong = checks.compare_all(wl.before, wl.observe(), **limits)
        for text in wrong:
            self.expect(False, "%s: %s" % (when, text))
        return not wrong

    def verify(self, wl, when):
        """Check that the content is intact, byte for byte."""
        for text in wl.command("verify"):
            self.expect(False, "%s: %s" % (when, text))

    def dump_running(self, criu, wl, images, *options):
        """dump --leave-running must succeed and leave the tasks running."""
        result = criu.dump(wl.pid, self.path(images), "--leave-running", *options)
        self.require(result.ok, "dump --leave-running: %s" % result.why())
        self.expect(wl.alive(), "after dump --leave-running: a task is gone or stopped")
        return result

    def dump(self, criu, wl, images, *options):
        """dump must succeed; the tasks end."""
        result = criu.dump(wl.pid, self.path(images), *options)
        self.require(result.ok, "dump: %s" % result.why())
        wl.reap()
        return result

    def restore(self, criu, wl, images, *options, **kw):
        """restore must succeed."""
        result = criu.restore(self.path(images), *options, **kw)
        self.require(result.ok and result.pid, "restore: %s" % result.why())
        wl.restored(result.pid)
        return result
