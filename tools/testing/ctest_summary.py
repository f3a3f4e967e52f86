#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ctest_summary.py [--failed WHAT]... [STATUS:FILE]...: what failed in runs of ctest, and their sums on the last line.

STATUS is the exit status of a run, FILE what `ctest --output-junit` wrote. A test `cases.NAME` stands for the cases in
the file that run_cases.py left: FILE's folder, cases/cases.NAME.json. --failed names a step that failed before ctest ran.
The exit status is 1 when a test failed, when ctest failed without a failing test, or when no test ran."""

import argparse
import dataclasses
import json
import pathlib
import sys
import xml.etree.ElementTree

LINES_SHOWN = 40  # of what a failing test printed: the last ones


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

    def describe(self):
        """A failing test: its name, the reason, and the last lines of its output."""
        lines = self.output.strip().splitlines()
        head = [f"{self.name} ({self.seconds:.2f} s): {self.reason}"]
        if len(lines) > LINES_SHOWN:
            head.append(f"  ... {len(lines) - LINES_SHOWN} more lines")
        return head + ["  " + line for line in lines[-LINES_SHOWN:]]


def outcomes_of(test, folder):
    """The outcomes behind one <testcase>: its own, or those of the cases that run_cases.py ran.

    What ctest says counts, too: a program that failed without a failed case is a failure, and so is one that left no
    file."""
    whole = Outcome(test.get("name"), outcome_of(test), float(test.get("time", 0)), reason_of(test),
                    test.findtext("system-out") or "")
    if not whole.name.startswith("cases."):
        return [whole]
    try:
        cases = json.loads(pathlib.Path(folder, whole.name + ".json").read_text(encoding="utf-8"))
        found = [Outcome(**{**case, "reason": case["reason"] or "failed"}) for case in cases]
    except (OSError, ValueError) as error:
        return [dataclasses.replace(whole, outcome="failed", reason=f"{whole.reason}; no results: {error}")]
    if whole.outcome == "failed" and not any(case.outcome == "failed" for case in found):
        found.append(whole)
    return found


def summarise(status, file):
    """({"passed", "failed", "skipped"}, lines about what failed) of one run."""
    counts, lines = {"passed": 0, "failed": 0, "skipped": 0}, []
    try:
        tests = list(xml.etree.ElementTree.parse(file).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        tests, status = [], status or 1
        lines.append(f"ctest left no results: {error}")
    for test in tests:
        for case in outcomes_of(test, file.parent / "cases"):
            counts[case.outcome] += 1
            lines += case.describe() if case.outcome == "failed" else []
    if status != 0 and counts["failed"] == 0:  # no test found, or a broken test file
        counts["failed"] = 1
        lines.append(f"ctest itself failed with exit status {status}")
    return counts, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failed", metavar="WHAT", action="append", default=[])
    parser.add_argument("runs", metavar="STATUS:FILE", nargs="*")
    arguments = parser.parse_args()
    sums = {"passed": 0, "failed": len(arguments.failed), "skipped": 0}
    for what in arguments.failed:
        print(f"==> failed: {what}")
    for run in arguments.runs:
        status, file = run.split(":", 1)
        counts, lines = summarise(int(status), pathlib.Path(file))
        sums = {name: sums[name] + counts[name] for name in sums}
        if lines:
            print("\n".join([f"==> what failed, from {file}", *lines]))
    skips = f", {sums['skipped']} skipped" if sums["skipped"] else ""
    print(f"{sums['passed']} passed, {sums['failed']} failed{skips}")
    return 1 if sums["failed"] > 0 or sums["passed"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
