# SPDX-License-Identifier: GPL-2.0-only
"""The independent judge: page states of a shmem object, by cachestat(2).

Nothing of the product is used here.  cachestat counts folios and swap
entries of a range exactly; a range of mixed states is split in halves.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import struct
import time

from . import runs as runlists
from .errors import Unavailable

PAGE = mmap.PAGESIZE
SYS_CACHESTAT = 451
MADV_PAGEOUT = 21
SHM_RDONLY = 0o10000
CLONE_NEWIPC = 0x08000000

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
libc.shmdt.argtypes = [ctypes.c_void_p]


class Range(ctypes.Structure):
    """struct cachestat_range"""
    _fields_ = [("off", ctypes.c_uint64), ("len", ctypes.c_uint64)]


class Cachestat(ctypes.Structure):
    """struct cachestat"""
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("cache", "dirty", "writeback", "evicted", "recently_evicted")]


def cachestat(fd, page, count):
    """Return (resident, swapped) pages of a range of pages."""
    where = Range(page * PAGE, count * PAGE)
    stat = Cachestat()
    if libc.syscall(SYS_CACHESTAT, fd, ctypes.byref(where), ctypes.byref(stat), 0):
        err = ctypes.get_errno()
        if err == errno.ENOSYS:
            raise Unavailable("kernel without cachestat(2)")
        raise OSError(err, "cachestat: %s" % os.strerror(err))
    return stat.cache, stat.evicted


def walk(fd, page, count, found):
    """Append the runs of a range of pages to a list."""
    resident, swapped = cachestat(fd, page, count)
    if resident == 0 and swapped == 0:
        runlists.append(found, page, count, "H")
    elif resident == count:
        runlists.append(found, page, count, "R")
    elif swapped == count:
        runlists.append(found, page, count, "S")
    elif count == 1:
        # both at once: the page moved between two looks inside the kernel
        runlists.append(found, page, 1, "R")
    else:
        walk(fd, page, count // 2, found)
        walk(fd, page + count // 2, count - count // 2, found)


def runs(fd):
    """Return the page states of the object behind a descriptor, as runs."""
    pages = (os.fstat(fd).st_size + PAGE - 1) // PAGE
    found = []
    if pages:
        walk(fd, 0, pages, found)
    return found


def map_file(pid, address):
    """Return the /proc path of the file mapped at an address."""
    with open("/proc/%s/maps" % pid) as f:
        for line in f:
            start, end = line.split()[0].split("-")
            if int(start, 16) <= address < int(end, 16):
                return "/proc/%s/map_files/%s-%s" % (pid, start, end)
    raise LookupError("pid %s maps nothing at %#x" % (pid, address))


@contextlib.contextmanager
def ipc_namespace(pid):
    """Be in the IPC namespace of a process for a while (this thread only)."""
    home = os.open("/proc/thread-self/ns/ipc", os.O_RDONLY)
    there = os.open("/proc/%d/ns/ipc" % pid, os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWIPC):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(home, CLONE_NEWIPC)
        os.close(there)
        os.close(home)


def open_shm(pid, shmid):
    """Open a SysV segment of the IPC namespace of a process."""
    with ipc_namespace(pid):
        address = libc.shmat(shmid, None, SHM_RDONLY)
        if address in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "shmat %d" % shmid)
        try:
            return os.open(map_file("self", address), os.O_RDONLY)
        finally:
            libc.shmdt(address)


def open_object(pid, how, where):
    """Open an object: how is "map" (address), "fd" (number) or "shm" (id)."""
    if how == "map":
        return os.open(map_file(pid, where), os.O_RDONLY)
    if how == "fd":
        return os.open("/proc/%d/fd/%d" % (pid, where), os.O_RDONLY)
    return open_shm(pid, where)


def observe(pid, how, where):
    """Return the page states of an object, as runs."""
    fd = open_object(pid, how, where)
    try:
        return runs(fd)
    finally:
        os.close(fd)


def pagemap_entry(address):
    """Return the pagemap entry of an own address."""
    with open("/proc/self/pagemap", "rb", buffering=0) as f:
        f.seek(address // PAGE * 8)
        return struct.unpack("<Q", f.read(8))[0]


def has_markers():
    """Tell whether pagemap shows a paged out shmem page as swapped.

    Needs swap.  Raise Unavailable if the page does not go out.
    """
    memory = mmap.mmap(-1, PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.memset(address, 0x5a, PAGE)
    fd = os.open(map_file("self", address), os.O_RDONLY)
    try:
        for _ in range(500):
            if cachestat(fd, 0, 1)[1]:
                return bool(pagemap_entry(address) >> 62 & 1)
            libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), MADV_PAGEOUT)
            time.sleep(0.002)
    finally:
        os.close(fd)
    raise Unavailable("a page cannot be paged out: no swap?")
