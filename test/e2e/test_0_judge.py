# SPDX-License-Identifier: GPL-2.0-only
"""The checks themselves: they must be able to fail."""

import checks
from lib.runner import cases


def test_compare_sees_each_fault(t):
    """Each kind of difference is found, and no difference is none."""
    before = [(0, 100, "R"), (100, 100, "S"), (200, 100, "H")]
    t.expect(not checks.compare("x", before, before), "found a fault where none is")
    for after, word in (([(0, 200, "R"), (200, 100, "H")], "cold"),
                        ([(0, 200, "S"), (200, 100, "H")], "hot"),
                        ([(0, 60, "R"), (60, 140, "S"), (200, 100, "H")], "hot"),
                        ([(0, 100, "R"), (100, 100, "S"), (200, 100, "S")], "holes are populated"),
                        ([(0, 99, "R"), (99, 1, "H"), (100, 100, "S"), (200, 100, "H")],
                         "are holes")):
        found = checks.compare("x", before, after)
        t.expect(len(found) == 1 and word in found[0], "%s gave %s" % (word, found))


@cases("anon", "memfd-whole", "sysv-once", groups=("file",))
def test_stock_criu_fails_the_checks(t, kind):
    """Without the plugin cold pages come in at dump and stay in at restore."""
    wl = t.cold_workload(kind)
    criu = t.stock()
    t.dump_running(criu, wl, "img")
    found = checks.compare_all(wl.before, wl.observe())
    t.expect(found, "stock CRIU passes the check after dump --leave-running")
    wl.kill()
    t.restore(criu, wl, "img")
    found = checks.compare_all(wl.before, wl.observe())
    t.expect(any("only 0.0 %" in f for f in found), "stock CRIU passes the check after restore")
    t.verify(wl, "after restore")
