# SPDX-License-Identifier: MIT
"""What `./dev test` shows while it runs."""

import json
import os
import re
import time


class Console:
    """What ctest prints, a line a test. In a terminal the line of a test that passed makes place for the next one."""

    RESULT = re.compile(r"^ *(\d+)/(\d+) Test +#\d+: (\S+) [. ]*(\*{0,3}\S.*?) +([\d.]+) sec")
    NOISE = re.compile(r'^( *Start +\d+: |Test project |Errors while running|Output from these|Use "--rerun-failed|$)')

    def __init__(self, cases, known, stream):
        self.cases, self.known, self.stream = cases, dict(known), stream
        self.began = time.monotonic()
        self.open_line = False

    def handle(self, line):
        result = self.RESULT.match(line)
        if result:
            number, total, name, how, seconds = result.groups()
            text = f"[{number:>{len(total)}}/{total}] {name}: {self.told(name, how)}, {float(seconds):.1f} s"
            self.known.pop(name, None)
            brief = self.stream.isatty() and how == "Passed"
            self.show(text + self.estimate(int(number)) if brief else text, brief)
        elif not self.NOISE.match(line):
            self.show(line, False)

    def told(self, name, how):
        """Counts of a program's cases, or ctest's word."""
        try:
            cases = json.loads((self.cases / f"{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return how.strip("*").lower()
        outcomes = [case["outcome"] for case in cases]
        counts = [(outcome, outcomes.count(outcome)) for outcome in ("passed", "failed", "skipped")]
        return ", ".join(f"{count} {outcome}" for outcome, count in counts if count) or "no cases"

    def estimate(self, done):
        if not self.known:
            return ""
        spent = time.monotonic() - self.began
        return f"; about {sum(self.known.values()) / os.cpu_count():.0f} s left, {spent:.0f} s gone" if done else ""

    def show(self, text, brief):
        if self.open_line:
            self.stream.write("\r\033[K")
        self.stream.write(text if brief else text + "\n")
        self.stream.flush()
        self.open_line = brief

    def end(self):
        if self.open_line:
            self.stream.write("\r\033[K")
            self.stream.flush()
