# SPDX-License-Identifier: MIT
"""Which slowdowns of the library the gate finds: a build with a known delay in weft/mem, weft/msg/connection and weft/rt is
compared with the same build without the delay, again and again. --check fails where the gate misses more than one of 20
slowdowns of 30 %, or finds one of 25 that are not there; --write puts the table into docs/design."""

import argparse
import contextlib
import dataclasses
import pathlib
import re
import shutil
import signal
import struct
import tempfile
import time

from weft_bench import ROOT, printer, stats
from weft_bench.command_line import FAILURE, INTERRUPTED, USAGE, say
from weft_bench.commands import gate
from weft_bench.harness import comparisons, micro_rounds, rounds
from weft_bench.harness.child import ChildError

TREE = ROOT / "build/slowed"
MARKER = b"weft-delay-here\0"
SLOWED = ("bench/micro/bench_micro", "capi/libzmq.so.5", "bench/server/bench_server_weft")
BESIDE = ("bench/bench_sockets", "bench/libbench_allocations.so", gate.HEAP_SHIFT, "bench/server/bench_load")
STEPS_MAX = 10_000_000
VISITS_MAX = 100  # until the processors stand as they should; then the rounds count as they are
CALIBRATIONS, CALIBRATION_PASSES = 10, 3  # a pass is as many rounds as the gate measures at first
LEAST_FOUND, RUNS, NULLS = 19, 20, 25
MUST_FIND = 0.30
# Rows: (class, kind, name).
CLASSES = (("a part, one thread", "row", "Task_Sleep0"),
           ("a part, several threads", "row", "Sharded_MapReduce/2_cores"),
           ("sockets, one way", "cell", "push_pull/tcp/64"),
           ("sockets, round trip", "cell", "round_trip/tcp/64"),
           ("the server, echo", "server", "echo/64/x128/depth16"))
PAGE = ROOT / "docs/design/0019-slowdowns-that-the-gate-finds.md"
BLOCK = re.compile(r"(<!-- slowdowns -->\n).*?(<!-- end of slowdowns -->)", re.DOTALL)
HEAD = ["class", "row", "slowdown", "as measured", "runs", "slower", "warned", "not slower", "cannot tell", "seconds a run"]


def with_steps(data, steps):
    """A built file whose delay takes so many steps.

    >>> with_steps(b"ab" + MARKER + b"\\1\\0\\0\\0cd", 300)[-6:]
    b'-\\x01\\x00\\x00cd'
    >>> with_steps(b"none", 300)
    Traceback (most recent call last):
    weft_bench.commands.gate.GateError: the build has 0 places for a delay instead of one
    """
    found = data.count(MARKER)
    if found != 1:
        raise gate.GateError(f"the build has {found} places for a delay instead of one")
    place = data.index(MARKER) + len(MARKER)
    return data[:place] + struct.pack("<I", steps + 1) + data[place + 4:]


def build_slowed():
    """The release build whose delay can be set."""
    say("build the library with a place for a delay")
    return gate.build_release(ROOT, TREE, "-DWEFT_INJECTED_DELAY",
                              (*gate.TARGETS, gate.HEAP_SHIFT_TARGET, gate.SERVER_TARGET, gate.LOAD_TARGET))


def copy_with(build, steps, folder):
    """A folder that looks like the build, but whose delay takes so many steps."""
    for name in SLOWED:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(with_steps((build / name).read_bytes(), steps))
        place.chmod(0o755)
    for name in BESIDE:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (build / name).exists():
            place.symlink_to(build / name)
    return folder


