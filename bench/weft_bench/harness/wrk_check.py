# SPDX-License-Identifier: MIT
"""The load generator beside wrk and h2load: all ask Weft's web server for the same text, in turns, from the same processor."""

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
RUN_S = 2
SKIPPED = 77
# The package of Debian, the options before the URL, the patterns of a fault and of the rate.
TOOLS = {"wrk": ("wrk", ["-t1", "-c{times}", f"-d{RUN_S}s"], r"Non-2xx.*|Socket errors:.*", r"Requests/sec:\s*([0-9.]+)"),
         "h2load": ("nghttp2-client", ["--h1", "-t1", "-c{times}", f"-D{RUN_S}"],
                    r"[1-9]\d* failed.*|[1-9]\d* errored.*|[1-9]\d* [345]xx.*", r"finished in [^,]+, ([0-9.]+) req/s")}


def rate_in(tool, text):
    """The requests per second in what the tool printed. An answer that is not 2xx, and an error, is a ChildError.

    >>> rate_in("wrk", "Requests/sec:  12345.67\\nTransfer/sec: 1MB")
    12345.67
    >>> rate_in("wrk", "Non-2xx or 3xx responses: 3\\nRequests/sec:  1.0")
    Traceback (most recent call last):
    weft_bench.harness.child.ChildError: wrk: Non-2xx or 3xx responses: 3
    >>> done = "finished in 2.00s, 456.50 req/s, 1MB/s\\nrequests: 913 total, 913 done, 913 succeeded, 0 failed, 0 errored"
    >>> rate_in("h2load", done + "\\nstatus codes: 913 2xx, 0 3xx, 0 4xx, 0 5xx")
    456.5
    >>> rate_in("h2load", done + "\\nstatus codes: 903 2xx, 0 3xx, 10 4xx, 0 5xx")
    Traceback (most recent call last):
    weft_bench.harness.child.ChildError: h2load: 10 4xx, 0 5xx
    """
    _, _, faults, rates = TOOLS[tool]
    fault, rate = re.search(faults, text), re.search(rates, text)
    if fault or not rate:
        raise ChildError(f"{tool}: {fault[0] if fault else text.strip()}")
    return float(rate[1])


def run_tool(tool, column, port, cpu):
    options = [option.format(times=column.cell["times"]) for option in TOOLS[tool][1]]
    command = ["taskset", "-c", str(cpu), shutil.which(tool), *options, f"http://127.0.0.1:{port}/{column.cell['size']}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return rate_in(tool, done.stdout + done.stderr)


def verdict(tool, ours, theirs):
    """(line, whether both agree) for the rates of both.

    >>> verdict("wrk", [100.0, 110.0, 120.0], [100.0, 100.0, 105.0])
    ('bench_load 110/s, wrk 100/s: 1.10, within 15 %', True)
    >>> verdict("h2load", [100.0], [50.0])[1]
    False
    """
    ratio = stats.median(ours) / stats.median(theirs)
    met = 1 / (1 + MOST) <= ratio <= 1 + MOST
    return (f"bench_load {stats.median(ours):.0f}/s, {tool} {stats.median(theirs):.0f}/s: {ratio:.2f}, "
            f"{'within' if met else 'NOT within'} {MOST:.0%}".replace("%", " %")), met


def main(setup):
    """The exit status: 1 if the rates differ by more, 77 if there is neither tool."""
    there = [tool for tool in TOOLS if shutil.which(tool)]
    for tool in sorted(set(TOOLS) - set(there)):
        command_line.say(f"{'without' if there else 'skipped:'} {tool} (Debian's package {TOOLS[tool][0]}): it is not installed")
    if not there:
        return SKIPPED
    rates = {tool: [] for tool in ("bench_load", *there)}
    with contextlib.ExitStack() as stack:
        column = server_rounds.ServerColumn(setup, CELL, ("weft", "web", ""))
        column.start(stack)
        column.warm_up()
        column.count = max(column.count, int(RUN_S * column.rate()))
        for _ in range(ROUNDS):
            rates["bench_load"].append(column.count / column.child.run(column.count)["seconds"])
            for tool in there:
                rates[tool].append(run_tool(tool, column, column.port, setup.placement()[0]))
            command_line.say(", ".join(f"{tool} {taken[-1]:.0f}/s" for tool, taken in rates.items()))
    verdicts = [verdict(tool, rates["bench_load"], rates[tool]) for tool in there]
    print("\n".join(line for line, _ in verdicts))
    return 0 if all(met for _, met in verdicts) else 1
