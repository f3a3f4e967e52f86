# SPDX-License-Identifier: MIT
"""Instructions, system calls and allocations per message, of cells in which luck decides little: sockets of one thread, and a
server with one request under way.

`check` counts those of bench/counts.json and fails where one is above it by more than its tolerance in each of twenty tries: a
thread that is held up waits for longer, and never does less. It is skipped (exit status 77) for another compiler than the one
that the file names. `update` writes the file anew, with the least of five tries."""

import argparse
import contextlib
import json
import pathlib
import re
import shutil
import tempfile

from weft_bench import BENCH, ROOT, printer
from weft_bench.command_line import FAILURE, USAGE, say
from weft_bench.harness import rounds, server_rounds
from weft_bench.harness.child import ChildError, Libraries, sum_of_calls

STORED = BENCH / "counts.json"
SKIPPED = 77
SOCKETS = ("one_thread/inproc/64", "one_thread/tcp/64", "one_thread/tcp/65536")
SERVER = ("echo/64/x1", "http/5/x16")
COUNT, REPETITIONS = 400, (1, 3)  # messages of a repetition; the difference of the runs leaves out what is done once
MANY = 20_000  # of a repetition without a tool, beside which what a repetition allocates does not count
# One of three tries of one_thread/tcp/64 counts a tenth too much on a busy machine: who reads and who writes is luck there.
TRIES = {"check": 20, "update": 5}
# How far a count may be above the stored one: a share of it, and so much more.
TOLERANCES = {"instructions": (0.10, 60.0), "syscalls": (0.02, 0.2), "allocations": (0.0, 0.02)}
# Of a program of sockets only these are counted: the benchmark's own threads wait in loops.
CALLS = [f"--toggle-collect={name}" for name in ("zmq_send", "zmq_recv", "zmq_msg_send", "zmq_msg_recv")]
TOOLS = {"instructions": "valgrind", "syscalls": "strace"}


def sum_of_instructions(text):
    """The instructions in the output of callgrind.

    >>> sum_of_instructions("events: Ir\\nsummary: 120\\n"), sum_of_instructions("totals: 7\\n")
    (120, 7)
    """
    found = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
    if found is None:
        raise ChildError("callgrind counted nothing")
    return int(found.group(1))


def under(tool, file):
    """The words before a command that is counted by a tool into a file."""
    if tool == "valgrind":
        return [shutil.which(tool), "-q", "--tool=callgrind", f"--callgrind-out-file={file}"]
    return [shutil.which(tool), "-f", "-c", "-U", "calls,name", "-o", file]


def per_message(what, run):
    """The count of a tool per message. run(words before the command, repetitions) runs COUNT messages so many times."""
    totals = []
    for repetitions in REPETITIONS:
        with tempfile.NamedTemporaryFile(mode="r") as table:
            run(under(TOOLS[what], table.name), repetitions)
            text = pathlib.Path(table.name).read_text(encoding="utf-8")
            totals.append(sum_of_instructions(text) if what == "instructions" else sum_of_calls(text))
    return (totals[1] - totals[0]) / (REPETITIONS[1] - REPETITIONS[0]) / COUNT


def counts_of_sockets(build, name, stack):
    library = build / "capi/libzmq.so.5"
    libraries = stack.enter_context(Libraries(library, library))
    setup = rounds.Setup(build / "bench/bench_sockets", libraries, rounds.TINY)
    column = rounds.Column(setup, ("weft", "zmq", "weft", name))
    column.count = COUNT

    def run(before, repetitions):
        calls = CALLS if "--tool=callgrind" in before else []
        with rounds.Child(*setup.child(column.column), [*before, *calls]) as child:
            child.answer()
            for _ in range(repetitions):
                child.count(COUNT)
            child.finish()
    found = {what: per_message(what, run) for what in TOOLS}
    return {**found, "allocations": column.record_of_counts(name)["allocations"]}


