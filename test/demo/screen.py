# SPDX-License-Identifier: GPL-2.0-only
"""What the demo writes: text, steps with a spinner, tables.

The spinner is driven by an interval timer, whose signal also comes while a
library function waits: no thread is needed.  It writes with os.write(), never
through the stream that the interrupted code may be writing to.
"""

import os
import shutil
import signal
import sys
import time

TICK = 0.12
COLORS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "blue": "34", "yellow": "33"}


def initial_environment():
    """Return the environment as it was given: Python changes LC_CTYPE in its own."""
    try:
        with open("/proc/self/environ", "rb") as f:
            rows = [r.split(b"=", 1) for r in f.read().split(b"\0") if b"=" in r]
    except OSError:
        return dict(os.environ)
    return {os.fsdecode(k): os.fsdecode(v) for k, v in rows}


def locale_is_utf8():
    """Tell whether the user's locale, installed or not, is a UTF-8 one."""
    env = initial_environment()
    name = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return name.lower().replace("-", "").partition(".")[2].startswith("utf8")


class Screen:
    """Standard output: a terminal or not, UTF-8 or not, with colour or not."""

    def __init__(self, no_color=False):
        self.tty = sys.stdout.isatty()
        env = os.environ
        self.color = (self.tty and not no_color and not env.get("NO_COLOR") and
                      env.get("TERM", "dumb") != "dumb")
        self.utf8 = locale_is_utf8()
        self.width = shutil.get_terminal_size((80, 24)).columns if self.tty else 80
        sys.stdout.reconfigure(encoding="utf-8" if self.utf8 else "ascii", errors="replace",
                               line_buffering=True)
        self.running = None

    def paint(self, text, *styles):
        """Return the text in a colour, where there is colour."""
        if not self.color or not styles:
            return text
        codes = ";".join(COLORS[s] for s in styles)
        return "\033[%sm%s\033[0m" % (codes, text)

    def say(self, text="", *styles):
        """Write a line."""
        print("\n".join(self.paint(line, *styles) if line else line
                        for line in text.split("\n")))

    def title(self, text):
        """Write a heading."""
        rule = ("─" if self.utf8 else "-") * (78 - len(text) - 3)
        self.say()
        self.say("%s %s" % (self.paint(text, "bold"), self.paint(rule, "dim")))

    def step(self, text):
        """Return a context that shows that something long is going on."""
        return Step(self, text)

    def sign(self, good):
        """Return a mark for good or bad."""
        if self.utf8:
            return self.paint("✓", "green") if good else self.paint("✗", "red")
        return self.paint("ok", "green") if good else self.paint("!!", "red")


class Step:
    """One long step: a spinner on a terminal, and a line when it is over."""

    def __init__(self, screen, text):
        self.screen = screen
        self.text = text
        self.note = ""
        self.good = True
        self.frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if screen.utf8 else "|/-\\"
        self.count = 0

    def __enter__(self):
        self.begin = time.monotonic()
        if self.screen.tty:
            self.tick()
            signal.signal(signal.SIGALRM, self.tick)
            signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
        return self

    def tick(self, *_):
        """Draw the next frame."""
        frame = self.frames[self.count % len(self.frames)]
        seconds = time.monotonic() - self.begin
        line = "\r  %s %s %5.1f s" % (frame, self.text.ljust(58), seconds)
        self.count += 1
        try:
            os.write(1, line.encode())
        except OSError:
            pass

    def stop(self):
        """End the spinner and clear its line."""
        if not self.screen.tty:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, lambda *_: None)
        try:
            os.write(1, b"\r" + b" " * 76 + b"\r")
        except OSError:
            pass

    def __exit__(self, kind, *_):
        self.stop()
        if kind and not issubclass(kind, Exception):
            return
        mark = self.screen.sign(self.good and kind is None)
        seconds = time.monotonic() - self.begin
        text = self.text + (": " + self.note if self.note else "")
        self.screen.say("  %s %s %s" % (mark, text.ljust(58 if self.screen.utf8 else 57),
                                        self.screen.paint("%5.1f s" % seconds, "dim")))
