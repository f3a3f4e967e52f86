# SPDX-License-Identifier: MIT
"""docs/errors.md: the table has each Errc in its order, with the errno that the C interface sets."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    page = re.findall(r"^\| `(\w+)` \| (\w+) \|", (ROOT / "docs/errors.md").read_text(), re.M)
    code = re.findall(r"\{Errc::(\w+), (\w+)\}", (ROOT / "capi/errors.cc").read_text())
    for row in (row for row in page + code if row not in page or row not in code):
        print(f"docs/errors.md and capi/errors.cc differ: {row}")
    return 0 if code and page == code else 1


if __name__ == "__main__":
    sys.exit(main())
