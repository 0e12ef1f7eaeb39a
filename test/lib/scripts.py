# SPDX-License-Identifier: GPL-2.0-only
"""Action scripts for CRIU: run a shell command at one point of its way."""

import os


def at(directory, action, command):
    """Write a script that acts at one action; return the CRIU options.

    In the command $CRIU_PID is the CRIU that runs the script.
    """
    path = os.path.join(directory, "at-%s.sh" % action)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n"
                '[ "$CRTOOLS_SCRIPT_ACTION" = %s ] || exit 0\n' % action +
                "CRIU_PID=$(awk '/^PPid/ { print $2 }' /proc/$PPID/status)\n"
                '[ "$(cat /proc/$PPID/comm)" = criu ] && CRIU_PID=$PPID\n'
                "%s\n" % command)
    os.chmod(path, 0o755)
    return ["--action-script", path]
