# SPDX-License-Identifier: MIT
"""pyzmq's own test-suite, on the wheel's own libzmq and on ours, side by side.

The wheel is the one of deps/pip.txt, unmodified; ours is preloaded into it. The tests are those of the source
distribution of the same version. Every file runs in a process of its own, so that a crash or a hang is one line.
"""

import argparse
import subprocess
import sys
import tarfile
from pathlib import Path

from weft_compat.pytest_files import Suite, check_preload, side_by_side
from weft_compat.runs import ROOT, existing, say

# Tests that depend on luck on either library, and why: a failure is shown, and not counted.
RACES = {
    "test_shadow_socket_close": "wants a second message to be there when the first is taken; where it comes later, as the "
    "rest of a batch may (some 100 us), the test fails on the libzmq of the wheel too"
}


def pinned_version():
    for line in (ROOT / "deps/pip.txt").read_text().splitlines():
        if line.startswith("pyzmq=="):
            return line.split("#")[0].strip().removeprefix("pyzmq==")
    sys.exit("pyzmq.py: deps/pip.txt does not name pyzmq")


def pip(*arguments):
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    subprocess.run(command, check=True)


def set_up(work):
    """Returns the folder of the unpacked source distribution; downloads missing files, once."""
    version = pinned_version()
    source = work / f"pyzmq-{version}"
    pip("install", "--requirement", str(ROOT / "deps/pip-compat.txt"))  # no network when they are there
    if not source.exists():
        say(f"download the tests of pyzmq {version}")
        pip("download", "--no-binary", "pyzmq", "--no-deps", f"pyzmq=={version}", "--dest", str(work))
        with tarfile.open(work / f"pyzmq-{version}.tar.gz") as archive:
            safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Debian 12's Python has it not
            archive.extractall(work / "unpacking", **safely)
        (work / "unpacking" / source.name).rename(source)
    # Without the sources of the package beside them, the tests import the installed wheel.
    tests = work / f"tests-{version}"
    if not tests.exists():
        tests.mkdir()
        for name in ("tests", "pytest.ini"):
            (source / name).rename(tests / name)
    return tests


def main():
    parser = argparse.ArgumentParser(prog="./dev compat pyzmq", description=__doc__.split("\n")[0])
    parser.add_argument("library", type=Path, help="our libzmq.so.5")
    parser.add_argument("--only", action="append", metavar="FILE", help="only this test file; may be given again")
    parser.add_argument("--keep", metavar="EXPRESSION", help="only tests that match (pytest -k)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there")
    arguments = parser.parse_args()
    library = existing(arguments.library)
    work = ROOT / "build/compat"
    work.mkdir(parents=True, exist_ok=True)
    folder = set_up(work)
    check_preload(sys.executable, library)
    files = sorted(path.name for path in (folder / "tests").glob("test_*.py"))
    files = [file for file in files if not arguments.only or file in arguments.only]
    extra = ["-k", arguments.keep] if arguments.keep else []
    side_by_side([Suite(folder, [f"tests/{file}" for file in files], sys.executable, extra)], library, RACES, arguments.json)


if __name__ == "__main__":
    main()
