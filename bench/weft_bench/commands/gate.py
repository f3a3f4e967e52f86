# SPDX-License-Identifier: MIT
"""This tree beside another revision: instructions and allocations first, then time, in turns. Exit status 3: slower."""

import argparse
import contextlib
import fnmatch
import shutil
import signal
import subprocess

from weft_bench import ROOT, printer, results, stats
from weft_bench.command_line import FAILURE, INTERRUPTED, REGRESSION, USAGE, add_build, say
from weft_bench.commands import instructions
from weft_bench.harness import cells, micro_rounds, rounds
from weft_bench.harness.child import ChildError, Libraries

INSTRUCTIONS_LEAST = 0.01
ALLOCATIONS_LEAST = 0.001  # per message: less than one in a thousand is the start, not the message
CELLS = ("push_pull/tcp/64,push_pull/ipc/1024,push_pull/inproc/64,round_trip/tcp/64,round_trip/inproc/64,"
         "router_router/tcp/64,pub_sub/inproc/64/x4")
ROW_SECONDS = 0.02  # of one repetition of a row
FILES = ("bench/micro/bench_micro", "bench/bench_sockets", "capi/libzmq.so.5")
TARGETS = ("bench_micro", "bench_sockets", "bench_allocations", "weft_zmq")


class GateError(Exception):
    """No comparison can be made."""


class UsageError(GateError):
    """What was asked for is not there."""


