# SPDX-License-Identifier: MIT
"""The own tests of pebbe/zmq4, the Go binding of libzmq, on libzmq and on ours, side by side.

Both of its packages are built once by cgo, against our zmq.h: the stable interface, and the one with libzmq's drafts.
Each test runs in a process of its own, so that a crash or a hang is one line. Needs Go.
"""

import os
import re
import shutil
import subprocess
import sys

from weft_compat.reference import begin
from weft_compat.runs import ROOT, check_loaded, run, run_process, say, side_by_side, side_by_side_parser

MODULE = "github.com/pebbe/zmq4"
VERSION = "v1.4.0"
PACKAGES = {"stable": ".", "draft": "./draft"}
LIMIT = 60  # seconds for a test


def build(work, library):
    """Returns {package: its test program}; downloads the module once."""
    if shutil.which("go") is None:
        print("go.py: Go is missing (Debian: apt-get install golang-go)", file=sys.stderr)
        sys.exit(3)
    source = work / "zmq4"
    environment = dict(os.environ, GOMODCACHE=str(work / "modules"), GOFLAGS="-modcacherw", PKG_CONFIG_PATH=str(work))
    if not source.exists():
        say(f"download {MODULE} {VERSION}")
        (work / "fetch").mkdir(parents=True, exist_ok=True)
        (work / "fetch/go.mod").write_text("module fetch\n")
        run(["go", "mod", "download", f"{MODULE}@{VERSION}"], work / "fetch.log", cwd=work / "fetch", env=environment)
        shutil.copytree(work / "modules" / f"{MODULE}@{VERSION}", work / "zmq4.new")
        (work / "zmq4.new").rename(source)
    # A folder with our zmq.h and nothing else of capi/.
    (work / "include").mkdir(exist_ok=True)
    shutil.copyfile(ROOT / "capi/zmq.h", work / "include/zmq.h")
    (work / "libzmq.pc").write_text(
        "Name: libzmq\nDescription: for cgo\nVersion: 4.3.5\n"
        f"Cflags: -I{work}/include -DZMQ_BUILD_DRAFT_API\nLibs: -L{library.parent} -lzmq\n"
    )
    say("build the tests")
    programs = {}
    for name, package in PACKAGES.items():
        programs[name] = work / f"{name}.test"
        command = ["go", "test", "-c", "-o", programs[name], package]
        run(command, work / f"{name}.log", cwd=source, env=environment)
    return source, programs


def tests_of(programs, library):
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent))
    tests = []
    for name, program in programs.items():
        listing = subprocess.run([program, "-test.list", "^Test"], env=environment, capture_output=True, text=True, check=True)
        tests += [f"{name}/{test}" for test in listing.stdout.split() if test.startswith("Test")]
    return tests


def why_it_failed(ending, test):
    """"" when the test passed, "skipped", or the reason."""
    verdict = re.search(rf"^--- (PASS|FAIL|SKIP): {test} ", ending.text, re.MULTILINE)
    if verdict and verdict[1] == "PASS" and ending.code == 0:
        return ""
    if verdict and verdict[1] == "SKIP":
        return "skipped"
    said = re.findall(r"^\s+\w+_test\.go:\d+: (.*)$", ending.text, re.MULTILINE)
    return (said or [ending.fault() or "no verdict"])[-1]


def main():
    arguments, library, theirs, work = begin(side_by_side_parser("go", __doc__))
    source, programs = build(work, library)
    for program in programs.values():
        for one in (library, theirs):
            check_loaded(program, one)

    def test(name, library, log):
        package, case = name.split("/")
        command = [programs[package], f"-test.run=^{case}$", "-test.v"]
        return why_it_failed(run_process(command, library, log, LIMIT, source / PACKAGES[package]), case)

    side_by_side(arguments, tests_of(programs, theirs), theirs, test)


if __name__ == "__main__":
    main()
