# SPDX-License-Identifier: MIT
"""figures_test.py: README.md and docs/*.md have the figures of docs/figures.json, which nobody edits by hand."""

import copy
import json
import pathlib
import shutil
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

from weft_bench import results  # noqa: E402
from weft_bench.commands import report  # noqa: E402
from weft_bench.pages import figures, machine  # noqa: E402
from weft_bench.pages.samples import CARD, MOVED, STEADY, between, make_folder, run_report  # noqa: E402


class Figures(unittest.TestCase):
    """README.md and docs/*.md say what docs/figures.json says, and no other figure."""

    def setUp(self):
        self.parent = tempfile.TemporaryDirectory()
        self.addCleanup(self.parent.cleanup)
        self.root = pathlib.Path(self.parent.name)
        (self.root / "docs").mkdir()
        for file in [*figures.documents(), figures.FILE]:
            shutil.copy(file, self.root / file.relative_to(figures.ROOT))

    @staticmethod
    def measured(times=3, controls=STEADY):
        """(a report of the rows that the documents show, its records). A rival takes `times` our time."""
        raw = {"sockets": [], "server": []}
        for suite, row in [(suite, row) for suite in raw for row in figures.rows_of(suite)]:
            pattern, found = row.split("/")[0], []
            columns = {"weft": 1, "libzmq": times} if suite == "sockets" else {"weft": 1, "raw": 1, "asio": 2 * times, "asio_tuned": times}
            for number in range(5):
                for column, factor in columns.items():
                    run = {"kind": "run", "cell": row, "round": number, "life": number, "column": column, "messages": 100, "receivers": 1,
                           "seconds": 0.1 * factor, "cpu_seconds": 0.01 * factor, "switches": 5, "before_ns": 100, "after_ns": 100}
                    if pattern == "round_trip":
                        run |= {"p50_ns": 20000 * factor, "p99_ns": 40000 * factor, "max_ns": 80000 * factor, "trips": [[20000 * factor, 95]]}
                    if pattern == "idle":
                        run["memory_bytes"] = 1e5 * factor
                    found.append(run)
            cell = {"kind": "cell", "cell": row, "pattern": pattern, "rounds": 5, "busy_seconds": 1.0, "own_seconds": 1.0}
            raw[suite] += between(controls, [*found, cell])
        run = {"effort": "full", "started": "2026-01-02T03:04:05", "machine": CARD}
        return {**figures.of_records(raw, run), "failures": [], "schema": results.SCHEMA}, raw

    def test_the_documents_say_what_was_measured_and_nothing_else(self):
        self.assertEqual(figures.wrong(), [])
        names = [found["name"] for file in figures.documents() for found in figures.BLOCK.finditer(file.read_text("utf-8"))]
        self.assertEqual(sorted(names), sorted([*figures.TABLES, "front"]))  # the front is in two languages

    def test_another_measurement_changes_the_text(self):
        for times in (3, 7):
            data, raw = self.measured(times)
            self.assertEqual([file.name for file in figures.write(data, raw, self.root)], ["README.md", "README.ko.md", "server.md"])
            self.assertEqual(figures.wrong(self.root), [])
            self.assertIn(f"{times}.00x [{times}.00, {times}.00]", (self.root / "README.md").read_text(encoding="utf-8"))

    def test_an_edit_by_hand_is_found(self):
        figures.write(*self.measured(), self.root)
        file = self.root / "docs/figures.json"
        data = json.loads(file.read_text(encoding="utf-8"))
        data["results"][0]["ratios"]["libzmq"] = [123.0, 122.0, 124.0]
        file.write_text(json.dumps(data), encoding="utf-8")
        for document in figures.documents(self.root):
            document.write_text(figures.fill(document.read_text(encoding="utf-8"), data), encoding="utf-8")
        self.assertEqual(figures.wrong(self.root), ["figures.json: it is not what figures.records.gz says of push_pull/tcp/64: "
                                                    "nobody edits it by hand"])

    def test_figures_of_another_harness_are_found(self):
        figures.write(*self.measured(), self.root)
        sockets = machine.harness_of("sockets")
        with unittest.mock.patch.object(machine, "harness_of", lambda suite: "1" if suite == "server" else sockets):
            self.assertEqual([text.split(" has changed")[0] for text in figures.wrong(self.root)],
                             ["figures.json: what measures server"])

    def test_a_comment_and_a_test_are_no_other_harness(self):
        folder = self.root / "bench"
        (folder / "weft_bench/harness").mkdir(parents=True)
        source, program = folder / "cell.cc", folder / "weft_bench/stats.py"

        def digest(source_text, program_text):
            source.write_text(source_text, encoding="utf-8")
            program.write_text(program_text, encoding="utf-8")
            return machine.harness_of("sockets", folder)
        before = digest("int a;  // one\n", 'def f():\n    """It says."""\n    return 1  # one\n')
        (folder / "cell_test.cc").write_text("int test;", encoding="utf-8")
        self.assertEqual(before, digest("// two\nint a;\n", 'def f():\n    """It says more."""\n\n    return 1\n'))
        self.assertNotEqual(before, digest("int b;\n", "def f():\n    return 1\n"))
        self.assertNotEqual(before, digest("int a;\n", "def f():\n    return 2\n"))

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
            figures.write({"results": [], "effort": "quick", "started": "", "machine": CARD}, {}, self.root)
        self.assertEqual(before, {file: file.read_bytes() for file in figures.documents(self.root)})


    def test_neither_a_quick_report_nor_a_disturbed_one_nor_one_whose_controls_moved_makes_figures(self):
        stored, raw = self.measured()
        before = {file: file.read_bytes() for file in figures.documents(self.root)}
        disturbed = copy.deepcopy(stored)
        disturbed["results"][0]["foreign"] = 0.21
        moved, _ = self.measured(controls=MOVED)
        once = copy.deepcopy(stored)
        del once["results"][0]["controls"]
        for report_data, why in (({**stored, "effort": "quick"}, "without --quick"), (disturbed, "21%"),
                                 (moved, "push_pull/tcp/64: the control futex round trip moved 34.05x, between 1.85 us and 63 us; .* again where nothing"),
                                 (once, "not measured before and after push_pull/tcp/64")):
            with self.assertRaisesRegex(figures.FiguresError, why):
                figures.write(report_data, raw, self.root)
        self.assertEqual(before, {file: file.read_bytes() for file in figures.documents(self.root)})
        self.assertTrue(figures.write(stored, raw, self.root))  # the same without any of these

    def test_the_command_refuses_too_and_leaves_the_documents_as_they_are(self):
        before = {file: file.read_bytes() for file in figures.documents()}
        status, _, err = run_report("--quick", "--figures")
        self.assertEqual((status, "leave --quick out" in err), (2, True), err)
        folder = make_folder(self.parent.name)
        status, _, err = run_report("--render", folder, "--figures")
        self.assertEqual((status, "without --quick" in err), (2, True), err)
        run = json.loads((folder / report.RUN).read_text(encoding="utf-8"))
        (folder / report.RUN).write_text(json.dumps({**run, "effort": "full"}), encoding="utf-8")
        status, _, err = run_report("--render", folder, "--figures")
        self.assertEqual((status, "was not measured" in err), (2, True), err)
        self.assertEqual(before, {file: file.read_bytes() for file in figures.documents()})


if __name__ == "__main__":
    unittest.main()
