# SPDX-License-Identifier: MIT
"""report_test.py BUILD: what the report says follows the data, what is bad is refused, what was ended goes on."""

import contextlib
import copy
import html
import io
import json
import pathlib
import shutil
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

from weft_bench import records, results, stats  # noqa: E402
from weft_bench.commands import report  # noqa: E402
from weft_bench.harness import cells, micro_rounds, server_cells  # noqa: E402
from weft_bench.harness.budget import Row  # noqa: E402
from weft_bench.pages import figures, machine, page, published, sentences, suites, versions  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None


def result(row, ratio, **more):
    return {"suite": "micro", "row": row, "placement": "", "rounds": 5, "unit": "ns", "ours": "weft",
            "columns": {"weft": 2.0, "rival": 2.0 * ratio[0]}, "samples": {"weft": [2.0], "rival": [2.0 * ratio[0]]},
            "ratios": {"rival": ratio}, "measures": {"rival": ratio}, "bars": [], "uses": {}, **more}


def micro_records(row, weft=2.0, rival=6.0):
    runs = [{"kind": "run", "cell": row, "round": number, "column": column, "ns": ns, "counters": {}}
            for number in range(5) for column, ns in (("weft", weft), ("rival", rival))]
    return runs + [{"kind": "cell", "cell": row, "rounds": 5, "threads": 1, "contenders": ["weft", "rival"],
                    "bars": [{"rival": "rival", "ratio": 2.0, "placement": ""}]}]


def round_trip_records(cell="round_trip/tcp/64", p50_ns=20000):
    runs = []
    for number in range(5):
        for column, times in (("weft", 1), ("libzmq", 3)):
            runs.append({"kind": "run", "cell": cell, "round": number, "column": column, "messages": 100, "receivers": 1,
                         "seconds": 0.1, "cpu_seconds": 0.01, "switches": 5, "before_ns": 100, "after_ns": 100,
                         "p50_ns": p50_ns * times, "p99_ns": 2 * p50_ns * times, "p999_ns": 3 * p50_ns * times,
                         "max_ns": 4 * p50_ns * times, "trips": [[p50_ns * times, 95], [2 * p50_ns * times, 5]]})
    return runs + [{"kind": "cell", "cell": cell, "pattern": "round_trip", "size": 64, "rounds": 5, "agreed": 5,
                    "busy_seconds": 1.0, "own_seconds": 0.9, "stolen_seconds": 0.0}]


CARD = {"processor": "Some CPU", "cpus": "2 of 2", "kernel": "6.1", "quota": "none", "compiler": "c++", "flags": "-O3",
        "commit": "abc", "harness": "123", "tree": "clean", "controls": [{"getppid_ns": 100.0}, {"getppid_ns": 103.0}]}


def make_folder(parent, complete=True, card=None):
    """A folder as a run leaves it."""
    folder = pathlib.Path(parent, "report")
    folder.mkdir()
    run = {"machine": card or copy.deepcopy(CARD), "effort": "quick", "started": "2026-01-01T00:00:00",
           "suites": ["micro", "sockets"], "complete": complete}
    (folder / report.RUN).write_text(json.dumps(run), encoding="utf-8")
    records.append(folder / "micro.jsonl", micro_records("SpscQueue_Throughput/1024"))
    records.append(folder / "sockets.jsonl", round_trip_records())
    return folder


