# SPDX-License-Identifier: MIT
"""Other projects' programs: set-up commands, a network of their own, and a test that is one process."""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ATTEMPTS = 3  # a test fails when it fails three times: most measure time, on a machine that others use too


def say(text):
    print(f"==> {text}", flush=True)


def run(command, log, **options):
    """Runs a command of the set-up with its output in a file; shows the file and ends when the command fails."""
    with log.open("w") as output:
        result = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, **options)
    if result.returncode != 0:
        sys.exit(f"compat: {' '.join(map(str, command[:4]))} ... failed:\n{log.read_text()[-4000:]}")


def launcher():
    if shutil.which("ccache") is None:
        return []
    return ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]


def free_port():
    """A port that no program of this host listens at now: for a program that cannot choose one."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def own_network():
    """The command that gives a program a network of its own: programs bind fixed ports, and several run at once."""
    wire = "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo"
    for user in ([], ["--user", "--map-current-user", "--keep-caps"]):
        prefix = ["unshare", "--net", *user, "--", "sh", "-c"]
        try:
            if subprocess.run([*prefix, wire], capture_output=True).returncode == 0:
                return [*prefix, f'{wire}; exec "$0" "$@"']
        except FileNotFoundError:
            pass
    return []


OWN_NETWORK = own_network()


@dataclasses.dataclass
class Ending:
    """How a process ended. `code` is None when it was stopped at the limit or by its own alarm."""

    code: int | None
    text: str
    seconds: float

    def fault(self):
        """What ended the process, "" after a normal end with status 0."""
        if self.code is None:
            return "hangs"
        if self.code < 0 or self.code > 128:
            number = -self.code if self.code < 0 else self.code - 128
            return f"killed by {signal.Signals(number).name}"
        return f"exit status {self.code}" if self.code else ""


def run_process(command, library, log, limit, folder=None):
    """Runs a program on `library`, in a network of its own where the system allows that, and in an empty folder."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as empty, log.open("w") as output:
        child = subprocess.Popen(
            [*OWN_NETWORK, *map(str, command)], cwd=folder or empty, env=environment, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(child.pid, signal.SIGKILL)  # what a program forked ends with it
        except ProcessLookupError:
            pass
        child.wait()
    if code in (-signal.SIGALRM, 128 + signal.SIGALRM):
        code = None
    return Ending(code, log.read_text(errors="replace"), time.monotonic() - start)


def check_loaded(program, library):
    """Fails unless the program really loads `library`."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent))
    listing = subprocess.run(["ldd", program], env=environment, capture_output=True, text=True, check=True).stdout
    found = re.search(r"libzmq\.so\.5 => (\S+)", listing)
    if not found or Path(found.group(1)).resolve() != library.resolve():
        sys.exit(f"compat: {program} does not load {library}:\n{listing}")


def suite_parser(name, summary):
    """The parser of the arguments that every suite has."""
    parser = argparse.ArgumentParser(prog=f"./dev compat {name}", description=summary.split("\n")[0])
    parser.add_argument("library", type=Path, help="our libzmq.so.5")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only tests whose name contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there")
    return parser


def side_by_side_parser(name, summary):
    """The parser of a suite that ends with side_by_side()."""
    parser = suite_parser(name, summary)
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="tests at once (default %(default)s)")
    parser.epilog = "Exit status: 0, or 1 when a test passes on libzmq and not here, or when none ran; 2: wrong arguments."
    return parser


def existing(library):
    if not library.exists():
        sys.exit(f"compat: {library} does not exist; ./dev libdir builds it")
    return library.resolve()


def side_by_side(arguments, tests, theirs, test):
    """Runs `tests` on both libraries, prints the table, and ends the process.

    test(name, library, log) returns "" when the test passed, "skipped", or why it failed.
    """
    ours = existing(arguments.library)
    tests = [name for name in tests if not arguments.names or any(part in name for part in arguments.names)]
    logs = ROOT / "build/compat/logs"
    logs.mkdir(parents=True, exist_ok=True)

    def repeat(name, label, library):
        log = logs / f"{name.replace('/', '-')}.{label}.log"
        for _ in range(ATTEMPTS):
            why = test(name, library, log)
            if why in ("", "skipped"):
                break
        return why

    outcomes, worse = {}, []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs if OWN_NETWORK else 1) as pool:
        waiting = {
            name: [pool.submit(repeat, name, label, library) for label, library in (("libzmq", theirs), ("weft", ours))]
            for name in tests
        }
        for index, (name, futures) in enumerate(waiting.items(), 1):
            there, here = (future.result() for future in futures)
            outcomes[name] = {"libzmq": there or "passed", "weft": here or "passed"}
            mark = ""
            if here and not there:
                worse.append(name)
                mark = "  <- worse"
            print(f"{index:3d}/{len(tests)} {name:36s} libzmq {there or 'passed':24.24s} weft {here or 'passed':24.24s}{mark}")
            if here not in ("", "skipped"):
                print(f"      {here[:200]}; {logs / name.replace('/', '-')}.weft.log")
            sys.stdout.flush()
    if arguments.json:
        arguments.json.write_text(json.dumps({"tests": outcomes, "worse": worse}, indent=1))
    for label in ("libzmq", "weft"):
        words = [outcome[label] for outcome in outcomes.values()]
        skipped = words.count("skipped")
        passed = words.count("passed")
        print(f"{label:6s} {passed} passed, {skipped} skipped, {len(words) - passed - skipped} failed")
    if not tests:
        sys.exit("compat: no test ran")
    print(f"{len(worse)} that pass there do not pass here: {' '.join(worse)}" if worse else "whatever passes there passes here")
    sys.exit(1 if worse else 0)
