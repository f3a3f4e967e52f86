# SPDX-License-Identifier: MIT
"""Every suite on this machine, and one page of all of it beside what was published: a folder with report.html, the same in
Korean, and the raw records. A run that was ended goes on with --resume, or is shown as it is with --render."""

import argparse
import contextlib
import datetime
import functools
import json
import pathlib
import signal
import time

from weft_bench import ROOT, printer, records, results
from weft_bench.command_line import FAILURE, INTERRUPTED, REGRESSION, USAGE, add_build, say
from weft_bench.harness import budget, cells, rounds, server_cells
from weft_bench.pages import figures, machine, page, published, suites, versions

QUICK_S, RENDER_S = 600, 15  # of --quick, without the build
RUN, RESULTS, PAGE = "run.json", "results.json", "report.html"
CONTROLS = "bench/bench_sockets"  # of a build: measures what the machine does without any library
PAGES = {"en": PAGE, "ko": "report.ko.html"}


class UsageError(Exception):
    """What was asked for cannot be done; nothing was written."""


def add_controls(build, folder, run):
    """Measures the control rows and saves run.json."""
    record = rounds.measure_controls(build / CONTROLS)[0]
    if record["kind"] == "controls":
        row = {key: record[key] for key in record if key.endswith(("_ns", "_us"))}
        run["machine"].setdefault("controls", []).append(row)
    (folder / RUN).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def measure_suites(wanted, folder, program, seconds=None):
    """Measures what is missing or void in each suite's file, what is needed first; the rows that there was no time for.

    `program` measures the controls around each row. `seconds` is for all rows of the suites; those that are there already took their share."""
    todo = []
    for suite in wanted:
        path = folder / f"{suite.name}.jsonl"
        path.touch()
        records.drop_unfinished(path)
        try:
            taken = records.read(path)
            void = results.void_rows(taken)
            if void:
                records.drop_rows(path, void)
        except records.RecordError as error:
            raise UsageError(f"cannot go on: {error}") from error
        done = suite.done(taken) - void
        todo += [(suite, row) for row in suite.rows if row.name not in done]
    tries = rounds.TRIES if seconds is None else 1
    todo.sort(key=lambda entry: not entry[1].needed)  # stable: the order of the suites otherwise
    planned = sum(row.planned_s for suite in wanted for row in suite.rows)
    share = sum(row.planned_s for _, row in todo) / planned if planned else 1
    plan = budget.Budget([(suite.name, row) for suite, row in todo], None if seconds is None else seconds * share)
    left_out, before = [], rounds.measure_controls(program)
    for number, (suite, row) in enumerate(todo, 1):
        allowance = plan.begin()
        if allowance is None:
            left_out.append({"suite": suite.name, "row": row.name, "why": "no time was left for it"})
        else:
            found = rounds.measure_between(lambda: suite.measure(row.name, allowance), before, program, tries)
            before = found[-1:]
            records.append(folder / f"{suite.name}.jsonl", found)
        plan.end(measured=allowance is not None)
        what = "left out" if allowance is None else "measured"
        say(f"[{number}/{len(todo)}] {suite.name} {row.name} {what}, {plan.left() / 60:.1f} min left")
    return left_out


def load_results(folder):
    """The results of another report."""
    try:
        data = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder} holds no report: {error}") from error
    version = data.get("schema") if isinstance(data, dict) else None
    if version != results.SCHEMA:
        raise UsageError(f"{folder} is of another version: its schema is {version!r}, here it is {results.SCHEMA}")
    why = records.refusal(data, records.REPORT_SCHEMA)
    if why:
        raise UsageError(f"{folder} holds no report that this tool can read: {why}")
    return data


def refuse_other_machine(one, other, what):
    found = machine.differences(one, other)
    if found:
        raise UsageError(f"{what} is of another machine or another harness: {'; '.join(found)}")


def read_suite(suite, path):
    """(results, failures) of a suite's file. A file that cannot be read is one failure; the other suites count."""
    if not path.exists():
        return [], []
    try:
        return results.of(suite, records.read(path))
    except records.RecordError as error:
        return [], [{"suite": suite, "row": "*", "why": str(error)}]


def render(folder, run, complete, baseline):
    found, failed = [], list(run.get("failures", []))
    for suite in results.SUITES:
        got, absent = read_suite(suite, folder / f"{suite}.jsonl")
        found, failed = found + got, failed + absent
    data = {"schema": results.SCHEMA, "machine": run["machine"], "effort": run["effort"], "started": run["started"],
            "partial": not complete, "results": found, "failures": failed, "left_out": run.get("left_out", [])}
    (folder / RESULTS).write_text(json.dumps(data) + "\n", encoding="utf-8")
    shown = {**data, "published": published.load()}
    if baseline:
        shown |= {"baseline": baseline, "versions": versions.compare_all(baseline, data)}
    for language, file in PAGES.items():
        others = {other: name for other, name in PAGES.items() if other != language}
        (folder / file).write_text(page.page(shown, language, others), encoding="utf-8")
    return shown


