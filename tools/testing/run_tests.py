#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_tests.py PRESET [ctest arguments]: runs ctest for `./dev test`, and has its exit status.

-R and -E choose single cases of GoogleTest programs as well as ctest tests. ctest's results are in build/PRESET/test.xml,
those of cases in build/PRESET/cases/."""

import argparse
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import gtest_program
import run_cases

RUNNER = "run_cases.py"


def arguments_of(words):
    """The arguments of this program, and those that only ctest understands.

    >>> ours, rest = arguments_of(["dev", "-V", "-R", "A", "-L", "unit", "-R", "B"])
    >>> ours.preset, ours.include, ours.exclude, rest
    ('dev', 'B', '', ['-V', '-L', 'unit'])
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("preset")
    parser.add_argument("-R", "--tests-regex", dest="include", default="")
    parser.add_argument("-E", "--exclude-regex", dest="exclude", default="")
    return parser.parse_known_args([words[0], *words[1:]])


def exactly(names):
    r"""A regular expression of CMake that matches these names of tests alone.

    >>> exactly(["a.b", "c"]), exactly([])
    ('^(a\\.b|c)$', '^$')
    """
    return f"^({'|'.join(name.replace('.', chr(92) + '.') for name in names)})$" if names else "^$"


def has_chosen_cases(command, choice):
    """Whether the runner's command line has a case that the environment chooses. A program that is missing has."""
    script = next(place for place, word in enumerate(command) if word.endswith(RUNNER))
    try:
        plan = run_cases.plan_of(run_cases.arguments_of(command[script + 1:]), choice)
    except (OSError, RuntimeError):
        return True
    return bool(plan.shared or plan.own or plan.disabled)


def chosen_tests(tests, choice):
    """The names of ctest's tests that -R and -E choose, or that have a case which these choose."""
    names = []
    for test in tests:
        command = test.get("command", [])
        if any(word.endswith(RUNNER) for word in command):
            chosen = has_chosen_cases(command, choice)
        else:
            chosen = run_cases.is_chosen(test["name"], choice["WEFT_CASES_INCLUDE"], choice["WEFT_CASES_EXCLUDE"])
        if chosen:
            names.append(test["name"])
    return names


def main():
    ours, rest = arguments_of(sys.argv[1:])
    choice = {"WEFT_CASES_INCLUDE": ours.include, "WEFT_CASES_EXCLUDE": ours.exclude}
    ctest = ["ctest", "--preset", ours.preset]
    folder = pathlib.Path("build", ours.preset).absolute()
    picked = []
    if ours.include or ours.exclude:
        gtest_program.list_cases = functools.lru_cache(maxsize=None)(gtest_program.list_cases)
        listed = subprocess.run([*ctest, "--show-only=json-v1", *rest], capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            sys.exit(listed.stderr + listed.stdout)
        picked = ["-R", exactly(chosen_tests(json.loads(listed.stdout)["tests"], choice))]
    shutil.rmtree(folder / "cases", ignore_errors=True)
    results = folder / "test.xml"
    results.unlink(missing_ok=True)
    # The summary shows the end of a failing test's output, so a long output loses its head.
    return subprocess.run([*ctest, "--parallel", str(os.cpu_count()), "--output-junit", results,
                           "--test-output-truncation", "head", *rest, *picked], env={**os.environ, **choice},
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
