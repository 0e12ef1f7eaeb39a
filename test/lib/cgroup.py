# SPDX-License-Identifier: GPL-2.0-only
"""A memory cgroup with a limit, cgroup v1 or v2."""

import errno
import os
import time

from .errors import Unavailable


def mounts(kind):
    """Return [(mount point, options)] of a file system type."""
    with open("/proc/self/mounts") as f:
        rows = [line.split() for line in f]
    return [(row[1], row[3].split(",")) for row in rows if row[2] == kind]


def find():
    """Return (directory for cgroups, version)."""
    for where, options in mounts("cgroup"):
        if "memory" in options:
            return where, 1
    for where, _ in mounts("cgroup2"):
        try:
            with open(os.path.join(where, "cgroup.controllers")) as f:
                if "memory" not in f.read().split():
                    continue
            with open(os.path.join(where, "cgroup.subtree_control"), "w") as f:
                f.write("+memory")
        except OSError:
            continue
        return where, 2
    raise Unavailable("no memory cgroup")


class MemoryCgroup:
    """A cgroup that is removed at the end of the with block."""

    LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}

    def __init__(self, name, limit=None):
        top, self.version = find()
        self.path = os.path.join(top, "%s-%d" % (name, os.getpid()))
        try:
            os.mkdir(self.path)
        except OSError as err:
            raise Unavailable("memory cgroup: %s" % err)
        if limit:
            self.limit(limit)

    def write(self, name, value):
        """Write a control file."""
        with open(os.path.join(self.path, name), "w") as f:
            f.write(str(value))

    def limit(self, size):
        """Set the limit in bytes."""
        self.write(self.LIMIT[self.version], size)

    def enter(self):
        """Move the calling process in: for preexec_fn."""
        self.write("cgroup.procs", os.getpid())

    def squeeze(self):
        """Ask the kernel to reclaim all it can; swap is full of our pages then."""
        try:
            if self.version == 1:
                self.write("memory.force_empty", 0)
            else:
                self.write("memory.reclaim", 1 << 40)
        except OSError as err:
            if err.errno not in (errno.EAGAIN, errno.EBUSY, errno.EINTR):
                raise

    def oom_kills(self):
        """Return how many tasks the OOM killer has killed in here."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        with open(os.path.join(self.path, name)) as f:
            return sum(int(line.split()[1]) for line in f if line.startswith("oom_kill "))

    def close(self):
        """Remove the cgroup; dead tasks may take a moment to leave it."""
        for _ in range(500):
            try:
                os.rmdir(self.path)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
