# SPDX-License-Identifier: GPL-2.0-only
"""A damaged residency image never breaks a restore, but a strict one.

Each case dumps a small workload, damages shmem-residency.img, and restores.
"""

import os
import shutil

from lib import proc
from lib.criu import RESIDENCY
from lib.runner import cases

SMALL = ("wl_anon", "1M")
GROUP = ("file",)


def flip(position):
    """Return a damage that flips the bits of one byte (from the end if < 0)."""
    def damage(data):
        data = bytearray(data)
        data[position] ^= 0xff
        return bytes(data)
    return damage


DAMAGES = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "magic": flip(0),
    "version": lambda data: data[:4] + b"\x63\0\0\0" + data[8:],
    "length": lambda data: data[:8] + b"\xff\xff\xff\xff" + data[12:],
    "checksum": flip(12),
    "body": flip(-10),
    "last-byte": flip(-1),
    "tail": lambda data: data + b"more",
    "garbage": lambda data: bytes((i * 37 + 11) & 0xff for i in range(len(data))),
    "zeros": lambda data: bytes(len(data)),
    "text": lambda data: b"not an image\n",
}


def damage(images, change):
    """Damage the residency image of an images directory."""
    path = os.path.join(images, RESIDENCY)
    with open(path, "rb") as f:
        data = f.read()
    after = change(data)
    if after is None:
        os.unlink(path)
        return
    with open(path, "wb") as f:
        f.write(after)


def check_refused(t, wl, pid, images, when):
    """A strict restore must fail before there is a task."""
    result = t.criu(CRIU_SHMEM_STRICT="1").restore(images)
    if not t.expect(not result.ok, "%s: strict restore succeeds" % when):
        wl.restored(result.pid)
        wl.kill()
    t.expect(not result.timed_out, "%s: strict restore hangs" % when)
    t.expect(proc.state(pid) is None, "%s: strict restore leaves a task" % when)
    t.expect(not result.lines("Forking task"), "%s: strict restore forked tasks" % when)
    named = [e for e in result.errors() if RESIDENCY in e] + result.warnings(RESIDENCY)
    t.expect(named, "%s: nothing names %s" % (when, RESIDENCY))
    t.expect([e for e in result.errors() if "STRICT" in e], "%s: no error names STRICT" % when)


def check_warned(t, wl, images, when):
    """A restore must succeed with one warning; the content is intact."""
    result = t.criu().restore(images)
    if not t.expect(result.ok, "%s: restore fails: %s" % (when, result.why())):
        return
    wl.restored(result.pid)
    found = result.warnings(RESIDENCY)
    t.expect(len(found) == 1, "%s: %d warnings name %s" % (when, len(found), RESIDENCY))
    t.same(wl, when, cold=None)
    t.verify(wl, when)
    wl.kill()


@cases(*DAMAGES, groups=GROUP)
def test_damaged(t, kind):
    """Restore of a damaged residency image, plain and strict."""
    wl = t.cold_workload(SMALL)
    pid = wl.pid
    t.dump(t.criu(), wl, "img")
    damage(t.path("img"), DAMAGES[kind])
    check_refused(t, wl, pid, t.path("img"), kind)
    check_warned(t, wl, t.path("img"), kind)


@cases(groups=GROUP)
def test_truncated(t):
    """Sampled lengths of a truncated image, all of the header among them."""
    wl = t.cold_workload(SMALL)
    t.dump(t.criu(), wl, "img")
    size = os.path.getsize(os.path.join(t.path("img"), RESIDENCY))
    lengths = sorted(set(list(range(1, 21, 3)) + [size // 4, size // 2, size - 2, size - 1]))
    for length in lengths:
        images = t.path("img-%d" % length)
        shutil.copytree(t.path("img"), images)
        damage(images, lambda data: data[:length])
        check_warned(t, wl, images, "truncated to %d of %d" % (length, size))


@cases(groups=GROUP)
def test_intact_strict(t):
    """Strict has nothing to say about an image in order."""
    wl = t.cold_workload(SMALL)
    criu = t.criu(CRIU_SHMEM_STRICT="1")
    t.dump(criu, wl, "img")
    result = t.restore(criu, wl, "img")
    t.expect(not result.warnings(RESIDENCY), "a warning where all is well")
    t.same(wl, "after restore")
    t.verify(wl, "after restore")


@cases(*["wl_memfd", "wl_sysv", "wl_all"], groups=GROUP)
def test_foreign(t, other):
    """A residency image of another dump is of no harm."""
    stranger = t.cold_workload((other, "1M"), name="stranger")
    t.dump(t.criu(), stranger, "img-other")
    wl = t.cold_workload(SMALL)
    t.dump(t.criu(), wl, "img")
    shutil.copy(os.path.join(t.path("img-other"), RESIDENCY), t.path("img"))
    t.restore(t.criu(), wl, "img")
    t.same(wl, "after restore", cold=None, hot=None)
    t.verify(wl, "after restore")


@cases(groups=GROUP)
def test_unwritable_residency(t):
    """The residency image cannot be written: the workload must not suffer."""
    wl = t.cold_workload(SMALL)
    os.makedirs(os.path.join(t.path("img"), RESIDENCY, "in-the-way"))
    result = t.criu().dump(wl.pid, t.path("img"), "--leave-running")
    named = [e for e in result.errors() if RESIDENCY in e] + result.warnings(RESIDENCY)
    t.expect(named, "rc %d and no word about %s" % (result.rc, RESIDENCY))
    t.expect(wl.alive(), "the workload is gone")
    t.same(wl, "after the dump")
    t.verify(wl, "after the dump")
