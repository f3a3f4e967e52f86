#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every suite on this machine, and one page of all of it beside what was published: a folder with report.html and the raw
records. A run that was ended goes on with --resume, or is shown as it is with --render."""

import argparse
import contextlib
import datetime
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import micro  # noqa: E402
import sockets  # noqa: E402
from harness import cells, rounds, server_cells, server_rounds  # noqa: E402
from harness.child import Libraries  # noqa: E402
from pages import machine, page, published, results  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
USAGE, FAILURE, INTERRUPTED = 2, 1, 130
RUN, RESULTS, PAGE = "run.json", "results.json", "report.html"


class UsageError(Exception):
    """What was asked for cannot be done; nothing was written."""


class Suite:
    """A suite of rows that are measured one by one, each adding its records to one file."""

    def __init__(self, name, rows, measure):
        self.name, self.rows, self.measure = name, rows, measure

    def done(self, records):
        """The rows that a file of this suite holds already."""
        if self.name == "micro":
            return {record["row"]["row"] for record in records}
        return {record["cell"] for record in records if record["kind"] in ("cell", "failure", "skip")}


def micro_suite(build, quick):
    program = build / "bench/micro/bench_micro"
    text = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    rows = {row["row"]: row for row in map(json.loads, text.splitlines())}
    setting = micro.QUICK if quick else micro.FULL

    def measure(name):
        taken = micro.measure_row(program, rows[name], **setting)
        return [{"row": rows[name], "rounds": taken, "results": micro.summarise(rows[name], taken)}]
    return Suite("micro", list(rows), measure)


def named_rows(suite):
    """The rows of a suite that stand beside a published one."""
    return [name for row in published.load()["rows"] if row["suite"] == suite for name in published.measured_rows(row)]


def socket_cells(quick):
    """The cells that a published row or a bar names; all bars take half an hour, so --quick has fewer."""
    more = cells.QUICK + [f"round_trip/{transport}/64/load{load}" for transport in ("tcp", "inproc") for load in (10, 50, 80)]
    return list(dict.fromkeys(named_rows("sockets") + (more if quick else cells.BARS)))


def socket_suite(build, quick, stack):
    against = sockets.libzmq_of_pyzmq()
    if against is None:
        raise UsageError("pyzmq is not installed, and with it the libzmq to compare with: run this through ./dev")
    libraries = stack.enter_context(Libraries(build / "capi/libzmq.so.5", against))
    setup = rounds.Setup(build / "bench/bench_sockets", libraries, rounds.QUICK if quick else rounds.Effort())
    return Suite("sockets", socket_cells(quick), lambda name: rounds.measure_cell(setup, name))


def server_suite(build, quick):
    setup = server_rounds.Setup(build / "bench/server", server_rounds.QUICK if quick else server_rounds.FULL)
    names = named_rows("server") + server_cells.GROUPS["quick" if quick else "all"]
    return Suite("server", list(dict.fromkeys(names)), lambda name: server_rounds.measure_cell(setup, name))


def add_controls(build, folder, run):
    """Measures the control rows and saves run.json."""
    record = rounds.measure_controls(build / "bench/bench_sockets")[0]
    if record["kind"] == "controls":
        row = {key: record[key] for key in record if key.endswith(("_ns", "_us"))}
        run["machine"].setdefault("controls", []).append(row)
    (folder / RUN).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def append(path, records):
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))


def drop_torn_end(path):
    """Takes a last line that is not whole away, as a killed run leaves it."""
    text = path.read_bytes()
    whole = text[:text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)


def measure_suites(suites, folder, say):
    """Measures what is missing in each suite's file."""
    todo = []
    for suite in suites:
        path = folder / f"{suite.name}.jsonl"
        path.touch()
        drop_torn_end(path)
        done = suite.done(results.read_records(path))
        todo += [(suite, path, name) for name in suite.rows if name not in done]
    start = time.monotonic()
    for number, (suite, path, name) in enumerate(todo, 1):
        append(path, suite.measure(name))
        left = (time.monotonic() - start) / number * (len(todo) - number)
        say(f"[{number}/{len(todo)}] {suite.name} {name}, {left / 60:.1f} min left")


def load_results(folder):
    """The results of another report."""
    try:
        data = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder} holds no report: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != results.SCHEMA:
        raise UsageError(f"{folder} was made by another version of this tool (schema {results.SCHEMA} is wanted)")
    return data


