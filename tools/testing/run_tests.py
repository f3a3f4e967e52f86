#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_tests.py PRESET [--nightly] [ctest arguments]: runs ctest for `./dev test`, and has its exit status.

Tests with the label nightly, and cases of nightly.txt, run with --nightly only. -R and -E choose single cases of GoogleTest programs as well as ctest tests. ctest's results are in build/PRESET/test.xml,
those of cases in build/PRESET/cases/."""

import dataclasses
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


@dataclasses.dataclass
class Arguments:
    """Those of this program; `rest` is what only ctest understands."""

    preset: str
    include: str = ""
    exclude: str = ""
    without: list = dataclasses.field(default_factory=list)  # regular expressions of labels
    nightly: bool = False
    rest: list = dataclasses.field(default_factory=list)


def arguments_of(words):
    """
    >>> arguments_of(["dev", "-V", "-R", "A", "-L", "unit", "-R", "B", "-LE", "x"])
    Arguments(preset='dev', include='B', exclude='', without=['x'], nightly=False, rest=['-V', '-L', 'unit'])
    """
    preset, *words = words
    found = Arguments(preset)
    words = iter(words)
    for word in words:
        if word in ("-R", "--tests-regex"):
            found.include = next(words, "")
        elif word in ("-E", "--exclude-regex"):
            found.exclude = next(words, "")
        elif word in ("-LE", "--label-exclude"):
            found.without.append(next(words, ""))
        elif word == "--nightly":
            found.nightly = True
        else:
            found.rest.append(word)
    return found


def labels_left_out(ours):
    """ctest's arguments. It leaves out what matches each -LE, so there is one.

    >>> labels_left_out(arguments_of(["dev", "-LE", "a|b"])), labels_left_out(arguments_of(["dev", "--nightly"]))
    (['-LE', 'a|b|^nightly$'], [])
    """
    labels = ours.without + ([] if ours.nightly else ["^nightly$"])
    return ["-LE", "|".join(labels)] if labels else []


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
    ours = arguments_of(sys.argv[1:])
    choice = {"WEFT_CASES_INCLUDE": ours.include, "WEFT_CASES_EXCLUDE": ours.exclude,
              "WEFT_NIGHTLY": "1" if ours.nightly else ""}
    ctest = ["ctest", "--preset", ours.preset, *labels_left_out(ours)]
    folder = pathlib.Path("build", ours.preset).absolute()
    picked = []
    if ours.include or ours.exclude:
        gtest_program.list_cases = functools.lru_cache(maxsize=None)(gtest_program.list_cases)
        listed = subprocess.run([*ctest, "--show-only=json-v1", *ours.rest], capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            sys.exit(listed.stderr + listed.stdout)
        picked = ["-R", exactly(chosen_tests(json.loads(listed.stdout)["tests"], choice))]
    shutil.rmtree(folder / "cases", ignore_errors=True)
    results = folder / "test.xml"
    results.unlink(missing_ok=True)
    # The summary shows the end of a failing test's output, so a long output loses its head.
    return subprocess.run([*ctest, "--parallel", str(os.cpu_count()), "--output-junit", results,
                           "--test-output-truncation", "head", *ours.rest, *picked], env={**os.environ, **choice},
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
