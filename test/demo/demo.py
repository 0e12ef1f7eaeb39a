#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What this project does, in about a minute: make demo.

Checkpoints and restores a program with partly swapped-out shared memory twice,
with CRIU alone and with shmem_plugin.so, and shows where its pages are.
"""

import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)	# until Signals: no traceback while loading

import argparse  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import textwrap  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from lib import criu as lib_criu, proc  # noqa: E402
from lib.errors import Failure, Unavailable  # noqa: E402
from lib.workload import Workload  # noqa: E402
import machine as lib_machine  # noqa: E402
import report  # noqa: E402
import residency  # noqa: E402
from machine import MIB, Interrupted, Machine, Signals  # noqa: E402
from screen import Screen  # noqa: E402

ROOT = lib_criu.ROOT
OBJECTS = 3
SIZE = 96
SIZE_STEP = 3		# demo_workload.c's stripes
HOT, COLD = 0.25, 0.5	# of an object
ENOUGH = 0.99
ENOUGH_BLIND = 0.95	# without cachestat the plugin cannot see stragglers and try again
LOG_LINES = 12
CAPABILITIES = {"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21}

INTRO = """\
A program is started that has shared memory of all three kinds, %d MiB each: an
anonymous mapping (MAP_SHARED), a memfd and a System V segment. A quarter of
each is hot (resident: in RAM), a half is cold (swapped out), and a quarter was
never touched (holes).\
"""

ALONE = "CRIU reads and writes every page, so what was cold ends up in RAM."
PLUGGED = "The plugin remembers what was cold, and puts it out again when CRIU is done."

INEXACT = """\
Note: without cachestat (Linux 6.5) a page in the swap cache of a disk passes for
resident: the pictures are inexact here, and only the content is judged."""

NO_SWAP = """\
This demo needs %d MiB of free swap; there are %d, and no swap could be made:
%s
Switch some swap on (in a container: on its host) and run it again."""


def mib(text):
    """Return MiB, cut to a multiple of what the stripes need."""
    size = int(text)
    if not 12 <= size <= 16384:
        raise argparse.ArgumentTypeError("want 12 to 16384 MiB")
    return size // SIZE_STEP * SIZE_STEP


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="demo.py", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
        epilog="environment:\n"
               "  CRIU, SHMEM_PLUGIN, CRIU_SHMEM, DEMO_WORKLOAD  programs to use instead of the\n"
               "      installed criu and those in build/\n"
               "  TMPDIR    where images, and a swap file if one is needed, go for the time\n"
               "  NO_COLOR  if set: no colour\n\n"
               "exit status: 0 content intact and pages as promised, 1 not, or it cannot run here")
    parser.add_argument("--size", type=mib, default=SIZE, metavar="MIB",
                        help="size of each of the three objects (default %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep images and CRIU's logs")
    parser.add_argument("--no-color", action="store_true", help="no colour")
    return parser.parse_args()


def built(variable, *path):
    """Return a program of ours, or raise Unavailable."""
    where = os.environ.get(variable) or os.path.join(ROOT, "build", *path)
    if not os.path.isfile(where):
        if where.startswith(ROOT + os.sep):
            where = os.path.relpath(where, ROOT)
        raise Unavailable("%s is missing: \"make demo\" builds what the demo needs" % where)
    return os.path.abspath(where)


def check_rights():
    """Raise Unavailable if this process may not do what the demo needs."""
    if os.geteuid():
        raise Unavailable("must be run as root: CRIU and swap need it")
    with open("/proc/self/status") as f:
        caps = int(next(line for line in f if line.startswith("CapEff:")).split()[1], 16)
    missing = [name for name, bit in CAPABILITIES.items() if not caps >> bit & 1]
    if missing:
        raise Unavailable("this root user lacks %s: in a container, run it with --privileged, "
                          "or on the host" % " and ".join(missing))


def log_end(result):
    """Return the last errors of CRIU's log, and its last lines."""
    lines = [line.rstrip() for line in result.log.splitlines()] or result.output.splitlines()
    errors = [line for line in lines[:-LOG_LINES] if "Error (" in line]
    return errors[-LOG_LINES // 2:] + lines[-LOG_LINES:] or ["(empty)"]


class Demo:
    """The demo: what it found, and what it does."""

    def __init__(self, options, screen, machine):
        self.options = options
        self.screen = screen
        self.machine = machine
        self.total = OBJECTS * options.size * MIB
        self.filled = int((HOT + COLD) * self.total)

    # ---- preparation ----

    def find(self):
        """Find CRIU and what was built."""
        self.criu = lib_criu.find_criu()
        self.version = lib_criu.version(self.criu)
        if not self.version:
            raise Unavailable("%s cannot be run: is CRIU set right?" % self.criu)
        if self.version < lib_criu.OLDEST:
            raise Unavailable("CRIU %s is too old, 4.1 or later is needed" % self.dotted())
        self.plugin = built("SHMEM_PLUGIN", "shmem_plugin.so")
        self.program = built("DEMO_WORKLOAD", "workloads", "demo_workload")
        self.tool_path = built("CRIU_SHMEM", "criu-shmem")
        self.cachestat = residency.has_cachestat()
        self.enough = ENOUGH if self.cachestat else ENOUGH_BLIND

    def dotted(self):
        """Return CRIU's version as text."""
        return ".".join(str(n) for n in self.version)

    def prepare(self):
        """Check memory, make the directory and the swap."""
        have = lib_machine.memory_available()
        need = self.filled + self.filled // 4 + 64 * MIB
        if have < need:
            raise Unavailable("%d MiB of memory are available, %d are needed: try --size %d" % (
                have // MIB, need // MIB, max(12, self.options.size * have // need // 3 * 3)))
        self.machine.make_dir(self.filled + self.filled // 8 + 32 * MIB)
        self.prepare_swap()
        extra = {k: os.environ[k] for k in ("CRIU_SHMEM_FAULT",) if k in os.environ}
        self.alone = lib_criu.Criu(self.criu, None, extra, self.machine.dir)
        self.plugged = lib_criu.Criu(self.criu, self.plugin, extra, self.machine.dir)
        self.tool = residency.Tool(self.tool_path, self.screen, self.plugged.env)

    def prepare_swap(self):
        """Make a swap if there is not enough, or not one that shows well; tell what there is."""
        need = int(COLD * self.total) * 5 // 4 + 32 * MIB
        total, free = lib_machine.swap_free()
        zram = not self.cachestat
        if free >= need and not (zram and lib_machine.swap_on_disk() and self.try_zram(need)):
            self.screen.say("  swap: %d MiB, %d MiB free" % (total // MIB, free // MIB))
        elif free < need:
            self.make_swap(need, free, zram)
        self.exact = self.cachestat or self.machine.swap_is_zram or \
            not lib_machine.swap_on_disk()

    def try_zram(self, need):
        """Without cachestat only zram shows what is out; tell whether one could be made."""
        try:
            self.screen.say("  swap: %s for the time" % self.machine.make_zram(need + 32 * MIB))
        except Unavailable:
            return False
        return True

    def make_swap(self, need, free, zram):
        """Make a swap, or tell why there cannot be one."""
        text = "only %d MiB of swap free" % (free // MIB) if free else "no free swap"
        try:
            with self.screen.step(text + ": make a temporary one") as step:
                step.text = "swap: %s for the time" % self.machine.make_swap(need + 32 * MIB, zram)
        except Unavailable as err:
            raise Unavailable(NO_SWAP % (need // MIB, free // MIB,
                                         textwrap.indent(str(err), "  ")))

    # ---- the story ----

    def run(self):
        """Tell the whole story; return the exit status."""
        say = self.screen.say
        say("Checkpoint and restore of shared memory that is partly swapped out", "bold")
        check_rights()
        self.find()
        say("  Linux %s, CRIU %s, %s" % (platform.release(), self.dotted(),
                                        os.path.basename(self.plugin)))
        self.prepare()
        alone = self.cycle("CRIU alone", self.alone, self.introduce)
        plugged = self.cycle("CRIU with " + os.path.basename(self.plugin), self.plugged)
        report.table(self.screen, (alone, plugged))
        if self.exact:
            report.summary(self.screen, (alone, plugged))
        return self.judge(alone, plugged)

    def introduce(self, workload):
        """Show what the program's memory looks like."""
        columns = 96 if self.screen.width >= 96 + residency.MARGIN else 48
        address = next(o.where for o in workload.objects if o.how == "map")
        caption, rows, legend = self.tool.picture(workload.pid, address, columns)
        paint = self.screen.paint
        self.screen.say()
        self.screen.say(paint("$ criu-shmem map %d" % workload.pid, "bold") +
                        paint("    (the first of the three; they all look like this)", "dim"))
        self.screen.say(textwrap.fill(caption, 79))
        self.screen.say("\n".join(rows))
        self.screen.say(legend)
        if not self.exact:
            self.screen.say()
            self.screen.say(INEXACT, "yellow")

    def cycle(self, name, criu, introduce=None):
        """Start the program, dump, look, verify, restore, look, verify."""
        turn = report.Turn(name)
        short = "plugin" if criu.plugin else "alone"
        images = os.path.join(self.machine.dir, "images-" + short)
        if introduce:
            self.screen.title("The program")
            self.screen.say(INTRO % self.options.size)
        else:
            self.screen.title(name)
            self.screen.say(PLUGGED)
        workload = self.start(os.path.join(self.machine.dir, "run-" + short), turn)
        if introduce:
            introduce(workload)
            self.screen.title(name)
            self.screen.say(ALONE)
        self.dump(criu, workload, images, turn)
        self.restore(criu, workload, images, turn)
        with self.screen.step("end the program"):
            workload.kill()
            if not self.options.keep:
                shutil.rmtree(images)
        report.strip(self.screen, turn)
        return turn

    def start(self, rundir, turn):
        """Start the program; its cold pages go out."""
        with self.screen.step("start the program, swap its cold pages out"):
            workload = Workload(self.program, rundir, self.options.size)
            look = self.look(workload)
            want = residency.planned(workload)
            for _ in range(3):
                if not self.exact or self.shares_good(look, want):
                    break
                workload.command("pageout")
                look = self.look(workload)
            else:
                self.refuse(look, want)
        turn.before = look
        return workload

    def shares_good(self, look, want):
        """Tell whether cold is out and hot is in."""
        return all(look.share(letter, want) >= self.enough for letter in "SR")

    @staticmethod
    def refuse(look, want):
        """The kernel does not swap as asked."""
        raise Failure("the kernel has swapped out %.0f %% of the cold pages and kept %.0f %% of "
                      "the hot ones: is swap limited (memory.swap.max of a container), or "
                      "memory short?" % (100 * look.share("S", want),
                                         100 * look.share("R", want)))

    def look(self, workload):
        """Look at the program's memory."""
        columns = 2 * residency.STRIPES if self.screen.width >= 6 * residency.STRIPES + 8 \
            else residency.STRIPES
        return residency.Look(workload, self.tool, self.cachestat, columns)

    def dump(self, criu, workload, images, turn):
        """Checkpoint the program and let it run on; look, then verify."""
        with self.screen.step("criu dump --leave-running"):
            result = self.run_criu(criu.dump, "dump", workload.pid, images, "--leave-running")
            turn.dump = report.Stage(self.look(workload), result.seconds)
        turn.image_bytes, turn.residency_bytes = report.image_sizes(images)
        turn.dump.intact = self.verify(workload, "it runs on: compare every byte")
        workload.kill()

    def restore(self, criu, workload, images, turn):
        """Restore the program; look, then verify."""
        with self.screen.step("the program is ended, criu restore"):
            result = self.run_criu(criu.restore, "restore", images)
            if not result.pid:
                raise Failure("criu restore gave no pid")
            workload.restored(result.pid)
            turn.restore = report.Stage(self.look(workload), result.seconds)
        turn.restore.intact = self.verify(workload, "it runs again: compare every byte")

    def run_criu(self, function, verb, *args):
        """Run CRIU in a session of its own with a time limit; fail with its log."""
        limit = lib_criu.TIMEOUT + self.total // (4 * MIB)
        result = function(*args, timeout=limit, preexec=os.setsid)
        if result.ok:
            return result
        criu = function.__self__
        log = os.path.join(criu.home, "%s-%d.log" % (verb, criu.runs))
        lines = log_end(result)
        why = "did not end in %d s" % limit if result.timed_out else "failed (%d)" % result.rc
        raise Failure("criu %s %s; the end of its log:\n%s\n%s" % (
            verb, why, textwrap.indent("\n".join(lines), "  | "),
            "all of it: " + log if self.options.keep else "--keep keeps the whole log"))

    def verify(self, workload, text):
        """Let the program compare all of its memory; return "" or what is wrong."""
        with self.screen.step(text) as step:
            wrong = "; ".join(workload.command("verify"))
            if wrong:
                step.good = False
                step.note = wrong
        return not wrong

    def judge(self, alone, plugged):
        """Say whether all is as it must be; return the exit status."""
        bad = []
        for turn in (alone, plugged):
            for when, stage in (("dump", turn.dump), ("restore", turn.restore)):
                if not stage.intact:
                    bad.append("%s: content is damaged after the %s" % (turn.name, when))
        for when, stage in (("dump", plugged.dump), ("restore", plugged.restore)):
            if self.exact and not self.shares_good(stage.look, plugged.before.states):
                bad.append("with the plugin: less than %.0f %% of the pages are where they "
                           "were before the %s" % (100 * self.enough, when))
        self.screen.say()
        for line in bad:
            self.screen.say("%s %s" % (self.screen.sign(False), line))
        if not bad:
            text = "Content intact everywhere; with the plugin cold stayed out and hot stayed in."
            if not self.exact:
                text = "Content intact everywhere; this kernel cannot tell the pages exactly."
            self.screen.say("%s %s" % (self.screen.sign(True), self.screen.paint(text, "bold")))
        return 1 if bad else 0


def tell(text):
    """Write an error message, wherever stderr may have gone."""
    try:
        sys.stdout.flush()
        print("demo: " + text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass


def attempt(demo):
    """Run the demo; return the exit status."""
    try:
        return demo.run()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (Unavailable, Failure, OSError, subprocess.SubprocessError) as err:
        tell(str(err))
    return 1


def attempt_and_clean(options, machine):
    """Run the demo and leave the machine as it was; return (status, what is left)."""
    try:
        status = attempt(Demo(options, Screen(options.no_color), machine))
    finally:
        left = machine.close()
    return status, left


def main():
    """Run the demo; return the exit status, or end by the signal that ended it."""
    options = arguments()
    machine = None
    signum = None
    try:
        machine = Machine(Signals(), ROOT, options.keep)
        proc.become_subreaper()
        status, left = attempt_and_clean(options, machine)
    except Interrupted as err:
        tell("interrupted, cleaned up")
        signum = err.signum
        left = machine.close() if machine else []
    for what in left:
        tell("not removed: " + what)
    if machine and machine.dir and options.keep:
        tell("images and logs are in %s" % machine.dir)
    return lib_machine.end_by(signum) if signum else 1 if left else status


if __name__ == "__main__":
    sys.exit(main())
