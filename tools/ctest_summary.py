#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ctest_summary.py [--failed WHAT]... [STATUS:FILE]...: what failed in runs of ctest, and their sums on the last line.

STATUS is the exit status of a run, FILE what `ctest --output-junit` wrote. --failed names a step that failed before
ctest ran. The exit status is 1 when a test failed, when ctest failed without a failing test, or when no test ran."""

import argparse
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


def describe(case):
    """A failing test: its name, the reason, and the last lines of its output."""
    lines = (case.findtext("system-out") or "").strip().splitlines()
    head = [f"{case.get('name')} ({float(case.get('time', 0)):.2f} s): {reason_of(case)}"]
    if len(lines) > LINES_SHOWN:
        head.append(f"  ... {len(lines) - LINES_SHOWN} more lines")
    return head + ["  " + line for line in lines[-LINES_SHOWN:]]


def summarise(status, file):
    """({"passed", "failed", "skipped"}, lines about what failed) of one run."""
    counts, lines = {"passed": 0, "failed": 0, "skipped": 0}, []
    try:
        cases = list(xml.etree.ElementTree.parse(file).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        cases, status = [], status or 1
        lines.append(f"ctest left no results: {error}")
    for case in cases:
        outcome = outcome_of(case)
        counts[outcome] += 1
        lines += describe(case) if outcome == "failed" else []
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
