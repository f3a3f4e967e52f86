# SPDX-License-Identifier: MIT
"""gate_test.py PROBE: what the gate says of rounds with a known slowdown, and of a program that does a known amount of work."""

import dataclasses
import random
import subprocess
import sys
import unittest

from weft_bench import stats
from weft_bench.harness import comparisons
from weft_bench.stats import CANNOT_TELL, GATE_ROUNDS, NOT_SLOWER, SLOWER

PROBE = sys.argv.pop(1)
WORK = 4000
NULLS, RUNS, RUNS_MIN = 25, 20, 19
BUDGET = 60 // comparisons.VISIT_ROUNDS  # visits of rows of which it cannot tell; as seconds for the clock below


@dataclasses.dataclass
class Machine:
    """How far costs spread, as the deviation of their logarithm."""

    luck: float  # of a process, as long as it lives
    noise: float  # of a repetition
    spikes: float  # the share of the repetitions that take twice as long


QUIET, USUAL, BUSY = Machine(0.005, 0.01, 0.0), Machine(0.01, 0.05, 0.02), Machine(0.03, 0.15, 0.1)


def rounds_on(machine, source, slowdown):
    """What Comparison measures, of a new version that takes `slowdown` times as long. The speed of all columns changes
    from one round to the next, up to threefold, as where the cores of a virtual machine move."""
    def measure(visit):
        luck = {which: source.lognormvariate(0, machine.luck) for which in comparisons.ORDER}
        found = []
        for _ in comparisons.numbers_of(visit):
            drift = source.choice((1, 1, 3)) * source.lognormvariate(0, 0.1)
            costs = {which: drift * luck[which] * source.lognormvariate(0, machine.noise)
                     * (2 if source.random() < machine.spikes else 1) for which in comparisons.ORDER}
            found.append({**costs, "new": costs["new"] * slowdown, "life": visit, "place": "near"})
        return found
    return measure


def gate_on(machine, seed, slowdowns, budget=BUDGET):
    """The comparisons of rows with these slowdowns, after the gate. A visit takes a second of its clock."""
    source, now = random.Random(seed), [0]

    def timed(measure):
        def visit(number):
            now[0] += 1
            return measure(number)
        return visit
    rows = [comparisons.Comparison(str(place), timed(rounds_on(machine, source, slowdown)))
            for place, slowdown in enumerate(slowdowns)]
    comparisons.measure_all(rows, budget, lambda *_: None, lambda: now[0])
    return rows


def results_on(machine, slowdown, runs=RUNS):
    """Of as many gates with one such row each."""
    return [gate_on(machine, seed, [slowdown])[0].result for seed in range(runs)]


def verdicts_on(machine, slowdown, runs=RUNS):
    return [result["verdict"] for result in results_on(machine, slowdown, runs)]


