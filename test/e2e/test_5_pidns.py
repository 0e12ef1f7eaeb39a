# SPDX-License-Identifier: GPL-2.0-only
"""A task in a pid namespace of its own: the pids in the images are not ours."""

from lib.runner import cases


@cases(groups=("file",))
def test_pidns(t):
    wl = t.cold_workload(("wl_pidns", "8M"))
    criu = t.criu()
    t.dump_running(criu, wl, "img-running")
    t.same(wl, "after dump --leave-running")
    t.dump(criu, wl, "img")
    t.restore(criu, wl, "img")
    t.same(wl, "after restore")
    t.verify(wl, "after restore")
