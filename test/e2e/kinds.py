# SPDX-License-Identifier: GPL-2.0-only
"""The kinds of objects that the tests go through: name -> workload command."""

KINDS = {
    "anon": ("wl_anon", "64M"),
    "anon-alternate": ("wl_anon", "16M", "alternate"),
    "anon-cold": ("wl_anon", "16M", "cold"),
    "memfd-whole": ("wl_memfd", "64M", "whole"),
    "memfd-part": ("wl_memfd", "16M", "part"),
    "memfd-offset": ("wl_memfd", "16M", "offset"),
    "memfd-twice": ("wl_memfd", "16M", "twice"),
    "memfd-none": ("wl_memfd", "16M", "none"),
    "memfd-readonly": ("wl_memfd", "16M", "readonly"),
    "memfd-sealed": ("wl_memfd", "16M", "sealed"),
    "memfd-wsealed": ("wl_memfd", "16M", "wsealed"),
    "memfd-unaligned": ("wl_memfd", str((8 << 20) - 1000), "whole"),
    "memfd-fdonly": ("wl_memfd", "16M", "fdonly"),
    "memfd-sparse": ("wl_memfd", "64G", "fdonly", "sparse"),
    "sysv-once": ("wl_sysv", "64M", "once"),
    "sysv-twice": ("wl_sysv", "16M", "twice"),
    "sysv-detached": ("wl_sysv", "16M", "detached"),
    "sysv-many": ("wl_sysv", "8M", "many"),
    "tasks-forked": ("wl_tasks", "16M", "forked"),
    "tasks-unrelated": ("wl_tasks", "16M", "unrelated"),
    "tasks-childmap": ("wl_tasks", "16M", "childmap"),
    "tasks-gone": ("wl_tasks", "16M", "gone"),
    "all": ("wl_all", "4M"),
    "tasks-gonefd": ("wl_tasks", "16M", "gonefd"),
}
