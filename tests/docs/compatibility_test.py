# SPDX-License-Identifier: MIT
"""docs/compatibility.md: each test, file and command that the page names is there, and each improvement names a test."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/compatibility.md"


def main() -> int:
    page = PAGE.read_text()
    sources = " ".join(path.read_text() for room in ("tests", "weft") for path in (ROOT / room).rglob("*_test.cc"))
    lists = " ".join(path.read_text() for path in (ROOT / "tests").rglob("CMakeLists.txt"))
    tests = re.findall(r"`([A-Z][A-Za-z]*[a-z][A-Z][A-Za-z]+)`", page)
    wrong = [f"no test is named {name}" for name in tests if not re.search(rf"\b{name}\b", sources)]
    suites = re.findall(r"\b((?:compat|docs|server)\.\w+)\b(?!\.md)", re.sub(r"\([^)]*\)", "", page))
    wrong += [f"ctest has no {name}" for name in suites if not name.endswith((".md", ".txt")) and f"NAME {name} " not in lists]
    files = re.findall(r"\b((?:tests|weft)/[\w/]+(?:\.\w+)?)", page)
    wrong += [f"there is no {name}" for name in files if not (ROOT / name).exists()]
    wrong += [f"there is no ./dev compat {name}" for name in re.findall(r"\./dev compat (\w+)", page)
              if not (ROOT / f"tests/compat/{name}.py").exists()]
    better = re.findall(r"^\| (?!libzmq |-)(.*) \|$", page.split("## Better")[1].split("\n## ")[0], re.M)
    for row in better:
        *rest, proof = row.split(" | ")
        named = re.search(r"`[A-Z]\w+`|\b(?:tests|weft)/|\b(?:compat|docs|server)\.\w+", proof)
        if len(rest) != 2 or not named or "https://" not in rest[0]:
            wrong.append(f"an improvement needs an issue of libzmq's users and a test: {row[:80]}")
    if len(better) < 15:
        wrong.append(f"this test could read {len(better)} improvements only")
    if len(tests) < 3 or len(files) < 5:
        wrong.append("this test could read no names")
    for line in wrong:
        print(f"docs/compatibility.md: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
