# SPDX-License-Identifier: MIT
"""records_test.py BUILD FOLDER: what the suites saved in a folder makes their tables again; anything else is refused."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from weft_bench import BENCH, records

SKIP = 77


def run(*arguments):
    return subprocess.run([sys.executable, "-B", BENCH, *map(str, arguments)], capture_output=True, text=True, check=False)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "records.json")

    def test_what_the_suites_saved_makes_their_tables_again(self):
        files = sorted(FOLDER.glob("*.jsonl"))
        self.assertEqual({file.stem.split("_")[0] for file in files}, {"sockets", "server", "topics"})
        for file in files:
            done = run("tables", file)
            self.assertEqual((done.returncode, done.stderr), (0, ""), file)
            missing = [record["cell"] for record in records.read(file) if record["kind"] == "cell"
                       and record["cell"] not in done.stdout]
            self.assertEqual(missing, [], file)

    def test_what_micro_saves_makes_its_tables_again(self):
        said = run("micro", "--build", BUILD, "--quick", "--rows", "Result_Value", "--json", self.file)
        again = run("tables", self.file)
        self.assertEqual((said.returncode, again.returncode, again.stderr), (0, 0, ""))
        self.assertEqual(again.stdout, said.stdout)

    def test_a_file_of_something_else_is_refused_with_its_line(self):
        failure = '{"kind": "failure", "cell": "a", "why": "it broke"}\n'
        for text, said in (("text", "line 1 is not whole"), ("[]", "line 1 is no record: [] is not of type 'object'"),
                           (failure + '{"kind": "cell", "ce', "line 2 is not whole"),
                           (failure + '{"kind": "song"}', "line 2 is no record: kind: 'song' is not one of"),
                           (failure + '{"kind": "run", "cell": "a"}', "line 2 is no record: 'column' is a required property"),
                           (failure, "no record of the kind setup")):
            self.file.write_text(text, encoding="utf-8")
            done = run("tables", self.file)
            self.assertEqual((done.returncode, done.stdout, said in done.stderr), (2, "", True), done.stderr)
        self.assertEqual(run("tables", "/no/such/file").returncode, 2)

    def test_every_kind_in_the_schema_is_described(self):
        kinds = records.validator(records.RECORD_SCHEMA).schema["properties"]["kind"]["enum"]
        text = (BENCH / "records.md").read_text(encoding="utf-8")
        self.assertEqual([kind for kind in kinds if f"`{kind}`" not in text], [])

    def test_an_unknown_command_is_a_usage_error_that_names_the_others(self):
        done = run("nonsense")
        self.assertEqual((done.returncode, "counts gate instructions micro report server slowdowns sockets tables" in done.stderr), (2, True))


if __name__ == "__main__":
    try:
        import jsonschema  # noqa: F401
    except ImportError as absent:
        print(f"skipped: {absent}; ./dev test installs it")
        sys.exit(SKIP)
    FOLDER, BUILD = pathlib.Path(sys.argv.pop(2)), sys.argv.pop(1)
    unittest.main()
