# SPDX-License-Identifier: MIT
"""The GoogleTest cases of the repository, for pages that name the test of a promise."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASE = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)


def cases_of(*folders):
    """The full names of the cases in the tests below these folders."""
    cases = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*_test.cc"):
            cases |= {".".join(case) for case in CASE.findall(path.read_text(encoding="utf-8"))}
    return cases


def names_in(cell):
    """The cases that a cell of a table names: `Suite.Case`."""
    return re.findall(r"`(\w+\.\w+)`", cell)
