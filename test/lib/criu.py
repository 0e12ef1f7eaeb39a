# SPDX-License-Identifier: GPL-2.0-only
"""Find CRIU and run it, with or without the plugin, never without a limit."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from .errors import Unavailable

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STOCK = os.path.join(ROOT, "build", "criu-stock", "criu", "criu")
OLDEST = (4, 1)
TIMEOUT = 60
RESIDENCY = "shmem-residency.img"


def version(binary):
    """Return the version of a CRIU as a tuple, None if it cannot be run."""
    try:
        out = subprocess.run([binary, "--version"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(rb"Version:\s*(\d+)\.(\d+)(?:\.(\d+))?", out)
    return tuple(int(n or 0) for n in match.groups()) if match else None


def find_criu():
    """Return $CRIU, else an installed CRIU new enough, else the built one."""
    if os.environ.get("CRIU"):
        return os.path.abspath(os.environ["CRIU"])
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin"
    installed = shutil.which("criu", path=path)
    if installed and (version(installed) or (0,)) >= OLDEST:
        return installed
    if os.access(STOCK, os.X_OK):
        return STOCK
    raise Unavailable("no CRIU >= %d.%d: set CRIU, or make criu-stock" % OLDEST)


class Result:
    """What a run of CRIU gave: rc, log text, seconds, timed_out."""

    def __init__(self, rc, log, seconds, output, timed_out=False):
        self.rc = rc
        self.log = log
        self.seconds = seconds
        self.output = output
        self.timed_out = timed_out

    @property
    def ok(self):
        return self.rc == 0

    def lines(self, *words):
        """Return the lines of the log that hold all of the words."""
        return [line for line in self.log.splitlines() if all(w in line for w in words)]

    def warnings(self, word):
        """Return the warning lines that name something."""
        return [line for line in self.lines(word) if re.search(r"\bWarn\b", line)]

    def errors(self):
        """Return the error lines."""
        return [line for line in self.log.splitlines() if re.search(r"\bError\b", line)]

    def why(self):
        """Return a short text for a failure message."""
        if self.timed_out:
            return "timed out after %d s" % self.seconds
        errors = [e for e in self.errors() if "RLIMIT_NOFILE" not in e]
        return "rc %d: %s" % (self.rc, errors[0].strip() if errors else self.output.strip()[-200:])


class Criu:
    """One CRIU binary with one plugin directory and one environment.

    The plugin directory is private and holds a link to the plugin or nothing,
    so that plugins installed on the machine stay out of the test.
    """

    def __init__(self, binary, plugin=None, env=None, rundir=None):
        self.binary = binary
        self.plugin = plugin
        self.home = tempfile.mkdtemp(prefix="criu-", dir=rundir)
        self.libs = os.path.join(self.home, "libs")
        os.mkdir(self.libs)
        if plugin:
            os.symlink(os.path.abspath(plugin), os.path.join(self.libs, os.path.basename(plugin)))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("CRIU_SHMEM_")}
        self.env["CRIU_LIBS_DIR"] = self.libs
        self.env["CRIU_SHMEM_CONF"] = os.path.join(self.home, "empty.conf")
        open(self.env["CRIU_SHMEM_CONF"], "w").close()
        self.env.update(env or {})
        self.runs = 0

    def with_env(self, **env):
        """Return the same CRIU with more in its environment."""
        return Criu(self.binary, self.plugin, dict(self.extra_env(), **env),
                    os.path.dirname(self.home))

    def extra_env(self):
        """Return what the environment has beyond the directories."""
        return {k: v for k, v in self.env.items()
                if k.startswith("CRIU_SHMEM_") and k != "CRIU_SHMEM_CONF"}

    def command(self, verb, images, options):
        """Return the command line and the path of the log."""
        self.runs += 1
        log = os.path.join(self.home, "%s-%d.log" % (verb, self.runs))
        argv = [self.binary, verb, "-D", images, "-v4", "-o", log]
        return argv + list(options), log

    def start(self, verb, images, *options, preexec=None):
        """Start CRIU and return (Popen, path of its log): for races."""
        argv, log = self.command(verb, images, options)
        self.output = open(log + ".out", "w+b")
        return subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL,
                                stdout=self.output, stderr=subprocess.STDOUT,
                                preexec_fn=preexec), log

    def finish(self, proc, log, timeout=TIMEOUT):
        """Wait for a started CRIU and return its Result."""
        begin = time.monotonic()
        timed_out = False
        try:
            rc = proc.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            proc.send_signal(signal.SIGKILL)
            rc = proc.wait()
        seconds = time.monotonic() - begin
        self.output.seek(0)
        output = self.output.read().decode(errors="replace")
        self.output.close()
        return Result(rc, read_log(log), seconds, output, timed_out)

    def run(self, verb, images, *options, timeout=TIMEOUT, preexec=None):
        """Run CRIU to its end."""
        os.makedirs(images, exist_ok=True)
        proc, log = self.start(verb, images, *options, preexec=preexec)
        return self.finish(proc, log, timeout)

    def dump(self, pid, images, *options, **kw):
        """Dump the tree of a pid."""
        return self.run("dump", images, "-t", str(pid), *options, **kw)

    def pre_dump(self, pid, images, *options, **kw):
        """Pre-dump the tree of a pid."""
        return self.run("pre-dump", images, "-t", str(pid), *options, **kw)

    def restore(self, images, *options, **kw):
        """Restore in the background; the result has the pid, or None."""
        pidfile = os.path.join(self.home, "pid-%d" % (self.runs + 1))
        result = self.run("restore", images, "-d", "--pidfile", pidfile, *options, **kw)
        result.pid = read_pid(pidfile)
        return result


def read_log(path):
    """Return the text of a log, empty if there is none."""
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def read_pid(path):
    """Return the pid in a file, None if there is none."""
    try:
        with open(path) as f:
            return int(f.read())
    except (OSError, ValueError):
        return None
