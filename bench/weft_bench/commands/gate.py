# SPDX-License-Identifier: MIT
"""This tree beside another revision: instructions and allocations first, then time, in turns. Of each row and of all
together it says slower, not slower or cannot tell."""

import argparse
import contextlib
import dataclasses
import fnmatch
import pathlib
import shutil
import signal
import subprocess

from weft_bench import ROOT, command_line, printer, records, results, stats
from weft_bench.command_line import FAILURE, INTERRUPTED, REGRESSION, UNTOLD, USAGE, say
from weft_bench.commands import instructions
from weft_bench.harness import cells, comparisons, micro_rounds, rival_libraries, rounds, server_cells, server_rounds
from weft_bench.harness.child import ChildError, Libraries
from weft_bench.harness.comparisons import ORDER, order_of, round_of

INSTRUCTIONS_LEAST = 0.01
ALLOCATIONS_LEAST = 0.01  # per message: less is the start, and queues that grow by their luck (3 to 820 of 300,000 messages)
CELLS = ("push_pull/tcp/64,push_pull/ipc/1024,push_pull/inproc/64,round_trip/tcp/64,round_trip/inproc/64,"
         "router_router/tcp/64,pub_sub/inproc/64/x4")
# Rows whose threads hand work to each other: from each of the rooms that have some.
THREADED = ("Pool_AllocHereFreeThere/64 (honest)", "EventBus_publish/two_publishers", "Executor_submit/fixed_pool (honest)",
            "CrossCore_PostThroughput (honest)", "Sharded_MapReduce/2_cores", "SpscQueue_Throughput/1024 (honest)",
            "MpscQueue_2P1C (honest)")
SERVER_CELLS = "echo/64/x1,echo/64/x128/depth16,one_way/64/x50"
ROW_SECONDS = 0.02  # of one repetition of a row
# Processes differ more than their repetitions: many that live shortly tell more than few.
SHORT, SERVER_SHORT = (dataclasses.replace(quick, repetition_s=0.02) for quick in (rounds.QUICK, server_rounds.QUICK))
PAGE, GOLDEN = 4096, 2544  # bytes, see page_place_of
BUDGET_S = 300  # for further rounds of the rows of which it cannot tell
STATUS = {stats.NOT_SLOWER: 0, stats.SLOWER: REGRESSION, stats.CANNOT_TELL: UNTOLD}
HEAD = ["row", "of", "before", "now", "takes [95 %]", "noise", "rounds", "verdict"]
# Each function and loop begins at a line of the cache: code that moved by some bytes took up to 1.66 of its time.
ALIGNED = "-falign-functions=64 -falign-loops=64"
BUILDS = ROOT / "build/gate"
TARGETS = ("bench_micro", "bench_sockets", "bench_allocations", "weft_zmq")
HEAP_SHIFT_TARGET, SERVER_TARGET, LOAD_TARGET = "bench_heap_shift", "bench_server_weft", "bench_load"
HEAP_SHIFT = "bench/micro/libbench_heap_shift.so"
LAYOUTS = 16  # of the code of bench_micro: one and the same function took 1.06 ns or 1.29, by its place in a page
CODE_LINE = 64  # bytes, see ALIGNED


class GateError(Exception):
    """No comparison can be made."""


class UsageError(GateError):
    """What was asked for is not there."""


