#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_cases_test.py PROGRAM: what the runner says of a program whose cases end in every way."""

import doctest
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import unittest

import case_lists
import gtest_program
import run_cases

PROGRAM = sys.argv.pop(1)
RUNNER = pathlib.Path(run_cases.__file__)
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
QUIET = "alone cases_subject QuietSubject.* it counts\n"


class Runner(unittest.TestCase):
    def run_cases(self, pattern, *options, own="", skips="cases_subject Subject.Skips not here\n", **environment):
        """Runs the cases of a pattern: (exit status, {case: what became of it}, lines)."""
        with tempfile.TemporaryDirectory() as folder:
            results, lists = pathlib.Path(folder, "results.json"), pathlib.Path(folder, "own.txt")
            lists.write_text(QUIET + own, encoding="utf-8")
            permitted = pathlib.Path(folder, "skips.txt")
            permitted.write_text(skips, encoding="utf-8")
            log = pathlib.Path(folder, "log")
            done = subprocess.run(
                [sys.executable, "-B", RUNNER, "--filter", pattern, "--results", results, "--own-process", lists,
                 "--skips", permitted, *options, PROGRAM], env={**CLEAN, "WEFT_SUBJECT_LOG": str(log), **environment},
                capture_output=True, text=True, check=False)
            self.assertEqual(done.stderr, "")
            self.processes = dict(line.split() for line in log.read_text().splitlines()) if log.exists() else {}
            cases = {case["name"]: case for case in json.loads(results.read_text(encoding="utf-8"))}
        return done.returncode, cases, done.stdout.splitlines()

    def outcomes(self, cases):
        return {name: case["outcome"] for name, case in cases.items()}

    def test_cases_share_a_process_and_the_last_line_counts_them(self):
        status, cases, lines = self.run_cases("Subject.First:Subject.Skips:Subject.Last:Subject.DISABLED_*")
        self.assertEqual(self.outcomes(cases), {"Subject.First": "passed", "Subject.Skips": "skipped",
                                                "Subject.Last": "passed", "Subject.DISABLED_Waits": "skipped"})
        self.assertEqual(status, 0)
        self.assertEqual(len(set(self.processes.values())), 1)
        self.assertRegex(lines[-1], r"^cases_subject: 2 passed, 0 failed, 2 skipped, .* s$")
        self.assertIn("not here", cases["Subject.Skips"]["output"])

    def test_a_failure_is_named_with_its_output_alone(self):
        status, cases, lines = self.run_cases("Subject.First:Subject.Fails:Subject.LeavesALineOpen:Subject.Last")
        self.assertEqual((status, [name for name, case in cases.items() if case["outcome"] == "failed"]),
                         (1, ["Subject.Fails"]))
        self.assertIn("before the failure", cases["Subject.Fails"]["output"])
        self.assertIn("on purpose", cases["Subject.Fails"]["output"])
        self.assertEqual(cases["Subject.LeavesALineOpen"]["output"], "no end of line")
        self.assertRegex(lines[0], r"^Subject\.Fails \(.* s\): failed$")

    def test_a_case_that_kills_the_process_failed_and_the_others_run(self):
        status, cases, _ = self.run_cases("Subject.First:Subject.Aborts:Subject.ExitsWell:Subject.Last")
        self.assertEqual((status, self.outcomes(cases)), (1, {"Subject.First": "passed", "Subject.Aborts": "failed",
                                                              "Subject.ExitsWell": "failed", "Subject.Last": "passed"}))
        self.assertEqual(cases["Subject.Aborts"]["reason"], "the process ended while the case ran: SIGABRT")
        self.assertIn("last words", cases["Subject.Aborts"]["output"])
        self.assertEqual(cases["Subject.ExitsWell"]["reason"], "the process ended while the case ran: exit status 0")
        self.assertEqual(len(self.processes), 4)

    def test_a_case_that_hangs_is_killed_and_named_and_the_others_run(self):
        status, cases, _ = self.run_cases("Subject.First:Subject.Hangs:Subject.Last", WEFT_CASE_SECONDS="1")
        self.assertEqual((status, self.outcomes(cases)), (1, {"Subject.First": "passed", "Subject.Hangs": "failed",
                                                              "Subject.Last": "passed"}))
        self.assertEqual(cases["Subject.Hangs"]["reason"], "killed after 1 s without an end")

    def test_no_case_waits_for_a_child_that_the_program_left(self):
        status, cases, _ = self.run_cases("Subject.LeavesAChild:Subject.Last")
        self.assertEqual((status, self.outcomes(cases)),
                         (0, {"Subject.LeavesAChild": "passed", "Subject.Last": "passed"}))
        try:
            child = os.pidfd_open(int(self.processes["TheChild"]))
        except ProcessLookupError:
            return
        self.assertTrue(select.select([child], [], [], 20)[0], "the child is killed with its program")
        os.close(child)

    def test_a_process_that_dies_before_its_first_case_fails_each_case_once(self):
        status, cases, _ = self.run_cases("Environment.*")
        self.assertEqual((status, self.outcomes(cases)),
                         (1, {"Environment.One": "failed", "Environment.Two": "failed"}))

    def test_a_process_that_fails_after_its_cases_is_a_failure_of_the_program(self):
        status, cases, _ = self.run_cases("Subject.First:Ends.*:Rows.Every")
        self.assertEqual((status, self.outcomes(cases)), (1, {"Subject.First": "passed", "Ends.Badly": "passed",
                                                              "cases_subject": "failed"}))
        self.assertEqual(cases["cases_subject"]["reason"], "outside of its cases, after Ends.Badly: exit status 3")

    def test_listed_cases_have_a_process_of_their_own(self):
        status, cases, _ = self.run_cases("Subject.First:Subject.Skips:Subject.Last:Subject.LeavesALineOpen",
                                          own="own cases_subject Subject.L* a reason\nown other * a reason\n")
        self.assertEqual((status, len(cases), len(set(self.processes.values()))), (0, 4, 3))
        self.assertEqual(self.processes["First"], self.processes["Skips"])

    def test_quiet_cases_run_only_alone_and_must_be_listed(self):
        self.assertEqual(self.run_cases("QuietSubject.*:Subject.First")[1].keys(), {"Subject.First"})
        self.assertEqual(self.run_cases("QuietSubject.*:Subject.First", "--alone")[1].keys(), {"QuietSubject.Counts"})
        done = subprocess.run([sys.executable, "-B", RUNNER, "--own-process", "/dev/null", PROGRAM],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("QuietSubject.Counts is called quiet", done.stdout)

    def test_a_missing_program_is_a_failure_in_a_line(self):
        done = subprocess.run([sys.executable, "-B", RUNNER, "/no/such/program"], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr, done.stdout.count("\n")), (1, "", 1))
        self.assertIn("/no/such/program", done.stdout)

    def test_shards_have_every_case_once(self):
        seen = [name for shard in "123" for name in self.run_cases("Subject.F*:Subject.L*:Rows*:Every*", "--shard",
                                                                   f"{shard}/3")[1]]
        self.assertEqual(sorted(seen), sorted(set(seen)))
        self.assertEqual(sorted(seen), sorted(self.run_cases("Subject.F*:Subject.L*:Rows*:Every*")[1]))

    def test_regular_expressions_choose_cases_by_their_names_with_the_prefix(self):
        _, cases, _ = self.run_cases("Subject.F*:Every*", "--prefix", "again.", WEFT_CASES_INCLUDE="^again.*/[01]$",
                                     WEFT_CASES_EXCLUDE="/0")
        self.assertEqual(self.outcomes(cases), {"again.Every/Rows.AreCases/1": "failed"})
        status, cases, lines = self.run_cases("*", WEFT_CASES_INCLUDE="no such case")
        self.assertEqual((status, cases), (0, {}))

    def test_a_skipped_case_that_is_not_listed_with_its_words_has_failed(self):
        for skips, outcome in (("cases_subject Subject.S* not here\n", "skipped"), ("", "failed"),
                               ("cases_subject Subject.Skips no such words\n", "failed"),
                               ("other Subject.Skips not here\n", "failed")):
            status, cases, _ = self.run_cases("Subject.Skips:Subject.DISABLED_*", skips=skips)
            self.assertEqual((status, self.outcomes(cases)), (int(outcome == "failed"), {
                "Subject.Skips": outcome, "Subject.DISABLED_Waits": "skipped"}))

    def test_nightly_cases_run_at_night_in_the_builds_that_the_list_names(self):
        with tempfile.NamedTemporaryFile("w+", suffix=".txt") as file:
            file.write("thread cases_s* Subject.F* no threads\nall other * a reason\n"
                       "address cases_subject Nothing a reason\n")
            file.flush()
            def run(**environment):
                return list(self.run_cases("Subject.F*:Subject.Last", "--build", build, "--nightly", file.name,
                                           **environment)[1])
            for build, every_day in (("plain", 3), ("address", 3), ("thread", 1)):
                self.assertEqual((len(run(WEFT_NIGHTLY="")), len(run(WEFT_NIGHTLY="1"))), (every_day, 3))

    def test_the_examples_hold(self):
        for module in (case_lists, gtest_program, run_cases):
            self.assertEqual(doctest.testmod(module).failed, 0)

    def test_the_list_of_processes_can_be_read(self):
        self.assertEqual(case_lists.Processes.of("conformance_test").kind("Fork.AChildResolvesNames"), "own")


if __name__ == "__main__":
    unittest.main()
