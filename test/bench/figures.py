# SPDX-License-Identifier: GPL-2.0-only
"""Figures: medians with their spread, and the table they stand in."""

import json
import math
import statistics

COLUMNS = ("case", "measured", "figure", "to reach", "", "command")
COMMAND = "python3 test/bench/bench.py -k %s"


class Series:
    """Values of several runs of one thing."""

    def __init__(self, values):
        self.values = list(values)

    @property
    def median(self):
        return statistics.median(self.values)

    def text(self, form="%.2f", unit=""):
        """Return "median unit (min-max)"."""
        spread = "%s-%s" % (form % min(self.values), form % max(self.values))
        return "%s%s (%s)" % (form % self.median, unit, spread)

    def interval(self):
        """Return between which two values the true median is, at 95 %.

        By order statistics: no assumption on how the noise is distributed. Fewer
        than 6 values cannot be that sure; it is their spread then.
        """
        n = len(self.values)
        below, rank = 0.0, 0
        while rank < (n - 1) // 2:
            below += math.comb(n, rank) / 2.0 ** n
            if below > 0.025:
                break
            rank += 1
        rank = max(rank - 1, 0)
        ordered = sorted(self.values)
        return ordered[rank], ordered[n - 1 - rank]

    def verdict(self, limit):
        """Tell whether the median is at most a limit; None: the noise is too high."""
        low, high = self.interval()
        if low > limit:
            return False
        return True if high <= limit else None

    def scaled(self, factor):
        """Return the values in another unit."""
        return Series(v * factor for v in self.values)


def ratio(values, base):
    """Return the ratios of two series that were measured in turn."""
    return Series(v / b for v, b in zip(values, base))


UNDECIDED = "?"


class Row:
    """One line of the table.

    ok is True or False where there is a figure to reach, UNDECIDED where the
    noise hides it, None where there is none.
    """

    def __init__(self, case, what, figure, reach="-", ok=None, raw=None):
        self.case = case
        self.what = what
        self.figure = figure
        self.reach = reach
        self.ok = ok
        self.raw = raw or {}

    def cells(self):
        """Return the texts of the columns."""
        word = {True: "yes", False: "no", None: "", UNDECIDED: UNDECIDED}[self.ok]
        command = "" if self.what.startswith(" ") else COMMAND % self.case
        return (self.case, self.what, self.figure, self.reach, word, command)

    def as_dict(self):
        """Return the row for JSON."""
        return {"case": self.case, "measured": self.what, "figure": self.figure,
                "to_reach": self.reach, "reached": self.ok, "raw": self.raw,
                "command": COMMAND % self.case}


def at_most(case, what, series, limit, form="%.2f", unit="x", reach=None, **raw):
    """Return a row whose median must not be above a limit."""
    reach = reach or "<= %g%s" % (limit, unit)
    raw["values"] = series.values
    return Row(case, what, series.text(form, unit), reach, series.median <= limit, raw)


def decided(case, what, series, limit, **raw):
    """Return a row for a noisy ratio: no only if it is above the limit for sure."""
    ok = series.verdict(limit)
    if ok is None:
        ok = True if series.median <= limit else UNDECIDED
    figure = "%s, 95 %%: %.3f-%.3f" % ((series.text("%.3f", "x"),) + series.interval())
    raw["values"] = series.values
    return Row(case, what, figure, "<= %gx" % limit, ok, raw)


def told(case, what, figure, **raw):
    """Return a row that only informs."""
    return Row(case, what, figure, raw=raw)


def table(rows):
    """Return the table as text."""
    lines = [COLUMNS] + [row.cells() for row in rows]
    width = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    lines.insert(1, tuple("-" * w for w in width))
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, width)).rstrip()
                     for line in lines)


def as_json(rows, skipped):
    """Return everything as JSON text."""
    return json.dumps({"rows": [r.as_dict() for r in rows],
                       "skipped": [{"case": c, "why": w} for c, w in skipped]}, indent=2)
