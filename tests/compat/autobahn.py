# SPDX-License-Identifier: MIT
"""Autobahn's test-suite for WebSocket, version 0.8.2, against examples/websocket_echo and against web::WebSocketClient.

Each case must be OK, strictly: neither NON-STRICT nor UNIMPLEMENTED. autobahn/exceptions.txt and client_exceptions.txt
name the others, each with its reason. The suite is a program for Python 2.7; without one this suite says so.
"""

import json
import sys
import time
from pathlib import Path

from weft_compat.autobahn import CASES, GROUPS, QUICK, groups_of, judge, read_exceptions
from weft_compat.autobahn_sides import Client, Server
from weft_compat.runs import ROOT, existing, run, suite_parser

FOLDER = ROOT / "tests/compat/autobahn"
EXCEPTIONS = {"server": FOLDER / "exceptions.txt", "client": FOLDER / "client_exceptions.txt"}
PROGRAMS = {"server": "examples/websocket_echo", "client": "tests/compat/autobahn_client"}  # in a build with tests


def find_programs(given, work):
    """The program of each side: the given one, or that of the build `dev`; a build for release has neither."""
    missing = [Path(PROGRAMS[side]).name for side, program in given.items() if program is None]
    if missing:
        run(["cmake", "--preset", "dev"], work / "configure.log", cwd=ROOT)
        run(["cmake", "--build", "build/dev", "--target", *missing], work / "build.log", cwd=ROOT)
    return {side: existing(program or ROOT / "build/dev" / PROGRAMS[side]) for side, program in given.items()}


def run_side(name, side, groups, exceptions, resumes):
    """({case: result}, the groups that are not whole) of the server, or of the client."""
    results, short = {}, []
    for group in groups:
        began = time.monotonic()
        found = side.earlier(group) if resumes else None
        if not found or judge(found, exceptions)[0]:
            found = side.run(group)
        good = len(found) - len(judge(found, exceptions)[0])
        print(f"{name:6s}  {group:>5s}  {len(found):5d}  {good:11d}  {time.monotonic() - began:7.0f}", flush=True)
        results |= found
        if len(found) != CASES.get(group, len(found)):
            short.append(f"{name}: group {group} ran {len(found)} of its {CASES[group]} cases")
    return results, short


def parse_arguments():
    parser = suite_parser("autobahn", __doc__)
    parser.add_argument("--quick", action="store_true", help=f"the groups {' '.join(QUICK)} alone: about 20 s a side")
    parser.add_argument("--cases", metavar="NAMES", help="the same as NAME, separated by commas: --cases '12.*,13.1'")
    parser.add_argument("--resume", action="store_true", help="run no group or part again that an earlier run of the same "
                        "program has ended as expected")
    parser.add_argument("--only", choices=list(EXCEPTIONS), help="our server or our client alone")
    parser.add_argument("--program", type=Path, help="another build of examples/websocket_echo")
    parser.add_argument("--client", type=Path, help="another build of tests/compat/autobahn/client_side.cc")
    parser.add_argument("--work", type=Path, default=ROOT / "build/compat/autobahn/all", help="the folder of the report")
    parser.epilog = "NAME is a group, or the beginning of a case's number: 6, 6.4, 6.4.1. The groups 12 and 13 run in parts: 12.1, 12.2, ... Exit status: 0; 1: a case is not as "
    parser.epilog += "expected, or was not run; 2: wrong arguments; 3: there is no Python 2.7, or no network."
    arguments = parser.parse_intermixed_args()
    names = arguments.names + (arguments.cases.split(",") if arguments.cases else [])
    try:
        arguments.groups = groups_of(names or (QUICK if arguments.quick else GROUPS))
    except ValueError as error:
        parser.error(str(error))
    arguments.work = arguments.work.resolve()
    arguments.work.mkdir(parents=True, exist_ok=True)
    return arguments


def main():
    arguments = parse_arguments()
    programs = find_programs({"server": arguments.program, "client": arguments.client}, arguments.work)
    makers = {"server": Server, "client": Client}
    since, everything, complaints = time.monotonic(), {}, []
    print("side    group  cases  as expected  seconds", flush=True)
    for name in [arguments.only] if arguments.only else list(makers):
        exceptions = read_exceptions(EXCEPTIONS[name])
        with makers[name](programs[name], arguments.work) as side:
            results, short = run_side(name, side, arguments.groups, exceptions, arguments.resume)
        wrong, outdated = judge(results, exceptions)
        complaints += [f"{name}: {case}: {why}" for case, why in wrong.items()] + short
        complaints += [f"{case} is OK: remove it from {EXCEPTIONS[name].relative_to(ROOT)}" for case in outdated]
        complaints += [] if results else [f"{name}: no case ran"]
        everything |= {f"{name} {case}": {"behavior": found[0], "end": found[1]} for case, found in results.items()}
    if arguments.json:
        arguments.json.write_text(json.dumps({"cases": everything, "worse": complaints}, indent=1))
    print("\n".join(complaints + [f"{len(everything)} cases in {time.monotonic() - since:.0f} s, {len(complaints)} complaints; "
                                  f"{arguments.work}"]))
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
