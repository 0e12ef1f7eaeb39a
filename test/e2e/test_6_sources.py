# SPDX-License-Identifier: GPL-2.0-only
"""Each source, each fallback, each setting: what is promised holds with it.

Residency is looked at on zram where the source is mincore(2), which is wrong
with a swap file (a page in the swap cache counts as resident); content always.
"""

import checks
from lib import observe
from lib.errors import Skip
from lib.runner import cases

ALL = ("wl_all", "4M")
FAULTS = ("no-cachestat", "no-pagemap-scan", "no-process-madvise", "no-populate-read",
          "assume-markers", "no-process-madvise,no-populate-read",
          "no-cachestat,no-pagemap-scan,no-process-madvise,no-populate-read")


def cycle(t, env, limits):
    """dump --leave-running, dump, restore, verify with an environment."""
    wl = t.cold_workload(ALL)
    criu = t.criu(**env)
    t.dump_running(criu, wl, "img-running")
    t.same(wl, "after dump --leave-running", **limits)
    t.dump(criu, wl, "img")
    t.restore(criu, wl, "img")
    t.same(wl, "after restore", **limits)
    t.verify(wl, "after restore")


@cases("cachestat", "mincore", "auto", groups=("file", "zram"))
def test_source(t, source):
    """A source that was asked for."""
    exact = source != "mincore" or t.kind == "zram"
    cycle(t, {"CRIU_SHMEM_SOURCE": source}, {} if exact else {"cold": None})


@cases(*FAULTS, groups=("zram",))
def test_fault(t, fault):
    """A kernel feature is missing, or claimed to be there."""
    cycle(t, {"CRIU_SHMEM_FAULT": fault}, {})


@cases(*FAULTS, groups=("file",))
def test_fault_content(t, fault):
    """The same on a swap file: content and holes, whatever the source says."""
    cycle(t, {"CRIU_SHMEM_FAULT": fault}, {"cold": None, "hot": None})


@cases("4K", "64K", "1M", "1G", groups=("file",))
def test_window(t, window):
    """Windows from a page to more than any object."""
    cycle(t, {"CRIU_SHMEM_WINDOW": window}, {})


@cases(groups=("file",))
def test_pagemap_without_markers(t):
    """pagemap is forced and cannot tell: the dump fails, and says why."""
    if observe.has_markers():
        raise Skip("this kernel has markers")
    wl = t.cold_workload(ALL)
    result = t.criu(CRIU_SHMEM_SOURCE="pagemap").dump(wl.pid, t.path("img"))
    t.require(not result.ok, "the dump succeeds")
    t.expect(not result.timed_out, "the dump hangs")
    t.expect(any("pagemap" in e and "marker" in e for e in result.errors()),
             "no error that names pagemap and markers: %s" % result.why())
    t.require(wl.alive(), "a task is gone or stopped")
    t.same(wl, "after the failed dump")
    t.verify(wl, "after the failed dump")


@cases("anon", "memfd-part", "tasks-gone", "tasks-gonefd", "tasks-childmap", "tasks-forked",
       groups=("file",))
def test_pagemap_believed(t, kind):
    """pagemap is believed on a kernel without markers: no content is lost."""
    wl = t.cold_workload(kind)
    criu = t.criu(CRIU_SHMEM_SOURCE="pagemap", CRIU_SHMEM_FAULT="assume-markers")
    t.dump(criu, wl, "img")
    t.restore(criu, wl, "img")
    t.same(wl, "after restore", cold=None, hot=None)
    t.verify(wl, "after restore")


@cases(groups=("file",))
def test_cold_in(t):
    """COLD=in: the cold pages stay in after a restore."""
    wl = t.cold_workload(ALL)
    t.dump(t.criu(), wl, "img")
    result = t.restore(t.criu(CRIU_SHMEM_COLD="in"), wl, "img")
    t.same(wl, "after restore", cold=None)
    out = sum(n for runs in wl.observe().values() for _, n, s in runs if s == "S")
    t.expect(out == 0, "%d pages are out" % out)
    t.expect(not [w for w in result.warnings("shmem")], "a warning for what was asked for")
    t.verify(wl, "after restore")


@cases(groups=("file",))
def test_config_file(t):
    """The same setting from the configuration file; the environment wins."""
    path = t.path("plugin.conf")
    with open(path, "w") as f:
        f.write("# comment\nCRIU_SHMEM_COLD=in\n\n CRIU_SHMEM_WINDOW = 1M # and more\n")
    wl = t.cold_workload(ALL)
    t.dump(t.criu(), wl, "img")
    t.restore(t.criu(CRIU_SHMEM_CONF=path), wl, "img")
    found = checks.compare_all(wl.before, wl.observe(), hot=None)
    t.expect(found, "the configuration file has no effect")
    wl.kill()
    t.restore(t.criu(CRIU_SHMEM_CONF=path, CRIU_SHMEM_COLD="out"), wl, "img")
    t.same(wl, "after restore")
    t.verify(wl, "after restore")


@cases("CRIU_SHMEM_WINDOW=12X", "CRIU_SHMEM_SOURCE=guess", "CRIU_SHMEM_STRICT=maybe",
       groups=("file",))
def test_bad_setting(t, setting):
    """A setting that makes no sense is named, and harms no workload."""
    key, value = setting.split("=")
    wl = t.cold_workload(ALL)
    result = t.criu(**{key: value}).dump(wl.pid, t.path("img"), "--leave-running")
    named = [line for line in result.lines(key) if "Warn" in line or "Error" in line]
    t.expect(named, "rc %d, and the log does not name %s" % (result.rc, key))
    t.require(wl.alive(), "a task is gone or stopped")
    t.same(wl, "after the dump", cold=0.99 if not result.ok else None)
    t.verify(wl, "after the dump")