def refuse_other_machine(one, other, what):
    found = machine.differences(one, other)
    if found:
        raise UsageError(f"{what} is of another machine: {'; '.join(found)}")


def render(folder, run, complete, baseline):
    files = {name: folder / f"{name}.jsonl" for name in results.READERS if (folder / f"{name}.jsonl").exists()}
    found, failed = results.collect(files)
    data = {"schema": results.SCHEMA, "machine": run["machine"], "effort": run["effort"], "started": run["started"],
            "partial": not complete, "results": found, "failures": failed}
    (folder / RESULTS).write_text(json.dumps(data) + "\n", encoding="utf-8")
    shown = {**data, "published": published.load()} | ({"baseline": baseline} if baseline else {})
    (folder / PAGE).write_text(page.page(shown), encoding="utf-8")
    return data


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench report", description=__doc__, epilog="Exit status: 0 all measured, "
                                     "1 a row failed, 2 usage or a comparison that cannot be made, 130 interrupted.")
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="about ten minutes on two cores")
    effort.add_argument("--full", action="store_true", help="every bar of every suite (the default)")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help="the folder to make (default: build/report/TIME)")
    parser.add_argument("--suites", metavar="NAME,...", default=",".join(results.READERS), help="default: %(default)s")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--resume", metavar="DIR", type=pathlib.Path, help="go on with a run that was ended")
    how.add_argument("--render", metavar="DIR", type=pathlib.Path, help="measure nothing: the page of what is there")
    parser.add_argument("--baseline", metavar="DIR", type=pathlib.Path, help="an earlier report of this machine, to compare")
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=ROOT / "build/release")
    chosen = parser.parse_args(arguments)
    chosen.suites = chosen.suites.split(",")
    unknown = [name for name in chosen.suites if name not in results.READERS]
    if unknown:
        parser.error(f"no suite {' or '.join(unknown)}; there are: {', '.join(results.READERS)}")
    return chosen


def open_run(arguments):
    """The folder and what run.json says of it; a new one is made, an old one is never overwritten."""
    folder = arguments.resume or arguments.render
    if folder is not None:
        try:
            run = json.loads((folder / RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{folder} is no folder of a report: {error}") from error
        if arguments.resume:
            refuse_other_machine(run["machine"], machine.card(arguments.build), str(folder))
        return folder, run
    now = datetime.datetime.now().isoformat(timespec="seconds")
    folder = arguments.out or ROOT / "build/report" / now.replace(":", "")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; --resume {folder} goes on there")
    folder.mkdir(parents=True, exist_ok=True)
    run = {"machine": machine.card(arguments.build), "effort": "quick" if arguments.quick else "full", "started": now,
           "suites": arguments.suites}
    return folder, run


def measure(arguments, folder, run, say):
    """True: to the end; False: interrupted."""
    quick = run["effort"] == "quick"
    with contextlib.ExitStack() as stack:
        makers = {"micro": lambda: micro_suite(arguments.build, quick),
                  "sockets": lambda: socket_suite(arguments.build, quick, stack),
                  "server": lambda: server_suite(arguments.build, quick)}
        try:
            suites = [makers[name]() for name in run["suites"]]
            add_controls(arguments.build, folder, run)
            measure_suites(suites, folder, say)
            run["complete"] = True
            add_controls(arguments.build, folder, run)
        except KeyboardInterrupt:
            say(f"interrupted; --resume {folder} goes on")
            return False
    return True


def main(arguments=None):
    arguments = parse_arguments(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def say(text):
        print(text, file=sys.stderr, flush=True)
    try:
        baseline = load_results(arguments.baseline) if arguments.baseline else None
        folder, run = open_run(arguments)
        if baseline:
            refuse_other_machine(baseline["machine"], run["machine"], str(arguments.baseline))
        interrupted = not arguments.render and not measure(arguments, folder, run, say)
        data = render(folder, run, run.get("complete", False), baseline)
    except UsageError as error:
        print(f"report: {error}", file=sys.stderr)
        return USAGE
    for failure in data["failures"]:
        say(f"not measured: {failure['row']} ({failure['suite']}): {failure['why']}")
    print(folder / PAGE)
    return INTERRUPTED if interrupted else FAILURE if data["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
