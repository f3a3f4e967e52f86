# SPDX-License-Identifier: MIT
"""Python that runs pyzmq's wheel on our libzmq.so.5, built with AddressSanitizer, exits without a leak of ours. Python
leaks itself: only reports with a frame of our library count."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

LEAVES_ALL_OPEN = """
import zmq
context = zmq.Context()
sockets = []
for bound, connected, where in ((zmq.PULL, zmq.PUSH, "tcp://127.0.0.1:*"), (zmq.REP, zmq.REQ, "inproc://x")):
    sockets += [context.socket(bound), context.socket(connected)]
    sockets[-2].bind(where)
    sockets[-1].connect(sockets[-2].get(zmq.LAST_ENDPOINT).rstrip(b"\\0").decode())
    for _ in range(2):
        try:
            sockets[-1].send(b"x" * 100_000)
        except zmq.ZMQError:
            pass  # a REQ asks once
    sockets[-2].recv()
sockets[0].get_monitor_socket()
poller = zmq.Poller()
poller.register(sockets[0], zmq.POLLIN)
poller.poll(0)
"""

LEAKS_A_MESSAGE = """
import ctypes
ours = ctypes.CDLL(None)
for _ in range(10):
    ours.zmq_msg_init_size(ctypes.create_string_buffer(64), ctypes.c_size_t(100_000))
"""


def leaks_of_ours(libraries: list[str], *arguments: str) -> list[str]:
    """Runs Python with the libraries preloaded; returns the leak reports that name the last of them."""
    # Each allocation of Python is unwound, so a stack has the few frames that name ours.
    options = "detect_leaks=1:exitcode=0:fast_unwind_on_malloc=0:malloc_context_size=12"
    environment = {"LD_PRELOAD": " ".join(libraries), "PYTHONMALLOC": "malloc", "ASAN_OPTIONS": options}
    command = [sys.executable, "-B", *arguments]
    result = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{arguments}: exit status {result.returncode}\n{result.stdout}{result.stderr}")
    reports = [text for text in result.stderr.split("\n\n") if text.startswith(("Direct leak", "Indirect leak"))]
    own = ("weft::", "capi/", "weft/", libraries[-1])
    return [text for text in reports if any(word in text for word in own)]


def main() -> int:
    libraries = sys.argv[1:]
    failed = False
    if not leaks_of_ours(libraries, "-c", LEAKS_A_MESSAGE):
        print("a message that nobody closed was not reported: this test sees nothing")
        failed = True
    for arguments in ([str(HERE / "pyzmq_test.py")], ["-c", LEAVES_ALL_OPEN]):
        for report in leaks_of_ours(libraries, *arguments):
            print(f"{arguments[0]}:\n{report}\n")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