class Decision(unittest.TestCase):
    """Rounds with a known slowdown."""

    def test_a_slowdown_of_30_per_cent_is_found_in_19_of_20_runs(self):
        for machine in (QUIET, USUAL, BUSY):
            said = verdicts_on(machine, 1.3)
            self.assertGreaterEqual(said.count(SLOWER), RUNS_MIN, machine)
            self.assertEqual(said.count(NOT_SLOWER), 0, machine)

    def test_the_same_version_is_never_slower_in_25_runs(self):
        for machine in (QUIET, USUAL, BUSY):
            said = verdicts_on(machine, 1.0, NULLS)
            self.assertEqual(said.count(SLOWER), 0, machine)
            if machine is not BUSY:
                self.assertGreaterEqual(said.count(NOT_SLOWER), NULLS - 1, machine)

    def test_a_slowdown_of_5_per_cent_is_no_failure(self):
        for machine in (USUAL, BUSY):
            self.assertNotIn(SLOWER, verdicts_on(machine, 1.05), machine)

    def test_a_slowdown_of_8_per_cent_has_a_warning(self):
        self.assertEqual({(result["verdict"], result["warning"]) for result in results_on(QUIET, 1.08)}, {(NOT_SLOWER, True)})

    def test_a_slowdown_of_10_per_cent_never_passes_without_a_word(self):
        for machine in (USUAL, BUSY):
            silent = [result for result in results_on(machine, 1.1) if result["verdict"] == NOT_SLOWER and not result["warning"]]
            self.assertEqual(silent, [], machine)

    def test_a_row_that_is_faster_is_not_slower(self):
        self.assertEqual(set(verdicts_on(USUAL, 0.7)), {NOT_SLOWER})

    def test_the_thresholds_decide(self):
        measure = rounds_on(QUIET, random.Random(1), 1.3)
        taken = [each for visit in range(2 * GATE_ROUNDS // comparisons.VISIT_ROUNDS) for each in measure(visit)]
        for warns, fails, verdict, warning in ((0.05, 0.1, SLOWER, False), (0.05, 0.5, NOT_SLOWER, True),
                                               (0.4, 0.5, NOT_SLOWER, False)):
            result = stats.compare_versions(taken, warns, fails)
            self.assertEqual((result["verdict"], result["warning"]), (verdict, warning))

    def test_what_the_old_version_differs_from_itself_is_no_slowdown(self):
        taken = [{"old": 1.0, "new": 1.2, "old again": 1.25, "life": life} for life in range(2 * GATE_ROUNDS)]
        self.assertEqual(stats.compare_versions(taken)["verdict"], CANNOT_TELL)

    def test_a_slowdown_of_one_half_of_the_rounds_is_not_yet_certain(self):
        late = [{"old": 1.0, "new": 1.3 if life >= GATE_ROUNDS - 6 else 1.0, "old again": 1.0, "life": life}
                for life in range(2 * GATE_ROUNDS)]
        result = stats.compare_versions(late)
        self.assertEqual((result["suspected"], result["verdict"]), (True, CANNOT_TELL))


class Rounds(unittest.TestCase):
    """How long a row is measured."""

    def test_a_row_that_is_clear_has_the_fewest_rounds_and_a_slower_one_twice_as_many(self):
        rows = gate_on(QUIET, 1, [1.0, 1.3], budget=0)
        self.assertEqual([(row.result["verdict"], len(row.rounds)) for row in rows],
                         [(NOT_SLOWER, GATE_ROUNDS), (SLOWER, 2 * GATE_ROUNDS)])

    def test_a_row_of_which_it_cannot_tell_has_more_rounds_until_it_can(self):
        few, many = (gate_on(BUSY, 3, [1.0], budget)[0] for budget in (0, 1000))
        self.assertEqual((few.result["verdict"], len(few.rounds)), (CANNOT_TELL, GATE_ROUNDS))
        self.assertEqual(many.result["verdict"], NOT_SLOWER)
        self.assertGreater(len(many.rounds), GATE_ROUNDS)

    def test_when_the_budget_is_over_it_says_that_it_cannot_tell(self):
        hopeless = Machine(0.5, 0.5, 0.1)
        rows = gate_on(hopeless, 1, [1.0, 1.0, 1.0], budget=6)
        self.assertEqual([row.result["verdict"] for row in rows], [CANNOT_TELL] * 3)
        self.assertEqual(sum(row.visits for row in rows), 3 * GATE_ROUNDS // comparisons.VISIT_ROUNDS + 6)

    def test_rows_of_which_it_can_tell_have_none_of_the_budget(self):
        source = random.Random(2)
        rows = [comparisons.Comparison("clear", rounds_on(QUIET, source, 1.0)),
                comparisons.Comparison("hopeless", rounds_on(Machine(0.5, 0.5, 0.1), source, 1.0))]
        ticks = iter(range(10))
        comparisons.measure_all(rows, 5, lambda *_: None, lambda: next(ticks))
        self.assertEqual(len(rows[0].rounds), GATE_ROUNDS)
        self.assertGreater(len(rows[1].rounds), GATE_ROUNDS)


def moved(places, slowdowns):
    """What Comparison measures where the processors stand in each of `places` for one visit, in turns, and a new version takes
    slowdowns[place] times as long there. A round trip takes four times as long where they stand apart."""
    def measure(visit):
        place = places[visit % len(places)]
        cost = 4.0 if place == "apart" else 1.0
        return [{"old": cost, "new": cost * slowdowns[place], "old again": cost, "life": visit, "place": place}
                for _ in comparisons.numbers_of(visit)]
    return measure


def verdict_where(places, slowdowns):
    """(verdict, place, rounds) of a row."""
    row = comparisons.Comparison("row", moved(places, slowdowns))
    row.begin()
    return row.result["verdict"], row.result["place"], len(row.rounds)


class Places(unittest.TestCase):
    """Processors that stand near each other, or apart."""

    def test_the_place_with_the_most_rounds_counts(self):
        self.assertEqual(verdict_where(["near", "near", "apart"], {"near": 1.0, "apart": 1.09}), (NOT_SLOWER, "near", 21))

    def test_a_slowdown_that_one_place_hides_is_found_in_the_other(self):
        self.assertEqual(verdict_where(["near", "apart", "near"], {"near": 1.3, "apart": 1.0})[:2], (SLOWER, "near"))

    def test_rounds_in_which_they_moved_do_not_count(self):
        self.assertEqual(verdict_where(["near", "mixed"], {"near": 1.0, "mixed": 3.0}), (NOT_SLOWER, "near", 27))

    def test_where_they_always_move_all_rounds_count(self):
        self.assertEqual(verdict_where(["mixed"], {"mixed": 1.0}), (NOT_SLOWER, "mixed", 2 * GATE_ROUNDS))


def of_probe(work):
    """What Comparison measures, of a program that does so much work; each repetition is a process."""
    def once(which):
        done = subprocess.run([PROBE, str(work[which])], capture_output=True, text=True, check=True)
        return {"ns": float(done.stdout)}

    def measure(visit):
        return [comparisons.round_of(visit, once, lambda run: run["ns"], number) for number in comparisons.numbers_of(visit)]
    return measure


def verdict_of_probe(new):
    row = comparisons.Comparison("probe", of_probe({"old": WORK, "new": new, "old again": WORK}))
    row.begin()
    return row.result["verdict"]


class Measured(unittest.TestCase):
    """A real program, on this machine as it is."""

    def test_the_same_program_is_never_slower_in_25_runs(self):
        self.assertNotIn(SLOWER, [verdict_of_probe(WORK) for _ in range(NULLS)])

    def test_three_tenths_more_work_is_slower(self):
        self.assertIn(SLOWER, (verdict_of_probe(WORK * 13 // 10) for _ in range(3)))

    def test_three_tenths_less_work_is_not_slower(self):
        self.assertNotIn(SLOWER, (verdict_of_probe(WORK * 7 // 10) for _ in range(3)))


if __name__ == "__main__":
    unittest.main()
