# SPDX-License-Identifier: GPL-2.0-only
"""What the demo needs of the machine, and how all of it goes away again.

Theory of Operation

The demo makes processes, a directory and perhaps a swap.  It is the subreaper
of all its descendants, so whatever it or CRIU started is found below it and
nothing else is ever killed.  The first SIGINT, SIGTERM or SIGHUP raises
Interrupted; it waits while something is made that a half-way exception would
lose (`with signals.held()`), and later ones are ignored, since the clean-up is
under way.  Children are in sessions of their own, so that Ctrl-C on the
terminal reaches the demo alone.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time

from lib import proc, swap
from lib.errors import Unavailable

MIB = 1 << 20
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IN_MEMORY = ("tmpfs", "ramfs")


class Interrupted(BaseException):
    """A signal asked us to stop."""

    def __init__(self, signum):
        super().__init__(signum)
        self.signum = signum


class Signals:
    """Turns signals into Interrupted, but not in the middle of the wrong thing."""

    def __init__(self):
        self.depth = 0
        self.pending = None
        self.closed = False
        for signum in SIGNALS:
            if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
                signal.signal(signum, self.arrived)

    def arrived(self, signum, _frame):
        """The handler."""
        if self.closed:
            return
        self.pending = signum
        if not self.depth:
            self.deliver()

    def deliver(self):
        """Raise what is pending: once, from then on the clean-up goes its way."""
        signum, self.pending = self.pending, None
        if signum is not None and not self.closed:
            self.closed = True
            raise Interrupted(signum)

    def held(self):
        """Return a context in which signals wait."""
        return Held(self)

    def close(self):
        """From now on signals are ignored."""
        self.closed = True


class Held:
    """See Signals.held()."""

    def __init__(self, signals):
        self.signals = signals

    def __enter__(self):
        self.signals.depth += 1

    def __exit__(self, *_):
        self.signals.depth -= 1
        if not self.signals.depth:
            self.signals.deliver()


def run_alone(name, *args):
    """Run a system tool out of the reach of the terminal's signals; return its rc."""
    return subprocess.run([swap.tool(name)] + list(args), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True).returncode


def off_whatever(path):
    """Switch a swap off if the kernel has it on, whatever we believe."""
    real = path and os.path.realpath(path)
    for _ in range(5):
        if not real or real not in [os.path.realpath(p) for p in swap.active()]:
            return
        run_alone("swapoff", path)


class SwapFile(swap.SwapFile):
    """A swap file whose removal trusts the kernel only."""

    def off(self):
        off_whatever(self.path)
        self.is_on = False


class Zram(swap.Zram):
    """A zram swap whose removal trusts the kernel only."""

    def off(self):
        off_whatever(self.path)
        self.is_on = False


def swap_free():
    """Return (total, free) bytes of swap."""
    rows = swap.active().values()
    return sum(size for size, _ in rows), sum(size - used for size, used in rows)


def swap_on_disk():
    """Tell whether a swap is on that is no zram."""
    return any(not os.path.basename(path).startswith("zram") for path in swap.active())


def memory_available():
    """Return the bytes that MemAvailable says."""
    with open("/proc/meminfo") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def file_system(path):
    """Return the type of the file system that a directory is on."""
    best, kind = "", ""
    with open("/proc/self/mounts") as f:
        for line in f:
            _, where, this = line.split()[:3]
            where = where.encode().decode("unicode_escape")
            if path == where or path.startswith(where.rstrip("/") + "/"):
                if len(where) >= len(best):
                    best, kind = where, this
    return kind


def candidates(root):
    """Return the directories to try, on disk before in memory."""
    found = []
    for path in (os.environ.get("TMPDIR"), "/var/tmp", os.path.join(root, "build"), "/tmp"):
        path = path and os.path.realpath(path)
        if path and os.path.isdir(path) and os.access(path, os.W_OK) and path not in found:
            found.append(path)
    return sorted(found, key=lambda p: file_system(p) in IN_MEMORY)


