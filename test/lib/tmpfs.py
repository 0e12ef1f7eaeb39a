# SPDX-License-Identifier: GPL-2.0-only
"""A small tmpfs of our own."""

import os
import subprocess

from .swap import tool


class Tmpfs:
    """A tmpfs of a size, mounted in a directory; unmounted by close()."""

    def __init__(self, where, size):
        self.where = where
        os.makedirs(where, exist_ok=True)
        self.mount("-t", "tmpfs", "-o", "size=%d" % size, "tmpfs", where)

    def mount(self, *args):
        subprocess.run([tool("mount")] + list(args), check=True, timeout=20)

    def read_only(self):
        """Make it read-only."""
        self.mount("-o", "remount,ro", self.where)

    def close(self):
        subprocess.run([tool("umount"), "-l", self.where], check=True, timeout=20)
