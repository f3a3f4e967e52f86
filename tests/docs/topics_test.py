#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The promises of docs/topics.md: each cell of their tables has tests, and the tests exist."""
import sys

from named_tests import ROOT, cases_of, names_in


def tables(text):
    """The tables of a text: lists of rows, which are lists of cells."""
    found, rows = [], []
    for line in text.splitlines() + [""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            found.append([rows[0]] + rows[2:])
            rows = []
    return found


def main():
    page = (ROOT / "docs/topics.md").read_text(encoding="utf-8")
    promises, shown = page.split("\n# Promises\n", 1)[1].split("\n## The tests of the promises\n", 1)
    cases = cases_of("weft/topic", "weft/store", "tests")
    failures = []
    named = 0
    for promise, tests in zip(tables(promises), tables(shown), strict=True):
        if [row[0] for row in promise] != [row[0] for row in tests]:
            failures.append(f"other rows: {[row[0] for row in promise]} and {[row[0] for row in tests]}")
        if len(tests[0]) > 2 and promise[0] != tests[0]:
            failures.append(f"other columns: {promise[0]} and {tests[0]}")
        for row in tests[1:]:
            for cell in row[1:]:
                names = names_in(cell)
                named += len(names)
                if not names and cell != "-":
                    failures.append(f"a cell of `{row[0]}` without a test: {cell}")
                failures += [f"no test {name}" for name in names if name not in cases]
    if named < 40:
        failures.append(f"only {named} tests are named")
    print("\n".join(failures) if failures else f"{named} tests")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