def room(path):
    """Return the free bytes of a directory's file system."""
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize


class Machine:
    """All that is made outside of this process, removed by close()."""

    def __init__(self, signals, root, keep=False):
        self.signals = signals
        self.root = root
        self.keep = keep
        self.dir = None
        self.swap_dir = None
        self.swap = None

    def make_dir(self, size):
        """Make the directory for images and logs on a file system with room."""
        tried = []
        for path in candidates(self.root):
            if room(path) >= size:
                with self.signals.held():
                    self.dir = tempfile.mkdtemp(prefix="criu-shmem-demo-", dir=path)
                return
            tried.append("%s has %d" % (path, room(path) // MIB))
        raise Unavailable("no directory with %d MiB of room (%s; TMPDIR=DIR names another)" %
                          (size // MIB, ", ".join(tried) or "none can be written"))

    def make_swap(self, size, prefer_zram):
        """Make a temporary swap; raise Unavailable with all reasons if none can be."""
        makers = [self.make_swap_file, self.make_zram]
        reasons = []
        for maker in reversed(makers) if prefer_zram else makers:
            try:
                return maker(size)
            except Unavailable as err:
                reasons.append(str(err))
        raise Unavailable("\n".join(reasons))

    def make_swap_file(self, size):
        """Make a swap file in the first directory where the kernel takes one."""
        reasons = []
        for path in candidates(self.root):
            if file_system(path) in IN_MEMORY or room(path) < size + 64 * MIB:
                reasons.append("swap file in %s: in memory, or no room" % path)
                continue
            try:
                with self.signals.held():
                    self.swap_dir = tempfile.mkdtemp(prefix="criu-shmem-demo-swap-", dir=path)
                    self.swap = SwapFile(self.swap_dir, size)
                return "a swap file of %d MiB in %s" % (size // MIB, path)
            except Unavailable as err:
                reasons.append("in %s: %s" % (path, str(err).replace(self.swap_dir + "/", "")))
                self.remove_swap_dir()
        raise Unavailable("\n".join(reasons))

    def make_zram(self, size):
        """Make a compressed swap in memory."""
        with self.signals.held():
            self.swap = Zram(size)
        return "a zram device of %d MiB" % (size // MIB)

    @property
    def swap_is_zram(self):
        """Tell whether we have made a zram, which is then the first to be used."""
        return isinstance(self.swap, Zram)

    def remove_swap_dir(self):
        """Remove the directory of the swap file."""
        if self.swap_dir:
            shutil.rmtree(self.swap_dir, ignore_errors=True)
        self.swap_dir = None

    def close(self):
        """Remove everything; return what could not be removed."""
        self.signals.close()
        left = []
        for what, function in (("processes", end_descendants), ("swap", self.close_swap),
                               ("files", self.close_dir)):
            try:
                function()
            except Exception as err:
                left.append("%s: %s" % (what, err))
        return left

    def close_swap(self):
        """Switch the swap off and remove it."""
        if self.swap:
            self.swap.close()
        if self.swap_dir:
            for path in swap.active():
                if os.path.dirname(path) == self.swap_dir:
                    off_whatever(path)
        self.swap = None
        self.remove_swap_dir()

    def close_dir(self):
        """Remove images and logs."""
        if self.dir and not self.keep:
            shutil.rmtree(self.dir)
            self.dir = None


def end_descendants(timeout=30):
    """Kill and reap all processes below this one."""
    end = time.monotonic() + timeout
    while True:
        below = proc.tree(os.getpid())[1:]
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        reap_all()
        if not below:
            return
        if time.monotonic() > end:
            raise TimeoutError("%s do not end" % ", ".join(str(p) for p in below))
        time.sleep(0.01)


def reap_all():
    """Reap every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_by(signum):
    """End as a process does that does not handle the signal."""
    signal.signal(signum, signal.SIG_DFL)
    os.kill(os.getpid(), signum)
    return 128 + signum