def run(*command, cwd=ROOT):
    """Standard output; a GateError with the last lines of what it said when it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except OSError as error:
        raise GateError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise GateError(f"{' '.join(map(str, command))} failed:\n{said}")
    return done.stdout


def commit_of(revision):
    try:
        return run("git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    except GateError:
        raise UsageError(f"{revision} is no revision of this repository") from None


def is_whole(tree, commit):
    """Whether a work tree is the whole commit and nothing else: not where making it was interrupted."""
    try:
        head = run("git", "rev-parse", "HEAD", cwd=tree).strip()
        return head == commit and not run("git", "status", "--porcelain", cwd=tree)
    except GateError:
        return False


def build_release(tree, build, flags, targets, more="-DCMAKE_EXE_LINKER_FLAGS="):
    """The release build of a work tree, in the folder `build`."""
    run("cmake", "--preset", "release", "-S", tree, "-B", build, f"-DCMAKE_CXX_FLAGS={flags}", more)
    run("cmake", "--build", build, "--parallel", "--target", *targets)
    return build


def tree_of(commit):
    """A work tree of a commit below build/gate, which is kept for the next time."""
    tree = BUILDS / commit[:12]
    if not is_whole(tree, commit):
        shutil.rmtree(tree, ignore_errors=True)
        run("git", "worktree", "prune")
        run("git", "worktree", "add", "--detach", tree, commit)
    return tree


def link_layouts(tree, build):
    """Links bench_micro again for each layout, with other code before its own."""
    program = micro_rounds.program_of(build)
    layouts = [micro_rounds.layout_of(program, number) for number in range(LAYOUTS)]
    if layouts[0].exists() and layouts[0].read_bytes() == program.read_bytes():
        return
    for path in layouts:
        path.unlink(missing_ok=True)
    unmoved = shutil.copy2(program, program.with_name(f"{program.name}.unmoved"))
    for number, path in reversed(list(enumerate(layouts))[1:]):
        source, padding = (build / f"padding{number}.{end}" for end in ("s", "o"))
        source.write_text(f".text\n.p2align 6\n.skip {page_place_of(number, CODE_LINE)}\n"
                          '.section .note.GNU-stack,"",%progbits\n', encoding="utf-8")
        run("as", source, "-o", padding)
        build_release(tree, build, ALIGNED, ("bench_micro",), f"-DCMAKE_EXE_LINKER_FLAGS={padding}")
        shutil.copy2(program, path)
    shutil.copy2(unmoved, program)
    shutil.move(unmoved, layouts[0])  # last: it says that all are there


def build_both(commit, server):
    """The builds of this tree and of a commit."""
    say("build this tree")
    new = build_release(ROOT, BUILDS / "this", ALIGNED,
                        (*TARGETS, HEAP_SHIFT_TARGET, *((SERVER_TARGET, LOAD_TARGET) if server else ())))
    say(f"build {commit[:12]}")
    tree = tree_of(commit)
    old = build_release(tree, tree / "build/release", ALIGNED, TARGETS + ((SERVER_TARGET,) if server else ()))
    say(f"link {LAYOUTS} layouts of both")
    link_layouts(ROOT, new)
    link_layouts(tree, old)
    return new, old


def common_rows(new, old, globs, threaded):
    """Our rows that both builds have, with one thread or with several, by {name: row}."""
    rows, before = (micro_rounds.rows_of(micro_rounds.program_of(build)) for build in (new, old))
    ours = {name: row for name, row in rows.items() if (row["threads"] > 1) == threaded and row["contenders"][0] == "weft"}
    return {name: row for name, row in ours.items() if "weft" in before.get(name, {}).get("contenders", ())
            and any(fnmatch.fnmatchcase(name, glob) for glob in globs)}


def compare_counts(what, old, new, least, slack):
    """A record for each row of two counts, which is slower where it grew by more than that share and the slack. A count is
    the difference of two runs, and that of a row that does hardly anything may be below zero.

    >>> def slower(*counts): return [each["cell"] for each in compare_counts("x", *counts) if each["verdict"] == "slower"]
    >>> slower({"a": 100.0, "b": 0.0, "c": 1.0}, {"a": 102.0, "b": 0.0, "c": 1.5}, 0.01, 1.0)
    ['a']
    >>> slower({"a": 0.0, "b": 1.0, "c": -49.0}, {"a": 0.5, "c": -47.0}, 0.0, 0.001)
    ['a']
    """
    return [{"kind": "comparison", "cell": name, "what": what, "before": old[name], "now": new[name],
             "verdict": stats.SLOWER if new[name] > max(old[name] * (1 + least), old[name] + slack, slack)
             else stats.NOT_SLOWER} for name in sorted(old) if name in new]


def check_instructions(new, old, rows):
    say(f"instructions of {len(rows)} rows, by callgrind")
    counted = sorted(instructions.choose_rows(micro_rounds.program_of(new)))
    counted = [name for name in counted if name in rows]
    if shutil.which("valgrind") is None:
        raise GateError("valgrind is not installed, and counts the instructions")
    counts = [instructions.measure(micro_rounds.program_of(build), counted) if counted else {} for build in (old, new)]
    return compare_counts("instructions", *counts, INSTRUCTIONS_LEAST, instructions.SLACK)


def page_place_of(number, step=16):
    """How far up the heap begins in a round, or the code in a layout: a copy of 512 bytes takes 14 ns or 21, by where both
    lie in a page. Successive places lie 0.621 of a page apart, near the golden ratio, so that few spread over all of it.

    >>> [page_place_of(number) for number in range(5)]
    [0, 2544, 992, 3536, 1984]
    >>> len({page_place_of(number) for number in range(PAGE // 16)}) == PAGE // 16
    True
    >>> len({page_place_of(number, CODE_LINE) for number in range(LAYOUTS)}) == LAYOUTS
    True
    """
    return number * GOLDEN % PAGE // step * step


class RowRounds:
    """The rounds of one row of bench/micro; each repetition is a process of its own."""

    def __init__(self, new, old, row):
        self.layouts = {"new": micro_rounds.layouts_of(new), "old": micro_rounds.layouts_of(old)}
        self.layouts["old again"] = self.layouts["old"]
        self.heap_shift = new / HEAP_SHIFT
        self.row = row

    def once(self, which, number):
        try:
            layouts = self.layouts[which]
            return micro_rounds.run_once(layouts[number % len(layouts)], self.row, "weft", ROW_SECONDS,
                                         {"LD_PRELOAD": str(self.heap_shift), "WEFT_HEAP_SHIFT": str(page_place_of(number))})
        except ChildError as error:
            raise GateError(f"{self.row['row']} ({which}): {error}") from error

    def __call__(self, visit):
        return [round_of(visit, lambda which, number=number: self.once(which, number), lambda run: run["ns"], number)
                for number in comparisons.numbers_of(visit)]


class CopiedLibraries(Libraries):
    """The library of each version, in copies of which each visit has new ones: see micro_rounds.copy_of."""

    def __init__(self, new, old):
        super().__init__(new, old, {"again": rival_libraries.Library(old, None)})
        self.originals = {name: self.files[name] for name in ("weft", "libzmq", "again")}

    def renew(self):
        for name, original in self.originals.items():
            copy = pathlib.Path(self.folder.name, name, "libzmq.so.5")
            copy.unlink()
            self.files[name] = shutil.copy2(original, copy).resolve()


class CellRounds:
    """The rounds of one cell. columns: {"old", "new", "old again": column}, which are new processes of new copies in each
    visit."""

    place = staticmethod(comparisons.place_of)

    def __init__(self, name, columns, cost):
        self.name, self.columns, self.cost = name, columns, cost

    def measure(self, visit):
        with contextlib.ExitStack() as stack:
            self.renew(stack)
            columns = [self.columns[which] for which in order_of(visit)]
            for column in columns:
                column.start(stack)
            for column in columns:
                if visit == 0:
                    column.warm_up()
                else:
                    column.repeat()
            taken = [round_of(visit, lambda which: self.columns[which].repeat(), self.cost, visit, self.place)
                     for _ in range(comparisons.VISIT_ROUNDS)]
            for column in self.columns.values():
                column.finish()
        return taken

    def __call__(self, visit):
        try:
            return self.measure(visit)
        except (ChildError, OSError, ValueError) as error:
            raise GateError(f"{self.name}: {error}") from error


class SocketRounds(CellRounds):
    """A cell of sockets: one program, on two libraries."""

    def __init__(self, setup, name):
        super().__init__(name, {which: rounds.Column(setup, (which, "zmq", library, name))
                                for which, library in (("old", "libzmq"), ("new", "weft"), ("old again", "again"))},
                         results.cost_of_sockets(cells.parse(name)["pattern"]))

    def renew(self, _):
        self.columns["new"].setup.libraries.renew()

    def allocations(self):
        """Per message, before and now."""
        return [self.columns[which].record_of_counts(self.name)["allocations"] or 0.0 for which in ("old", "new")]


class ServerRounds(CellRounds):
    """A cell of the server: the servers of two builds, and the load generator of the new one."""

    place = staticmethod(comparisons.place_of_servers)

    def __init__(self, new, old, name):
        def column(which, build):
            setup = server_rounds.Setup(build / "bench/server", SERVER_SHORT, load=new / "bench/server")
            return server_rounds.ServerColumn(setup, name, (which, "weft", ""))
        super().__init__(name, {which: column(which, new if which == "new" else old) for which in ORDER},
                         results.cost_of_server)

    def renew(self, stack):
        for column in self.columns.values():
            column.command = [str(stack.enter_context(micro_rounds.copy_of(pathlib.Path(column.path))))]


def record_of(comparison):
    result = comparison.result
    return {"kind": "comparison", "cell": comparison.name, "what": "time", "taken": comparison.rounds,
            **{key: result[key] for key in ("verdict", "warning", "slowdown", "noise", "rounds", "place")}}


def check_time(new, old, rows, chosen):
    """A record for the time of each row and each cell, and one for the allocations of each cell."""
    with contextlib.ExitStack() as stack:
        todo = [(name, RowRounds(new, old, row)) for name, row in rows.items()]
        if chosen.cells:
            libraries = stack.enter_context(CopiedLibraries(new / "capi/libzmq.so.5", old / "capi/libzmq.so.5"))
            setup = rounds.Setup(new / "bench/bench_sockets", libraries, SHORT)
            todo += [(name, SocketRounds(setup, name)) for name in chosen.cells]
        todo += [(f"server {name}", ServerRounds(new, old, name)) for name in chosen.server_cells]
        compared = [comparisons.Comparison(name, measure, chosen.warn_at, chosen.fail_at) for name, measure in todo]
        comparisons.measure_all(compared, chosen.budget,
                                lambda progress, each: say(f"{progress} {line_of(record_of(each), chosen)}"))
        counts = {name: measure.allocations() for name, measure in todo if isinstance(measure, SocketRounds)}
    before, now = ({name: pair[place] for name, pair in counts.items()} for place in (0, 1))
    return [record_of(each) for each in compared] + compare_counts("allocations", before, now, 0.0, ALLOCATIONS_LEAST)


def verdict_text(record, chosen):
    """The verdict of a row, with its warning."""
    warning = f", WARNING: by {printer.share(chosen.warn_at)} or more" if record.get("warning") else ""
    return record["verdict"] + warning


def where_of(record):
    """How the processors stood to each other in the rounds of a row, where that is known.

    >>> where_of({"place": "near"}), where_of({"place": "unknown"})
    (', near', '')
    """
    return "" if record["place"] == "unknown" else f", {record['place']}"


def line_of(record, chosen):
    return (f"{record['cell']}: takes {printer.interval(record['slowdown'], digits=3)} of the time before, noise "
            f"{printer.share(record['noise'], 1)}, {printer.count(record['rounds'], 'round')}{where_of(record)}: "
            f"{verdict_text(record, chosen)}")


def table_of(found, chosen):
    """All rows, with those that are slower at the end, where a terminal shows them."""
    order = [(stats.NOT_SLOWER, False), (stats.NOT_SLOWER, True), (stats.CANNOT_TELL, False), (stats.SLOWER, False)]
    lines = []
    for record in sorted(found, key=lambda record: order.index((record["verdict"], bool(record.get("warning"))))):
        if record["what"] == "time":
            shown = ["", "", printer.interval(record["slowdown"], digits=3), printer.share(record["noise"], 1),
                     f"{record['rounds']}{where_of(record)}"]
        else:
            shown = [printer.number(record["before"]), printer.number(record["now"]), "", "", ""]
        lines.append([record["cell"], record["what"], *shown, verdict_text(record, chosen)])
    return printer.text_table([HEAD, *lines], (0, 1, 7))


def summary_of(found):
    """The verdict of all rows, and of how many each verdict is.

    >>> summary_of([{"verdict": "slower"}, {"verdict": "cannot tell"}, {"verdict": "slower"}])
    'slower: 2 rows are slower, of 1 it cannot tell, 0 are not slower'
    >>> summary_of([{"verdict": "not slower", "warning": True}, {"verdict": "not slower"}])
    'not slower: 0 rows are slower, of 0 it cannot tell, 2 are not slower, 1 of them with a warning'
    """
    said = [record["verdict"] for record in found]
    slower, untold, fine = map(said.count, (stats.SLOWER, stats.CANNOT_TELL, stats.NOT_SLOWER))
    warned = sum(bool(record.get("warning")) for record in found)
    return (f"{stats.verdict_of_all(said)}: {printer.count(slower, 'row')} {'is' if slower == 1 else 'are'} slower, of {untold} "
            f"it cannot tell, {fine} are not slower" + (f", {warned} of them with a warning" if warned else ""))


def per_cent(text):
    """
    >>> per_cent("5"), per_cent("12.5")
    (0.05, 0.125)
    >>> per_cent("0")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: 0 is not above 0 and at most 100
    """
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 100")
    return value / 100


def seconds(text):
    """
    >>> seconds("0"), seconds("2.5")
    (0.0, 2.5)
    >>> seconds("nan")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: nan is not 0 to 86400
    """
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not 0 to 86400")
    return value


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="./dev bench gate", description=__doc__, epilog="Exit status: 0 not slower, 3 a row is slower, 4 of a row it "
        "cannot tell and none is slower, 1 it could not be measured, 2 usage, 130 interrupted. A row is slower when the whole "
        "95 % interval of its slowdown is above 1, its middle is at least --fail-at and more than the old revision differs "
        "from itself, and each half of its rounds alone says so. It is not slower when the whole interval and that difference "
        "are below --fail-at, or when it is faster by more than that difference. The rounds are those in which two processors "
        "stood near each other, or apart, whichever was more often; of servers, those in which none waited for its load, or "
        "all did. Otherwise it is measured again, until it can tell or --budget is over. Instructions (1 %) and allocations "
        "are counted, so it can always tell. Both revisions are built for it, below build/gate: each function and loop is at "
        "a line of the cache, and the program of the rows is linked in 16 layouts, so that code that only moved is not slower.")
    parser.add_argument("--baseline", metavar="REV", required=True, help="a revision of this repository, as git names it")
    parser.add_argument("--rows", metavar="GLOB,...", default="*", help="rows of bench/micro (default: all of one thread)")
    parser.add_argument("--threaded", metavar="GLOB,...", default=",".join(THREADED),
                        help="rows of bench/micro with several threads (default: %(default)s)")
    parser.add_argument("--cells", metavar="CELLS", default=CELLS, help="cells of ./dev bench sockets (default: %(default)s)")
    parser.add_argument("--server-cells", metavar="CELLS", default=SERVER_CELLS,
                        help="cells of ./dev bench server, of a closed loop (default: %(default)s)")
    parser.add_argument("--counts-only", action="store_true", help="instructions only, no time")
    parser.add_argument("--warn-at", metavar="PERCENT", type=per_cent, default=stats.GATE_WARNS,
                        help="the slowdown from which a row that is not slower has a warning (default: 5)")
    parser.add_argument("--fail-at", metavar="PERCENT", type=per_cent, default=stats.GATE_FAILS,
                        help="the slowdown from which a row is slower (default: 10)")
    parser.add_argument("--budget", metavar="SECONDS", type=seconds, default=BUDGET_S,
                        help=f"for more rounds of rows of which it cannot tell, after {stats.GATE_ROUNDS} rounds of each row "
                        "(default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path,
                        help="save a record for each row and one for all; bench/records.md describes them")
    chosen = parser.parse_args(arguments)
    if chosen.warn_at > chosen.fail_at:
        parser.error("--warn-at is above --fail-at: such a row would fail without a warning")
    command_line.check(parser, chosen, ())
    chosen.cells, unknown = cells.choose(chosen.cells) if chosen.cells else ([], [])
    chosen.server_cells, unknown_server = server_cells.choose(chosen.server_cells) if chosen.server_cells else ([], [])
    if unknown or unknown_server:
        parser.error(f"no cell matches {' or '.join(unknown + unknown_server)}")
    other = [name for name in chosen.server_cells if not can_compare(server_cells.parse(name))]
    if other:
        parser.error(f"the gate compares closed loops of echo and one_way, not {' or '.join(other)}")
    return chosen


def can_compare(cell):
    """
    >>> [can_compare(server_cells.parse(name)) for name in ("echo/64/x1", "echo/64/x1/load50", "idle/64/x1000")]
    [True, False, False]
    """
    return cell["pattern"] in ("echo", "one_way") and not cell["load"]


def compare_trees(chosen):
    """A record for each quantity of each row, and one for all rows."""
    commit = commit_of(chosen.baseline)
    new, old = build_both(commit, bool(chosen.server_cells) and not chosen.counts_only)
    rows = common_rows(new, old, chosen.rows.split(","), threaded=False)
    timed = {**rows, **common_rows(new, old, chosen.threaded.split(","), threaded=True)}
    if not rows and (chosen.counts_only or not (timed or chosen.cells or chosen.server_cells)):
        raise UsageError(f"no row of both revisions matches {chosen.rows}, so there is nothing to compare")
    found = check_instructions(new, old, rows)
    if not chosen.counts_only:
        found += check_time(new, old, timed, chosen)
    return found, {"kind": "gate", "baseline": commit, "warn_at": chosen.warn_at, "fail_at": chosen.fail_at,
                   "budget_s": chosen.budget, "verdict": stats.verdict_of_all([record["verdict"] for record in found])}


def main(texts):
    chosen = parse_arguments(texts)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the children, like Ctrl-C
    try:
        found, whole = compare_trees(chosen)
    except (GateError, ChildError) as error:
        say(f"gate: {error}")
        return USAGE if isinstance(error, UsageError) else FAILURE
    except KeyboardInterrupt:
        say("gate: interrupted; nothing is known")
        return INTERRUPTED
    if chosen.json is not None:
        chosen.json.write_text(records.lines_of([*found, whole]), encoding="utf-8")
    print(table_of(found, chosen))
    print(summary_of(found))
    return STATUS[whole["verdict"]]
