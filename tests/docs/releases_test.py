# SPDX-License-Identifier: MIT
"""docs/releases.md and CHANGELOG.md begin with the version of weft/base/version.h."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    def found(pattern, file):
        return re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)

    version = ".".join(found(r"^#define WEFT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", "weft/base/version.h"))
    page = found(r"^\| (\d+\.\d+\.\d+) \|", "docs/releases.md")
    changes = found(r"^## (\d+\.\d+\.\d+)", "CHANGELOG.md")
    wrong = [f"{file} begins with version {first[:1]}, not {version}"
             for file, first in (("docs/releases.md", page), ("CHANGELOG.md", changes)) if first[:1] != [version]]
    if page != changes:
        wrong.append(f"the versions of docs/releases.md are {page}, those of CHANGELOG.md {changes}")
    print("\n".join(wrong) or f"version {version}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
