#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tables_test.py CTEST BUILD: the tables of HACKING.md say what runs where: the labels of the presets, the nightly tests
of this build, and the cases of nightly.txt."""

import fnmatch
import json
import re
import subprocess
import sys
import unittest

import case_lists
import run_tests

BUILD = sys.argv.pop(2)
CTEST = sys.argv.pop(1)
ROOT = case_lists.FOLDER.parents[1]
PRESETS = {"plain": "dev", "address": "asan", "thread": "tsan"}


def rows_of(head):
    """The rows of the table of HACKING.md whose first line begins so: a list of cells each."""
    text = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    lines = text[text.index(f"\n| {head} |") + 1:].splitlines()
    table = lines[2:next((place for place, line in enumerate(lines) if not line.startswith("|")), len(lines))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


def labels_in(runs):
    """(regular expression of the labels that run, of those that do not)."""
    labels = [name for name in names_in(runs) if not name.endswith("_test")]
    pattern = f"^{labels[0]}$" if len(labels) == 1 else f"^({'|'.join(labels)})$" if labels else ""
    return ("", pattern) if runs.startswith("all tests") else (pattern, "")


class Tables(unittest.TestCase):
    def test_each_preset_runs_the_labels_that_its_row_names(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["testPresets"]
        filters = {}
        for preset in (each for each in presets if not each.get("hidden")):
            chosen = preset.get("filter", {})
            filters[preset["name"]] = (chosen.get("include", {}).get("label", ""), chosen.get("exclude", {}).get("label", ""))
        said = {names_in(preset)[0]: labels_in(runs) for preset, runs in rows_of("preset")}
        self.assertEqual(said, filters)

    def test_the_daily_tests_have_no_unit_test_and_no_nightly_one(self):
        words = run_tests.labels_left_out(run_tests.arguments_of(["daily"]))
        listed = subprocess.run([CTEST, "--preset", "daily", *words, "--show-only=json-v1"], capture_output=True,
                                text=True, check=True, cwd=ROOT)
        labels = {label for test in json.loads(listed.stdout)["tests"] for each in test.get("properties", [])
                  if each["name"] == "LABELS" for label in each["value"]}
        self.assertTrue(labels >= {"plain", "model", "style"}, labels)
        self.assertFalse(labels & {"unit", "nightly"}, labels)

    def test_each_effort_is_what_the_command_does(self):
        text = (ROOT / "dev").read_text(encoding="utf-8")
        daily = re.search(r"presets=\(([^)]*)\) options", text)[1].split()
        efforts = {"./dev test": daily,
                   "./dev test --quick": re.search(r"--quick\) presets=\(([^)]*)\)", text)[1].split(),
                   "./dev test --nightly": [re.search(r"--nightly\).*presets\[0\]=(\w+)", text)[1], *daily[1:],
                                            *re.search(r"--nightly\).*presets\+=\(([^)]*)\)", text)[1].split()]}
        self.assertEqual({names_in(effort)[0]: names_in(presets) for effort, _, presets in rows_of("effort")}, efforts)

    def test_the_programs_without_threads_are_left_out_of_one_build(self):
        text = (ROOT / "cmake/WeftTests.cmake").read_text(encoding="utf-8")
        left_out = re.search(r"set\(weft_tests_without_threads ([^)]*)\)", text)[1].split()
        said = {names_in(preset)[0]: [name for name in names_in(runs) if name.endswith("_test")]
                for preset, runs in rows_of("preset")}
        self.assertEqual({preset: names for preset, names in said.items() if names}, {"tsan": left_out})

    def test_each_nightly_test_has_a_row(self):
        listed = subprocess.run([CTEST, "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True,
                                check=True)
        tests = json.loads(listed.stdout)["tests"]
        nightly = {test["name"] for test in tests for each in test.get("properties", [])
                   if each["name"] == "LABELS" and "nightly" in each["value"]}
        patterns = [name for cells in rows_of("only `./dev test --nightly`") if cells[1] == "dev"
                    for name in names_in(cells[0])]
        self.assertTrue(nightly)
        for name in nightly:
            self.assertTrue(any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns), f"no row for {name}")
        every_day = {test["name"] for test in tests} - nightly
        for pattern in patterns:
            if not pattern.endswith("*"):
                self.assertNotIn(pattern, every_day)

    def test_each_row_of_nightly_cases_is_in_the_table(self):
        def builds_of(text):
            return tuple(case_lists.BUILDS if text == "all" else text.split(","))
        listed = {(pattern, builds_of(builds)) for builds, _, pattern, _ in case_lists.rows(case_lists.NIGHTLY, 3)}
        said = set()
        for first, builds, _ in rows_of("only `./dev test --nightly`"):
            if builds != "dev":
                presets = PRESETS.values() if builds == "all" else builds.split(", ")
                said |= {(name, tuple(build for build in case_lists.BUILDS if PRESETS[build] in presets))
                         for name in names_in(first)}
        self.assertEqual(said, listed)


if __name__ == "__main__":
    unittest.main()
