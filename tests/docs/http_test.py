# SPDX-License-Identifier: MIT
"""The tables of requirements in docs/design/0016-http.md: each test that a row names is there, and each row names one."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "design" / "0016-http.md"
CASE = re.compile(r"^TEST(?:_F)?\((\w+), (\w+)\)", re.M)


def main() -> int:
    cases = set()
    for path in sorted((ROOT / "weft").rglob("*_test.cc")):
        cases |= {".".join(case) for case in CASE.findall(path.read_text())}
    wrong = []
    rows = re.findall(r"^\| (?:9110|9112|6455) (.+) \|$", PAGE.read_text(), re.M)
    for row in rows:
        named = re.findall(r"`(\w+\.\w+)`", row.split(" | ")[-1])
        if not named and "not in this server" not in row:
            wrong.append(f"no test: {row}")
        wrong += [f"no such test: {name}" for name in named if name not in cases]
    if len(rows) < 80:
        wrong.append(f"this test could read {len(rows)} rows only")
    for line in wrong:
        print(f"{PAGE.name}: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
