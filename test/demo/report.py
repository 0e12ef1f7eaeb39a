# SPDX-License-Identifier: GPL-2.0-only
"""What the demo found: the pictures side by side, the table and the summary."""

import os
import re
import textwrap

from lib.criu import RESIDENCY
from machine import MIB
from residency import MARGIN

GAP = 3


class Stage:
    """After a dump or a restore: where the pages are, seconds, content intact."""

    def __init__(self, look, seconds):
        self.look = look
        self.seconds = seconds
        self.intact = None


class Turn:
    """One dump and restore."""

    def __init__(self, name):
        self.name = name
        self.before = None
        self.dump = None
        self.restore = None
        self.image_bytes = 0
        self.residency_bytes = 0

    def looks(self):
        """Return the looks at the three stages."""
        return self.before, self.dump.look, self.restore.look


def image_sizes(directory):
    """Return the bytes of CRIU's images and those of the residency image."""
    total = extra = 0
    for entry in os.scandir(directory):
        size = entry.stat().st_size
        if entry.name == RESIDENCY:
            extra += size
        elif entry.name.endswith(".img"):
            total += size
    return total, extra


def percent(share):
    """Return a share as text; 100 is said of the whole only."""
    value = 100 * share
    if 99.95 <= value < 100:
        value = 99.9
    return "%.0f %%" % value if value in (0, 100) else "%.1f %%" % value


def strip(screen, turn):
    """Show the pictures of the three stages side by side."""
    looks = turn.looks()
    pictures = [[row[MARGIN:] for row in look.rows] for look in looks]
    columns = visible(pictures[0][0])
    gap = " " * GAP
    screen.say()
    head = gap.join(t.ljust(columns) for t in ("before", "after the dump", "after the restore"))
    screen.say("  " + head.rstrip(), "bold")
    for rows in zip(*pictures):
        screen.say("  " + gap.join(rows))
    resident, swapped = [item.split()[0] for item in looks[0].legend.split("   ")[:2]]
    below = ["%s %.0fM RAM  %s %.0fM swap" % (resident, look.bytes("R") / MIB,
                                              swapped, look.bytes("S") / MIB)
             for look in looks]
    screen.say("  " + gap.join(t + " " * (columns - visible(t)) for t in below).rstrip())


def visible(text):
    """Return the number of columns of a text with colours."""
    return len(re.sub("\033\\[[0-9;]*m", "", text))


def row(label, look, stage=None, turn=None):
    """Return a row of the table as (cells, intact or None)."""
    cells = [label] + ["%.0f" % (look.bytes(letter) / MIB) for letter in "RSH"]
    cells += ["%.2f" % stage.seconds if stage else ""]
    cells += ["%.1f" % (turn.image_bytes / MIB) if turn else "",
              "%d" % turn.residency_bytes if turn and turn.residency_bytes else ""]
    return cells, stage and stage.intact


FORMAT = "  %-14s%9s%9s%7s%9s%8s%11s"


def table(screen, turns):
    """Show one row per stage."""
    screen.title("All three objects together")
    screen.say(FORMAT % ("MiB", "resident", "swapped", "hole", "seconds", "images", "residency") +
               "  content", "dim")
    for turn in turns:
        screen.say(turn.name, "bold")
        for cells, intact in (row("before", turn.before),
                              row("after dump", turn.dump.look, turn.dump, turn),
                              row("after restore", turn.restore.look, turn.restore)):
            word = "" if intact is None else screen.paint("intact", "green") if intact \
                else screen.paint("DAMAGED", "red")
            screen.say((FORMAT % tuple(cells) + "  " + word).rstrip())
    screen.say("  residency: bytes of %s, which the plugin adds to the images" % RESIDENCY, "dim")


def came_in(turn, stage):
    """Return how many MiB of cold memory have come in."""
    cold = turn.before.bytes("S") / MIB
    return cold * (1 - stage.look.share("S", turn.before.states))


def summary(screen, turns):
    """Show the shares: cold pages out, hot pages in."""
    screen.title("What was cold is out, what was hot is in")
    screen.say("  %-26s%26s%26s" % ("", "cold pages still out", "hot pages still in"), "dim")
    screen.say("  %-26s" % "" + "%13s%13s" % ("after dump", "restore") * 2, "dim")
    for turn in turns:
        text = "  %-26s" % turn.name
        for letter in "SR":
            for stage in (turn.dump, turn.restore):
                share = stage.look.share(letter, turn.before.states)
                good = share >= 0.99
                text += screen.paint("%13s" % percent(share), "green" if good else "red")
        screen.say(text)
    alone, plugged = [[came_in(t, s) for s in (t.dump, t.restore)] for t in turns]
    screen.say()
    screen.say(textwrap.fill(
        "Of %.0f MiB of cold memory CRIU alone brought %.0f MiB back into RAM at dump and %.0f "
        "MiB at restore; with the plugin %.0f MiB and %.0f MiB stayed there." % (
            turns[0].before.bytes("S") / MIB, *alone, *plugged), 79))
