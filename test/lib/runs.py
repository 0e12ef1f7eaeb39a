# SPDX-License-Identifier: GPL-2.0-only
"""Page states of an object as runs: a sorted list of (start, count, state).

States are "H" (hole), "R" (resident) and "S" (swapped).
"""


def append(runs, start, count, state):
    """Add a run at the end, merged with the last one where it can be."""
    if runs and runs[-1][2] == state and runs[-1][0] + runs[-1][1] == start:
        runs[-1] = (runs[-1][0], runs[-1][1] + count, state)
    elif count:
        runs.append((start, count, state))


def counts(runs):
    """Return {"H": pages, "R": pages, "S": pages}."""
    total = {"H": 0, "R": 0, "S": 0}
    for _, count, state in runs:
        total[state] += count
    return total


def transitions(before, after):
    """Return {(state before, state after): pages} of two run lists."""
    table = {}
    i = j = 0
    while i < len(before) and j < len(after):
        start = max(before[i][0], after[j][0])
        end_i, end_j = before[i][0] + before[i][1], after[j][0] + after[j][1]
        if min(end_i, end_j) > start:
            key = (before[i][2], after[j][2])
            table[key] = table.get(key, 0) + min(end_i, end_j) - start
        if end_i <= end_j:
            i += 1
        if end_j <= end_i:
            j += 1
    return table


def to_states(runs):
    """Return one byte per page."""
    return bytearray(b"".join(state.encode() * count for _, count, state in runs))


def parse(text):
    """Return the runs of a plan file: lines "START COUNT STATE"."""
    runs = []
    for line in text.splitlines():
        start, count, state = line.split()
        append(runs, int(start), int(count), state)
    return runs
