# SPDX-License-Identifier: MIT
"""docs/python.md: each program of it runs and prints what the page shows, and the page names every public name."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import weft.aio_topics
import weft.topics

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/python.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALIASES = {"Data", "Headers", "Part", "Parts", "Start", "Timeout"}  # types of arguments, which the page describes


class Guide(unittest.TestCase):
    def test_each_program_prints_what_the_page_shows(self):
        blocks = BLOCK.findall(PAGE)
        self.assertEqual(len(blocks), PAGE.count("```python"), "a program without its output")
        self.assertGreater(len(blocks), 4)
        for program, shown in blocks:
            with self.subTest(program=program), tempfile.TemporaryDirectory() as place:
                places = dict.fromkeys(("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME"), place)
                done = subprocess.run([sys.executable, "-B", "-W", "error", "-c", program], env={**os.environ, **places},
                                      cwd=place, capture_output=True, text=True, timeout=60)
                if "not supported" in done.stderr and "local:shop" in program:
                    continue  # a build without SQLite
                self.assertEqual((done.returncode, done.stdout), (0, shown), done.stderr)

    def test_the_page_names_every_public_name(self):
        names = [name for name in weft.__all__ if not name.isupper()]  # the others are members of enumerations
        for name in names + weft.topics.__all__ + weft.aio_topics.__all__:
            if name not in ALIASES:
                self.assertTrue(re.search(rf"\b{name}\b", PAGE), name)


if __name__ == "__main__":
    unittest.main()
