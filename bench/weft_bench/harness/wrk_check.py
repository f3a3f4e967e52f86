# SPDX-License-Identifier: MIT
"""The load generator beside wrk: both ask Weft's web server for the same text, in turns, from the same processor."""

import contextlib
import re
import shutil
import subprocess

from weft_bench import command_line, stats
from weft_bench.harness import server_rounds
from weft_bench.harness.child import ChildError

CELL = "http/5/x16"
MOST = 0.15  # the rates may differ by so much
ROUNDS = 7
WRK_S = 2
SKIPPED = 77


def rate_in(text):
    """The requests per second in wrk's output. An answer that is not 2xx or 3xx, and an error, is a ChildError.

    >>> rate_in("Requests/sec:  12345.67\\nTransfer/sec: 1MB")
    12345.67
    >>> rate_in("Non-2xx or 3xx responses: 3\\nRequests/sec:  1.0")
    Traceback (most recent call last):
    weft_bench.harness.child.ChildError: wrk: Non-2xx or 3xx responses: 3
    """
    fault = re.search(r"Non-2xx.*|Socket errors:.*", text)
    rate = re.search(r"Requests/sec:\s*([0-9.]+)", text)
    if fault or not rate:
        raise ChildError(f"wrk: {fault[0] if fault else text.strip()}")
    return float(rate[1])


def run_wrk(column, port, cpu):
    command = ["taskset", "-c", str(cpu), shutil.which("wrk"), "-t1", f"-c{column.cell['times']}", f"-d{WRK_S}s",
               f"http://127.0.0.1:{port}/{column.cell['size']}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return rate_in(done.stdout + done.stderr)


def verdict(ours, wrk):
    """(line, exit status) for the rates of both.

    >>> verdict([100.0, 110.0, 120.0], [100.0, 100.0, 105.0])
    ('bench_load 110/s, wrk 100/s: 1.10, within 15 %', 0)
    >>> verdict([100.0], [50.0])[1]
    1
    """
    ratio = stats.median(ours) / stats.median(wrk)
    met = 1 / (1 + MOST) <= ratio <= 1 + MOST
    return (f"bench_load {stats.median(ours):.0f}/s, wrk {stats.median(wrk):.0f}/s: {ratio:.2f}, "
            f"{'within' if met else 'NOT within'} {MOST:.0%}".replace("%", " %")), 0 if met else 1


def main(setup):
    if shutil.which("wrk") is None:
        command_line.say("skipped: wrk (Debian's package wrk) is not installed")
        return SKIPPED
    ours, wrk = [], []
    with contextlib.ExitStack() as stack:
        column = server_rounds.ServerColumn(setup, CELL, ("weft", "web", ""))
        column.start(stack)
        column.warm_up()
        column.count = max(column.count, int(WRK_S * column.rate()))
        for _ in range(ROUNDS):
            ours.append(column.count / column.child.run(column.count)["seconds"])
            wrk.append(run_wrk(column, column.port, setup.placement()[0]))
            command_line.say(f"bench_load {ours[-1]:.0f}/s, wrk {wrk[-1]:.0f}/s")
    line, status = verdict(ours, wrk)
    print(line)
    return status
