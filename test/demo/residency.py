# SPDX-License-Identifier: GPL-2.0-only
"""Where the pages are: criu-shmem's picture, and a judge of our own for the figures.

The figures come from cachestat(2) through test/lib, not from the product.
Where the kernel has no cachestat, from SEEK_DATA and mincore(2), which count
the swap cache as memory: exact only when pages go to zram.
"""

import ctypes
import json
import mmap
import os
import subprocess

from lib import observe, runs
from lib.errors import Failure, Unavailable

PAGE = mmap.PAGESIZE
ROWS = 8	# of a picture of criu-shmem map
MARGIN = 9	# its offsets at the left
STRIPES = 24	# a multiple of this many columns shows the stripes sharply
TOOL_TIMEOUT = 60

observe.libc.mmap.restype = ctypes.c_void_p
observe.libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                              ctypes.c_int, ctypes.c_long]
observe.libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
observe.libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def has_cachestat():
    """Tell whether the kernel has cachestat(2), and we may use it."""
    if "no-cachestat" in os.environ.get("CRIU_SHMEM_FAULT", ""):
        return False
    fd = os.memfd_create("demo-probe")
    try:
        os.ftruncate(fd, PAGE)
        observe.cachestat(fd, 0, 1)
        return True
    except (Unavailable, OSError):
        return False
    finally:
        os.close(fd)


def mincore(fd, size):
    """Return a byte per page: odd if resident."""
    bits = ctypes.create_string_buffer(size // PAGE)
    at = observe.libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap")
    try:
        if observe.libc.mincore(at, size, bits):
            raise OSError(ctypes.get_errno(), "mincore")
    finally:
        observe.libc.munmap(at, size)
    return bits.raw


def populated(fd, size):
    """Yield (offset, end) of the parts of an object that are no holes."""
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(fd, at, os.SEEK_HOLE)
        yield at, end
        at = end


def mincore_states(fd):
    """Return one letter per page, by the means of an older kernel."""
    size = os.fstat(fd).st_size
    states = bytearray(b"H" * (size // PAGE))
    bits = mincore(fd, size)
    for start, end in populated(fd, size):
        for page in range(start // PAGE, end // PAGE):
            states[page] = ord("R") if bits[page] & 1 else ord("S")
    return states


class Tool:
    """criu-shmem."""

    def __init__(self, path, screen, env):
        self.path = path
        self.screen = screen
        self.env = dict(env, LC_ALL="C.UTF-8" if screen.utf8 else "C")

    def run(self, *args):
        """Run it and return its output."""
        done = subprocess.run([self.path] + [str(a) for a in args], env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True,
                              timeout=TOOL_TIMEOUT)
        if done.returncode:
            raise Failure("criu-shmem %s: %s" % (
                args[0], done.stderr.decode(errors="replace").strip() or
                "exit status %d" % done.returncode))
        return done.stdout.decode(errors="replace")

    def picture(self, pid, address, columns):
        """Return (caption, rows with offsets, legend) of what is mapped at an address."""
        listed = json.loads(self.run("status", "--json", pid))["objects"]
        index = [i for i, o in enumerate(listed)
                 if any(r.get("start") == address for r in o["refs"])]
        color = "always" if self.screen.color else "never"
        lines = self.run("map", "--color=" + color, "--width=%d" % (columns + MARGIN),
                         pid).splitlines()
        starts = [i for i, line in enumerate(lines) if ", shmid " in line]
        if not index or len(starts) != len(listed):
            raise Failure("criu-shmem map does not show the memory at %#x" % address)
        at = starts[index[0]]
        return lines[at], lines[at + 1:at + 1 + ROWS], lines[-1]


class Look:
    """One look at all objects of a workload: states of each page."""

    def __init__(self, workload, tool, cachestat, columns):
        self.states = {o.name: self.read(workload, o, cachestat) for o in workload.objects}
        address = next(o.where for o in workload.objects if o.how == "map")
        self.caption, self.rows, self.legend = tool.picture(workload.pid, address, columns)

    @staticmethod
    def read(workload, one, cachestat):
        """Return one letter per page of an object."""
        fd = observe.open_object(workload.pid, one.how, one.where)
        try:
            return runs.to_states(observe.runs(fd)) if cachestat else mincore_states(fd)
        finally:
            os.close(fd)

    def bytes(self, letter):
        """Return how much is in a state."""
        return PAGE * sum(s.count(letter.encode()) for s in self.states.values())

    def share(self, letter, before):
        """Return the part of the pages in a state before that are in it now, 0 to 1."""
        was = same = 0
        want = ord(letter)
        for name, states in before.items():
            now = self.states[name]
            was += states.count(letter.encode())
            same += sum(a == want == b for a, b in zip(states, now))
        return same / was if was else 0.0


def planned(workload):
    """Return what the states of all objects are meant to be."""
    return {o.name: runs.to_states(o.plan) for o in workload.objects}
