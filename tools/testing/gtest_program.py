# SPDX-License-Identifier: MIT
"""A GoogleTest program and the processes that run its cases."""

import ctypes
import dataclasses
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import tempfile
import time

TICK = 0.5  # seconds: the watchdog counts in ticks, so that a machine that sleeps hangs no case
OUTPUT_KEPT = 64 * 1024  # bytes of what one case printed: the last ones
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
STARTS = re.compile(r"\[ RUN      \] (\S+)$")
ENDS = re.compile(r"\[(       OK|  FAILED |  SKIPPED) \] (\S+?)(?=[, ]|$)(?:.*\((\d+) ms\))?")
OUTCOMES = {"       OK": PASSED, "  FAILED ": FAILED, "  SKIPPED": SKIPPED}


@dataclasses.dataclass
class Case:
    """What became of one case."""

    name: str
    outcome: str
    seconds: float = 0.0
    reason: str = ""  # why it failed, in a line
    output: str = ""


def without_gtest(environment):
    """The environment without variables that GoogleTest reads as flags."""
    return {name: value for name, value in environment.items() if not name.startswith("GTEST_")}


def listed_cases(text):
    """The full names in the output of --gtest_list_tests.

    >>> listed_cases("Running main() from gtest_main.cc\\nA.\\n  One\\nP/B.\\n  Two/tcp  # GetParam() = tcp\\n")
    ['A.One', 'P/B.Two/tcp']
    """
    cases, suite = [], None
    for line in text.splitlines():
        name = line.split("  # ")[0]
        if name.startswith("  ") and suite is not None:
            cases.append(suite + name.strip())
        elif name.endswith(".") and " " not in name:
            suite = name
    return cases


def list_cases(program, pattern="*"):
    """The full names of the program's cases that match a filter of GoogleTest, in its order."""
    done = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={pattern}"], env=without_gtest(os.environ),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program} --gtest_list_tests: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return listed_cases(done.stdout)


def end_of(status):
    """An exit status of subprocess in words.

    >>> end_of(3), end_of(-6)
    ('exit status 3', 'SIGABRT')
    """
    return f"exit status {status}" if status >= 0 else signal.Signals(-status).name


