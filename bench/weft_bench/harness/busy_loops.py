# SPDX-License-Identifier: MIT
"""The load of a busy machine: processes that compute."""

import contextlib
import os
import subprocess

# Computes; asks every 0.1 s or so whether the process $0 is still there, so that no loop outlives a killed benchmark.
BUSY_LOOP = "while kill -0 $0 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done"


@contextlib.contextmanager
def busy_loops(count, nice=0):
    """So many processes that compute, beside what runs inside: the load of a busy machine."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            command = ["nice", "-n", str(nice), "sh", "-c", BUSY_LOOP, str(os.getpid())]
            loop = stack.enter_context(subprocess.Popen(command, stdin=subprocess.DEVNULL))
            stack.callback(loop.kill)
        yield
