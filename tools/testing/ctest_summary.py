#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ctest_summary.py [--failed WHAT]... [STATUS:FILE]...: what failed in runs of ctest, and their sums on the last line.

STATUS is the exit status of a run, FILE what `ctest --output-junit` wrote. A test `cases.NAME` stands for the cases in
the file that run_cases.py left: FILE's folder, cases/cases.NAME.json. --failed names a step that failed before ctest
ran. The exit status is 1 when a test failed, when ctest failed without a failing test, or when no test ran."""

import argparse
import dataclasses
import json
import pathlib
import sys
import xml.etree.ElementTree

import case_lists

LINES_SHOWN = 40  # of what a failing test printed: the last ones
SLOWEST_SHOWN = 10
SLOW_SECONDS = 2.0


def outcome_of(case):
    """"passed", "skipped" or "failed" for a <testcase>.

    A disabled test and a test that skips itself are skipped. Any other test that did not run, for example because its
    program is missing, has failed.

    >>> def case(text): return outcome_of(xml.etree.ElementTree.fromstring(text))
    >>> case('<testcase status="run"/>'), case('<testcase status="fail"/>'), case('<testcase status="disabled"/>')
    ('passed', 'failed', 'skipped')
    >>> case('<testcase status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>')
    'skipped'
    >>> case('<testcase status="notrun"><skipped message="Unable to find executable"/></testcase>')
    'failed'
    """
    status = case.get("status")
    if status == "run":
        return "passed"
    skipped = case.find("skipped")
    skips_itself = skipped is not None and skipped.get("message", "").startswith("SKIP_")
    return "skipped" if status == "disabled" or skips_itself else "failed"


def reason_of(case):
    """Why ctest says that a test failed."""
    found = case.find("failure")
    if found is None:
        found = case.find("skipped")
    return (found.get("message", "") if found is not None else "") or case.get("status")


@dataclasses.dataclass
class Outcome:
    """What became of a whole-program test, or of one case of a program."""

    name: str
    outcome: str
    seconds: float
    reason: str
    output: str
    is_case: bool = False  # of a GoogleTest program

    def describe(self):
        """A failing test: its name, the reason, and the last lines of its output."""
        lines = self.output.strip().splitlines()
        head = [f"{self.name} ({self.seconds:.2f} s): {self.reason}"]
        if len(lines) > LINES_SHOWN:
            head.append(f"  ... {len(lines) - LINES_SHOWN} more lines")
        return head + ["  " + line for line in lines[-LINES_SHOWN:]]


def outcomes_of(test, folder, skips):
    """The outcomes behind one <testcase>: its own, or those of the cases that run_cases.py ran.

    The status that ctest gives a program counts, too: a program that failed without a failed case is a failure, and so
    is one that left no file."""
    whole = Outcome(test.get("name"), outcome_of(test), float(test.get("time", 0)), reason_of(test),
                    test.findtext("system-out") or "")
    if not whole.name.startswith("cases."):
        skips_itself = whole.outcome == "skipped" and test.get("status") != "disabled"
        if skips_itself and not skips.permit(whole.name, whole.output):
            whole = dataclasses.replace(whole, outcome="failed", reason="skipped, and skips.txt has no such line")
        return [whole]
    try:
        cases = json.loads(pathlib.Path(folder, whole.name + ".json").read_text(encoding="utf-8"))
        found = [Outcome(**{**case, "reason": case["reason"] or "failed"}, is_case=True) for case in cases]
    except (OSError, ValueError) as error:
        return [dataclasses.replace(whole, outcome="failed", reason=f"{whole.reason}; no results: {error}")]
    if whole.outcome == "failed" and not any(case.outcome == "failed" for case in found):
        found.append(whole)
    return found


@dataclasses.dataclass
class Run:
    """One run of ctest."""

    preset: str
    outcomes: list = dataclasses.field(default_factory=list)
    groups: dict = dataclasses.field(default_factory=dict)  # seconds by the first word of a test's name
    lines: list = dataclasses.field(default_factory=list)  # about what failed

    def count(self, outcome):
        return sum(found.outcome == outcome for found in self.outcomes)


def read_run(status, file, skips):
    run = Run(file.parent.name)
    try:
        tests = list(xml.etree.ElementTree.parse(file).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        tests, status = [], status or 1
        run.lines.append(f"ctest left no results: {error}")
    for test in tests:
        group = test.get("name").split(".")[0]
        run.groups[group] = run.groups.get(group, 0) + float(test.get("time", 0))
        run.outcomes += outcomes_of(test, file.parent / "cases", skips)
    for case in run.outcomes:
        run.lines += case.describe() if case.outcome == "failed" else []
    if status != 0 and run.count("failed") == 0:  # no test found, or a broken test file
        run.lines.append(f"ctest itself failed with exit status {status}")
        run.outcomes.append(Outcome("ctest", "failed", 0, run.lines[-1], ""))
    return run


def unsteady(runs):
    """Lines about what failed in one run of a preset and not in another.

    >>> def run(outcome): return Run("dev", [Outcome("A.B", outcome, 0, "", "")])
    >>> unsteady([run("failed"), run("passed"), run("passed")]), unsteady([run("failed"), run("failed")])
    (['A.B: failed 1 of 3 times, dev'], [])
    """
    seen = {}
    for run in runs:
        for found in run.outcomes:
            seen.setdefault((found.name, run.preset), []).append(found.outcome)
    return [f"{name}: failed {outcomes.count('failed')} of {len(outcomes)} times, {preset}"
            for (name, preset), outcomes in seen.items() if 0 < outcomes.count("failed") < len(outcomes)]


def where_the_time_went(runs):
    """Lines: the seconds of each kind of test, and the slowest tests and cases.

    >>> where_the_time_went([Run("dev", [Outcome("A.B", "passed", 2.5, "", "")], {"cases": 3.2})])
    ['dev: cases 3 s', '    2.5 s  A.B, dev']
    """
    lines = []
    for run in runs:
        groups = sorted(run.groups.items(), key=lambda group: -group[1])
        lines.append(f"{run.preset}: {', '.join(f'{name} {seconds:.0f} s' for name, seconds in groups)}")
    named = [(found.seconds, f"{found.name}, {run.preset}") for run in runs for found in run.outcomes]
    slowest = sorted(named, reverse=True)
    return lines + [f"{seconds:7.1f} s  {name}" for seconds, name in slowest[:SLOWEST_SHOWN]]


def slow_without_reason(runs):
    """Lines about the cases that take long and are not in slow.txt, in the build without a sanitizer.

    >>> def run(preset, name, seconds): return Run(preset, [Outcome(name, "passed", seconds, "", "", is_case=True)])
    >>> slow_without_reason([run("dev", "A.B", 2.5), run("dev", "A.C", 1.0), run("tsan", "A.B", 9.0)])
    ['A.B takes 2.5 s, and slow.txt has no reason']
    """
    slow = [found for run in runs if run.preset == "dev" for found in run.outcomes
            if found.is_case and found.seconds > SLOW_SECONDS]
    return [f"{found.name} takes {found.seconds:.1f} s, and slow.txt has no reason" for found in slow
            if not case_lists.has_reason_to_be_slow(found.name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failed", metavar="WHAT", action="append", default=[])
    parser.add_argument("--skips", metavar="FILE", default=case_lists.SKIPS, help="the tests that may skip themselves")
    parser.add_argument("--times", action="store_true", help="also print where the time went")
    parser.add_argument("runs", metavar="STATUS:FILE", nargs="*")
    arguments = parser.parse_args()
    for what in arguments.failed:
        print(f"==> failed: {what}")
    files = [(int(status), pathlib.Path(file)) for status, file in (run.split(":", 1) for run in arguments.runs)]
    skips = case_lists.Skips.of("ctest", arguments.skips)
    runs = [read_run(status, file, skips) for status, file in files]
    if arguments.times:
        print("\n".join(["==> where the time went, in seconds of one test at a time", *where_the_time_went(runs),
                         *slow_without_reason(runs)]))
    for run, (_, file) in zip(runs, files):
        if run.lines:
            print("\n".join([f"==> what failed, from {file}", *run.lines]))
    for line in unsteady(runs):
        print(f"==> unsteady: {line}")
    passed, failed, skipped = (sum(run.count(outcome) for run in runs) for outcome in ("passed", "failed", "skipped"))
    failed += len(arguments.failed)
    skips = f", {skipped} skipped" if skipped else ""
    print(f"{passed} passed, {failed} failed{skips}")
    return 1 if failed > 0 or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
