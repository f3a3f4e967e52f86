# SPDX-License-Identifier: MIT
"""gate_command_test.py BUILD: what `./dev bench gate` says and how it ends, without measuring anything."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from weft_bench.commands import gate

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()


def run_gate(*arguments):
    """(exit status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = gate.main(["--build", str(BUILD), *arguments])
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


def as_baseline(found):
    """The gate with this build as its own baseline, and `found` instead of what a measurement says."""
    stack = contextlib.ExitStack()
    for name, value in (("commit_of", lambda _: "0" * 40), ("build_baseline", lambda *_: BUILD),
                        ("check_instructions", found), ("check_rows", lambda *_: []), ("check_cells", lambda *_: [])):
        stack.enter_context(unittest.mock.patch.object(gate, name, value))
    return stack


class Command(unittest.TestCase):
    def test_an_unknown_revision_a_missing_build_and_rows_of_no_name_are_usage_errors(self):
        for arguments, said in ((["--baseline", "no-such-revision"], "is no revision"), ([], "--baseline"),
                                (["--baseline", "--all"], ""), (["--baseline", "x", "--cells", "nonsense"], "no cell matches")):
            status, _, err = run_gate(*arguments)
            self.assertEqual((status, said in err), (2, True), err)
        with as_baseline(lambda *_: []):
            status, _, err = run_gate("--baseline", "x", "--rows", "Nonsense*", "--cells", "")
            self.assertEqual((status, "nothing to compare" in err), (2, True), err)
            status, _, err = run_gate("--baseline", "x", "--build", "/nowhere")
            self.assertEqual((status, "run ./dev build release" in err), (2, True), err)

    def test_what_is_slower_is_status_3_and_nothing_is_status_0(self):
        with as_baseline(lambda *_: ["row: 12 instructions, 10 before"]):
            self.assertEqual(run_gate("--baseline", "x", "--rows", "Result_*")[:2], (3, "row: 12 instructions, 10 before\n"))
        with as_baseline(lambda *_: []):
            self.assertEqual(run_gate("--baseline", "x", "--rows", "Result_*")[:2], (0, "nothing is slower\n"))

    def test_what_cannot_be_measured_is_status_1(self):
        def fail(*_):
            raise gate.GateError("it broke")
        with as_baseline(fail):
            status, out, err = run_gate("--baseline", "x", "--rows", "Result_*")
        self.assertEqual((status, out, "it broke" in err), (1, "", True))

    def test_an_interrupted_gate_says_nothing_of_what_is_slower(self):
        def interrupt(*_):
            raise KeyboardInterrupt
        with as_baseline(interrupt):
            self.assertEqual(run_gate("--baseline", "x", "--rows", "Result_*")[:2], (130, ""))

    def test_a_program_that_fails_is_told_with_its_last_words(self):
        with self.assertRaisesRegex(gate.GateError, "sh -c .* failed:\nlast words"):
            gate.run("sh", "-c", "echo last words; exit 1")
        with self.assertRaisesRegex(gate.GateError, "cannot be run"):
            gate.run("/no/such/program")

    def test_a_work_tree_that_was_left_half_made_is_not_used(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertFalse(gate.is_whole(folder, "0" * 40))
            for command in (["init", "-q"], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "x"]):
                subprocess.run(["git", *command], cwd=folder, check=True)
            commit = gate.run("git", "rev-parse", "HEAD", cwd=folder).strip()
            self.assertTrue(gate.is_whole(folder, commit))
            pathlib.Path(folder, "left over").touch()
            self.assertFalse(gate.is_whole(folder, commit))


if __name__ == "__main__":
    unittest.main()
