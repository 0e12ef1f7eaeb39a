# SPDX-License-Identifier: GPL-2.0-only
"""What must hold between two looks at an object.  Pure: no processes here."""

from lib import runs

ENOUGH = 0.99

# A machine may have a reclaimer of its own at work, which takes some idle pages
# now and then: this many (one batch of the kernel's, SWAP_CLUSTER_MAX) are no
# fault.  In objects of 64 MiB it is less than one per cent of the hot pages.
BATCH = 32


def share(table, state):
    """Return the share of pages of a state that are in it still."""
    total = sum(n for (old, _), n in table.items() if old == state)
    return table.get((state, state), 0) / total if total else 1.0


def lost(table):
    """Return the pages that were populated and are holes now."""
    return table.get(("R", "H"), 0) + table.get(("S", "H"), 0)


def made(table):
    """Return the pages that were holes and are populated now."""
    return table.get(("H", "R"), 0) + table.get(("H", "S"), 0)


def compare(name, before, after, cold=ENOUGH, hot=ENOUGH):
    """Return what is wrong with one object: a list of texts."""
    table = runs.transitions(before, after)
    wrong = []
    if lost(table):
        wrong.append("%s: %d populated pages are holes" % (name, lost(table)))
    if made(table):
        wrong.append("%s: %d holes are populated" % (name, made(table)))
    if cold is not None and share(table, "S") < cold:
        wrong.append("%s: only %.1f %% of the cold pages are out" % (name, 100 * share(table, "S")))
    if hot is not None and share(table, "R") < hot and table.get(("R", "S"), 0) > BATCH:
        wrong.append("%s: only %.1f %% of the hot pages are in" % (name, 100 * share(table, "R")))
    return wrong


def compare_all(before, after, cold=ENOUGH, hot=ENOUGH):
    """Return what is wrong with all objects of a workload."""
    wrong = []
    for name, runlist in before.items():
        wrong += compare(name, runlist, after[name], cold, hot)
    return wrong
