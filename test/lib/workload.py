# SPDX-License-Identifier: GPL-2.0-only
"""Start a workload program, talk to its tasks, look at its objects, end it.

See test/workloads/wl.h for the files that both sides use.
"""

import os
import subprocess
import time

from . import observe, proc, runs
from .errors import Failure

POLL = 0.002
START_TIMEOUT = 60
COMMAND_TIMEOUT = 60
COMMAND_SIZE = 32


def read(path):
    """Return the text of a file, None if there is none."""
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return None


class Object:
    """An object that a workload has published, with its plan."""

    def __init__(self, line, rundir):
        self.name, self.task, self.how, where, size = line.split()
        self.where = int(where, 0)
        self.size = int(size)
        self.plan = runs.parse(read(os.path.join(rundir, "plan-" + self.name)))


class Workload:
    """A running workload.

    pid is the root task as the driver sees it; a restore keeps it, but for a
    workload in a pid namespace of its own: see restored().
    """

    def __init__(self, binary, rundir, *args, preexec=None):
        self.rundir = rundir
        self.seq = 0
        os.makedirs(rundir)
        null = subprocess.DEVNULL
        argv = [binary, rundir] + [str(a) for a in args]
        self.popen = subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, cwd="/",
                                      start_new_session=True, preexec_fn=preexec)
        self.pid = self.popen.pid
        self.wait_ready()
        self.pids = proc.tree(self.pid)
        lines = read(os.path.join(rundir, "objects")) or ""
        self.objects = [Object(line, rundir) for line in lines.splitlines()]

    def path(self, *names):
        """Return a path in the run directory."""
        return os.path.join(self.rundir, *names)

    def wait_ready(self):
        """Wait until the workload is set up."""
        end = time.monotonic() + START_TIMEOUT
        while read(self.path("ready")) is None:
            error = read(self.path("error"))
            died = self.popen.poll() is not None and read(self.path("rootpid")) is None
            if error or died or time.monotonic() > end:
                self.kill()
                raise Failure("workload: %s" % (error or "not ready").strip())
            time.sleep(POLL)
        root = read(self.path("rootpid"))
        if root:
            self.pid = int(root)

    def tasks(self):
        """Return the names of the tasks, the root last."""
        names = [n for n in os.listdir(self.rundir) if os.path.isdir(self.path(n))]
        return sorted(names, key=lambda n: (n == "main", n))

    def task_pid(self, task):
        """Return the pid of a task."""
        return self.pid if task == "main" else int(read(self.path(task, "pid")))

    def send(self, task, command):
        """Give a task a command, without waiting."""
        self.seq += 1
        self.write_command(task, "%d %s" % (self.seq, command))
        return self.seq

    def write_command(self, task, text):
        """Rename a command file of the usual size into place.

        A dump may catch a task with the file open: then CRIU wants a file of
        that name and size at restore.
        """
        tmp = self.path(task, "cmd.tmp")
        with open(tmp, "w") as f:
            f.write(text.ljust(COMMAND_SIZE))
        os.rename(tmp, self.path(task, "cmd"))

    def answer(self, task, seq, timeout=COMMAND_TIMEOUT):
        """Wait for the answer to a command; return (ok, text)."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            words = (read(self.path(task, "ans")) or "").split(None, 2)
            if len(words) >= 2 and words[0] == str(seq):
                return words[1] == "ok", words[2].strip() if len(words) > 2 else ""
            if not proc.alive(self.task_pid(task)):
                return False, "task %s is dead" % task
            time.sleep(POLL)
        return False, "task %s does not answer" % task

    def command(self, command):
        """Give all tasks a command; return the texts of those that failed."""
        failed = []
        for task in self.tasks():
            ok, text = self.answer(task, self.send(task, command))
            if not ok:
                failed.append("%s in %s: %s" % (command, task, text))
        return failed

    def observe(self):
        """Return {object name: runs} as the judge sees them now."""
        return {o.name: observe.observe(self.task_pid(o.task), o.how, o.where)
                for o in self.objects}

    def alive(self, grace=2):
        """Tell whether all tasks run (not stopped, no zombie), in a moment."""
        end = time.monotonic() + grace
        while not all(proc.state(p) in ("R", "S", "D") for p in self.pids):
            if time.monotonic() > end:
                return False
            time.sleep(POLL)
        return bool(self.pids)

    def reap(self):
        """After a dump that ended the tasks: wait until they are gone."""
        if self.popen.pid in self.pids:
            self.popen.wait(20)
        proc.reap(self.pids)
        self.forget()

    def forget(self):
        """The tasks are gone: what is restored later must not find an old command."""
        self.pid = None
        self.pids = []
        for task in self.tasks():
            if os.path.exists(self.path(task, "cmd")):
                self.write_command(task, "")

    def restored(self, pid):
        """After a restore: take the pid of the root task."""
        self.pid = pid
        self.pids = proc.tree(pid)

    def kill(self):
        """End all tasks, whatever state they are in."""
        if self.popen.poll() is None:
            proc.kill_tree(self.popen.pid)
            self.popen.poll()
        if self.pid:
            proc.kill_tree(self.pid)
        self.forget()
