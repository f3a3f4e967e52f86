# SPDX-License-Identifier: MIT
"""What the tests of the page share: records as the suites write them, folders of reports, and a run of the command."""

import contextlib
import copy
import io
import json
import pathlib

from weft_bench import records
from weft_bench.commands import report


def result(row, ratio, **more):
    return {"suite": "micro", "row": row, "placement": "", "rounds": 5, "unit": "ns", "ours": "weft",
            "lives": 5, "columns": {"weft": 2.0, "rival": 2.0 * ratio[0]}, "samples": {"weft": [2.0], "rival": [2.0 * ratio[0]]},
            "ratios": {"rival": ratio}, "measures": {"rival": ratio}, "bars": [], "uses": {}, **more}


def micro_records(row, weft=2.0, rival=6.0):
    runs = [{"kind": "run", "cell": row, "round": number, "column": column, "life": number, "ns": ns,
             "counters": {}}
            for number in range(5) for column, ns in (("weft", weft), ("rival", rival))]
    return runs + [{"kind": "cell", "cell": row, "rounds": 5, "threads": 1, "contenders": ["weft", "rival"],
                    "bars": [{"rival": "rival", "ratio": 2.0, "placement": ""}]}]


def round_trip_records(cell="round_trip/tcp/64", p50_ns=20000, rounds_of_a_life=1):
    runs = []
    for number in range(5):
        for column, times in (("weft", 1), ("libzmq", 3)):
            runs.append({"kind": "run", "cell": cell, "round": number, "column": column, "messages": 100, "receivers": 1,
                         "life": number // rounds_of_a_life,
                         "seconds": 0.1, "cpu_seconds": 0.01, "switches": 5, "before_ns": 100, "after_ns": 100,
                         "p50_ns": p50_ns * times, "p99_ns": 2 * p50_ns * times, "p999_ns": 3 * p50_ns * times,
                         "max_ns": 4 * p50_ns * times, "trips": [[p50_ns * times, 95], [2 * p50_ns * times, 5]]})
    return runs + [{"kind": "cell", "cell": cell, "pattern": "round_trip", "size": 64, "rounds": 5, "agreed": 5,
                    "busy_seconds": 1.0, "own_seconds": 0.9, "stolen_seconds": 0.0}]


CARD = {"processor": "Some CPU", "cpus": "2 of 2", "kernel": "6.1", "quota": "none", "compiler": "c++", "flags": "-O3",
        "commit": "abc", "harness": "123", "tree": "clean", "controls": [{"getppid_ns": 100.0}, {"getppid_ns": 103.0}]}


STEADY, MOVED = ([{"kind": "controls", "memcpy_64_ns": 1.0, "ping_pong_ns": 80.0, "getppid_ns": 100.0, "futex_us": us}
                  for us in times] for times in ((1.85, 1.9), (1.85, 63.0)))


def between(controls, found):
    """Records of a row between two measurements of the controls."""
    return [controls[0], *found, controls[1]]


def make_folder(parent, complete=True, controls=STEADY, card=None):
    """A folder as a run leaves it."""
    folder = pathlib.Path(parent, "report")
    folder.mkdir(parents=True)
    run = {"machine": copy.deepcopy(card or CARD), "effort": "quick", "started": "2026-01-01T00:00:00",
           "suites": ["micro", "sockets"], "complete": complete}
    (folder / report.RUN).write_text(json.dumps(run), encoding="utf-8")
    records.append(folder / "micro.jsonl", between(controls, micro_records("SpscQueue_Throughput/1024")))
    records.append(folder / "sockets.jsonl", between(controls, round_trip_records()))
    return folder


def run_report(*arguments):
    """(exit status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = report.main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()
