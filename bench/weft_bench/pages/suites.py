# SPDX-License-Identifier: MIT
"""The suites of a report: which rows each has, how long they are planned to take, and how one is measured."""

import dataclasses
import os

from weft_bench import results
from weft_bench.harness import cells, micro_rounds, rival_libraries, rounds, server_cells, server_rounds, topics_cells, topics_rounds
from weft_bench.harness.budget import Row
from weft_bench.harness.busy_loops import busy_loops
from weft_bench.harness.child import ChildError, Libraries, libzmq_of_pyzmq
from weft_bench.pages import published

ROUNDS_SHARE = 0.6  # of a cell's time; the rest is warm-up and counting
PROCESS_S, CALIBRATIONS = 0.015, 3  # of a repetition in bench_micro: to start it, and runs that find the number of iterations


class SuiteError(Exception):
    """A suite cannot be measured here."""


class Suite:
    """Rows that are measured one by one by measure(name, allowance in seconds), each adding its records to one file."""

    def __init__(self, name, rows, measure):
        self.name, self.rows, self.measure = name, rows, measure
        self.left_out = []  # rows that this effort does not ask for

    def done(self, records):
        """The rows that a file of this suite holds already."""
        return {record["cell"] for record in records if record["kind"] in ("cell", "failure", "skip")}


def named_rows(suite):
    """The rows of a suite that stand beside a published one, each once."""
    names = [name for row in published.load()["rows"] if row["suite"] == suite for name in published.measured_rows(row)]
    return list(dict.fromkeys(names))


def needed_first(needed, others):
    """[(name, whether it is needed)], each name once.

    >>> needed_first(["a", "b"], ["b", "c"])
    [('a', True), ('b', True), ('c', False)]
    """
    return [(name, True) for name in needed] + [(name, False) for name in others if name not in needed]


def quick_micro(known):
    """(name, needed) of the rows of bench_micro that --quick measures: the published ones; and then their twins.

    >>> quick_micro(["SpscQueue_Latency", "SpscQueue_Latency (honest)", "Another"])
    [('SpscQueue_Latency', True), ('SpscQueue_Latency (honest)', False)]
    """
    names = [name for name in named_rows("micro") if name in known]
    return needed_first(names, [f"{name} (honest)" for name in names if f"{name} (honest)" in known])


def of_micro(build, quick):
    program = micro_rounds.program_of(build)
    try:
        known = micro_rounds.rows_of(program)
    except ChildError as error:
        raise SuiteError(str(error)) from error
    setting = micro_rounds.QUICK if quick else micro_rounds.FULL
    chosen = quick_micro(known) if quick else [(name, True) for name in known]
    once = PROCESS_S + CALIBRATIONS * setting["seconds"]
    rows = [Row(name, len(known[name]["contenders"]) * setting["rounds"] * once, needed) for name, needed in chosen]

    def measure(name, allowance):
        return micro_rounds.measure_row(program, known[name], **setting, allowance_s=allowance)
    suite = Suite("micro", rows, measure)
    suite.left_out = [name for name in known if name not in dict(chosen)]
    return suite


def quick_sockets():
    """(name, needed) of the cells that --quick measures: the published ones, and those that pictures need."""
    loads = cells.cross(["round_trip"], ("tcp", "inproc"), ["64"], ("load10", "load50", "load80"))
    return needed_first(named_rows("sockets"), cells.QUICK + loads)


def quick_server():
    return needed_first(named_rows("server"), server_cells.GROUPS["quick"])


def of_cells(name, chosen, measure_cell, setup, columns_of, everything):
    """A suite of cells."""
    def planned(cell):
        repetitions = setup.effort.rounds * setup.effort.repetition_s + setup.effort.warm_up_s
        return len(columns_of(cell)) * (repetitions / ROUNDS_SHARE + 0.1)

    def measure(cell, allowance):
        effort = dataclasses.replace(setup.effort, cell_s=min(setup.effort.cell_s, allowance * ROUNDS_SHARE))
        return measure_cell(dataclasses.replace(setup, effort=effort), cell)
    suite = Suite(name, [Row(cell, planned(cell), needed) for cell, needed in chosen], measure)
    suite.left_out = [cell for cell in everything if cell not in dict(chosen)]
    return suite


def of_sockets(build, quick, stack, say=lambda line: None):
    against = libzmq_of_pyzmq()
    if against is None:
        raise SuiteError("no libzmq to compare with: pyzmq is not installed; ./dev bench report installs it")
    rivals = {} if quick else rival_libraries.make(build / "bench/rivals", say)
    libraries = stack.enter_context(Libraries(build / "capi/libzmq.so.5", against, rivals))
    setup = rounds.Setup(build / "bench/bench_sockets", libraries, rounds.QUICK if quick else rounds.Effort(), nng=not quick,
                         rivals=tuple(rivals))
    everything = list(dict.fromkeys(named_rows("sockets") + cells.BARS))
    chosen = quick_sockets() if quick else [(name, True) for name in everything]
    return of_cells("sockets", chosen, rounds.measure_cell, setup,
                    lambda name: cells.columns_of(name, setup.nng, setup.rivals), everything)


def of_server(build, quick, stack):
    setup = server_rounds.Setup(build / "bench/server", server_rounds.QUICK if quick else server_rounds.FULL)
    if not setup.built():
        raise SuiteError(f"no server is built in {setup.build}")
    everything = list(dict.fromkeys(named_rows("server") + server_cells.GROUPS["all"]))
    chosen = quick_server() if quick else [(name, True) for name in everything]
    setup.root = stack.enter_context(server_rounds.files_for([name for name, _ in chosen]))
    return of_cells("server", chosen, server_rounds.measure_cell, setup,
                    lambda name: server_cells.columns_of(name, setup.built()), everything)


def at_load(suite, names):
    """These cells of a suite, beside a busy loop for each processor. --quick measures them when there is time."""
    rows, measure = {row.name: row for row in suite.rows}, suite.measure

    def measure_beside(name, allowance):
        with busy_loops(len(os.sched_getaffinity(0))):
            return measure(name, allowance)
    beside = Suite(suite.name + results.AT_LOAD, [dataclasses.replace(rows[name], needed=False) for name in names if name in rows], measure_beside)
    beside.left_out = [name for name in names if name not in rows]
    return beside


def of_topics(build, quick):
    """Nothing is published for them, so --quick measures them when there is time."""
    setup = topics_rounds.Setup(build, topics_rounds.QUICK if quick else topics_rounds.FULL)
    if not setup.program.is_file():
        raise SuiteError(f"no {setup.program}")
    chosen = topics_cells.GROUPS["quick" if quick else "all"]
    return of_cells("topics", [(name, not quick) for name in chosen], topics_rounds.measure_cell, setup,
                    topics_cells.columns_of, topics_cells.GROUPS["all"])
