#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_cases.py [options] PROGRAM: runs the cases of a GoogleTest program in one process; the ctest test `cases.NAME`.

Cases of own_process.txt run in a process of their own: "own" ones after the others, "alone" ones only with --alone. A
case during which the process dies or takes too long has failed, and the next process goes on behind it.
A case that is skipped and not listed in skips.txt has failed. Cases of nightly.txt run where WEFT_NIGHTLY is set.
WEFT_CASES_INCLUDE and WEFT_CASES_EXCLUDE are regular expressions that choose cases by name. The exit status is 1 when a
case failed. --results FILE keeps what became of each case, for ctest_summary.py."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import sys
import time

import case_lists
import gtest_program
from gtest_program import FAILED, PASSED, SKIPPED, Case

DISABLED = "disabled"
CASE_SECONDS = 300.0  # after which a case hangs; WEFT_CASE_SECONDS is another number


def arguments_of(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--name", help="of the program in own_process.txt; its file's name by default")
    parser.add_argument("--filter", default="*", help="of GoogleTest: the cases that there are")
    parser.add_argument("--prefix", default="", help="before the names of cases in the report")
    parser.add_argument("--shard", default="1/1", help="I/N: the I-th of N parts of the cases, from 1")
    parser.add_argument("--alone", action="store_true", help="only the cases that run alone")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--build", choices=case_lists.BUILDS, default="plain")
    parser.add_argument("--nightly", type=pathlib.Path, default=case_lists.NIGHTLY, help="the list of nightly cases")
    parser.add_argument("--skips", type=pathlib.Path, default=case_lists.SKIPS, help="the cases that may be skipped")
    parser.add_argument("--own-process", type=pathlib.Path, default=case_lists.OWN_PROCESS)
    return parser.parse_args(words)


def is_chosen(name, include, exclude):
    """What ctest does with -R and -E.

    >>> is_chosen("A.B", "", ""), is_chosen("A.B", "B$", ""), is_chosen("A.B", "C", ""), is_chosen("A.B", "", "^A")
    (True, True, False, False)
    """
    return bool(re.search(include, name)) and not (exclude and re.search(exclude, name))


@dataclasses.dataclass
class Plan:
    """The cases of one run, by the process that they get."""

    shared: list
    own: list
    disabled: list


def plan_of(arguments, environment):
    """The cases that this run has, after its shard and the choice of the environment."""
    name = arguments.name or pathlib.Path(arguments.program).name
    processes = case_lists.Processes.of(name, arguments.own_process)
    nightly = case_lists.Nightly.of(name, arguments.build, arguments.nightly)
    if environment.get("WEFT_NIGHTLY"):
        nightly = case_lists.Nightly(())
    include, exclude = environment.get("WEFT_CASES_INCLUDE", ""), environment.get("WEFT_CASES_EXCLUDE", "")
    kinds = {"shared": [], "own": [], "alone": []}
    for case in gtest_program.list_cases(arguments.program, arguments.filter):
        kind = processes.kind(case)
        if case_lists.is_quiet(case) and kind != "alone":
            raise ValueError(f"{case} is called quiet: own_process.txt needs a line `alone {name} PATTERN REASON`")
        if is_chosen(arguments.prefix + case, include, exclude) and not nightly.has(arguments.prefix + case):
            kinds[kind].append(case)
    part, parts = (int(number) for number in arguments.shard.split("/"))
    chosen = {kind: cases[part - 1::parts] for kind, cases in kinds.items()}
    shared, own = ([], chosen["alone"]) if arguments.alone else (chosen["shared"], chosen["own"])
    return Plan([case for case in shared if not is_disabled(case)], [case for case in own if not is_disabled(case)],
                [case for case in shared + own if is_disabled(case)])


def is_disabled(case):
    """
    >>> is_disabled("A.DISABLED_B"), is_disabled("P/DISABLED_A.B/0"), is_disabled("A.B")
    (True, True, False)
    """
    return any(part.startswith("DISABLED_") for part in re.split(r"[./]", case))


def run(plan, program, limit, title):
    cases = [Case(name, SKIPPED, reason=DISABLED) for name in plan.disabled]
    cases += gtest_program.run_all(program, plan.shared, limit, title)
    for name in plan.own:
        cases += gtest_program.run_all(program, [name], limit, f"{title}: {name}")
    return cases


def check_skips(cases, skips):
    """Fails the skipped cases that the list does not have."""
    for case in cases:
        if case.outcome == SKIPPED and case.reason != DISABLED and not skips.permit(case.name, case.output):
            case.outcome = FAILED
            case.reason = "skipped, which skips.txt does not permit with these words"


def show(case):
    """A failed case, whole."""
    print(f"{case.name} ({case.seconds:.2f} s): {case.reason or 'failed'}")
    for line in case.output.splitlines():
        print("  " + line)


def main():
    arguments = arguments_of(sys.argv[1:])
    began = time.monotonic()
    title = arguments.prefix + (arguments.name or pathlib.Path(arguments.program).name)
    if arguments.results:
        arguments.results.unlink(missing_ok=True)
    limit = float(os.environ.get("WEFT_CASE_SECONDS", CASE_SECONDS))
    try:
        plan = plan_of(arguments, os.environ)
    except (OSError, RuntimeError, ValueError) as error:  # no program, one that lists no cases, or a wrong list
        print(f"{title}: {error}")
        return 1
    cases = run(plan, arguments.program, limit, title)
    check_skips(cases, case_lists.Skips.of(arguments.name or pathlib.Path(arguments.program).name, arguments.skips))
    for case in cases:
        case.name = case.name if case.name.startswith(title) else arguments.prefix + case.name
    if arguments.results:
        arguments.results.parent.mkdir(parents=True, exist_ok=True)
        written = arguments.results.with_suffix(".part")
        written.write_text(json.dumps([dataclasses.asdict(case) for case in cases], indent=0), encoding="utf-8")
        written.rename(arguments.results)
    for case in cases:
        if case.outcome == FAILED:
            show(case)
    counts = {outcome: sum(case.outcome == outcome for case in cases) for outcome in (PASSED, FAILED, SKIPPED)}
    print(f"{title}: {', '.join(f'{count} {outcome}' for outcome, count in counts.items())}, "
          f"{time.monotonic() - began:.1f} s")
    return 1 if counts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
