# SPDX-License-Identifier: GPL-2.0-only
"""A dump that fails, or is cut short, leaves the workload as it found it."""

import os
import signal
import threading
import time

from lib import proc, scripts
from lib.runner import cases
from lib.tmpfs import Tmpfs

GROUP = ("file",)
ALL = ("wl_all", "4M")


def check_unharmed(t, wl, result, when="after the failed dump"):
    """The dump has failed by itself; the workload is as before."""
    t.expect(not result.timed_out, "the dump hangs")
    t.expect(result.rc > 0, "rc of the dump is %d" % result.rc)
    t.require(wl.alive(), "%s: a task is gone or stopped" % when)
    t.same(wl, when)
    t.verify(wl, when)


def tmpfs(t, size):
    """Mount a tmpfs as the images directory."""
    mounted = Tmpfs(t.path("img"), size)
    t.cleanup(mounted.close)
    return mounted


@cases("16K", "1M", "8M", groups=GROUP)
def test_images_full(t, size):
    """The images directory fills up: early, or with the content half read."""
    wl = t.cold_workload(ALL)
    units = {"K": 1 << 10, "M": 1 << 20}
    tmpfs(t, int(size[:-1]) * units[size[-1]])
    check_unharmed(t, wl, t.criu().dump(wl.pid, t.path("img")))


@cases(groups=GROUP)
def test_images_read_only(t):
    """The images directory cannot be written to."""
    wl = t.cold_workload(ALL)
    tmpfs(t, 1 << 20).read_only()
    check_unharmed(t, wl, t.criu().dump(wl.pid, t.path("img")))


@cases("plain", "running", groups=GROUP)
def test_external_socket(t, how):
    """CRIU refuses at the end, when all shared memory has been read."""
    wl = t.cold_workload(("wl_all", "4M", "external"))
    options = ["--leave-running"] if how == "running" else []
    result = t.criu().dump(wl.pid, t.path("img"), *options)
    t.expect(result.lines("xternal socket"), "the dump failed for another reason: " + result.why())
    check_unharmed(t, wl, result)


@cases("pre-dump", "post-dump", groups=GROUP)
def test_script_fails(t, action):
    """An action script fails: the tasks live on."""
    wl = t.cold_workload(ALL)
    options = scripts.at(t.dir, action, "exit 3")
    check_unharmed(t, wl, t.criu().dump(wl.pid, t.path("img"), *options))


@cases(groups=GROUP)
def test_criu_killed(t):
    """CRIU is killed with the tasks frozen: they run on, content intact.

    No parasite is in the tasks any more.  Nobody is left who could put the
    cold pages out again, so only content and holes are looked at.
    """
    wl = t.cold_workload(ALL)
    options = scripts.at(t.dir, "post-dump", "kill -9 $CRIU_PID")
    result = t.criu().dump(wl.pid, t.path("img"), "--leave-running", *options)
    t.expect(result.rc == -signal.SIGKILL, "CRIU was not killed: rc %d" % result.rc)
    t.require(wl.alive(), "a task is gone or stopped")
    t.same(wl, "after CRIU was killed", cold=None, hot=None)
    t.verify(wl, "after CRIU was killed")


@cases(groups=GROUP)
def test_task_killed_by_script(t):
    """A frozen task is killed when all is read: the dump ends, not by a signal."""
    wl = t.cold_workload(ALL)
    child = wl.task_pid("child")
    options = scripts.at(t.dir, "post-dump", "kill -9 %d" % child)
    result = t.criu().dump(wl.pid, t.path("img"), "--leave-running", *options)
    t.expect(not result.timed_out, "the dump hangs")
    t.expect(result.rc >= 0, "CRIU died of signal %d" % -result.rc)
    check_survivor(t, wl, child)


def check_survivor(t, wl, dead):
    """The tasks that were not killed run on with their content."""
    wl.pids = [p for p in wl.pids if p != dead]
    t.expect(wl.alive(), "another task is gone or stopped")
    ok, text = wl.answer("main", wl.send("main", "verify"))
    t.expect(ok, text)


def kill_at(log, word, pid, done):
    """Kill a process as soon as a log shows a word."""
    while not done.is_set():
        try:
            with open(log, errors="replace") as f:
                seen = word in f.read()
        except OSError:
            seen = False
        if seen:
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.0005)


@cases("Collecting fds", "Dumping core", "Dumping pages", "Dumping path", "memfd",
       "IPC shared memory", groups=GROUP)
def test_task_killed_in_race(t, word):
    """A task is killed while CRIU is at it: the dump ends, and not by a signal."""
    wl = t.cold_workload(ALL)
    child = wl.task_pid("child")
    criu = t.criu()
    os.makedirs(t.path("img"))
    done = threading.Event()
    process, log = criu.start("dump", t.path("img"), "-t", str(wl.pid), "--leave-running")
    killer = threading.Thread(target=kill_at, args=(log, word, child, done))
    killer.start()
    result = criu.finish(process, log)
    done.set()
    killer.join()
    t.expect(not result.timed_out, "the dump hangs")
    t.expect(result.rc >= 0, "CRIU died of signal %d" % -result.rc)
    t.expect(result.lines(word), "the log never shows %r" % word)
    if proc.alive(child):
        os.kill(child, signal.SIGKILL)
    check_survivor(t, wl, child)
