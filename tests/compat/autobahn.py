# SPDX-License-Identifier: MIT
"""Autobahn's test-suite for WebSocket, version 0.8.2, against examples/websocket_echo.

Each case must be OK, strictly: neither NON-STRICT nor UNIMPLEMENTED. autobahn/exceptions.txt names those for which the
suite itself has no verdict. The suite is a program for Python 2.7; without one this suite says so.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from weft_compat.autobahn import CASES, QUICK, judge, patterns_of, read_exceptions, read_results, set_up
from weft_compat.runs import ROOT, existing, run, suite_parser

EXCEPTIONS = ROOT / "tests/compat/autobahn/exceptions.txt"
AGENT = "websocket_echo"
LIMIT = 3600  # seconds for a group


class Echo:
    """examples/websocket_echo on a port that the system chose."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "0"], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip().replace("serving at tcp://", "ws://")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.alive = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def run_cases(url, name, work):
    """The results of the cases whose numbers begin with the name."""
    command, environment = set_up()
    report = work / f"server-{name}"
    spec = work / f"server-{name}.json"
    server = {"agent": AGENT, "url": url, "options": {"version": 18}}
    settings = {"outdir": str(report), "servers": [server], "cases": patterns_of([name]), "exclude-cases": []}
    spec.write_text(json.dumps(settings | {"exclude-agent-cases": {}}))
    (report / "index.json").unlink(missing_ok=True)
    try:
        run([*command, "-m", "fuzzingclient", "-s", spec], spec.with_suffix(".log"), env=environment, cwd=work, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        sys.exit(f"compat: group {name} is not ready after {LIMIT} s; {spec.with_suffix('.log')}")
    return read_results(report, AGENT)


def main():
    parser = suite_parser("autobahn", __doc__)
    parser.add_argument("--quick", action="store_true", help=f"the groups {' '.join(QUICK)} alone: about 20 s")
    parser.add_argument("--program", type=Path, help="another build of examples/websocket_echo")
    parser.add_argument("--work", type=Path, default=ROOT / "build/compat/autobahn/all", help="the folder of the report")
    parser.epilog = "NAME is a group, or the beginning of a case's number: 6, 6.4, 6.4.1. Exit status: 0; 1: a case is not as "
    parser.epilog += "expected, or was not run; 2: wrong arguments; 3: there is no Python 2.7, or no network."
    arguments = parser.parse_intermixed_args()
    program = arguments.program or existing(arguments.library).parent.parent / "examples/websocket_echo"
    names = arguments.names or (QUICK if arguments.quick else list(CASES))
    try:
        patterns_of(names)
    except ValueError as error:
        parser.error(str(error))
    arguments.work = arguments.work.resolve()
    arguments.work.mkdir(parents=True, exist_ok=True)
    since = time.monotonic()
    results, short = {}, []
    exceptions = read_exceptions(EXCEPTIONS)
    print("group  cases  as expected  seconds", flush=True)
    with Echo(existing(program)) as echo:
        for name in names:
            began = time.monotonic()
            found = run_cases(echo.url, name, arguments.work)
            good = len(found) - len(judge(found, exceptions)[0])
            print(f"{name:>5s}  {len(found):5d}  {good:11d}  {time.monotonic() - began:7.0f}", flush=True)
            results |= found
            if len(found) != CASES.get(name, len(found)):
                short.append(f"group {name} ran {len(found)} of its {CASES[name]} cases")
    if not echo.alive:
        sys.exit("compat: examples/websocket_echo ended by itself")
    wrong, outdated = judge(results, exceptions)
    if arguments.json:
        everything = {case: {"behavior": found[0], "end": found[1]} for case, found in results.items()}
        arguments.json.write_text(json.dumps({"cases": everything, "worse": list(wrong)}, indent=1))
    for line in [f"{case}: {why}" for case, why in wrong.items()] + short:
        print(line)
    for case in outdated:
        print(f"{case} is OK: remove it from {EXCEPTIONS.relative_to(ROOT)}")
    print(f"{len(results)} cases in {time.monotonic() - since:.0f} s, {len(wrong)} not as expected; {arguments.work}")
    sys.exit(1 if wrong or short or outdated or not results else 0)


if __name__ == "__main__":
    main()
