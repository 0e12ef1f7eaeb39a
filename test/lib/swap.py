# SPDX-License-Identifier: GPL-2.0-only
"""Swap for tests: a file or a zram device, gone again at the end.

Both get the highest priority, so that they are used before any swap that the
machine has.  `foreign()` tells whether it has any.
"""

import atexit
import os
import shutil
import subprocess

from .errors import Unavailable

PRIORITY = 32767
MIB = 1 << 20
ZRAM_CONTROL = "/sys/class/zram-control"


def tool(name):
    """Return the path of a system tool, which may be in /sbin."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if not path:
        raise Unavailable("no %s" % name)
    return path


def run(name, *args):
    """Run a system tool; raise Unavailable with its message if it fails."""
    done = subprocess.run([tool(name)] + list(args), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=120)
    if done.returncode:
        raise Unavailable("%s: %s" % (name, done.stdout.decode(errors="replace").strip()))
    return done.stdout.decode(errors="replace")


def active():
    """Return the active swaps as {path: (size, used)} in bytes."""
    with open("/proc/swaps") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return {row[0]: (int(row[-3]) * 1024, int(row[-2]) * 1024) for row in rows}


class Swap:
    """Base: a swap that can be switched off and on, and removed."""

    def __init__(self):
        self.path = None
        self.is_on = False
        atexit.register(self.close)

    def on(self):
        """Switch the swap on."""
        run("swapon", "-p", str(PRIORITY), self.path)
        self.is_on = True

    def off(self):
        """Switch the swap off; what is in it comes in."""
        if self.is_on:
            run("swapoff", self.path)
            self.is_on = False

    def foreign(self):
        """Return the paths of active swaps that are not this one."""
        return [p for p in active() if os.path.realpath(p) != os.path.realpath(self.path)]

    def close(self):
        """Switch off and remove; may be called twice."""
        self.off()
        self.remove()
        atexit.unregister(self.close)

    def remove(self):
        """Remove what was made."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class SwapFile(Swap):
    """A swap file without holes in a directory."""

    def __init__(self, directory, size=256 * MIB):
        super().__init__()
        self.path = os.path.join(directory, "swapfile-%d-%d" % (os.getpid(), size // MIB))
        try:
            self.make(size)
            self.on()
        except (Unavailable, OSError) as err:
            self.close()
            raise Unavailable("swap file: %s" % err)

    def make(self, size):
        """Write the file and its signature."""
        with open(self.path, "wb") as f:
            os.chmod(self.path, 0o600)
            for _ in range(size // MIB):
                f.write(bytes(MIB))
        run("mkswap", self.path)

    def remove(self):
        if self.path and os.path.exists(self.path):
            os.unlink(self.path)


class Zram(Swap):
    """A zram device, hot-added."""

    def __init__(self, size=256 * MIB):
        super().__init__()
        self.number = None
        if not os.path.isdir(ZRAM_CONTROL):
            try:
                run("modprobe", "zram")
            except Unavailable:
                pass
        try:
            self.make(size)
            self.on()
        except (Unavailable, OSError) as err:
            self.close()
            raise Unavailable("zram: %s" % err)

    def make(self, size):
        """Add a device, set its size and write the signature."""
        with open(os.path.join(ZRAM_CONTROL, "hot_add")) as f:
            self.number = int(f.read())
        self.path = "/dev/zram%d" % self.number
        with open("/sys/block/zram%d/disksize" % self.number, "w") as f:
            f.write(str(size))
        run("mkswap", self.path)

    def remove(self):
        if self.number is None:
            return
        with open("/sys/block/zram%d/reset" % self.number, "w") as f:
            f.write("1")
        with open(os.path.join(ZRAM_CONTROL, "hot_remove"), "w") as f:
            f.write(str(self.number))
        self.number = None


def make(kind, directory, size=256 * MIB):
    """Return a swap of a kind, "file" or "zram", switched on."""
    return Zram(size) if kind == "zram" else SwapFile(directory, size)
