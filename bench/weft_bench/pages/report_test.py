# SPDX-License-Identifier: MIT
"""report_test.py BUILD: what the report says follows the data, what is bad is refused, what was ended goes on."""

import ast
import copy
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SKIP = 77
try:
    import jinja2  # noqa: F401
    import jsonschema  # noqa: F401
except ImportError as absent:
    print(f"skipped: {absent}; ./dev test installs it")
    sys.exit(SKIP)

from weft_bench import records, results, stats, tables  # noqa: E402
from weft_bench.commands import report  # noqa: E402
from weft_bench.harness import cells, micro_rounds, rounds, server_cells  # noqa: E402
from weft_bench.harness.budget import Row  # noqa: E402
from weft_bench.pages import machine, page, page_test, published, sentences, suites, versions  # noqa: E402
from weft_bench.pages.samples import (  # noqa: E402
    CARD, MOVED, STEADY, between, make_folder, micro_records, result, round_trip_records, run_report)
from weft_bench.pages.words import ENGLISH, Words  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None


class Sentences(unittest.TestCase):
    def test_a_sentence_and_a_highlight_change_with_the_data(self):
        data = {"published": published.load(), "results": [result("SpscQueue_Throughput/1024", [3.0, 2.5, 3.5])],
                "failures": [], "machine": CARD, "effort": "quick", "partial": False}
        before = page.page(data)
        self.assertIn("faster than its closest one in 1, not distinguishable in 0, slower in 0", before)
        self.assertIn('<span class="faster">3.00x [2.50, 3.50]</span>', before)
        data["results"][0] = result("SpscQueue_Throughput/1024", [0.8, 0.7, 0.9])
        after = page.page(data)
        self.assertIn("faster than its closest one in 0, not distinguishable in 0, slower in 1", after)
        self.assertIn('<span class="slower">0.80x [0.70, 0.90]</span>', after)
        self.assertNotIn("3.00x", after)

    def test_an_interval_that_holds_one_is_not_highlighted(self):
        self.assertEqual(stats.verdict([1.2, 0.99, 1.4]), "same")
        self.assertIn("not distinguishable in 1", sentences.standing([result("x", [1.2, 0.99, 1.4])]))

    def test_every_sentence_of_the_summary_follows_the_data(self):
        one = {"published": published.load(), "results": [result("SpscQueue_Latency", [3.0, 2.5, 3.5], foreign=0.01)],
               "failures": [], "machine": CARD, "effort": "quick", "partial": False}
        other = copy.deepcopy(one)
        other["results"] = [result("SpscQueue_Latency", [1.0, 0.5, 1.5], foreign=0.2, placement="far",
                                   bars=[{"measure": "x", "bar": "", "value": [1, 1, 1], "met": False}]),
                            result("SpscQueue_Backpressure", [1.0, 0.5, 1.5])]
        other["machine"] = {**CARD, "controls": [{"getppid_ns": 100.0}, {"getppid_ns": 150.0}]}
        said = [page.summary({"left_out": [], **data}, ENGLISH) for data in (one, other)]
        self.assertEqual(len(said[0]), len(said[1]))
        for first, second in zip(*said):
            self.assertNotEqual(first, second)


    def test_missed_bars_come_first_and_every_measured_row_is_on_the_page(self):
        bars = [{"measure": "rival", "bar": ">= 4", "value": [3.0, 2.5, 3.5], "met": False}]
        other = {**result("idle/64/x7", [2.0, 1.5, 2.5]), "suite": "server"}
        data = {"published": published.load(), "results": [result("A_RowOfNoReport/7", [3.0, 2.5, 3.5], bars=bars), other],
                "failures": [], "machine": CARD, "effort": "full", "partial": False}
        text = page.page(data)
        missed = text[text.index('id="missed"'):text.index('id="overview"')]
        self.assertIn("A_RowOfNoReport/7", missed)
        self.assertIn("3.00 [2.50, 3.50]", missed)
        self.assertLess(text.index('id="missed"'), text.index('id="queues"'))
        rows = text[text.index('id="cells"'):]
        for row in ("A_RowOfNoReport/7", "idle/64/x7"):
            self.assertIn(f"<td>{row}</td>", rows)
            self.assertIn(f"<title>{row}: ", text)  # in the picture of all
        bars[0]["met"] = True
        self.assertIn("No bar was missed.", page.page(data))


