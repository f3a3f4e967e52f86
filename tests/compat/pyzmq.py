# SPDX-License-Identifier: MIT
"""pyzmq's own test-suite, on the wheel's own libzmq and on ours, side by side.

The wheel is the one of deps/pip.txt, unmodified; ours is preloaded into it. The tests are those of the source
distribution of the same version. Every file runs in a process of its own, so that a crash or a hang is one line.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_OF_A_TEST = 120  # seconds
LIMIT_OF_A_FILE = 600
# Tests that depend on luck on either library, and why: a failure is shown, and not counted.
RACES = {
    "test_shadow_socket_close": "wants a second message to be there when the first is taken; where it comes later, as the "
    "rest of a batch may (some 100 us), the test fails on the libzmq of the wheel too"
}


def say(text):
    print(f"==> {text}", flush=True)


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


def check_preload(library):
    """Fails unless Python on the wheel, with `library` preloaded, really calls it."""
    code = "import ctypes, zmq; ctypes.CDLL(None).weft_version; print(zmq.zmq_version())"
    environment = dict(os.environ, LD_PRELOAD=str(library))
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"pyzmq.py: Python does not run on {library}:\n{result.stderr}")


def outcome_of(case):
    for child in case:
        if child.tag in ("failure", "error"):
            return "failed", (child.get("message") or "").split("\n")[0]
        if child.tag == "skipped":
            return "skipped", child.get("message") or ""
    return "passed", ""


def run_file(folder, file, library, extra):
    """Runs one file; returns {test: (outcome, reason)}. A process that dies or hangs counts as one failed test."""
    report = folder / f"report-{os.getpid()}.xml"
    report.unlink(missing_ok=True)
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    if library is not None:
        environment["LD_PRELOAD"] = str(library)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={LIMIT_OF_A_TEST}"]
    command += [f"--junit-xml={report}", f"tests/{file}", *extra]
    log = folder / f"{'weft' if library else 'stock'}-{file}.log"
    with log.open("w") as output:
        try:
            code = subprocess.run(
                command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, timeout=LIMIT_OF_A_FILE
            ).returncode
        except subprocess.TimeoutExpired:
            code = None
    results = {}
    if report.exists():
        for case in xml.parse(report).iter("testcase"):
            name = f"{file}::{(case.get('classname') or '').split('.')[-1]}::{case.get('name')}"
            results[name] = outcome_of(case)
        report.unlink()
    if code is None or code not in (0, 1, 5):
        what = "hangs" if code is None else f"killed by signal {-code}" if code < 0 else f"exit status {code}"
        results[f"{file}::(the process)"] = ("failed", f"{what}; see {log}")
    return results


def counts(results):
    words = [outcome for outcome, _ in results.values()]
    return {word: words.count(word) for word in ("passed", "skipped", "failed")}


def line(counted):
    return ", ".join(f"{counted[word]} {word}" for word in ("passed", "skipped", "failed"))


def main():
    parser = argparse.ArgumentParser(prog="./dev compat pyzmq", description=__doc__.split("\n")[0])
    parser.add_argument("library", type=Path, help="our libzmq.so.5")
    parser.add_argument("--only", action="append", metavar="FILE", help="only this test file; may be given again")
    parser.add_argument("--keep", metavar="EXPRESSION", help="only tests that match (pytest -k)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there")
    arguments = parser.parse_args()
    library = arguments.library.resolve()
    if not library.exists():
        sys.exit(f"pyzmq.py: {library} does not exist; ./dev libdir builds it")
    work = ROOT / "build/compat"
    work.mkdir(parents=True, exist_ok=True)
    folder = set_up(work)
    check_preload(library)
    files = sorted(path.name for path in (folder / "tests").glob("test_*.py"))
    files = [file for file in files if not arguments.only or file in arguments.only]
    extra = ["-k", arguments.keep] if arguments.keep else []
    stock, ours = {}, {}
    for index, file in enumerate(files, 1):
        start = time.monotonic()
        before = run_file(folder, file, None, extra)
        after = run_file(folder, file, library, extra)
        stock.update(before)
        ours.update(after)
        took = time.monotonic() - start
        print(f"{index:3d}/{len(files)} {file:28s} stock {line(counts(before)):34s} weft {line(counts(after)):34s} {took:5.0f} s")
        for name, (outcome, reason) in after.items():
            if outcome == "failed":
                print(f"      {name}: {reason[:160]}")
        sys.stdout.flush()
    worse = [name for name, (outcome, _) in stock.items() if outcome == "passed" and ours.get(name, ("gone", ""))[0] != "passed"]
    worse += [name for name, (outcome, _) in ours.items() if outcome == "failed" and name not in stock]
    for name in [name for name in worse if name.split("::")[-1] in RACES]:
        print(f"not counted: {name}: {RACES[name.split('::')[-1]]}")
        worse.remove(name)
    if arguments.json:
        arguments.json.write_text(json.dumps({"stock": stock, "weft": ours, "worse": worse}, indent=1))
    print(f"libzmq of the wheel: {line(counts(stock))}")
    print(f"weft:                {line(counts(ours))}")
    if not stock or not ours:
        sys.exit("pyzmq.py: no test ran")
    print(f"{len(worse)} that pass there do not pass here" if worse else "whatever passes there passes here")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