def run_report(*arguments):
    """(exit status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = report.main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


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
        said = [page.summary({"left_out": [], **data}) for data in (one, other)]
        self.assertEqual(len(said[0]), len(said[1]))
        for first, second in zip(*said):
            self.assertNotEqual(first, second)


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
            self.assertIn(f"<td>{html.escape(row['row'], quote=False)}", text)

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


class Figures(unittest.TestCase):
    """README.md and docs/*.md say what docs/figures.json says, and no other figure."""

    def setUp(self):
        self.parent = tempfile.TemporaryDirectory()
        self.addCleanup(self.parent.cleanup)
        self.root = pathlib.Path(self.parent.name)
        (self.root / "docs").mkdir()
        for file in [*figures.documents(), figures.FILE]:
            shutil.copy(file, self.root / file.relative_to(figures.ROOT))

    def test_the_documents_say_what_was_measured_and_nothing_else(self):
        self.assertEqual(figures.wrong(), [])
        names = [found["name"] for file in figures.documents() for found in figures.BLOCK.finditer(file.read_text("utf-8"))]
        self.assertEqual(sorted(names), sorted([*figures.TABLES, "front"]))  # the front is in two languages

    def test_another_measurement_changes_the_text(self):
        file = self.root / "docs/figures.json"
        data = json.loads(file.read_text(encoding="utf-8"))
        data["results"][0]["ratios"]["libzmq"] = [123.0, 122.0, 124.0]
        file.write_text(json.dumps(data), encoding="utf-8")
        self.assertEqual([text.split(":")[0] for text in figures.wrong(self.root)], ["README.md", "README.ko.md"])
        report_data = {**data, "failures": [], "schema": results.SCHEMA}
        self.assertEqual([file.name for file in figures.write(report_data, self.root)],
                         ["README.md", "README.ko.md", "server.md"])
        self.assertEqual(figures.wrong(self.root), [])
        self.assertIn("123.00x [122.00, 124.00]", (self.root / "README.md").read_text(encoding="utf-8"))

    def test_a_figure_that_is_typed_by_hand_is_found(self):
        with (self.root / "README.md").open("a", encoding="utf-8") as file:
            file.write("It takes 12.5 ns.\n")
        self.assertIn("12.5 ns is typed by hand", " ".join(figures.wrong(self.root)))

    def test_a_block_of_an_unknown_name_is_an_error(self):
        with self.assertRaisesRegex(figures.FiguresError, "no figures are called nonsense"):
            figures.fill("<!-- figures: nonsense -->\n<!-- end of figures -->", {})

    def test_a_report_without_the_rows_writes_nothing(self):
        before = {file: file.read_bytes() for file in figures.documents(self.root)}
        with self.assertRaises(figures.FiguresError):
            figures.write({"results": [], "effort": "quick", "started": "", "machine": CARD}, self.root)
        self.assertEqual(before, {file: file.read_bytes() for file in figures.documents(self.root)})


    def test_neither_a_quick_report_nor_a_disturbed_one_makes_figures(self):
        stored = json.loads(figures.FILE.read_text("utf-8"))
        before = {file: file.read_bytes() for file in figures.documents(self.root)}
        disturbed = copy.deepcopy(stored)
        disturbed["results"][0]["foreign"] = 0.21
        for report_data, why in (({**stored, "effort": "quick"}, "too short"), (disturbed, "21%")):
            with self.assertRaisesRegex(figures.FiguresError, why):
                figures.write(report_data, self.root)
        self.assertEqual(before, {file: file.read_bytes() for file in figures.documents(self.root)})
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            report.parse_arguments(["--quick", "--figures"])


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
            left_out = report.measure_suites([suites.Suite("micro", rows, measure)], folder, 2.0)
        self.assertEqual([entry["row"] for entry in left_out], ["extra"])
        self.assertEqual(list(allowances), ["a", "b"])
        self.assertLess(allowances["a"], 1.0)  # of 2 s in all

    def test_a_row_has_no_fewer_rounds_than_an_interval_needs(self):
        row = {"row": "r", "threads": 1, "contenders": ["weft"], "bars": []}
        with unittest.mock.patch.object(micro_rounds, "run_once", lambda *_: {"ns": 1.0}):
            for options, rounds in (({"allowance_s": 0.0}, micro_rounds.ROUNDS_MIN), ({}, 9)):
                *runs, cell = micro_rounds.measure_row("", row, 9, 0.01, **options)
                self.assertEqual((len(runs), cell["rounds"]), (rounds, rounds))

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

    def test_a_record_of_another_shape_is_refused_with_its_line(self):
        folder = make_folder(self.parent.name)
        records.append(folder / "sockets.jsonl", [{"kind": "run", "cell": "pair/tcp/64", "round": 0, "column": "weft"}])
        status, _, err = run_report("--render", folder)
        self.assertEqual((status, "sockets.jsonl, line 12 is no record: 'messages' is a required property" in err), (1, True), err)

    def test_a_killed_run_is_reported_as_partial_and_its_torn_line_named(self):
        folder = make_folder(self.parent.name, complete=False)
        with (folder / "micro.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"kind": "run", "cell": "Half')
        status, _, err = run_report("--render", folder)
        self.assertEqual(status, 1)
        self.assertIn("micro.jsonl, line 12 is not whole", err)
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
        report.measure_suites([suite], folder)
        self.assertEqual(measured, ["Half", "Another"])
        cells_of_file = [each["cell"] for each in records.read(folder / "micro.jsonl") if each["kind"] == "cell"]
        self.assertEqual(cells_of_file, ["SpscQueue_Throughput/1024", "Half", "Another"])
        self.assertEqual(len(records.read(folder / "micro.jsonl")), 3 * len(micro_records("Half")))

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
