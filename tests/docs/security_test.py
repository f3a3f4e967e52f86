# SPDX-License-Identifier: MIT
"""security_test.py SECURITY_SIDE: docs/security.md beside the code.

In the tables of bounds, each row ends with the declaration of the bound, verbatim, and the file that has it. Each option
of the C interface stands with its default, each counter is in docs/metrics.md, and each reason in quotation marks is a
text of the library. The table of costs has a test of its own: tests/costs.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
ROW = re.compile(r"^\| (?!-|bound |:)(.*) \|$", re.M)
DECLARED = re.compile(r"`([^`]+)`,? in \[[^\]]+\]\(\.\./([^)]+)\)")
C_OPTION = re.compile(r"`((?:ZMQ|WEFT)_[A-Z_]+)` (-?[\d,]+)")
COUNTER = re.compile(r'`(weft_\w+)(?:\{(\w+)="([^"]*)"\})?`')
REASON = re.compile(r'"([^"{}=]+)"')
COSTS = re.compile(r"<!-- costs -->\n.*?<!-- end of costs -->", re.S)


def words(text: str) -> str:
    return " ".join(text.split())


def main() -> int:
    page = COSTS.sub("", PAGE.read_text())
    rows = ROW.findall(page)
    metrics = (ROOT / "docs" / "metrics.md").read_text()
    lines = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines()
    defaults = dict(line.split() for line in lines)
    library = words(" ".join(path.read_text() for path in sorted((ROOT / "weft").rglob("*.cc"))
                             if "_test" not in path.name))
    wrong = []
    named = set()
    for row in rows:
        cells = [cell.strip() for cell in row.split(" | ")]
        declared = DECLARED.findall(cells[-1])
        if not declared:
            wrong.append(f"{cells[0]}: the last cell has no declaration `...` in [file](../path)")
        for text, path in declared:
            file = ROOT / path
            if not file.is_file() or words(text) not in words(file.read_text()):
                wrong.append(f"{cells[0]}: {path} does not declare {text}")
        for option, value in C_OPTION.findall(row):
            named.add(option)
            if defaults.get(option) != value.replace(",", ""):
                wrong.append(f"{cells[0]}: {option} is {defaults.get(option)} by default, not {value}")
        for name, label, value in COUNTER.findall(row):
            if (f'`{name}{{{label}="{value}"}}`' if label else f"`{name}`") not in metrics:
                wrong.append(f"{cells[0]}: docs/metrics.md has no {name} {value}")
        for reason in REASON.findall(COUNTER.sub("", " | ".join(cells[:-1]))):
            if f'"{reason}"' not in library:
                wrong.append(f"{cells[0]}: no source has the reason {reason}")
    wrong += [f"{option} is in security_side.cc and not on the page" for option in defaults.keys() - named]
    if len(rows) < 40:
        wrong.append(f"this test could read {len(rows)} rows only")
    for line in wrong:
        print(f"docs/security.md: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
