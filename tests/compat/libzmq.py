# SPDX-License-Identifier: MIT
"""libzmq's own test programs, on a libzmq built from their tree and on ours, side by side.

The programs come with the whole tree of 4.3.5 in the Rust crate zeromq-src. They are compiled once, against our zmq.h,
and run on both libraries. Each runs in a process of its own, so that a crash or a hang is one line.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CRATE = "zeromq-src"
VERSION = "0.3.6"  # carries libzmq 4.3.5
LIMIT = 70  # seconds for a program; each has an alarm of its own at 60 or less
ATTEMPTS = 3  # a program fails when it fails three times: most measure time, on a machine that others use too

# Programs that are not run, and why.
LEFT_OUT = {
    "_fuzzer$": "a fuzzer without input",
    "tipc": "needs the kernel's tipc, which neither library was built for",
    "gssapi": "needs GSSAPI, which neither library was built for",
    "^test_wss?_transport$": "needs a libzmq with WebSocket",
    "^test_busy_poll$": "needs SO_BUSY_POLL of a network card",
}


@dataclasses.dataclass
class Outcome:
    """The end of one program on one library."""

    passed: list
    failed: dict  # the case, and its first complaint
    ignored: list
    end: str  # "" after a normal end, otherwise how the process ended
    seconds: float

    def good(self):
        return not self.failed and not self.end

    def word(self):
        if self.end:
            return self.end
        if self.failed:
            return f"{len(self.failed)} failed"
        return f"{len(self.passed)} passed" if self.passed else "skipped"


def say(text):
    print(f"==> {text}", flush=True)


def run(command, log, **options):
    """Runs a command of the set-up with its output in a file; shows the file and ends when the command fails."""
    with log.open("w") as output:
        result = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, **options)
    if result.returncode != 0:
        sys.exit(f"libzmq.py: {' '.join(map(str, command[:4]))} ... failed:\n{log.read_text()[-4000:]}")


def fetch(work):
    """Returns the folder of libzmq's tree; downloads the crate once."""
    tree = work / "vendor" / CRATE / "vendor"
    if not (tree / "include/zmq.h").exists():
        if shutil.which("cargo") is None:
            print("libzmq.py: cargo is missing; it downloads libzmq's tests (Debian: apt-get install cargo)", file=sys.stderr)
            sys.exit(3)
        say(f"download {CRATE} {VERSION}")
        (work / "fetch/src").mkdir(parents=True, exist_ok=True)
        (work / "fetch/src/lib.rs").write_text("")
        (work / "fetch/Cargo.toml").write_text(
            f'[package]\nname = "fetch"\nversion = "0.0.0"\n[dependencies]\n{CRATE} = "={VERSION}"\n'
        )
        run(["cargo", "vendor", str(work / "vendor")], work / "fetch.log", cwd=work / "fetch")
    return tree


def launcher():
    if shutil.which("ccache") is None:
        return []
    return ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]


def build_reference(work, tree):
    """Builds libzmq from its tree, drafts and CURVE included. Returns its build folder and the names of its tests."""
    folder = work / "reference"
    if not (folder / "lib/libzmq.so.5").exists():
        say("build libzmq from the same tree")
        switches = ["BUILD_STATIC=OFF", "BUILD_TESTS=ON", "ENABLE_DRAFTS=ON", "WITH_LIBSODIUM=ON", "ENABLE_CURVE=ON"]
        switches += ["WITH_PERF_TOOL=OFF", "WITH_DOCS=OFF", "ENABLE_CPACK=OFF", "CMAKE_BUILD_TYPE=Release"]
        command = ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", "-Wno-dev", *launcher()]
        run(command + [f"-D{switch}" for switch in switches], work / "reference.configure.log")
        run(["cmake", "--build", folder, "--target", "libzmq"], work / "reference.build.log")
    listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, check=True, capture_output=True, text=True)
    names = [test["name"] for test in json.loads(listing.stdout)["tests"]]
    return folder, sorted(name for name in names if not any(re.search(why, name) for why in LEFT_OUT))


def build_programs(work, tree, reference, library, programs):
    """Compiles the programs against our zmq.h. Returns the folder that holds them."""
    copy = work / "tree"
    if not copy.exists():
        for part in ("tests", "src", "external", "include"):
            shutil.copytree(tree / part, work / "tree.new" / part)
        (work / "tree.new").rename(copy)
    for source, target in ((ROOT / "capi/zmq.h", "include/zmq.h"), (reference / "platform.hpp", "src/platform.hpp")):
        target = copy / target
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.unlink(missing_ok=True)
            shutil.copy(source, target)
    say(f"build {len(programs)} programs")
    folder = work / "programs"
    command = ["cmake", "-S", ROOT / "tests/compat/libzmq", "-B", folder, "-G", "Ninja", *launcher()]
    command += [f"-DTREE={copy}", f"-DLIBRARY={library}", f"-DPROGRAMS={';'.join(programs)}"]
    run(command, work / "programs.configure.log")
    run(["cmake", "--build", folder, "--", "-k", "0"], work / "programs.build.log")
    return folder


def read_cases(text):
    """Reads Unity's lines, FILE:LINE:CASE:PASS|FAIL|IGNORE[:reason], and an assertion's line that ended the program."""
    passed, failed, ignored = [], {}, []
    for line in text.splitlines():
        found = re.match(r"^[^:]*:\d+:([^:]+):(PASS|FAIL|IGNORE)(?::\s*(.*))?$", line)
        if not found:
            continue
        case, verdict, reason = found.groups()
        if verdict == "PASS":
            passed.append(case)
        elif verdict == "FAIL":
            failed[case] = reason or ""
        else:
            ignored.append(case)
    return passed, failed, ignored