def parse_arguments(texts):
    parser = argparse.ArgumentParser(prog="./dev bench report", description=__doc__, epilog="Exit status: 0 all measured, "
                                     "1 a row failed, 2 usage or a comparison that cannot be made, 3 slower than the "
                                     "baseline, 130 interrupted.")
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="ten minutes: every published row, and of the others "
                        "what there is time for")
    effort.add_argument("--full", action="store_true", help="every bar of every suite (the default)")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help="the folder to make (default: build/report/TIME)")
    parser.add_argument("--suites", metavar="NAME,...", default=",".join(results.SUITES), help="default: %(default)s")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--resume", metavar="DIR", type=pathlib.Path,
                     help="go on with a run that was ended, and measure its void rows again")
    how.add_argument("--render", metavar="DIR", type=pathlib.Path, help="measure nothing: the page of what is there")
    parser.add_argument("--baseline", metavar="DIR", type=pathlib.Path, help="an earlier report of this machine, to compare")
    parser.add_argument("--figures", action="store_true", help="only what README.md and docs/ show, and put it there")
    add_build(parser)
    chosen = parser.parse_args(texts)
    if chosen.figures and chosen.quick:
        parser.error("--quick measures too little for --figures: leave --quick out")
    chosen.suites = chosen.suites.split(",")
    unknown = [name for name in chosen.suites if name not in results.SUITES]
    if unknown:
        parser.error(f"no suite {' or '.join(unknown)}; there are: {', '.join(results.SUITES)}")
    return chosen


def load_run(folder):
    """What run.json says of a run that was begun."""
    try:
        run = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder} is no folder of a report: {error}") from error
    if not isinstance(run, dict) or not {"machine", "effort", "started", "suites"} <= set(run):
        raise UsageError(f"{folder} is no folder of a report: {RUN} is another file's")
    return run


def open_run(arguments):
    """The folder and what run.json says of it; nothing is made yet, and an old one is never overwritten."""
    folder = arguments.resume or arguments.render
    if folder is not None:
        run = load_run(folder)
        card = machine.card(arguments.build)
        if arguments.resume:
            refuse_other_machine(run["machine"], card, str(folder))
            if run["machine"].get("commit") != card["commit"]:
                raise UsageError(f"{folder} is of commit {run['machine'].get('commit')}, this is {card['commit']}")
        return folder, run
    now = datetime.datetime.now().isoformat(timespec="seconds")
    folder = arguments.out or ROOT / "build/report" / now.replace(":", "")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; --resume {folder} goes on there")
    run = {"machine": machine.card(arguments.build), "effort": "quick" if arguments.quick else "full", "started": now,
           "suites": arguments.suites}
    return folder, run


def make_suites(names, makers):
    """(suites, failures): a suite that cannot be measured here is a failure, and stops none of the others."""
    made, failed = [], []
    for name in names:
        try:
            made.append(makers[name]())
        except suites.SuiteError as error:
            failed.append({"suite": name, "row": "*", "why": str(error)})
    return made, failed


def measure(arguments, folder, run):
    """True: to the end; False: interrupted. What was left out and what could not be begun is in `run` then."""
    quick = run["effort"] == "quick"
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        of_sockets = functools.cache(lambda: suites.of_sockets(arguments.build, quick, stack, say))
        of_server = functools.cache(lambda: suites.of_server(arguments.build, quick, stack))
        makers = {"micro": lambda: suites.of_micro(arguments.build, quick), "sockets": of_sockets, "server": of_server,
                  "topics": lambda: suites.of_topics(arguments.build, quick),
                  "sockets_at_load": lambda: suites.at_load(of_sockets(), cells.AT_LOAD),
                  "server_at_load": lambda: suites.at_load(of_server(), server_cells.AT_LOAD)}
        try:
            made, run["failures"] = make_suites(run["suites"], makers)
            if arguments.figures:
                for suite in made:
                    suite.rows = [row for row in suite.rows if row.name in figures.rows_of(suite.name)]
            add_controls(arguments.build, folder, run)
            seconds = QUICK_S - RENDER_S - (time.monotonic() - start) if quick else None
            run["left_out"] = [{"suite": suite.name, "row": name, "why": "--full measures it"}
                               for suite in made for name in suite.left_out]
            run["left_out"] += measure_suites(made, folder, arguments.build / CONTROLS, seconds)
            if not quick:  # once more where the controls moved
                measure_suites(made, folder, arguments.build / CONTROLS)
            run["complete"] = True
            add_controls(arguments.build, folder, run)
        except KeyboardInterrupt:
            say(f"interrupted; --resume {folder} goes on")
            return False
    say(f"measured for {(time.monotonic() - start) / 60:.1f} min")
    return True


def main(texts):
    arguments = parse_arguments(texts)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        baseline = load_results(arguments.baseline) if arguments.baseline else None
        folder, run = open_run(arguments)
        if baseline:
            refuse_other_machine(baseline["machine"], run["machine"], str(arguments.baseline))
        folder.mkdir(parents=True, exist_ok=True)
        interrupted = not arguments.render and not measure(arguments, folder, run)
        data = render(folder, run, run.get("complete", False), baseline)
        if arguments.figures and not interrupted:
            raw = {suite: records.read(folder / f"{suite}.jsonl") for suite in figures.SUITES if suite in run["suites"]}
            for file in figures.write(data, raw):
                say(f"figures written to {file}")
    except (UsageError, figures.FiguresError) as error:
        say(f"report: {error}")
        return USAGE
    for failure in data["failures"]:
        say(f"not measured: {failure['row']} ({failure['suite']}): {failure['why']}")
    slower = [entry for entry in data.get("versions", []) if entry["verdict"] == "slower"]
    for entry in slower:
        say(f"slower than {arguments.baseline}: {entry['row']}: {printer.interval(entry['change'], 'x')} as fast; "
            f"rivals moved by {printer.share(entry['noise'])}")
    print(folder / PAGE)
    return INTERRUPTED if interrupted else FAILURE if data["failures"] else REGRESSION if slower else 0
