#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""End-to-end tests: real CRIU, real swap, real processes.  Run as root.

python3 test/e2e/run.py [-k PATTERN] [--list]

Environment: CRIU (binary), PLUGIN (default build/shmem_plugin.so; "none" runs
the tests without it, and then those of residency must fail), E2E_DIR (default
build/e2e: run directories, swap file).
"""

import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from lib import proc, runner  # noqa: E402
from lib.errors import Unavailable  # noqa: E402
from context import Context, Machine  # noqa: E402


def modules():
    """Import all test modules of this directory."""
    names = sorted(n[:-3] for n in os.listdir(HERE) if n.startswith("test_") and n.endswith(".py"))
    return [importlib.import_module(name) for name in names]


def main():
    """Set the machine up, run, and leave it as it was."""
    if os.geteuid() and "--list" not in sys.argv:
        sys.exit("run.py: must be root (CRIU, swapon)")
    proc.become_subreaper()
    try:
        machine = Machine()
    except Unavailable as err:
        sys.exit("run.py: %s" % err)
    try:
        return runner.main(modules(), lambda case, where: Context(machine, case, where),
                           machine.top)
    finally:
        machine.close()


if __name__ == "__main__":
    sys.exit(main())