def run_once(program, library, log):
    """Runs a program once, in a network of its own where the system allows that, and in an empty folder."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, log.open("w") as output:
        child = subprocess.Popen(
            [*OWN_NETWORK, str(program)], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = child.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(child.pid, signal.SIGKILL)  # what a program forked ends with it
        except ProcessLookupError:
            pass
        child.wait()
    passed, failed, ignored = read_cases(log.read_text(errors="replace"))
    if code is None or code in (-signal.SIGALRM, 128 + signal.SIGALRM):
        end = "hangs"
    elif code < 0 or code > 128:
        number = -code if code < 0 else code - 128
        end = f"killed by {signal.Signals(number).name}"
    elif code in (0, 77) or failed:
        end = ""
    else:
        end = f"exit status {code}"
    return Outcome(passed, failed, ignored, end, time.monotonic() - start)


def run_program(program, library, log):
    for _ in range(ATTEMPTS):
        outcome = run_once(program, library, log)
        if outcome.good():
            break
    return outcome


# A network with an interface that takes multicast: without one the programs leave multicast out.
SET_UP_NETWORK = """ip link set lo up
ip link add multi0 type veth peer name multi1 && for name in multi0 multi1; do
  echo 0 >/proc/sys/net/ipv6/conf/$name/accept_dad
  ip link set $name up
done && ip addr add 192.0.2.1/24 dev multi0 && ip route add 224.0.0.0/4 dev multi0"""


def own_network():
    """The command that gives a program a network of its own: the programs bind fixed ports, and several run at once."""
    prefix = ["unshare", "--net", "--", "sh", "-c", f'{{ {SET_UP_NETWORK}; }} 2>/dev/null; exec "$0"']
    probe = ["unshare", "--net", "--", "sh", "-c", "ip link set lo up"]
    try:
        if subprocess.run(probe, capture_output=True).returncode == 0:
            return prefix
    except FileNotFoundError:
        pass
    return []


OWN_NETWORK = own_network()


def check_loaded(program, library):
    """Fails unless the program really loads `library`."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent))
    listing = subprocess.run(["ldd", program], env=environment, capture_output=True, text=True, check=True).stdout
    found = re.search(r"libzmq\.so\.5 => (\S+)", listing)
    if not found or Path(found.group(1)).resolve() != library.resolve():
        sys.exit(f"libzmq.py: {program} does not load {library}:\n{listing}")


def reference_outcomes(work, folder, programs, library, pool):
    """The outcomes on the reference: run once, then kept in a file that names the programs' contents."""
    kept = work / "reference.json"
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


def is_worse(there, here):
    """A program is worse on ours when it passes there and not here, or when one of its cases does."""
    return not here.good() and (there.good() or set(there.passed) - set(here.passed))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev compat libzmq", description=__doc__.split("\n")[0])
    parser.add_argument("library", type=Path, help="our libzmq.so.5")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only programs whose name contains this")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="programs at once (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    library = arguments.library.resolve()
    if not library.exists():
        sys.exit(f"libzmq.py: {library} does not exist; ./dev libdir builds it")
    work = ROOT / "build/compat/libzmq"
    (work / "logs").mkdir(parents=True, exist_ok=True)
    tree = fetch(work)
    reference, programs = build_reference(work, tree)
    known = programs
    programs = [name for name in programs if not arguments.names or any(part in name for part in arguments.names)]
    if not programs:
        sys.exit(f"libzmq.py: no program has such a name; there is: {' '.join(known)}")
    folder = build_programs(work, tree, reference, library, known)
    theirs = reference / "lib/libzmq.so.5"
    for one in (library, theirs):
        check_loaded(folder / programs[0], one)
    if not OWN_NETWORK:
        arguments.jobs = 1  # the programs share fixed ports
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        say(f"run them, {arguments.jobs} at once")
        there = reference_outcomes(work, folder, programs, theirs, pool)
        log = lambda name: work / "logs" / f"{name}.weft.log"
        waiting = {name: pool.submit(run_program, folder / name, library, log(name)) for name in programs}
        here = {}
        for index, (name, future) in enumerate(waiting.items(), 1):
            here[name] = future.result()
            mark = "  <- worse" if is_worse(there[name], here[name]) else ""
            print(f"{index:3d}/{len(programs)} {name:30s} libzmq {there[name].word():20s} weft {here[name].word():20s}"
                  f" {here[name].seconds:5.1f} s{mark}", flush=True)
            for case, reason in here[name].failed.items():
                print(f"      {case}: {reason[:160]}")
            if here[name].end:
                print(f"      {log(name)}")
    worse = [name for name in programs if is_worse(there[name], here[name])]
    if arguments.json:
        everything = {name: {"libzmq": dataclasses.asdict(there[name]), "weft": dataclasses.asdict(here[name])} for name in programs}
        arguments.json.write_text(json.dumps({"programs": everything, "worse": worse}, indent=1))
    for name, outcomes in (("libzmq", there), ("weft", here)):
        good = sum(outcome.good() for outcome in outcomes.values())
        cases = sum(len(outcome.passed) for outcome in outcomes.values())
        print(f"{name:6s} passes {good} of {len(programs)} programs, {cases} cases")
    print(f"{len(worse)} are worse here: {' '.join(worse)}" if worse else "whatever passes there passes here")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