class Output:
    """Splits the output of a process into cases."""

    def __init__(self, names):
        self.names = set(names)
        self.running = None  # the name of the case that has begun and not ended
        self.begun = time.monotonic()
        self.waited = 0.0  # seconds since then in which this process was not stopped
        self.cases = {}
        self.text = bytearray()  # of the running case, or since the last one ended
        self.rest = b""

    def feed(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.handle_line(line)
        if len(self.rest) > OUTPUT_KEPT:
            self.keep(self.rest)
            self.rest = b""

    def keep(self, data):
        self.text += data
        del self.text[:-OUTPUT_KEPT]

    def handle_line(self, line):
        text = line.decode("utf-8", "replace").rstrip("\r")
        starts, ends = STARTS.search(text), ENDS.search(text)
        if starts and starts[1] in self.names:
            if self.running is not None:
                self.end(FAILED, reason="GoogleTest did not say how it ended")
            self.running = starts[1]
            self.begin()
            self.text.clear()
        elif ends and ends[2] == self.running:
            self.keep(text[:ends.start()].encode())
            self.end(OUTCOMES[ends[1]], seconds=int(ends[3]) / 1000 if ends[3] else None)
        else:
            self.keep(line + b"\n")

    def end(self, outcome, seconds=None, reason=""):
        """Ends the running case."""
        if seconds is None:
            seconds = time.monotonic() - self.begun
        self.cases[self.running] = Case(self.running, outcome, seconds, reason, self.take_text())
        self.running = None
        self.begin()

    def begin(self):
        self.begun, self.waited = time.monotonic(), 0.0

    def take_text(self):
        text = self.text.decode("utf-8", "replace").strip("\n")
        self.text.clear()
        return text


def die_with_parent():
    """Runs in the new process: a group of its own, which the kernel kills when the runner dies."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def follow(process, output, limit):
    """Reads until the process ends. False: one case ran longer than `limit` seconds, and the process was killed."""
    pipe, ended = process.stdout.fileno(), os.pidfd_open(process.pid)
    poller = select.poll()
    for descriptor in (pipe, ended):
        poller.register(descriptor, select.POLLIN)
    in_time = True
    try:
        while True:
            if output.waited >= limit:
                in_time = False
                kill_group(process)
                break
            before = time.monotonic()
            ready = dict(poller.poll(TICK * 1000))
            output.waited += min(time.monotonic() - before, TICK)
            if pipe in ready:
                read = os.read(pipe, 65536)
                output.feed(read)
                if not read:  # every writer closed it
                    poller.unregister(pipe)
            elif ended in ready:  # all that it wrote has been read; a process that it left may hold the pipe open
                break
    finally:
        kill_group(process)
        process.wait()
        os.close(ended)
        process.stdout.close()
    return in_time


def said_in_file(file):
    """{name: (outcome, seconds, messages)} of a file of --gtest_output=json; {} when there is none that can be read."""
    try:
        suites = json.loads(pathlib.Path(file).read_text(encoding="utf-8", errors="replace"))["testsuites"]
    except (OSError, ValueError, KeyError):
        return {}
    found = {}
    for suite in suites:
        for case in suite["testsuite"]:
            if case["status"] != "RUN":
                continue
            failures = [failure["failure"] for failure in case.get("failures", [])]
            outcome = FAILED if failures else SKIPPED if case["result"] == "SKIPPED" else PASSED
            found[f"{suite['name']}.{case['name']}"] = (outcome, float(case["time"].rstrip("s")), "\n".join(failures))
    return found


def run_process(program, names, limit, title):
    """Runs cases in one process until it ends: [Case] in their order. At least one of them is in the result.

    A case that was running when the process died or was killed has failed. A failure of the process outside of its
    cases is a failed case of the name `title`."""
    with tempfile.TemporaryDirectory(prefix="weft-cases-") as folder:
        flags, said = pathlib.Path(folder, "flags"), pathlib.Path(folder, "said.json")
        flags.write_text(f"--gtest_filter={':'.join(names)}\n--gtest_output=json:{said}\n--gtest_color=no\n",
                         encoding="utf-8")
        output = Output(names)
        process = subprocess.Popen([program, f"--gtest_flagfile={flags}"], env=without_gtest(os.environ),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   preexec_fn=die_with_parent)
        in_time = follow(process, output, limit)
        status, from_file = process.returncode, said_in_file(said)
    output.keep(output.rest)
    add_from_file(output, from_file)
    how = end_of(status) if in_time else f"killed after {limit:g} s without an end"
    cases = output.cases
    whole = in_time and all(name in cases for name in names)
    any_failed = any(case.outcome == FAILED for case in cases.values())
    if output.running is not None:
        name = output.running
        output.end(FAILED, reason=how if not in_time else f"the process ended while the case ran: {how}")
        cases[name] = output.cases[name]
    elif not cases:
        reason = f"the process ended before its first case: {how}"
        cases[names[0]] = Case(names[0], FAILED, 0, reason, output.take_text())
    elif not whole or status not in (0, 1) or (status == 1 and not any_failed):
        last = list(cases)[-1]
        cases[title] = Case(title, FAILED, 0, f"outside of its cases, after {last}: {how}", output.take_text())
    order = {name: place for place, name in enumerate(names)}
    return sorted(cases.values(), key=lambda case: order.get(case.name, len(order)))


def add_from_file(output, from_file):
    """Merges what GoogleTest wrote to its file: a case failed when one of the two says so."""
    for name, (outcome, seconds, messages) in from_file.items():
        if name not in output.names:
            continue
        if output.running == name:
            output.end(outcome)
        case = output.cases.setdefault(name, Case(name, outcome, seconds))
        case.seconds = seconds
        if outcome == FAILED:
            case.outcome = FAILED
            case.output = case.output or messages


def run_all(program, names, limit, title):
    """Runs cases in one process, and those that a dead process left in another one: [Case]."""
    done, left = [], list(names)
    while left:
        done += run_process(program, left, limit, title)
        seen = {case.name for case in done}
        left = [name for name in left if name not in seen]
    return done
