#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_tests.py PRESET [--nightly] [--repeat N] [--load] [ctest arguments]: runs ctest for `./dev test`.

The exit status is ctest's, or of several runs the first that is not 0. --load runs five busy loops a core beside the
tests. Tests with the label nightly, and cases of nightly.txt, run with --nightly only. -R and -E choose single cases of
GoogleTest programs as well as ctest tests. ctest's results are in build/PRESET/test.xml, those of cases in
build/PRESET/cases/; of several runs in build/repeat/. build/PRESET/runs.txt lists what ctest_summary.py takes: a line
STATUS:FILE a run."""

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import gtest_program
import run_cases
from console import Console

RUNNER = "run_cases.py"
JOBS_A_CORE = {"quick": 2}  # optimised unit tests wait for more than half of their time
LOOPS_A_CORE = 5


@dataclasses.dataclass
class Arguments:
    """Those of this program; `rest` is what only ctest understands."""

    preset: str
    include: str = ""
    exclude: str = ""
    without: list = dataclasses.field(default_factory=list)  # regular expressions of labels
    nightly: bool = False
    load: bool = False
    repeat: int = 1
    rest: list = dataclasses.field(default_factory=list)


def arguments_of(words):
    """
    >>> found = arguments_of(["dev", "-V", "-R", "A", "-L", "unit", "-R", "B", "-LE", "x", "--repeat", "3"])
    >>> found.preset, found.include, found.without, found.repeat, found.rest
    ('dev', 'B', ['x'], 3, ['-V', '-L', 'unit'])
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
        elif word == "--load":
            found.load = True
        elif word == "--repeat":
            found.repeat = int(next(words, "1"))
        else:
            found.rest.append(word)
    return found


def labels_left_out(ours):
    """ctest's arguments. It leaves out a test that matches each -LE and the filter of the preset, so there is one of them.

    >>> labels_left_out(arguments_of(["dev", "-LE", "a|b"])), labels_left_out(arguments_of(["dev", "--nightly"]))
    (['-LE', 'a|b|^nightly$'], [])
    >>> labels_left_out(arguments_of(["daily"]))
    []
    """
    if ours.preset == "daily":
        return []  # its filter leaves them out
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


def read_seconds(file):
    """{test: seconds} of the last runs."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def properties_of(nightly):
    """What the environment says of the cases that properties draw: always the same ones by day, others every night.

    >>> properties_of(False)
    {}
    """
    if not nightly or "RC_PARAMS" in os.environ:
        return {}
    drawn = f"seed={int.from_bytes(os.urandom(8), 'little')}"
    print(f"==> properties draw new cases; RC_PARAMS={drawn} draws them again", flush=True)
    return {"RC_PARAMS": drawn}


def folder_of(preset):
    """The folder that a test preset's configure preset builds in."""
    presets = json.loads(pathlib.Path("CMakePresets.json").read_text(encoding="utf-8"))["testPresets"]
    configured = next((each.get("configurePreset") for each in presets if each["name"] == preset), None)
    return pathlib.Path("build", configured or preset).absolute()


def run_ctest(command, environment, folder):
    """Runs ctest once: its exit status."""
    results, times = folder / "test.xml", folder / "seconds.json"
    results.unlink(missing_ok=True)
    known = read_seconds(times)
    console = Console(folder / "cases", known, sys.stdout)
    # The summary shows the end of a failing test's output, so a long output loses its head.
    with subprocess.Popen([*command, "--output-junit", results, "--test-output-truncation", "head"], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        for line in process.stdout:
            console.handle(line.rstrip("\n"))
    console.end()
    try:
        tests = xml.etree.ElementTree.parse(results).iter("testcase")
        known.update((test.get("name"), float(test.get("time", 0))) for test in tests)
        times.write_text(json.dumps(known), encoding="utf-8")
    except (OSError, xml.etree.ElementTree.ParseError):
        pass  # ctest_summary.py says that there are no results
    return process.returncode


@contextlib.contextmanager
def busy_loops(count):
    """Programs that take what time of the processors they get, while the block runs."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def keep_run(folder, number):
    """Moves the results of one of several runs: where ctest's are then."""
    kept = folder.parent / "repeat" / str(number) / folder.name
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for name in ("test.xml", "cases"):
        if (folder / name).exists():
            (folder / name).rename(kept / name)
    return kept / "test.xml"


def main():
    ours = arguments_of(sys.argv[1:])
    choice = {"WEFT_CASES_INCLUDE": ours.include, "WEFT_CASES_EXCLUDE": ours.exclude,
              "WEFT_NIGHTLY": "1" if ours.nightly else "", **properties_of(ours.nightly)}
    ctest = ["ctest", "--preset", ours.preset, *labels_left_out(ours)]
    folder = folder_of(ours.preset)
    picked = []
    if ours.include or ours.exclude:
        gtest_program.list_cases = functools.lru_cache(maxsize=None)(gtest_program.list_cases)
        listed = subprocess.run([*ctest, "--show-only=json-v1", *ours.rest], env={**os.environ, **choice},
                                capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            sys.exit(listed.stderr + listed.stdout)
        picked = ["-R", exactly(chosen_tests(json.loads(listed.stdout)["tests"], choice))]
    jobs = os.cpu_count() * JOBS_A_CORE.get(ours.preset, 1)
    command = [*ctest, "--parallel", str(jobs), *ours.rest, *picked]
    runs = []
    with busy_loops(LOOPS_A_CORE * os.cpu_count() if ours.load else 0):
        for number in range(1, ours.repeat + 1):
            status = run_ctest(command, {**os.environ, **choice}, folder)
            runs.append((status, keep_run(folder, number) if ours.repeat > 1 else folder / "test.xml"))
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{status}:{os.path.relpath(file)}\n" for status, file in runs]
    (folder / "runs.txt").write_text("".join(lines), encoding="utf-8")
    return next((status for status, _ in runs if status != 0), 0)


if __name__ == "__main__":
    sys.exit(main())
