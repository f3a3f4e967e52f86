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
    return [python, "-W", "ignore", "-c", "from autobahntestsuite.wstest import run; run()"], environment


def patterns_of(names):
    """The suite's patterns for cases by the beginnings of their numbers: 6, 6.4, 6.4.1."""
    for name in names:
        if not re.fullmatch(r"\d+(\.\d+){0,2}", name) or name.split(".")[0] not in CASES:
            raise ValueError(f"{name} is not the beginning of a case's number; the groups are {' '.join(CASES)}")
    return [name if name.count(".") == 2 else f"{name}.*" for name in names]


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