@dataclasses.dataclass
class Pair:
    """Two builds of which the new one takes so many steps more, while they are compared in one class."""

    build: pathlib.Path
    kind: str
    name: str
    place: str = None  # how the processors stood while the steps were calibrated
    spent: float = 0  # seconds, of the visits that counted

    @contextlib.contextmanager
    def rounds(self, steps):
        """What Comparison measures: measure(visit)."""
        with self.every_round(steps) as measure:
            yield lambda visit: self.where_calibrated(lambda: measure(visit))

    def where_calibrated(self, measure):
        """The rounds of a visit in which the processors stood as while the steps were calibrated. The same delay is another
        slowdown elsewhere, or none.

        >>> visits = iter([[{"place": "near"}, {"place": "apart"}], [{"place": "near"}, {"place": "near"}]])
        >>> Pair(None, "row", "x", place="near").where_calibrated(lambda: next(visits))
        [{'place': 'near'}, {'place': 'near'}]
        """
        for _ in range(VISITS_MAX):
            start = time.monotonic()
            taken = measure()
            if self.place is None or {each["place"] for each in taken} == {self.place}:
                break
        self.spent += time.monotonic() - start
        return taken

    @contextlib.contextmanager
    def every_round(self, steps):
        with tempfile.TemporaryDirectory(prefix="weft-slowed-") as parent, contextlib.ExitStack() as stack:
            old, new = (copy_with(self.build, each, pathlib.Path(parent, name)) for name, each in (("old", 0), ("new", steps)))
            if self.kind == "row":
                row = micro_rounds.rows_of(micro_rounds.program_of(self.build))[self.name]
                yield gate.RowRounds(new, old, row)
            elif self.kind == "cell":
                libraries = stack.enter_context(gate.CopiedLibraries(new / "capi/libzmq.so.5", old / "capi/libzmq.so.5"))
                setup = rounds.Setup(self.build / "bench/bench_sockets", libraries, gate.SHORT)
                yield gate.SocketRounds(setup, self.name)
            else:
                yield gate.ServerRounds(new, old, self.name)

    def slowdown(self, steps):
        """(the middle of the slowdown by so many steps, the old cost, the place)."""
        with self.rounds(steps) as measure:
            compared = comparisons.Comparison(self.name, measure)
            compared.reach(CALIBRATION_PASSES * stats.GATE_ROUNDS)
        return compared.result["slowdown"][0], stats.median([each["old"] for each in compared.counted()]), compared.result["place"]

    def steps_for(self, wanted):
        """The steps that make it so much slower.

        >>> pair = Pair(None, "server", "echo")
        >>> pair.slowdown = lambda steps: (1.0, 4e-7, "near, waiting")
        >>> pair.steps_for(0.3)
        Traceback (most recent call last):
        weft_bench.commands.gate.GateError: the load generator is slower than the server, so that a delay only fills the server's rests
        """
        _, cost, place = self.slowdown(0)
        if place.endswith(comparisons.WAITING):
            raise gate.GateError("the load generator is slower than the server, so that a delay only fills the server's rests")
        self.place = None if place == comparisons.MIXED else place
        steps = wanted * cost * (1 if self.kind == "row" else 1e9)  # a step takes about a nanosecond
        less, more = 0, None  # steps that are too few, and too many
        right = 0  # measurements of these steps: other processes may say otherwise
        for _ in range(CALIBRATIONS):
            found, *_ = self.slowdown(round(steps))
            say(f"{self.name}: {round(steps)} steps take {found - 1:+.1%} (place: {self.place})")
            right = right + 1 if abs(found - 1 - wanted) < 0.2 * wanted else 0
            if right == 2:
                break
            if right == 1:
                continue
            if found - 1 < wanted:
                less = steps
            else:
                more = steps
            steps = 2 * steps if more is None else (less + more) / 2
        return min(max(round(steps), 1), STEPS_MAX)

    def verdict(self, steps, budget):
        """The result of the gate's comparison: its verdict, its warning and the slowdown that it measured."""
        with self.rounds(steps) as measure:
            compared = comparisons.Comparison(self.name, measure)
            comparisons.measure_all([compared], budget, lambda *_: None, lambda: self.spent)
        return compared.result


def percent(value):
    return printer.share(value) if value else "none"


def measure_class(build, title, kind, name, slowdowns, chosen):
    """A line of the table for each slowdown."""
    pair = Pair(build, kind, name)
    whole = pair.steps_for(MUST_FIND)
    lines = []
    for wanted in slowdowns:
        steps = round(whole * wanted / MUST_FIND)
        start = time.monotonic()
        runs = NULLS if wanted == 0 else RUNS
        found = [pair.verdict(steps, chosen.budget) for _ in range(runs)]
        said = [each["verdict"] for each in found]
        lines.append({"class": title, "row": name, "slowdown": wanted, "runs": runs,
                      "measured": stats.median([each["slowdown"][0] for each in found]) - 1,
                      "warned": sum(bool(each["warning"]) for each in found),
                      **{verdict: said.count(verdict) for verdict in (stats.SLOWER, stats.NOT_SLOWER, stats.CANNOT_TELL)},
                      "seconds": (time.monotonic() - start) / runs})
        say(" ".join(cells_of(lines[-1])))
    return lines