def run(*command, cwd=ROOT):
    """Standard output; a GateError with the last lines of what it said when it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except OSError as error:
        raise GateError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise GateError(f"{' '.join(map(str, command))} failed:\n{said}")
    return done.stdout


def commit_of(revision):
    try:
        return run("git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    except GateError:
        raise UsageError(f"{revision} is no revision of this repository") from None


def is_whole(tree, commit):
    """Whether a work tree is the whole commit and nothing else: not where making it was interrupted."""
    try:
        head = run("git", "rev-parse", "HEAD", cwd=tree).strip()
        return head == commit and not run("git", "status", "--porcelain", cwd=tree)
    except GateError:
        return False


def build_baseline(commit):
    """The release build of a commit, in a work tree of its own below build/gate that is kept for the next time."""
    tree = ROOT / "build/gate" / commit[:12]
    if not is_whole(tree, commit):
        shutil.rmtree(tree, ignore_errors=True)
        run("git", "worktree", "prune")
        run("git", "worktree", "add", "--detach", tree, commit)
    say(f"build {commit[:12]}")
    run("cmake", "--preset", "release", cwd=tree)
    run("cmake", "--build", "--preset", "release", "--parallel", "--target", *TARGETS, cwd=tree)
    return tree / "build/release"


def check_build(build):
    missing = [target for target in FILES if not (build / target).is_file()]
    if missing:
        raise UsageError(f"no {build / missing[0]}: run ./dev build release, or give --build DIR")


def common_rows(new, old, globs):
    """Our one-thread rows that both builds have."""
    rows, before = (micro_rounds.rows_of(micro_rounds.program_of(build)) for build in (new, old))
    ours = {name: row for name, row in rows.items() if row["threads"] == 1 and row["contenders"][0] == "weft"}
    return {name: row for name, row in ours.items() if "weft" in before.get(name, {}).get("contenders", ())
            and any(fnmatch.fnmatchcase(name, glob) for glob in globs)}


def grown(old, new, least, slack):
    """Rows whose count grew by more than that share and by more than the slack.

    >>> grown({"a": 100.0, "b": 0.0, "c": 1.0}, {"a": 102.0, "b": 0.0, "c": 1.5}, 0.01, 1.0)
    [('a', 100.0, 102.0)]
    >>> grown({"a": 0.0}, {"a": 0.5}, 0.0, 0.001)
    [('a', 0.0, 0.5)]
    """
    return [(name, old[name], new[name]) for name in sorted(old)
            if name in new and new[name] > old[name] * (1 + least) and new[name] - old[name] > slack]


def check_instructions(new, old, rows):
    say(f"instructions of {len(rows)} rows, by callgrind")
    counted = sorted(instructions.choose_rows(micro_rounds.program_of(new)))
    counted = [name for name in counted if name in rows]
    if shutil.which("valgrind") is None:
        raise GateError("valgrind is not installed, and counts the instructions")
    counts = [instructions.measure(micro_rounds.program_of(build), counted) if counted else {} for build in (old, new)]
    return [f"{name}: {after} instructions, {before} before"
            for name, before, after in grown(*counts, INSTRUCTIONS_LEAST, instructions.SLACK)]


def check_rows(new, old, rows):
    programs = {"new": new, "old": old, "old again": old}
    found = []
    for number, row in enumerate(rows.values(), 1):
        def once(which, row=row):
            try:
                return micro_rounds.run_once(micro_rounds.program_of(programs[which]), row, "weft", ROW_SECONDS)["ns"]
            except ChildError as error:
                raise GateError(f"{row['row']} ({which}): {error}") from error
        result = stats.compare(once, stats.THROUGHPUT_LEAST)
        say(line_of(f"[{number}/{len(rows)}] {row['row']}", result))
        found += [line_of(row["row"], result)] if result["alarm"] else []
    return found


def line_of(name, result):
    return (f"{name}: takes {printer.interval(result['slowdown'], digits=3)} of the time before, noise "
            f"{printer.share(result['noise'], 1)}{', SLOWER' if result['alarm'] else ''}")


def check_cell(setup, name):
    """(result, allocations per message before, and now) of one cell of sockets."""
    with contextlib.ExitStack() as stack:
        columns = {which: rounds.Column(setup, (which, "zmq", library, name))
                   for which, library in (("old", "libzmq"), ("new", "weft"), ("old again", "libzmq"))}
        for column in columns.values():
            column.start(stack)
            column.warm_up()
        pattern = cells.parse(name)["pattern"]
        least = stats.LATENCY_LEAST if pattern in cells.TRIPS else stats.THROUGHPUT_LEAST
        cost = results.cost_of_sockets(pattern)
        result = stats.compare(lambda which: cost(columns[which].repeat()), least)
        for column in columns.values():
            column.finish()
    counts = [columns[which].record_of_counts(name)["allocations"] or 0.0 for which in ("old", "new")]
    return result, *counts


def check_cells(new, old, names):
    found = []
    with Libraries(new / "capi/libzmq.so.5", old / "capi/libzmq.so.5") as libraries:
        setup = rounds.Setup(new / "bench/bench_sockets", libraries, rounds.QUICK)
        for number, name in enumerate(names, 1):
            try:
                result, before, after = check_cell(setup, name)
            except (ChildError, OSError, ValueError) as error:
                raise GateError(f"{name}: {error}") from error
            say(line_of(f"[{number}/{len(names)}] {name}", result))
            found += [line_of(name, result)] if result["alarm"] else []
            found += [f"{name}: {printer.number(now)} allocations a message, {printer.number(was)} before"
                      for _, was, now in grown({name: before}, {name: after}, 0.0, ALLOCATIONS_LEAST)]
    return found


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="./dev bench gate", description=__doc__, epilog="Exit status: 0 nothing is slower, 1 it could not be measured, 2 "
        "usage, 3 slower. A row is slower when the whole 95 % interval of its slowdown is above 1, its middle is at least 5 % "
        "(10 % for round trips) and more than the old revision differs from itself, in two runs, one after the other.")
    parser.add_argument("--baseline", metavar="REV", required=True, help="a revision of this repository, as git names it")
    parser.add_argument("--rows", metavar="GLOB,...", default="*", help="rows of bench/micro (default: all of one thread)")
    parser.add_argument("--cells", metavar="CELLS", default=CELLS, help="cells of ./dev bench sockets (default: %(default)s)")
    parser.add_argument("--counts-only", action="store_true", help="instructions only, no time")
    add_build(parser)
    chosen = parser.parse_args(arguments)
    chosen.cells, unknown = cells.choose(chosen.cells) if chosen.cells else ([], [])
    if unknown:
        parser.error(f"no cell matches {' or '.join(unknown)}")
    return chosen


def compare_trees(chosen):
    """What is slower, a line each."""
    commit = commit_of(chosen.baseline)
    check_build(chosen.build)
    old = build_baseline(commit)
    rows = common_rows(chosen.build, old, chosen.rows.split(","))
    if not rows and (chosen.counts_only or not chosen.cells):
        raise UsageError(f"no row of both revisions matches {chosen.rows}, so there is nothing to compare")
    found = check_instructions(chosen.build, old, rows)
    if not chosen.counts_only:
        found += check_rows(chosen.build, old, rows) + check_cells(chosen.build, old, chosen.cells)
    return found


def main(texts):
    chosen = parse_arguments(texts)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the children, like Ctrl-C
    try:
        found = compare_trees(chosen)
    except (GateError, ChildError) as error:
        say(f"gate: {error}")
        return USAGE if isinstance(error, UsageError) else FAILURE
    except KeyboardInterrupt:
        say("gate: interrupted; nothing is known")
        return INTERRUPTED
    print("\n".join(found) or "nothing is slower")
    return REGRESSION if found else 0
