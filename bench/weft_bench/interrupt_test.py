# SPDX-License-Identifier: MIT
"""Ctrl-C ends a measurement with status 130, and leaves no process and no file behind."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 280  # beside busy loops
MARK = f"WEFT_BENCH_MARK={os.getpid()}"


def marked():
    """The processes that inherited the mark."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if MARK.encode() in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
        except OSError:
            pass  # gone, or somebody else's
    return found


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"FAILED: {what}")
        time.sleep(0.01)


def main():
    at_work, *program = sys.argv[1:]  # so many processes at least while it measures, itself included
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-B", *program]
        name, value = MARK.split("=")
        process = subprocess.Popen(
            command, env=os.environ | {name: value, "TMPDIR": folder}, stdout=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        wait_until(lambda: len(marked()) >= int(at_work) or process.poll() is not None, "the measurement does not start")
        process.send_signal(signal.SIGINT)
        status = process.wait(PATIENCE_S)
        wait_until(lambda: not marked(), f"still there: {marked()}")
        left = os.listdir(folder)
    if status != 130 or left:
        sys.exit(f"FAILED: status {status}, left behind: {left}")
    print("ended with status 130, nothing is left")


if __name__ == "__main__":
    main()
