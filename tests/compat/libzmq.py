# SPDX-License-Identifier: MIT
"""libzmq's own test programs, on a libzmq built from their tree and on ours, side by side.

The programs come with the whole tree of 4.3.5 in the Rust crate zeromq-src. They are compiled once, against our zmq.h,
and run on both libraries. Each runs in a process of its own, so that a crash or a hang is one line.

libzmq/reference.json keeps what passes on libzmq, so that the test of ./dev test (--table) needs not build it.
libzmq/exceptions.txt names the cases that pass there and not here.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

from weft_compat.reference import CRATE, OFFLINE, SKIP, VERSION, WORK, build_reference, fetch
from weft_compat.runs import ATTEMPTS, OWN_NETWORK, ROOT, check_loaded, existing, launcher, run, run_process, say

LIMIT = 70  # seconds for a program; each has an alarm of its own at 60 or less
TABLE = ROOT / "tests/compat/libzmq/reference.json"
EXCEPTIONS = ROOT / "tests/compat/libzmq/exceptions.txt"

# Programs that are not run, and why.
LEFT_OUT = {
    "_fuzzer$": "a fuzzer without input",
    "tipc": "needs the kernel's tipc, which neither library was built for",
    "vmci$": "needs VMware's vmci, which neither library was built for",
    "gssapi$": "needs GSSAPI, which neither library was built for",
    "^test_busy_poll$": "needs SO_BUSY_POLL of a network card",
    "cap_net_admin$": "changes the kernel's settings",
}
SLOW = ("test_heartbeats", "test_security_zap", "test_wss_transport")  # they wait for most of a minute
# A case that its program gives up for this reason lacks something of the machine, not of the library.
MACHINE = re.compile(r"ipv6|multicast", re.IGNORECASE)


@dataclasses.dataclass
class Outcome:
    """The end of one program on one library."""

    passed: int  # cases
    failed: dict  # the case, and its first complaint
    ignored: dict  # the case, and why the program did not run it
    end: str  # "" after a normal end, otherwise how the process ended
    seconds: float

    def good(self):
        return not self.failed and not self.end

    def word(self):
        if self.end:
            return self.end
        if self.failed:
            return f"{len(self.failed)} failed"
        return f"{self.passed} passed" if self.passed else "skipped"


def known_programs(tree):
    names = sorted(path.stem for path in (tree / "tests").glob("test_*.cpp"))
    return [name for name in names if not any(re.search(why, name) for why in LEFT_OUT)]


def build_programs(work, tree, library, programs):
    """Compiles the programs against our zmq.h. Returns the folder that holds them."""
    copy = work / "tree"
    if not copy.exists():
        shutil.rmtree(work / "tree.new", ignore_errors=True)
        for part in ("tests", "src", "external", "include"):
            shutil.copytree(tree / part, work / "tree.new" / part)
        (work / "tree.new").rename(copy)
    ours = ((ROOT / "capi/zmq.h", "include/zmq.h"), (ROOT / "tests/compat/libzmq/platform.hpp", "src/platform.hpp"))
    for source, target in ours:
        target = copy / target
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.unlink(missing_ok=True)
            shutil.copyfile(source, target)
    say(f"build {len(programs)} programs")
    start = time.monotonic()
    folder = work / "programs"
    command = ["cmake", "-S", ROOT / "tests/compat/libzmq", "-B", folder, "-G", "Ninja", *launcher()]
    command += [f"-DTREE={copy}", f"-DLIBRARY={library}", f"-DPROGRAMS={';'.join(programs)}"]
    run(command, work / "programs.configure.log")
    run(["cmake", "--build", folder, "--", "-k", "0"], work / "programs.build.log")
    say(f"built in {time.monotonic() - start:.0f} s")
    return folder


def read_cases(text):
    """Reads Unity's lines, FILE:LINE:CASE:PASS|FAIL|IGNORE[:reason], and its sums."""
    passed, failed, ignored = 0, {}, {}
    for line in text.splitlines():
        found = re.match(r"^[^:]*:\d+:([^:]+):(PASS|FAIL|IGNORE)(?::\s*(.*))?$", line)
        if not found:
            continue
        case, verdict, reason = found.groups()
        if verdict == "PASS":
            passed += 1
        elif verdict == "FAIL":
            failed[case] = reason or ""
        else:
            ignored[case] = reason or ""
    sums = re.search(r"^(\d+) Tests (\d+) Failures (\d+) Ignored", text, re.MULTILINE)
    if sums:  # what the library prints between may have broken a line of a case
        passed = int(sums[1]) - int(sums[2]) - int(sums[3])
    return passed, failed, ignored


