#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ctest_summary_test.py CTEST: what the summary says of real runs of ctest."""

import doctest
import pathlib
import subprocess
import sys
import tempfile
import unittest

import ctest_summary

CTEST = sys.argv.pop(1)
SUMMARY = pathlib.Path(ctest_summary.__file__)
PASSES = "add_test(passes true)\n"
FAILS = 'add_test(fails sh -c "seq 1 60; printf \'\\\\033[1mlast <words>\\\\033[0m\\n\'; exit 3")\n'
SKIPS = 'add_test(skips sh -c "echo no registry here; exit 77")\nset_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)\n'
DISABLED = "add_test(disabled true)\nset_tests_properties(disabled PROPERTIES DISABLED TRUE)\n"
MISSING = "add_test(missing /no/such/program)\n"
HANGS = "add_test(hangs sleep 60)\nset_tests_properties(hangs PROPERTIES TIMEOUT 0.1)\n"


class Summary(unittest.TestCase):
    def run_tests(self, text, *options, say=(), cases="[]", skips="no registry"):
        """(exit status, lines) of the summary of a run of these tests."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "CTestTestfile.cmake").write_text(text, encoding="utf-8")
            file = pathlib.Path(folder, "junit.xml")
            pathlib.Path(folder, "cases").mkdir()
            pathlib.Path(folder, "cases", "cases.kept.json").write_text(cases, encoding="utf-8")
            done = subprocess.run([CTEST, "--test-dir", folder, "--output-junit", file, "--test-output-truncation",
                                   "head", *options], capture_output=True, check=False)
            permitted = pathlib.Path(folder, "skips.txt")
            permitted.write_text(f"ctest skips {skips}\n", encoding="utf-8")
            said = subprocess.run([sys.executable, "-B", SUMMARY, "--skips", permitted, *say,
                                   f"{done.returncode}:{file}"],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(said.stderr, "")
        return said.returncode, said.stdout.splitlines()

    def test_passing_tests_are_one_line_and_status_0(self):
        self.assertEqual(self.run_tests(PASSES), (0, ["1 passed, 0 failed"]))

    def test_skipped_and_disabled_tests_are_counted_and_are_no_failure(self):
        self.assertEqual(self.run_tests(PASSES + SKIPS + DISABLED), (0, ["1 passed, 0 failed, 2 skipped"]))

    def test_a_test_that_skips_itself_with_other_words_than_the_list_has_failed(self):
        status, lines = self.run_tests(PASSES + SKIPS, skips="no network")
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))

    def test_a_failing_test_is_shown_with_the_end_of_its_output(self):
        status, lines = self.run_tests(PASSES + FAILS)
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertRegex(lines[1], r"^fails \(.* s\): ")
        self.assertIn("last <words>", lines[-2])
        self.assertEqual(lines[2], "  ... 21 more lines")
        self.assertEqual(lines[3], "  22")

    def test_a_missing_program_and_a_test_that_takes_too_long_have_failed(self):
        status, lines = self.run_tests(PASSES + MISSING + HANGS)
        self.assertEqual((status, lines[-1]), (1, "1 passed, 2 failed"))
        self.assertTrue([line for line in lines if line.startswith("missing (")])
        self.assertTrue([line for line in lines if line.startswith("hangs (")])

    def test_no_test_at_all_is_a_failure(self):
        status, lines = self.run_tests(PASSES, "-R", "nothing", "--no-tests=error")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))
        status, lines = self.run_tests(PASSES, "-R", "nothing", "--no-tests=ignore")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 0 failed"))

    def test_a_broken_test_file_is_a_failure(self):
        status, lines = self.run_tests("this is no test file\n")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))

    def test_a_run_without_results_is_a_failure(self):
        done = subprocess.run([sys.executable, "-B", SUMMARY, "0:/no/such/file"], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 1 failed"))

    def test_a_build_that_failed_is_a_failure(self):
        status, lines = self.run_tests(PASSES, say=("--failed", "build asan"))
        self.assertEqual((status, lines), (1, ["==> failed: build asan", "1 passed, 1 failed"]))

    def test_a_program_of_cases_without_results_is_a_failure_though_its_runner_was_content(self):
        self.assertEqual(self.run_tests("add_test(cases.x true)\n")[1][-1], "0 passed, 1 failed")

    def test_a_program_that_fails_without_a_failed_case_is_a_failure(self):
        passed = '[{"name": "A.B", "outcome": "passed", "seconds": 0.1, "reason": "", "output": ""}]'
        self.assertEqual(self.run_tests("add_test(cases.kept true)\n", cases=passed)[1][-1], "1 passed, 0 failed")
        failing = FAILS + "add_test(cases.kept false)\n"
        self.assertEqual(self.run_tests(failing, cases=passed)[1][-1], "1 passed, 2 failed")

    def test_the_examples_hold(self):
        self.assertEqual(doctest.testmod(ctest_summary).failed, 0)


if __name__ == "__main__":
    unittest.main()
