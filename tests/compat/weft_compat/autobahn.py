# SPDX-License-Identifier: MIT
"""Autobahn's test-suite for WebSocket: a program for Python 2.7, in a folder of its own, and its results."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from weft_compat.runs import ROOT, run, say

REQUIREMENTS = ROOT / "deps/pip-autobahn.txt"
MISSING = 3  # the exit status of a suite that lacks a tool or the network
OFFLINE = "WEFT_TEST_OFFLINE"
QUICK = ("1", "2", "3", "4", "5", "6", "7", "10")  # groups that take seconds
# The cases of each group in version 0.8.2: a run that leaves some out is not taken for a whole one.
CASES = {"1": 16, "2": 11, "3": 7, "4": 10, "5": 20, "6": 145, "7": 37, "9": 54, "10": 1, "12": 90, "13": 126}
GROUPS = tuple(CASES)
# Groups that take hours run in parts: each part is a run of the suite with a report of its own.
PARTS = {group: [f"{group}.{part}" for part in range(1, parts + 1)] for group, parts in (("12", 5), ("13", 7))}
CASES |= {part: 18 for parts in PARTS.values() for part in parts}


def lacks(what):
    print(f"compat: {what}", file=sys.stderr)
    sys.exit(MISSING)


def find_python2():
    """The path of Python 2.7: python2.7 of PATH, which may be a shim of pyenv that names none, or one of pyenv's."""
    candidates = [shutil.which("python2.7")]
    if shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True).stdout.strip()
        candidates += sorted(Path(root or "/none").glob("versions/2.7*/bin/python2.7"), reverse=True)
    for candidate in filter(None, candidates):
        said = subprocess.run([candidate, "-c", "import sys; print(sys.version_info[:2] == (2, 7))"], capture_output=True, text=True)
        if said.stdout == "True\n":
            return candidate
    lacks("Autobahn's test-suite needs Python 2.7, and there is no python2.7 on the PATH (pyenv install 2.7.18 builds one)")


def set_up():
    """Returns the command and the environment of the suite; downloads its packages once."""
    python = find_python2()
    work = ROOT / "build/compat/autobahn"
    work.mkdir(parents=True, exist_ok=True)
    folder = work / "packages"
    stamp = folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != REQUIREMENTS.read_text():
        if os.environ.get(OFFLINE):
            lacks(f"Autobahn's test-suite is not there, and {OFFLINE} forbids to download it")
        say("download Autobahn's test-suite, for Python 2.7")
        shutil.rmtree(folder, ignore_errors=True)
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--target", folder]
        run([*pip, "--requirement", REQUIREMENTS], work / "pip.log")
        (folder / "zope/__init__.py").touch()  # a namespace without its .pth file
        stamp.write_text(REQUIREMENTS.read_text())
    environment = dict(os.environ, PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    return [python, "-u", "-W", "ignore", "-c", "from autobahntestsuite.wstest import run; run()"], environment


def groups_of(names):
    """The runs of the suite for cases by the beginnings of their numbers, each once: 6, 6.4, 6.4.1; also 6.* and 6.4.*.

    >>> groups_of(["1", "12.*", "13.3", "13.3.*", "6.4.1"])
    ['1', '12.1', '12.2', '12.3', '12.4', '12.5', '13.3', '6.4.1']
    """
    found = []
    for name in names:
        plain = name.removesuffix(".*")
        group, *rest = plain.split(".")
        is_known = group in GROUPS and (not rest or f"{group}.{rest[0]}" in PARTS.get(group, [f"{group}.{rest[0]}"]))
        if not is_known or not re.fullmatch(r"\d+(\.\d+){0,2}", plain):
            raise ValueError(f"{name} is not the beginning of a case's number; the groups are {' '.join(GROUPS)}")
        found += PARTS.get(plain, [plain])
    return list(dict.fromkeys(found))


def pattern_of(group):
    """The suite's pattern for the cases of a run.

    >>> pattern_of("12.3"), pattern_of("6.4.1")
    ('12.3.*', '6.4.1')
    """
    return group if group.count(".") == 2 else f"{group}.*"


def number_of(case):
    return tuple(map(int, case.split(".")))


def read_results(report, agent):
    """{case: (what it found, how the connection ended)}, in the order of their numbers."""
    found = json.loads((report / "index.json").read_text())[agent]
    return {case: (found[case]["behavior"], found[case]["behaviorClose"]) for case in sorted(found, key=number_of)}


def read_exceptions(path):
    """{case: the word that stands for OK}. A line is: CASE WORD # reason"""
    lines = (line.split("#")[0].split() for line in path.read_text().splitlines())
    return {words[0]: words[1] for words in lines if words}


def judge(results, exceptions):
    """(the cases that are not as they must be, the exceptions that are none any more). A word with "?" may be OK, too.

    >>> judge({"3.2": ("NON-STRICT", "OK"), "3.3": ("OK", "OK"), "3.4": ("OK", "OK"), "3.5": ("NON-STRICT", "OK")},
    ...       {"3.2": "NON-STRICT?", "3.3": "NON-STRICT?", "3.4": "NON-STRICT"})
    ({'3.5': 'NON-STRICT, and its end OK'}, ['3.4'])
    """
    wrong, outdated = {}, []
    for case, (behavior, close) in results.items():
        wanted = exceptions.get(case, "OK")
        if behavior == "OK" and wanted.endswith("?"):
            wanted = "OK"
        wanted = wanted.removesuffix("?")
        if behavior == "OK" and wanted != "OK":
            outdated.append(case)
        elif behavior != wanted or close not in ("OK", wanted):
            wrong[case] = f"{behavior}, and its end {close}"
    return wrong, outdated
