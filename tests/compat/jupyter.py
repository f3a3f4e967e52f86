# SPDX-License-Identifier: MIT
"""The own test-suites of jupyter_client and ipykernel, on the libzmq of pyzmq's wheel and on ours, side by side.

The tests are those of the source distributions; the packages and the stock wheel of pyzmq are in an environment of
their own in build/. Every file runs in a process of its own, so that a crash or a hang is one line.
"""

import argparse
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

from weft_compat.pytest_files import Suite, check_preload, side_by_side
from weft_compat.runs import ROOT, existing, run, say

PACKAGES = ("jupyter_client", "ipykernel")
PINS = ROOT / "deps/pip-jupyter.txt"
# Arguments of their own, coverage and doctests, are left out; a deprecation in pytest-asyncio is not theirs.
EXTRA = ["-o", "addopts=", "-o", "asyncio_default_fixture_loop_scope=function", "-W", "ignore::pytest.PytestDeprecationWarning"]


def version_of(package):
    found = re.search(rf"^{package}==(\S+)", PINS.read_text(), re.MULTILINE)
    return found[1] if found else sys.exit(f"jupyter.py: {PINS} does not name {package}")


def pyzmq_pin():
    text = (ROOT / "deps/pip.txt").read_text()
    return re.search(r"^pyzmq==\S+", text, re.MULTILINE)[0]


def set_up(work):
    """Returns the environment's Python; downloads what is missing, once."""
    python = work / "venv/bin/python"
    wanted = f"{pyzmq_pin()}\n{PINS.read_text()}"
    stamp = work / "installed.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        say("install jupyter_client, ipykernel and what their tests need")
        run([sys.executable, "-m", "venv", work / "venv"], work / "venv.log")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", pyzmq_pin()]
        run([*pip, "--requirement", PINS], work / "install.log")
        stamp.write_text(wanted)
    for package in PACKAGES:
        version = version_of(package)
        folder = work / f"{package}-{version}"
        if folder.exists():
            continue
        say(f"download the tests of {package} {version}")
        command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]
        run([*command, f"{package}=={version}", "--dest", work], work / f"{package}.log")
        with tarfile.open(work / f"{package}-{version}.tar.gz") as archive:
            safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Debian 12's Python has it not
            archive.extractall(work / "unpacking", **safely)
        # Without the sources of the package beside them, the tests import the installed one.
        kept = work / f"{package}.new"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for name in ("tests", "pyproject.toml"):
            (work / "unpacking" / f"{package}-{version}" / name).rename(kept / name)
        kept.rename(folder)
    return python


def main():
    parser = argparse.ArgumentParser(
        prog="./dev compat jupyter", description=__doc__.split("\n")[0],
        epilog="Exit status: 0, or 1 when a test passes on the wheel's libzmq and not on ours; 2: wrong arguments.",
    )
    parser.add_argument("library", type=Path, help="our libzmq.so.5")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only test files whose path contains this")
    parser.add_argument("--keep", metavar="EXPRESSION", help="only tests that match (pytest -k)")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="files at once (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there")
    arguments = parser.parse_intermixed_args()
    library = existing(arguments.library)
    work = ROOT / "build/compat/jupyter"
    work.mkdir(parents=True, exist_ok=True)
    python = set_up(work)
    check_preload(python, library)
    extra = EXTRA + (["-k", arguments.keep] if arguments.keep else [])
    home = work / "home"
    home.mkdir(exist_ok=True)
    suites = []
    for package in PACKAGES:
        folder = work / f"{package}-{version_of(package)}"
        files = sorted(str(path.relative_to(folder)) for path in folder.glob("tests/**/test_*.py"))
        wanted = [file for file in files if not arguments.names or any(part in f"{package}/{file}" for part in arguments.names)]
        suites.append(Suite(folder, wanted, str(python), extra, {"HOME": str(home)}, f"{package}/"))
    side_by_side(suites, library, {}, arguments.json, arguments.jobs, again=True)


if __name__ == "__main__":
    main()
