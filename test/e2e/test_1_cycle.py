# SPDX-License-Identifier: GPL-2.0-only
"""Each kind of object: dump and restore leave content and residency alone."""

from kinds import KINDS
from lib.runner import cases


@cases(*KINDS, groups=("file", "zram"))
def test_cycle(t, kind):
    """dump --leave-running, dump and restore, and again; then the content."""
    wl = t.cold_workload(kind)
    criu = t.criu()
    t.dump_running(criu, wl, "img-running")
    t.same(wl, "after dump --leave-running")
    t.expect(not wl.command("touch-hot"), "workload does not answer after the dump")
    for turn in ("first", "second"):
        t.dump(criu, wl, "img-" + turn)
        t.restore(criu, wl, "img-" + turn)
        t.same(wl, "after the %s restore" % turn)
    t.verify(wl, "after the second restore")


@cases(*KINDS, groups=("file",))
def test_leave_running_content(t, kind):
    """After dump --leave-running the content is there, and after a restore."""
    wl = t.cold_workload(kind)
    criu = t.criu()
    t.dump_running(criu, wl, "img")
    t.verify(wl, "after dump --leave-running")
    wl.kill()
    t.restore(criu, wl, "img")
    t.same(wl, "after restore")
    t.verify(wl, "after restore")


@cases(*KINDS, groups=("file",))
def test_stock_restores_ours(t, kind):
    """Images made with the plugin restore without it."""
    wl = t.cold_workload(kind)
    t.dump(t.criu(), wl, "img")
    t.restore(t.stock(), wl, "img")
    t.same(wl, "after restore", cold=None)
    t.verify(wl, "after restore")


@cases(*KINDS, groups=("file",))
def test_we_restore_stock(t, kind):
    """Images made without the plugin restore with it."""
    wl = t.cold_workload(kind)
    t.dump(t.stock(), wl, "img")
    t.restore(t.criu(), wl, "img")
    t.same(wl, "after restore", cold=None)
    t.verify(wl, "after restore")