def cells_of(line):
    return [line["class"], line["row"], percent(line["slowdown"]), f"{line['measured']:+.1%}", str(line["runs"]),
            str(line[stats.SLOWER]), str(line["warned"]), str(line[stats.NOT_SLOWER]), str(line[stats.CANNOT_TELL]),
            f"{line['seconds']:.0f}"]


def complaints(lines):
    """What the gate missed or made up.

    >>> line = {"class": "a", "row": "b", "runs": 20, "slower": 18, "slowdown": 0.3}
    >>> complaints([line, {**line, "slowdown": 0.1}, {**line, "slowdown": 0.0, "runs": 25, "slower": 1}])
    ['b: found 18 of 20 slowdowns of 30%, at least 19 are expected', 'b: found 1 of 25 slowdowns that are not there']
    """
    found = []
    for line in lines:
        if line["slowdown"] == MUST_FIND and line[stats.SLOWER] * RUNS < LEAST_FOUND * line["runs"]:
            found.append(f"{line['row']}: found {line[stats.SLOWER]} of {line['runs']} slowdowns of {printer.share(MUST_FIND)}, "
                         f"at least {LEAST_FOUND} are expected")
        if line["slowdown"] == 0 and line[stats.SLOWER] != 0:
            found.append(f"{line['row']}: found {line[stats.SLOWER]} of {line['runs']} slowdowns that are not there")
    return found


def parse_arguments(texts):
    parser = argparse.ArgumentParser(prog="./dev bench slowdowns", description=__doc__,
                                     epilog="Exit status: 0 measured, 1 not measured or a complaint of --check, 2 usage, 130 interrupted.")
    parser.add_argument("--classes", metavar="TEXT,...", help="of these rows only; a part of a name is enough")
    parser.add_argument("--budget", metavar="SECONDS", type=gate.seconds, default=5.0,
                        help="of a run for more rounds where the gate cannot tell (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="only slowdowns of 30 %% and none, and fail as said above")
    parser.add_argument("--write", action="store_true", help="put the table into docs/design; the lines of other classes stay")
    chosen = parser.parse_args(texts)
    if chosen.check and chosen.write:
        parser.error("--check measures only a part of the table")
    wanted = chosen.classes.split(",") if chosen.classes else [""]
    chosen.classes = [each for each in CLASSES if any(part in each[2] for part in wanted)]
    if not chosen.classes:
        parser.error(f"no row has such a name; there are: {', '.join(name for _, _, name in CLASSES)}")
    return chosen


def lines_beside(text, measured):
    """The lines of the table for the classes that were not measured now.

    >>> lines_beside("| class | row |\\n|---|---|\\n| a | Task_Sleep0 | 5% |\\n| b | push_pull/tcp/64 | 5% |\\n", ["push_pull/tcp/64"])
    [['a', 'Task_Sleep0', '5%']]
    """
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    kept = {name for _, _, name in CLASSES} - set(measured)
    return [cells for cells in lines if cells[1] in kept]


def write(lines):
    text = PAGE.read_text(encoding="utf-8")
    measured = [cells_of(line) for line in lines]
    kept = lines_beside(BLOCK.search(text)[0], [cells[1] for cells in measured])
    order = [name for _, _, name in CLASSES]
    table = printer.markdown_table([HEAD, *sorted(kept + measured, key=lambda cells: order.index(cells[1]))])
    PAGE.write_text(BLOCK.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text), encoding="utf-8")


def main(texts):
    chosen = parse_arguments(texts)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if shutil.which("cmake") is None:
        say("slowdowns: cmake is not installed")
        return USAGE
    try:
        build = build_slowed()
        slowdowns = (0.0, MUST_FIND) if chosen.check else (0.0, 0.05, 0.10, 0.15, MUST_FIND)
        lines, said = [], []
        for title, kind, name in chosen.classes:
            try:
                lines += measure_class(build, title, kind, name, slowdowns, chosen)
            except (gate.GateError, ChildError) as error:
                said.append(f"{name}: {error}")
    except (gate.GateError, OSError) as error:
        say(f"slowdowns: {error}")
        return FAILURE
    except KeyboardInterrupt:
        say("slowdowns: interrupted")
        return INTERRUPTED
    print(printer.text_table([HEAD, *map(cells_of, lines)], (0, 1)))
    if chosen.write:
        write(lines)
    said += complaints(lines) if chosen.check else []
    for line in said:
        say(f"slowdowns: {line}")
    return FAILURE if said else 0
