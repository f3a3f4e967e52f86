# SPDX-License-Identifier: MIT
"""The tables of requirements in docs/design/0016-http.md: each test that a row names is there, and each row names one."""
import re
import sys

from named_tests import ROOT, cases_of, names_in

PAGE = ROOT / "docs" / "design" / "0016-http.md"


def main() -> int:
    cases = cases_of("weft")
    wrong = []
    rows = re.findall(r"^\| (?:9110|9112|6455|7692) (.+) \|$", PAGE.read_text(), re.M)
    for row in rows:
        named = names_in(row.split(" | ")[-1])
        if not named:
            wrong.append(f"no test: {row}")
        wrong += [f"no such test: {name}" for name in named if name not in cases]
    if len(rows) < 120:
        wrong.append(f"this test could read {len(rows)} rows only")
    for line in wrong:
        print(f"{PAGE.name}: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
