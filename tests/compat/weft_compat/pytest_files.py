# SPDX-License-Identifier: MIT
"""Test files of pytest on the libzmq inside pyzmq's wheel, and on ours preloaded: each in a process of its own."""

import concurrent.futures
import dataclasses
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

LIMIT_OF_A_TEST = 120  # seconds
LIMIT_OF_A_FILE = 600


@dataclasses.dataclass
class Suite:
    folder: Path  # where pytest runs
    files: list  # from there
    python: str
    extra: list = dataclasses.field(default_factory=list)  # arguments of pytest
    environment: dict = dataclasses.field(default_factory=dict)
    label: str = ""  # begins the names of the tests


def check_preload(python, library):
    """Fails unless Python on the wheel, with `library` preloaded, really calls it."""
    code = "import ctypes, zmq; ctypes.CDLL(None).weft_version; print(zmq.zmq_version())"
    environment = dict(os.environ, LD_PRELOAD=str(library))
    result = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"compat: Python does not run on {library}:\n{result.stderr}")


def outcome_of(case):
    for child in case:
        if child.tag in ("failure", "error"):
            return "failed", (child.get("message") or "").split("\n")[0]
        if child.tag == "skipped":
            return "skipped", child.get("message") or ""
    return "passed", ""


def run_file(suite, file, library):
    """Runs one file; returns {test: (outcome, reason)}. A process that dies or hangs counts as one failed test."""
    name = Path(file).name
    side = "weft" if library else "stock"
    report = suite.folder / f"report-{os.getpid()}-{side}-{name}.xml"
    report.unlink(missing_ok=True)
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **suite.environment)
    if library is not None:
        environment["LD_PRELOAD"] = str(library)
    command = [suite.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={LIMIT_OF_A_TEST}"]
    command += [f"--junit-xml={report}", file, *suite.extra]
    log = suite.folder / f"{side}-{name}.log"
    with log.open("w") as output:
        try:
            code = subprocess.run(
                command, cwd=suite.folder, env=environment, stdout=output, stderr=subprocess.STDOUT, timeout=LIMIT_OF_A_FILE
            ).returncode
        except subprocess.TimeoutExpired:
            code = None
    results = {}
    if report.exists():
        for case in xml.parse(report).iter("testcase"):
            results[f"{suite.label}{name}::{(case.get('classname') or '').split('.')[-1]}::{case.get('name')}"] = outcome_of(case)
        report.unlink()
    if code is None or code not in (0, 1, 5):
        what = "hangs" if code is None else f"killed by signal {-code}" if code < 0 else f"exit status {code}"
        results[f"{suite.label}{name}::(the process)"] = ("failed", f"{what}; see {log}")
    return results


def counts(results):
    words = [outcome for outcome, _ in results.values()]
    return {word: words.count(word) for word in ("passed", "skipped", "failed")}


def line(counted):
    return ", ".join(f"{counted[word]} {word}" for word in ("passed", "skipped", "failed"))


def is_worse(name, stock, ours):
    if name not in stock:
        return ours[name][0] == "failed"
    return stock[name][0] == "passed" and ours.get(name, ("gone", ""))[0] != "passed"


def run_both(suite, file, library, again):
    """Runs a file on both. With `again`, once more on either one on which something failed: what passes once passes."""
    start = time.monotonic()
    both = []
    for one in (None, library):
        results = run_file(suite, file, one)
        if again and any(outcome == "failed" for outcome, _ in results.values()):
            second = run_file(suite, file, one)
            better = {name: got for name, got in second.items() if got[0] == "passed" or name not in results}
            results = {**results, **better}
            if not any(name.endswith("(the process)") for name in second):
                results = {name: got for name, got in results.items() if not name.endswith("(the process)")}
        both.append(results)
    return *both, time.monotonic() - start


def side_by_side(suites, library, races, report, jobs=1, again=False):
    """Runs every file on both libraries, prints the table, and ends the process. `races`: {test: why it is not counted}."""
    stock, ours = {}, {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [(suite, file, pool.submit(run_both, suite, file, library, again)) for suite in suites for file in suite.files]
        for index, (suite, file, future) in enumerate(waiting, 1):
            before, after, took = future.result()
            stock.update(before)
            ours.update(after)
            shown = (line(counts(before)), line(counts(after)))
            print(f"{index:3d}/{len(waiting)} {suite.label + Path(file).name:36s} stock {shown[0]:34s} weft {shown[1]:34s} {took:5.0f} s")
            for name, (outcome, reason) in after.items():
                if outcome == "failed":
                    print(f"      {name}: {reason[:160]}{'  <- worse' if is_worse(name, stock, ours) else ''}")
            sys.stdout.flush()
    worse = [name for name in {**stock, **ours} if is_worse(name, stock, ours)]
    for name in [name for name in worse if name.split("::")[-1] in races]:
        print(f"not counted: {name}: {races[name.split('::')[-1]]}")
        worse.remove(name)
    if report:
        report.write_text(json.dumps({"stock": stock, "weft": ours, "worse": worse}, indent=1))
    print(f"libzmq of the wheel: {line(counts(stock))}")
    print(f"weft:                {line(counts(ours))}")
    if not stock or not ours:
        sys.exit("compat: no test ran")
    print(f"{len(worse)} that pass there do not pass here: {' '.join(worse)}" if worse else "whatever passes there passes here")
    sys.exit(1 if worse else 0)
