# SPDX-License-Identifier: GPL-2.0-only
"""Pages go out and come in while a dump or a restore runs.

What was recorded is out of date then.  Content must not care.
"""

import contextlib
import os
import threading
import time

from lib import observe
from lib.cgroup import MemoryCgroup
from lib.errors import Skip
from lib.runner import cases

MIB = 1 << 20


@contextlib.contextmanager
def meanwhile(function):
    """Call a function again and again in a thread."""
    stop = threading.Event()

    def loop():
        while not stop.is_set():
            function()
            time.sleep(0.001)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def cgroup(t, limit=None):
    """Make a memory cgroup for the test."""
    group = MemoryCgroup("e2e", limit)
    t.cleanup(group.close)
    return group


@cases("anon", "memfd-fdonly", "sysv-once", "tasks-forked", groups=("file", "zram"))
def test_reclaim_during_dump(t, kind):
    """All pages of the workload are reclaimed again and again meanwhile."""
    group = cgroup(t)
    wl = t.cold_workload(kind, preexec=group.enter)
    criu = t.criu()
    with meanwhile(group.squeeze):
        t.dump_running(criu, wl, "img-running")
        t.verify(wl, "while pages go out")
        t.dump(criu, wl, "img")
    t.restore(criu, wl, "img")
    t.same(wl, "after restore", cold=None, hot=None)
    t.verify(wl, "after restore")


def reader(wl):
    """Return a function that reads all populated pages of an object."""
    one = wl.objects[0]
    fd = observe.open_object(wl.task_pid(one.task), one.how, one.where)
    runs = [(start, n) for start, n, state in one.plan if state != "H"]

    def read():
        for start, count in runs:
            os.pread(fd, count * observe.PAGE, start * observe.PAGE)
    return fd, read


@cases("anon", "memfd-fdonly", groups=("file",))
def test_read_during_dump(t, kind):
    """Somebody outside of the tree reads the object all the time."""
    wl = t.cold_workload(kind)
    criu = t.criu()
    fd, read = reader(wl)
    with meanwhile(read):
        t.dump_running(criu, wl, "img-running")
        t.dump(criu, wl, "img")
    os.close(fd)
    t.restore(criu, wl, "img")
    t.same(wl, "after restore", cold=None, hot=None)
    t.verify(wl, "after restore")


def churn(t, group, wl):
    """Two turns of dump, dump and restore of a churning workload."""
    criu = t.criu()
    for turn in ("first", "second"):
        t.dump_running(criu, wl, "img-running-" + turn)
        t.verify(wl, "after the %s dump --leave-running" % turn)
        t.dump(criu, wl, "img-" + turn)
        t.restore(criu, wl, "img-" + turn, preexec=group.enter)
        t.verify(wl, "after the %s restore" % turn)


@cases(groups=("file", "zram"))
def test_churner(t):
    """A workload that swaps all the time, under a limit of a quarter.

    Stock CRIU pins 8 MiB of it at a time, which may be what the OOM killer
    needs: that is no fault of the plugin, and no pass either.
    """
    group = cgroup(t, 24 * MIB)
    wl = t.start("wl_churn", "96M", preexec=group.enter)
    try:
        churn(t, group, wl)
    finally:
        if group.oom_kills():
            raise Skip("the OOM killer came: CRIU pins what it reads")


LIMITED = {
    "anon": ("wl_anon", "32M"),
    "memfd": ("wl_memfd", "32M", "whole"),
    "sysv": ("wl_sysv", "32M", "once"),
}


@cases(*LIMITED, groups=("file", "zram"))
def test_limit(t, kind):
    """Under a limit below the size of the objects, and CRIU in the cgroup."""
    group = cgroup(t)
    wl = t.cold_workload(LIMITED[kind], preexec=group.enter)
    t.dump(t.criu(), wl, "img")
    group.limit(24 * MIB)
    t.restore(t.criu(), wl, "img", preexec=group.enter)
    t.same(wl, "after restore", hot=None)
    t.verify(wl, "after restore")
