# SPDX-License-Identifier: GPL-2.0-only
"""Other ways to dump, and memory that the plugin leaves alone."""

import os
import resource
import signal

from lib import proc
from lib.errors import Skip
from lib.runner import cases
from lib.tmpfs import Tmpfs

GROUP = ("file",)
ALL = ("wl_all", "4M")
HUGEPAGES = "/proc/sys/vm/nr_hugepages"


@cases(groups=GROUP)
def test_leave_stopped(t):
    """dump --leave-stopped: the tasks are stopped, the cold pages out."""
    wl = t.cold_workload(ALL)
    result = t.criu().dump(wl.pid, t.path("img"), "--leave-stopped")
    t.require(result.ok, "dump: %s" % result.why())
    t.expect(all(proc.state(p) == "T" for p in wl.pids), "the tasks are not stopped")
    t.same(wl, "after dump --leave-stopped")
    for pid in wl.pids:
        os.kill(pid, signal.SIGCONT)
    t.verify(wl, "after dump --leave-stopped")


@cases(groups=GROUP)
def test_pre_dump(t):
    """A pre-dump brings nothing in."""
    wl = t.cold_workload(ALL)
    criu = t.criu()
    result = criu.pre_dump(wl.pid, t.path("img-pre"))
    t.expect(wl.alive(), "after pre-dump: a task is gone or stopped")
    t.same(wl, "after pre-dump")
    if not result.ok:
        t.verify(wl, "after pre-dump")
        raise Skip("this kernel cannot pre-dump (%s); checked that it harms nothing"
                   % result.why())
    t.dump(criu, wl, "img", "--prev-images-dir", "../img-pre", "--track-mem")
    t.restore(criu, wl, "img")
    t.same(wl, "after restore")
    t.verify(wl, "after restore")


@cases(groups=GROUP)
def test_many_dumps(t):
    """Dumps of a running workload, again and again: nothing adds up."""
    wl = t.cold_workload(ALL)
    criu = t.criu()
    for turn in range(5):
        t.dump_running(criu, wl, "img-%d" % turn)
        t.same(wl, "after dump %d" % turn)
    t.verify(wl, "after the dumps")


def with_hugepages(t, wanted):
    """Have some free huge pages for the time of a test."""
    try:
        with open(HUGEPAGES) as f:
            before = f.read()
    except OSError:
        raise Skip("kernel without huge pages")
    t.cleanup(lambda: set_hugepages(before))
    set_hugepages(str(int(before) + wanted))
    with open(HUGEPAGES) as f:
        if int(f.read()) < int(before) + wanted:
            raise Skip("no memory for huge pages")


def set_hugepages(text):
    with open(HUGEPAGES, "w") as f:
        f.write(text)


def left_alone_once(t, result, word):
    """The log says once that something is left alone."""
    found = [line for line in result.lines("left alone") if word in line]
    t.expect(len(found) == 1, "the log says %d times that %s is left alone" % (len(found), word))


def special(t, mode, word, *args):
    """An ordinary object beside a special one: both keep what they have."""
    wl = t.cold_workload(("wl_special", "8M", mode) + args)
    criu = t.criu()
    result = t.dump_running(criu, wl, "img-running")
    if word:
        left_alone_once(t, result, word)
    t.same(wl, "after dump --leave-running")
    t.dump(criu, wl, "img")
    t.restore(criu, wl, "img")
    t.same(wl, "after restore")
    t.verify(wl, "after restore")


@cases(groups=GROUP)
def test_hugetlb(t):
    """hugetlb is not swappable and not ours."""
    with_hugepages(t, 4)
    special(t, "hugetlb", "huge")


@cases(groups=GROUP)
def test_mlock(t):
    """Locked pages stay in."""
    special(t, "mlock", None)


@cases(groups=GROUP)
def test_tmpfs_file(t):
    """A file of a host's tmpfs is not dumped: nobody touches it."""
    mounted = Tmpfs(t.path("tmpfs"), 32 << 20)
    t.cleanup(mounted.close)
    special(t, "tmpfs", "tmpfs", "mixed", os.path.join(mounted.where, "file"))


@cases(groups=GROUP)
def test_private(t):
    """A memfd with private copies of some pages: both contents are kept."""
    special(t, "private", None)


@cases(groups=GROUP)
def test_sparse_16t(t):
    """Ten pages in 16 TiB.

    Stock CRIU allocates by size and may fail within the memory it is given
    here; the plugin must do its part and leave the workload alone.
    """
    wl = t.cold_workload(("wl_memfd", "16T", "fdonly", "sparse"))
    criu = t.criu()
    result = criu.dump(wl.pid, t.path("img"), "--leave-running", preexec=little_memory)
    t.expect(result.rc >= 0, "CRIU died of signal %d" % -result.rc)
    t.require(wl.alive(), "a task is gone or stopped")
    t.same(wl, "after dump --leave-running")
    t.verify(wl, "after dump --leave-running")
    if not result.ok:
        found = [e for e in result.errors() if "shmem_plugin" in e]
        t.expect(not found, "it was the plugin that failed: %s" % found[:1])
        return
    wl.kill()
    t.restore(criu, wl, "img")
    t.same(wl, "after restore")
    t.verify(wl, "after restore")


def little_memory():
    """Let a process have 4 GiB of address space."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