def run_once(program, library, log):
    ending = run_process([program], library, log, LIMIT)
    passed, failed, ignored = read_cases(ending.text)
    end = ending.fault()
    if ending.code == SKIP or end.startswith("exit status") and failed:
        end = ""
    return Outcome(passed, failed, ignored, end, ending.seconds)


def run_program(program, library, log, is_expected=Outcome.good):
    for _ in range(ATTEMPTS):
        outcome = run_once(program, library, log)
        if is_expected(outcome):
            break
    return outcome


def reference_outcomes(work, folder, programs, library, pool):
    """The outcomes on the reference: run once, then kept in a file that names the programs' contents."""
    kept = work / "outcomes.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    keys = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in programs}
    log = lambda name: work / "logs" / f"{name}.libzmq.log"
    waiting = {
        name: pool.submit(run_program, folder / name, library, log(name))
        for name in programs
        if known.get(name, {}).get("key") != keys[name]
    }
    for name, future in waiting.items():
        known[name] = {"key": keys[name], "outcome": dataclasses.asdict(future.result())}
    kept.write_text(json.dumps(known, indent=1))
    return {name: Outcome(**known[name]["outcome"]) for name in programs}


def read_table(programs):
    """The outcomes that the table keeps: the number of cases that pass on libzmq, and the other cases."""
    table = json.loads(TABLE.read_text())
    missing = [name for name in programs if name not in table["programs"]]
    if table["crate"] != f"{CRATE} {VERSION}" or missing:
        sys.exit(f"libzmq.py: {TABLE} is not of {CRATE} {VERSION}: ./dev compat libzmq --write-reference {' '.join(missing)}")
    rows = {name: table["programs"][name] for name in programs}
    return {
        name: Outcome(row["passed"], row.get("failed", {}), row.get("ignored", {}), row.get("end", ""), 0)
        for name, row in rows.items()
    }


def write_table(there):
    def row(outcome):
        fields = {"passed": outcome.passed, "failed": outcome.failed, "ignored": outcome.ignored, "end": outcome.end}
        return {key: value for key, value in fields.items() if value or key == "passed"}

    rows = [f"  {json.dumps(name)}: {json.dumps(row(outcome))}" for name, outcome in sorted(there.items())]
    head = f'{{\n "crate": {json.dumps(f"{CRATE} {VERSION}")},\n "programs": {{\n'
    TABLE.write_text(head + ",\n".join(rows) + "\n }\n}\n")


def read_exceptions():
    """Reads PROGRAM CASE [flaky] # reason. Returns {program: {case: whether it may pass}}."""
    exceptions = {}
    for number, line in enumerate(EXCEPTIONS.read_text().splitlines(), 1):
        words, _, reason = line.partition("#")
        words = words.split()
        if not words and line.startswith("#") or not line.strip():
            continue
        if len(words) not in (2, 3) or words[2:] not in ([], ["flaky"]) or not reason.strip():
            sys.exit(f"{EXCEPTIONS}:{number}: not PROGRAM CASE [flaky] # reason")
        exceptions.setdefault(words[0], {})[words[1]] = len(words) == 3
    return exceptions


def complaints(there, here):
    """{case: what is worse here}: cases that pass there and not here. "(end)" is the end of the program."""
    found = {case: reason for case, reason in here.failed.items() if case not in there.failed}
    if here.end and not there.end:
        found["(end)"] = here.end
    elif not here.end:
        ignored = {case: reason for case, reason in here.ignored.items() if case not in there.ignored}
        found.update({case: f"ignored: {why}" for case, why in ignored.items() if not MACHINE.search(why)})
        seen = here.passed + len(here.failed) + len(here.ignored)
        if seen < there.passed:
            found["(end)"] = f"{seen} cases instead of {there.passed}"
    return found


