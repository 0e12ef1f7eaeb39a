# SPDX-License-Identifier: GPL-2.0-only
"""Swap that is missing, full or refused: a warning, and the content is there."""

from lib import swap
from lib.errors import Skip
from lib.runner import cases

GROUP = ("file",)
ALL = ("wl_all", "4M")
MIB = 1 << 20


def no_other_swap(t):
    """The test needs a machine that has no swap but ours."""
    others = t.swap.foreign()
    if others:
        raise Skip("the machine has swap of its own: %s" % ", ".join(others))


def warned(result):
    """Return the warnings of the plugin about pages that stay in."""
    return [line for line in result.log.splitlines()
            if "Warn" in line and ("shmem" in line or "swap" in line)]


@cases("plain", "strict", groups=GROUP)
def test_no_swap_at_restore(t, how):
    """There was swap at dump, there is none at restore."""
    no_other_swap(t)
    wl = t.cold_workload(ALL)
    pid = wl.pid
    t.dump(t.criu(), wl, "img")
    t.swap.off()
    if how == "strict":
        result = t.criu(CRIU_SHMEM_STRICT="1").restore(t.path("img"))
        t.expect(not result.ok, "strict restore succeeds without swap")
        t.expect(not result.lines("Forking task"), "strict restore forked tasks")
        t.expect(any("STRICT" in e for e in result.errors()), "no error names STRICT")
        t.expect(warned(result), "nothing names swap")
        if result.ok:
            wl.restored(pid)
        return
    result = t.restore(t.criu(), wl, "img")
    t.expect(warned(result), "no warning about the missing swap")
    t.same(wl, "after restore", cold=None)
    t.verify(wl, "after restore")


@cases(groups=GROUP)
def test_swap_full_at_restore(t):
    """There is less swap at restore than there are cold pages."""
    no_other_swap(t)
    wl = t.cold_workload(("wl_anon", "32M"))
    t.dump(t.criu(), wl, "img")
    t.swap.off()
    with swap.SwapFile(t.dir, 4 * MIB):
        result = t.restore(t.criu(), wl, "img")
        t.expect(warned(result), "no warning about the full swap")
        t.same(wl, "after restore", cold=None)
        t.verify(wl, "after restore")
        wl.kill()


@cases(groups=GROUP)
def test_swap_full_after_dump(t):
    """Swap shrinks while the dump runs: what does not fit stays in, no more."""
    no_other_swap(t)
    wl = t.cold_workload(("wl_anon", "32M"))
    criu = t.criu()
    with swap.SwapFile(t.dir, 4 * MIB):
        t.swap.off()
        result = criu.dump(wl.pid, t.path("img"), "--leave-running")
        t.expect(result.ok, "dump: %s" % result.why())
        t.expect(wl.alive(), "a task is gone or stopped")
        t.same(wl, "after the dump", cold=None)
        t.verify(wl, "after the dump")
        wl.kill()


@cases(groups=GROUP)
def test_pageout_refused(t):
    """The kernel refuses to page out, at dump and at restore."""
    wl = t.cold_workload(ALL)
    criu = t.criu(CRIU_SHMEM_FAULT="pageout-refused")
    result = t.dump_running(criu, wl, "img-running")
    t.expect(warned(result), "dump: no warning")
    t.verify(wl, "after dump --leave-running")
    t.expect(not wl.command("pageout"), "pageout")
    t.dump(t.criu(), wl, "img")
    result = t.restore(criu, wl, "img")
    t.expect(warned(result), "restore: no warning")
    t.same(wl, "after restore", cold=None, hot=None)
    t.verify(wl, "after restore")
