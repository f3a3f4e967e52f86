#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_tests_test.py CTEST PROGRAM: which tests and cases `./dev test` picks, and what it counts."""

import doctest
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import run_tests

PROGRAM = sys.argv.pop(2)
CTEST = sys.argv.pop(1)
HERE = pathlib.Path(run_tests.__file__).parent
PRESETS = {
    "version": 6,
    "configurePresets": [{"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"}],
    "testPresets": [{"name": "dev", "configurePreset": "dev", "output": {"outputOnFailure": True}}],
}
CASES = "Subject.F*:Subject.Skips:Subject.Last:Every/Rows.*"


class Tests(unittest.TestCase):
    def run_tests(self, *arguments, cases=CASES, more=""):
        """(exit status of the summary, its last line, names of the cases and tests that passed or were skipped)."""
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder, "build/dev")
            build.mkdir(parents=True)
            pathlib.Path(folder, "CMakePresets.json").write_text(json.dumps(PRESETS), encoding="utf-8")
            own = pathlib.Path(folder, "own.txt")
            skips = pathlib.Path(folder, "skips.txt")
            skips.write_text("cases_subject Subject.Skips not here\n", encoding="utf-8")
            own.write_text("alone cases_subject QuietSubject.* it counts\n", encoding="utf-8")
            text = ("add_test(whole true)\nadd_test(whole.First true)\nadd_test(whole.First.all true)\n"
                    "set_tests_properties(whole.First.all PROPERTIES LABELS nightly)\n" + more)
            for name, options in (("cases.a.1of2", "--shard 1/2"), ("cases.a.2of2", "--shard 2/2"),
                                  ("cases.again.a", "--prefix again."), ("cases.a.alone", "--alone")):
                filters = "QuietSubject.*" if "alone" in name else cases
                text += (f'add_test({name} "{sys.executable}" -B "{HERE}/run_cases.py" '
                         f'--results "{build}/cases/{name}.json" --own-process "{own}" --skips "{skips}" '
                         f'--filter "{filters}" {options} "{PROGRAM}")\n')
            pathlib.Path(build, "CTestTestfile.cmake").write_text(text, encoding="utf-8")
            path = f"{pathlib.Path(CTEST).parent}:{os.environ['PATH']}"
            done = subprocess.run([sys.executable, "-B", HERE / "run_tests.py", "dev", *arguments], cwd=folder,
                                  env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
            runs = pathlib.Path(build, "runs.txt").read_text(encoding="utf-8").split()
            said = subprocess.run([sys.executable, "-B", HERE / "ctest_summary.py", *runs], cwd=folder,
                                  capture_output=True, text=True, check=False)
            files = [json.loads(file.read_text()) for file in sorted(build.glob("cases/*.json"))]
            names = [case["name"] for cases_of_file in files for case in cases_of_file]
        self.assertEqual(done.stderr + said.stderr, "")
        self.said, self.console = said.stdout, done.stdout.splitlines()
        return said.returncode, said.stdout.splitlines()[-1], names

    def test_every_case_is_counted_and_a_failed_one_shown_by_its_name(self):
        status, last, _ = self.run_tests()
        # Twice: First, Last, a row; Fails, a row; Skips. Once: QuietSubject and two whole tests.
        self.assertEqual((status, last), (1, "9 passed, 4 failed, 2 skipped"))
        self.assertIn("\nagain.Subject.Fails (", self.said)
        self.assertIn("\nSubject.Fails (", self.said)
        self.assertIn("  before the failure\n", self.said)

    def test_a_regular_expression_picks_cases_and_whole_tests(self):
        self.assertEqual(self.run_tests("-R", "First"),
                         (0, "3 passed, 0 failed", ["Subject.First", "again.Subject.First"]))
        self.assertEqual(self.run_tests("-R", r"^Subject\.First$"), (0, "1 passed, 0 failed", ["Subject.First"]))
        self.assertEqual(self.run_tests("-R", "Quiet"), (0, "1 passed, 0 failed", ["QuietSubject.Counts"]))

    def test_a_regular_expression_leaves_cases_and_whole_tests_out(self):
        status, last, names = self.run_tests("-E", "Fails|/1|whole$|Quiet|again")
        self.assertEqual((status, last), (0, "4 passed, 0 failed, 1 skipped"))
        self.assertEqual(sorted(names), ["Every/Rows.AreCases/0", "Subject.First", "Subject.Last", "Subject.Skips"])

    def test_both_together_pick_what_the_first_names_and_the_second_does_not(self):
        self.assertEqual(self.run_tests("-R", "First", "-E", "again|whole")[1:],
                         ("1 passed, 0 failed", ["Subject.First"]))

    def test_other_arguments_are_for_ctest(self):
        self.assertEqual(self.run_tests("-R", "First", "--no-tests=error", "-LE", "."), (0, "3 passed, 0 failed",
                                                                                        ["Subject.First",
                                                                                         "again.Subject.First"]))

    def test_nightly_tests_run_when_asked_for(self):
        self.assertEqual(self.run_tests("-R", "^whole.First", "--nightly")[1], "2 passed, 0 failed")
        self.assertEqual(self.run_tests("-R", "^whole.First")[1], "1 passed, 0 failed")
        self.assertEqual(self.run_tests("-R", "^whole.First", "-LE", "none")[1], "1 passed, 0 failed")

    def test_properties_draw_new_cases_every_night_and_the_run_says_which(self):
        draws = 'add_test(draws sh -c "test -n \\"$RC_PARAMS\\"")\n'
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("RC_PARAMS", None)
            self.assertEqual(self.run_tests("-R", "^draws", more=draws)[1], "0 passed, 1 failed")
            self.assertEqual(self.run_tests("-R", "^draws", "--nightly", more=draws)[1], "1 passed, 0 failed")
            self.assertRegex("\n".join(self.console), r"properties draw new cases; RC_PARAMS=seed=\d+ draws them again")

    def test_outside_a_terminal_a_test_is_a_line_with_the_counts_of_its_cases(self):
        self.run_tests("-R", "First|Skips|Fails", "-E", "again|all")
        found = sorted(re.sub(r"^\[\d/\d\] |, [\d.]+ s$", "", line) for line in self.console if line.startswith("["))
        self.assertEqual(found, ["cases.a.1of2: 1 passed, 1 skipped", "cases.a.2of2: 1 failed", "whole.First: passed"])
        self.assertNotIn("Start", "\n".join(self.console))
        self.assertIn("  before the failure", self.console)

    def test_several_runs_show_what_fails_only_sometimes(self):
        with tempfile.NamedTemporaryFile() as file:
            once = f'add_test(once sh -c "test -s {file.name} || {{ echo x > {file.name}; exit 1; }}")\n'
            status, last, _ = self.run_tests("--load", "--repeat", "3", "-R", "once|whole$", more=once)
        self.assertEqual((status, last), (1, "5 passed, 1 failed"))
        self.assertIn("==> unsteady: once: failed 1 of 3 times, dev\n", self.said)

    def test_what_picks_nothing_runs_nothing_and_is_a_failure(self):
        self.assertEqual(self.run_tests("-R", "no such name", "--no-tests=ignore")[:2], (1, "0 passed, 0 failed"))

    def test_a_process_that_dies_fails_its_case_alone(self):
        status, last, _ = self.run_tests("-R", "^Subject", cases="Subject.First:Subject.Aborts:Subject.Last")
        self.assertEqual((status, last), (1, "2 passed, 1 failed"))
        self.assertIn("Subject.Aborts (", self.said)

    def test_a_program_that_is_missing_is_a_failure(self):
        global PROGRAM
        program, PROGRAM = PROGRAM, "/no/such/program"
        try:
            self.assertEqual(self.run_tests("-R", "First")[:2], (1, "1 passed, 4 failed"))
        finally:
            PROGRAM = program

    def test_the_examples_hold(self):
        self.assertEqual(doctest.testmod(run_tests).failed, 0)


if __name__ == "__main__":
    unittest.main()