def judge(there, here, known):
    """Returns what is worse and no known exception, and the exceptions that are none any more."""
    found = complaints(there, here)
    gone = [case for case, flaky in known.items() if not flaky and case not in found]
    return {case: why for case, why in found.items() if case not in known}, gone


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="./dev compat libzmq",
        description=__doc__.split("\n")[0],
        epilog="Exit status: 0, or 1 when a case passes on libzmq and not here and is no known exception, or when a known "
        f"exception passes here; 2 for wrong arguments; 3 without cargo; {SKIP} when {OFFLINE} is set and the sources are "
        "not there.",
    )
    parser.add_argument("library", type=Path, help="our libzmq.so.5")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only programs whose name contains this")
    parser.add_argument("--jobs", type=int, default=4 * (os.cpu_count() or 1), help="programs at once (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there")
    parser.add_argument("--work", type=Path, default=WORK, metavar="DIR", help="default %(default)s")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--table", action="store_true", help="compare with the kept results of libzmq instead of building it")
    group.add_argument("--write-reference", action="store_true", help="run the programs on libzmq, and keep the results")
    return parser.parse_intermixed_args()


def show(index, count, name, there, here, found, gone, log):
    mark = "  <- worse" if found else "  <- not an exception any more" if gone else ""
    print(f"{index:3d}/{count} {name:30s} libzmq {there.word():20s} weft {here.word():20s} {here.seconds:5.1f} s{mark}")
    for case, reason in here.failed.items():
        print(f"      {case}: {reason[:160]}{'' if case in found else ' (known)'}")
    for case, reason in found.items():
        if case not in here.failed:
            print(f"      {case}: {reason}")
    for case in gone:
        print(f"      {case} passes: remove the entry from {EXCEPTIONS.relative_to(ROOT)}")
    if here.end:
        print(f"      {log}")
    sys.stdout.flush()


def main():
    arguments = parse_arguments()
    library = existing(arguments.library)
    exceptions = read_exceptions()
    work = arguments.work.resolve()
    (work / "logs").mkdir(parents=True, exist_ok=True)
    tree = fetch(work)
    known = known_programs(tree)
    programs = [name for name in known if not arguments.names or any(part in name for part in arguments.names)]
    if not programs:
        sys.exit(f"libzmq.py: no program has such a name; there is: {' '.join(known)}")
    stray = [name for name in exceptions if name not in known]
    if stray:
        sys.exit(f"{EXCEPTIONS}: no program is named {' '.join(stray)}")
    theirs = None if arguments.table else build_reference(tree, work)
    folder = build_programs(work, tree, library, known)
    for one in filter(None, (library, theirs)):
        check_loaded(folder / programs[0], one)
    if not OWN_NETWORK:
        arguments.jobs = 1  # the programs share fixed ports
    here, worse, outdated = {}, [], []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        say(f"run them, {arguments.jobs} at once")
        there = read_table(programs) if arguments.table else reference_outcomes(work, folder, programs, theirs, pool)
        if arguments.write_reference:
            write_table({**(read_table(set(known) - set(programs)) if arguments.names else {}), **there})
            say(f"wrote {TABLE.relative_to(ROOT)}")
            return
        log = lambda name: work / "logs" / f"{name}.weft.log"

        def waited_for(name):
            judged = lambda outcome: not judge(there[name], outcome, exceptions.get(name, {}))[0]
            return pool.submit(run_program, folder / name, library, log(name), judged)

        # Programs that take long start first.
        order = sorted(programs, key=lambda name: name not in SLOW)
        waiting = {name: waited_for(name) for name in order}
        for index, name in enumerate(programs, 1):
            here[name] = waiting[name].result()
            found, gone = judge(there[name], here[name], exceptions.get(name, {}))
            show(index, len(programs), name, there[name], here[name], found, gone, log(name))
            worse += [name] if found else []
            outdated += [f"{name} {case}" for case in gone]
    if arguments.json:
        everything = {name: {"libzmq": dataclasses.asdict(there[name]), "weft": dataclasses.asdict(here[name])} for name in programs}
        report = {"programs": everything, "worse": worse, "outdated exceptions": outdated}
        arguments.json.write_text(json.dumps(report, indent=1))
    for name, outcomes in (("libzmq", there), ("weft", here)):
        good = sum(outcome.good() for outcome in outcomes.values())
        print(f"{name:6s} passes {good} of {len(programs)} programs, {sum(outcome.passed for outcome in outcomes.values())} cases")
    for line in outdated:
        print(f"a known exception that passes here: {line}; remove it from {EXCEPTIONS.relative_to(ROOT)}")
    print(f"{len(worse)} are worse here: {' '.join(worse)}" if worse else "whatever passes there passes here, but for the exceptions")
    if worse and arguments.table:
        print(f"to compare with libzmq on this machine: ./dev compat libzmq {' '.join(worse)}")
    sys.exit(1 if worse or outdated else 0)


if __name__ == "__main__":
    main()
