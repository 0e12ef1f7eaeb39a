# SPDX-License-Identifier: GPL-2.0-only
"""Processes that the driver starts: subreaper, trees, kill and reap.

A restored process keeps its pid, so the dumped one must be reaped before.
Init may do that late: the driver makes itself the subreaper and reaps.
"""

import ctypes
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36


def become_subreaper():
    """Make orphans among the descendants children of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def parents():
    """Return {pid: (parent, state)} of all processes."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name) as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        table[int(name)] = (int(fields[1]), fields[0])
    return table


def tree(pid):
    """Return the pids of a process and its descendants, parents first."""
    table = parents()
    found = [pid] if pid in table else []
    for one in found:
        found += [p for p, (parent, _) in table.items() if parent == one]
    return found


def state(pid):
    """Return the state letter of a process, or None if there is none."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return None


def alive(pid):
    """Tell whether a process exists and is no zombie."""
    return state(pid) not in (None, "Z", "X")


def reap(pids, timeout=20):
    """Wait until none of the pids exists, reaping those that are ours."""
    left = set(pids)
    end = time.monotonic() + timeout
    while left and time.monotonic() < end:
        for pid in list(left):
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
            if state(pid) is None:
                left.discard(pid)
        if left:
            time.sleep(0.002)
    if left:
        raise TimeoutError("not gone: %s" % sorted(left))


def kill_tree(pid):
    """SIGKILL a process that we started, with its descendants, and reap."""
    pids = tree(pid)
    for one in pids:
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass
    reap(pids)