class Languages(unittest.TestCase):
    """Korean has every text of the page, and nothing else."""

    def test_every_text_of_the_page_is_in_the_table(self):
        words = Words("ko")
        for control in ([{"getppid_ns": 100.0}] * 2, []):
            for of_rows in ([], [result("x", [2, 1.9, 2.1], foreign=0.1)],
                            [result("x", [2, None, None], void="it moved")], [result("x", [2, 1.9, 2.1], void="it moved")] * 2,
                            [result("x", [2, None, None], bars=[{"measure": "x", "bar": ">= 1", "value": [1, 1, 1], "met": met}
                                                                for met in states])
                             for states in ([True, None], [False])], [result("x", [2, None, None], bars=[
                                 {"measure": "x", "bar": ">= 1", "value": [1, 1, 1], "met": None}] * 2)]):
                left_out = [{"suite": "micro", "row": "y", "why": "--full measures it"}] * (1 + len(of_rows))
                page.page_of({"published": published.load(), "results": of_rows, "failures": [], "effort": "full",
                              "machine": {**machine.card(pathlib.Path(".")), "controls": control}, "partial": False,
                              "left_out": left_out}, words, {})
        page.page_of(page_test.example(), words, {})
        for text in ("far", "mixed", "what it says it measures"):
            words.of(text)
        self.assertEqual(words.missing, set())

    def test_every_text_of_the_table_stands_in_the_code(self):
        folder = pathlib.Path(page.__file__).parent
        known = {"{n} " + noun for noun in ("row", "published row", "bar")}
        known |= set(re.findall(r't\(\(?"([^"]+)"', (folder / "page.html").read_text(encoding="utf-8")))
        known |= {row["note"] for row in published.load()["rows"] if "note" in row} | set(machine.card(pathlib.Path(".")))
        for file in (*folder.glob("*.py"), *folder.parent.glob("commands/report.py"), *folder.parent.glob("*.py"),
                     *folder.parent.glob("harness/*.py")):
            known |= {node.value for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                      if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        known.add("controls after")  # beside "controls before"
        self.assertEqual(set(Words("ko").table) - known, set())

    def test_values_stand_in_both_languages(self):
        fields = re.compile(r"\{(\w+)\}")
        for english, korean in Words("ko").table.items():
            self.assertEqual(sorted(fields.findall(english)), sorted(fields.findall(korean)), english)


class Lives(unittest.TestCase):
    """Rows whose columns had 5, 3, 2 and 1 processes."""

    def test_from_fewer_than_three_processes_the_interval_is_unknown_and_no_bar_is_met_or_missed(self):
        for rounds_of_a_life, lives in ((1, 5), (2, 3), (3, 2), (5, 1)):
            of_cell = round_trip_records(rounds_of_a_life=rounds_of_a_life)
            found = results.of("sockets", of_cell)[0][0]
            known = lives >= stats.LIVES_MIN
            self.assertEqual(found["lives"], lives)
            self.assertEqual({stats.is_unknown(value) for value in found["measures"].values()}, {not known})
            self.assertEqual({bar["met"] is None for bar in found["bars"]}, {not known})
            text = tables.report("sockets", of_cell)
            self.assertEqual(("3.00 [unknown]" in text, "3.00 [3.00, 3.00]" in text), (not known, known), text)
            bars = [line.split()[-1] for line in text.split("\nBars: ")[1].splitlines()[2:] if line.startswith("round_trip")]
            self.assertEqual((len(bars) > 0, set(bars) == {"unknown"}), (True, not known), text)
            self.assertEqual("faster" in text.split("Weft is")[1].split("Round trips,")[0], known, text)

    def test_a_page_shows_an_unknown_interval_and_claims_nothing_by_it(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = make_folder(parent)
            lines = (folder / "micro.jsonl").read_text(encoding="utf-8").splitlines()
            alive = [{**record, "life": record["round"] // 3} if record["kind"] == "run" else record
                     for record in map(json.loads, lines)]
            (folder / "micro.jsonl").write_text(records.lines_of(alive), encoding="utf-8")
            self.assertEqual(run_report("--render", folder)[0], 0)
            data = json.loads((folder / report.RESULTS).read_text(encoding="utf-8"))
            text = (folder / report.PAGE).read_text(encoding="utf-8")
        self.assertIsNone(records.refusal(data, records.REPORT_SCHEMA))
        self.assertEqual(data["results"][0]["ratios"], {"rival": [3.0, None, None]})
        self.assertIn('<span class="unknown">3.00x [unknown]</span>', text)
        self.assertIn("slower in 0, unknown in 1, which had too few processes", text)
        self.assertIn("1 is unknown", text)

    def test_a_change_since_a_report_of_too_few_processes_is_none(self):
        before, now = result("x", [3.0, 2.5, 3.5]), result("x", [3.0, 2.5, 3.5])
        before["samples"] = {"weft": [1.0] * 5, "rival": [3.0] * 5}
        now["samples"] = {"weft": [1.5] * 5, "rival": [3.0] * 5}
        self.assertEqual(versions.compare_row(before, now)["verdict"], "slower")
        for report_of in (before, now):
            few = {**report_of, "lives": 2}
            compared = versions.compare_row(*(few if each is report_of else each for each in (before, now)))
            self.assertEqual((compared["verdict"], compared["change"][1:]), ("same", [None, None]))


class Published(unittest.TestCase):
    def test_every_row_says_its_report_its_machine_and_its_figure(self):
        data = published.load()
        for row in data["rows"]:
            self.assertIn(row["section"], published.SECTIONS)
            self.assertTrue(data["reports"][row["report"]]["machine"])
            self.assertRegex(published.figure(row), r"\d")
        names = [(row["report"], row["row"]) for row in data["rows"]]
        self.assertEqual(len(names), len(set(names)))

    def test_every_row_is_on_the_page(self):
        text = page.page({"published": published.load(), "results": [], "failures": [], "machine": CARD, "effort": "quick",
                          "partial": True})
        for row in published.load()["rows"]:
            self.assertIn(f"<td>{html.escape(row['row'], quote=False)}", text)  # below it may stand a note

    @unittest.skipIf(BUILD is None, "needs the folder of a build")
    def test_each_row_has_one_of_ours_that_is_measured(self):
        text = subprocess.run([BUILD / "bench/micro/bench_micro", "--list"], capture_output=True, text=True, check=True).stdout
        known = {"micro": [json.loads(line)["row"] for line in text.splitlines()]}
        rows = published.load()
        self.assertEqual(published.missing(rows, known), [])
        for row in rows["rows"]:
            if row["suite"] != "micro":
                parse = (cells if row["suite"] == "sockets" else server_cells).parse
                self.assertIsNotNone(parse(row["measured"]), row)


class Quick(unittest.TestCase):
    def test_every_published_row_is_measured_and_is_needed(self):
        self.assertEqual([name for name, needed in suites.quick_sockets() if needed], suites.named_rows("sockets"))
        self.assertEqual([name for name, needed in suites.quick_server() if needed], suites.named_rows("server"))
        if BUILD is None:
            self.skipTest("needs the folder of a build")
        suite = suites.of_micro(BUILD, True)
        self.assertEqual([row.name for row in suite.rows if row.needed], suites.named_rows("micro"))
        self.assertTrue(suite.left_out)
        self.assertEqual(suites.of_micro(BUILD, False).left_out, [])

    def test_who_is_behind_measures_what_is_needed_and_says_what_is_left_out(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = make_folder(parent, complete=False)
            allowances = {}

            def measure(name, allowance):
                allowances[name] = allowance
                return micro_records(name)
            rows = [Row("extra", 1e9, False), Row("a", 1.0), Row("b", 3.0)]
            left_out = report.measure_suites([suites.Suite("micro", rows, measure)], folder, pathlib.Path("absent"), 2.0)
        self.assertEqual([entry["row"] for entry in left_out], ["extra"])
        self.assertEqual(list(allowances), ["a", "b"])
        self.assertLess(allowances["a"], 1.0)  # of 2 s in all

    def test_a_row_has_no_fewer_rounds_than_an_interval_needs(self):
        row = {"row": "r", "threads": 1, "contenders": ["weft"], "bars": []}
        with unittest.mock.patch.object(micro_rounds, "run_once", lambda *_: {"ns": 1.0}):
            for options, rounds in (({"allowance_s": 0.0}, micro_rounds.ROUNDS_MIN), ({}, 9)):
                *runs, cell = micro_rounds.measure_row("", row, 9, 0.01, **options)
                self.assertEqual((len(runs), cell["rounds"]), (rounds, rounds))

    def test_each_repetition_runs_a_copy_of_its_own(self):
        with tempfile.TemporaryDirectory() as parent:
            program, ran = pathlib.Path(parent, "bench_micro"), pathlib.Path(parent, "ran")
            entry = '{"benchmarks": [{"cpu_time": 5.0, "time_unit": "ns"}]}'
            program.write_text(f"#!/bin/sh\necho $0 >>{ran}\necho '{entry}'\n", encoding="utf-8")
            program.chmod(0o755)
            for _ in range(2):
                self.assertEqual(micro_rounds.run_once(program, {"row": "r", "threads": 1}, "weft", 0.01)["ns"], 5.0)
            copies = ran.read_text(encoding="utf-8").split()
            self.assertEqual(len({str(program), *copies}), 3)
            self.assertFalse(any(pathlib.Path(copy).exists() for copy in copies))
            program.unlink()
            with self.assertRaisesRegex(micro_rounds.ChildError, "a copy of bench_micro does not run: .*No such file"):
                micro_rounds.run_once(program, {"row": "r", "threads": 1}, "weft", 0.01)

    def test_a_contender_that_fails_is_named_and_the_others_are_compared(self):
        def run_once(_, row, contender, seconds):
            if contender == "rival":
                raise micro_rounds.ChildError("it crashed")
            return {"ns": 1.0 if contender == "weft" else 3.0}
        row = {"row": "r", "threads": 1, "contenders": ["weft", "rival", "other"], "bars": []}
        with unittest.mock.patch.object(micro_rounds, "run_once", run_once):
            found, failed = results.of("micro", micro_rounds.measure_row("", row, 5, 0.01))
        self.assertEqual([each["ratios"] for each in found], [{"other": [3.0, 3.0, 3.0]}])
        self.assertEqual(failed, [{"suite": "micro", "row": "r (rival)", "why": "it crashed"}])


class Records(unittest.TestCase):
    def setUp(self):
        self.parent = tempfile.TemporaryDirectory()
        self.addCleanup(self.parent.cleanup)

    def test_a_report_is_valid_by_its_schema_and_shows_what_was_measured(self):
        folder = make_folder(self.parent.name)
        status, out, _ = run_report("--render", folder)
        self.assertEqual((status, out.strip()), (0, str(folder / report.PAGE)))
        data = json.loads((folder / report.RESULTS).read_text(encoding="utf-8"))
        self.assertEqual({entry["row"] for entry in data["results"]}, {"SpscQueue_Throughput/1024", "round_trip/tcp/64"})
        self.assertFalse(data["partial"])
        self.assertIsNone(records.refusal(data, records.REPORT_SCHEMA))

    def test_rows_between_controls_that_moved_are_marked_void_and_their_bars_are_open(self):
        for controls, void in ((STEADY, False), (MOVED, True)):
            folder = make_folder(pathlib.Path(self.parent.name, str(void)), controls=controls)
            self.assertEqual(run_report("--render", folder)[0], 0)
            data = json.loads((folder / report.RESULTS).read_text(encoding="utf-8"))
            self.assertEqual({"void" in entry for entry in data["results"]}, {void})
            self.assertEqual({bar["met"] is None for entry in data["results"] for bar in entry["bars"]}, {void})
            self.assertIsNone(records.refusal(data, records.REPORT_SCHEMA))
            text = (folder / report.PAGE).read_text(encoding="utf-8")
            for mark in ("<strong>void</strong>", "2 rows are void", "moved 34.05x, between 1.85 us and 63 us"):
                self.assertEqual(mark in text, void, mark)

    def test_cells_at_load_are_a_suite_of_their_own_with_a_bar_and_no_disturbance(self):
        def suite_of(names, measure):
            return suites.Suite("sockets", [Row(name, 1.0) for name in names], measure)
        beside = []

        def measure(name, allowance):
            beside.append(len(pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text("ascii").split()))
            return round_trip_records(name)
        made = suites.at_load(suite_of(["pair/tcp/64", "round_trip/tcp/64"], measure), ["round_trip/tcp/64", "burst/tcp/64"])
        self.assertEqual((made.name, [row.name for row in made.rows], made.left_out),
                         ("sockets_at_load", ["round_trip/tcp/64"], ["burst/tcp/64"]))
        found = results.of(made.name, made.measure("round_trip/tcp/64", 1.0))[0][0]
        self.assertGreaterEqual(beside[0], len(os.sched_getaffinity(0)))
        self.assertEqual((found["suite"], found["foreign"]), ("sockets_at_load", 0))
        self.assertEqual([(bar["measure"], bar["bar"], bar["met"]) for bar in found["bars"]], [("libzmq", "never worse", True)])
        slow = results.of(made.name, [{**each, "p50_ns": 9e5} if each.get("column") == "weft" else each
                                      for each in round_trip_records()])[0][0]
        self.assertEqual([bar["met"] for bar in slow["bars"]], [False])

    def test_a_row_around_which_the_controls_moved_is_measured_again_and_the_last_try_counts(self):
        for futex, again in (([2, 9, 9.1], 2), ([2, 2.1], 1), ([2, 9, 2, 9], 3)):
            controls = iter(futex)
            tries = iter("abc")
            with unittest.mock.patch.object(rounds, "measure_controls", lambda program: [{**STEADY[0], "futex_us": next(controls)}]):
                before = rounds.measure_controls(None)
                found = rounds.measure_between(lambda: [{"kind": "cell", "cell": next(tries)}], before, None)
            self.assertEqual([each.get("cell", each.get("futex_us")) for each in found], [futex[-2], "abc"[again - 1], futex[-1]])
            self.assertEqual(list(controls), [])

    def test_rows_that_are_void_are_measured_again_when_a_run_goes_on(self):
        folder, measured = pathlib.Path(self.parent.name), []

        def measure(name, allowance):
            measured.append(name)
            return round_trip_records(name)
        suite = suites.Suite("sockets", [Row(name, 1.0) for name in ("round_trip/tcp/64", "round_trip/ipc/64")], measure)
        for futex, rows, void in (([2, 2, 9, 2, 9], ["tcp", "ipc", "ipc", "ipc"], {"round_trip/ipc/64"}),
                                  ([2, 2.1], ["ipc"], set()), ([2], [], set())):
            controls = iter(futex)
            with unittest.mock.patch.object(rounds, "measure_controls",
                                            lambda program: [{**STEADY[0], "futex_us": next(controls)}]):
                report.measure_suites([suite], folder, None)
            taken = records.read(folder / "sockets.jsonl")
            self.assertEqual([name.split("/")[1] for name in measured], rows)
            self.assertEqual(results.void_rows(taken), void)
            self.assertEqual(sorted(each["cell"] for each in taken if each["kind"] == "cell"),
                             ["round_trip/ipc/64", "round_trip/tcp/64"])
            measured.clear()

    def test_a_table_between_controls_that_moved_says_void_in_each_row(self):
        for controls, void in ((STEADY, False), (MOVED, True)):
            text = tables.report("sockets", between(controls, round_trip_records()))
            row = next(line for line in text.splitlines() if line.startswith("round_trip/tcp/64"))
            self.assertEqual((row.endswith(", VOID"), "VOID: round_trip/tcp/64: the control futex round trip" in text), (void, void), text)
            self.assertEqual("faster" in row, not void, row)
            said = {line.split()[-1] for line in text.split("\nBars: ")[1].splitlines()[2:] if line.startswith("round_trip")}
            self.assertEqual(said == {"void"}, void, text)

    def test_a_record_of_another_shape_is_refused_with_its_line(self):
        folder = make_folder(self.parent.name)
        records.append(folder / "sockets.jsonl", [{"kind": "run", "cell": "pair/tcp/64", "round": 0, "column": "weft"}])
        status, _, err = run_report("--render", folder)
        self.assertEqual((status, "sockets.jsonl, line 14 is no record: 'messages' is a required property" in err), (1, True), err)

    def test_a_killed_run_is_reported_as_partial_and_its_torn_line_named(self):
        folder = make_folder(self.parent.name, complete=False)
        with (folder / "micro.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"kind": "run", "cell": "Half')
        status, _, err = run_report("--render", folder)
        self.assertEqual(status, 1)
        self.assertIn("micro.jsonl, line 14 is not whole", err)
        text = (folder / report.PAGE).read_text(encoding="utf-8")
        self.assertIn("This report is partial", text)
        self.assertIn("round_trip/tcp/64", text)  # the other suite is still shown

    def test_a_run_that_was_ended_goes_on_with_what_is_missing(self):
        folder = make_folder(self.parent.name, complete=False)
        records.append(folder / "micro.jsonl", [
            {"kind": "run", "cell": "Half", "round": 99, "column": "weft", "ns": 1.0},
            {"kind": "failure", "cell": "Half", "column": "rival", "why": "it was killed"}])
        with (folder / "micro.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"kind": "run", "cell": "Half')
        measured = []

        def measure(name, allowance):
            measured.append(name)
            self.assertEqual(allowance, float("inf"))
            return micro_records(name)
        suite = suites.Suite("micro", [Row(name, 1.0) for name in ("SpscQueue_Throughput/1024", "Half", "Another")], measure)
        with unittest.mock.patch.object(rounds, "measure_controls", lambda program: STEADY[:1]):
            report.measure_suites([suite], folder, pathlib.Path("any"))
        self.assertEqual(measured, ["Half", "Another"])
        cells_of_file = [each["cell"] for each in records.read(folder / "micro.jsonl") if each["kind"] == "cell"]
        self.assertEqual(cells_of_file, ["SpscQueue_Throughput/1024", "Half", "Another"])
        self.assertEqual(len(records.read(folder / "micro.jsonl")), 3 * len(between(STEADY, micro_records("Half"))))

    def test_a_folder_that_is_not_empty_is_not_overwritten(self):
        folder = make_folder(self.parent.name)
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        status, _, err = run_report("--quick", "--out", folder, "--build", BUILD or ".")
        self.assertEqual(status, 2)
        self.assertIn("is not empty", err)
        self.assertEqual(before, {file.name: file.read_bytes() for file in folder.iterdir()})

    def test_a_baseline_of_another_machine_or_version_or_none_is_refused(self):
        folder = make_folder(self.parent.name)
        self.assertEqual(run_report("--render", folder)[0], 0)
        page_before = (folder / report.PAGE).read_bytes()
        other = pathlib.Path(self.parent.name, "other")
        other.mkdir()
        mine = json.loads((folder / report.RESULTS).read_text(encoding="utf-8"))
        for change, said in (({"machine": {**CARD, "processor": "Another CPU"}}, "another machine"),
                             ({"machine": {**CARD, "harness": "456"}}, "harness: '456' and '123'"),
                             ({"schema": 0}, "of another version"), ({"results": [{}]}, "results[0]: 'suite' is a required property"),
                             ({"machine": None}, "machine: None is not of type 'object'"), (None, "holds no report")):
            text = "foreign" if change is None else json.dumps({**mine, **change})
            (other / report.RESULTS).write_text(text, encoding="utf-8")
            status, _, err = run_report("--render", folder, "--baseline", other)
            self.assertEqual((status, said in err), (2, True), err)
            self.assertEqual((folder / report.PAGE).read_bytes(), page_before)

    def test_a_baseline_of_this_machine_is_compared_row_by_row(self):
        folder = make_folder(self.parent.name)
        run_report("--render", folder)
        baseline = pathlib.Path(self.parent.name, "before")
        baseline.mkdir()
        data = json.loads((folder / report.RESULTS).read_text(encoding="utf-8"))
        for times, status, kind in ((2, 0, "faster"), (0.5, 3, "slower"), (0.97, 0, "same")):
            before = copy.deepcopy(data)
            ours = before["results"][0]
            self.assertEqual(ours["row"], "SpscQueue_Throughput/1024")
            ours["columns"]["weft"] *= times
            ours["samples"]["weft"] = [value * times for value in ours["samples"]["weft"]]
            (baseline / report.RESULTS).write_text(json.dumps(before), encoding="utf-8")
            found, _, err = run_report("--render", folder, "--baseline", baseline)
            self.assertEqual((found, "slower than" in err), (status, kind == "slower"), err)
            text = (folder / report.PAGE).read_text(encoding="utf-8")
            self.assertIn(f'<span class="{kind}">{times:.2f}x [{times:.2f}, {times:.2f}]</span>', text)

    def test_a_row_whose_rival_moved_as_much_is_not_slower(self):
        before, now = result("x", [3.0, 2.5, 3.5]), result("x", [3.0, 2.5, 3.5])
        before["samples"] = {"weft": [1.0] * 5, "rival": [3.0] * 5}
        now["samples"] = {"weft": [1.2] * 5, "rival": [3.0] * 5}
        self.assertEqual(versions.compare_row(before, now)["verdict"], "slower")
        now["samples"]["rival"] = [3.9] * 5
        self.assertEqual(versions.compare_row(before, now)["verdict"], "same")

    @unittest.skipIf(BUILD is None, "needs the folder of a build")
    def test_a_folder_of_something_else_is_not_gone_on_with(self):
        folder = make_folder(self.parent.name, complete=False, card=machine.card(pathlib.Path(".")))
        for name, content, said in (("micro.jsonl", '{"kind": "cell"}\n', "line 1 is no record: 'cell' is a required property"),
                                    ("micro.jsonl", "text\n", "is not whole"), (report.RUN, "[]", "another file's"),
                                    (report.RUN, '{"mach', "no folder of a report")):
            (folder / name).write_text(content, encoding="utf-8")
            before = {file.name: file.read_bytes() for file in folder.glob("*.jsonl")}
            status, _, err = run_report("--resume", folder, "--suites", "micro", "--build", BUILD or ".")
            self.assertEqual((status, said in err), (2, True), err)
            self.assertEqual(before, {file.name: file.read_bytes() for file in folder.glob("*.jsonl")})

    def test_a_suite_without_its_rival_stops_no_other(self):
        def refuse():
            raise suites.SuiteError("no libzmq to compare with")
        other = suites.Suite("micro", [], None)
        made, failed = report.make_suites(["sockets", "micro"], {"sockets": refuse, "micro": lambda: other})
        self.assertEqual((made, [failure["why"] for failure in failed]), ([other], ["no libzmq to compare with"]))
        folder = make_folder(self.parent.name)
        run = json.loads((folder / report.RUN).read_text(encoding="utf-8"))
        (folder / report.RUN).write_text(json.dumps({**run, "failures": failed}), encoding="utf-8")
        status, _, err = run_report("--render", folder)
        self.assertEqual(status, 1)
        self.assertIn("no libzmq to compare with", err)
        self.assertIn("no libzmq to compare with", (folder / report.PAGE).read_text(encoding="utf-8"))

    def test_usage_errors_are_status_2(self):
        for arguments in (["--suites", "nonsense"], ["--quick", "--full"], ["--resume", self.parent.name]):
            self.assertEqual(run_report(*arguments)[0], 2, arguments)

    def test_a_machine_differs_by_what_decides_a_figure(self):
        self.assertEqual(machine.differences(CARD, {**CARD, "commit": "def", "load before": "9"}), [])
        self.assertEqual(len(machine.differences(CARD, {**CARD, "cpus": "4 of 4"})), 1)


if __name__ == "__main__":
    unittest.main()