def counts_of_server(build, name, stack):
    setup = server_rounds.Setup(build / "bench/server", server_rounds.TINY)
    program = "weft" if name.startswith("echo") else "web"

    def run(before, repetitions, count=COUNT, env=None):
        column = server_rounds.ServerColumn(setup, name, ("weft", program, ""))
        column.count = count
        with contextlib.ExitStack() as children:
            column.start(children, before, env)
            column.repeat()
            first = column.server.ask("counts")["allocations"]
            for _ in range(repetitions):
                column.repeat()
            last = column.server.ask("counts")["allocations"]
            column.finish()
        return None if first is None else (last - first) / repetitions
    allocations = run((), 1, MANY, {"LD_PRELOAD": str(build / "bench/libbench_allocations.so")})
    return {**{what: per_message(what, run) for what in TOOLS}, "allocations": allocations / MANY}


def measure(build, names, tries, enough=lambda found: False):
    """{cell: {what: count per message}}: the least of so many tries, or of those until it is enough."""
    found = {}
    with contextlib.ExitStack() as stack:
        for name in names:
            of = counts_of_sockets if name in SOCKETS else counts_of_server
            for _ in range(tries):
                counted = {what: round(count, 3) for what, count in of(build, name, stack).items()}
                found[name] = {what: min(count, found.get(name, counted)[what]) for what, count in counted.items()}
                if enough({name: found[name]}):
                    break
            say(f"{name}: " + ", ".join(f"{printer.number(count)} {what}" for what, count in found[name].items()))
    return found


def complaints(stored, measured):
    """What grew, one a line.

    >>> complaints({"a": {"syscalls": 2.0, "allocations": 0.0}}, {"a": {"syscalls": 3.0, "allocations": 0.01}})
    ['a: 3 syscalls per message instead of 2']
    >>> complaints({"a": {"instructions": 1000.0}}, {"a": {"instructions": 1155.0}}), complaints({}, {"a": {"syscalls": 1.0}})
    ([], ['a is not in counts.json: run ./dev bench counts update'])
    """
    found = []
    for name, counts in measured.items():
        if name not in stored:
            found.append(f"{name} is not in {STORED.name}: run ./dev bench counts update")
            continue
        for what, count in counts.items():
            share, more = TOLERANCES[what]
            before = stored[name][what]
            if count > before * (1 + share) + more:
                found.append(f"{name}: {printer.number(count)} {what} per message instead of {printer.number(before)}")
    return found


def parse_arguments(texts):
    parser = argparse.ArgumentParser(prog="./dev bench counts", description=__doc__,
                                     epilog="Exit status: 0 nothing grew, 1 something did, 2 usage, 77 skipped.")
    parser.add_argument("action", choices=("check", "update"))
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--compiler", metavar="TEXT", default="", help="such as 'GNU 12.2.0, RelWithDebInfo'; of a file of "
                        "another one, check is skipped")
    return parser.parse_args(texts)


def main(texts):
    chosen = parse_arguments(texts)
    missing = [tool for tool in TOOLS.values() if shutil.which(tool) is None]
    if missing:
        say(f"counts: skipped: {missing[0]} is not installed")
        return SKIPPED if chosen.action == "check" else USAGE
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {"built": "", "cells": {}}
    if chosen.action == "check" and stored["built"] != chosen.compiler:
        say(f"counts: skipped: {STORED.name} is of {stored['built']}, this is {chosen.compiler}")
        return SKIPPED
    try:
        updates = chosen.action == "update"
        found = measure(chosen.build, SOCKETS + SERVER, TRIES[chosen.action],
                        lambda counted: not updates and not complaints(stored["cells"], counted))
    except (ChildError, OSError) as error:
        say(f"counts: {error}")
        return FAILURE
    if updates:
        STORED.write_text(json.dumps({"built": chosen.compiler, "cells": found}, indent=1) + "\n", encoding="utf-8")
        return 0
    said = complaints(stored["cells"], found)
    for line in said:
        say(f"counts: {line}")
    return FAILURE if said else 0
