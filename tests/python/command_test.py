# SPDX-License-Identifier: MIT
"""The command weft of the package: it becomes the program that the package carries, or says that there is none."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import weft
from weft import _command

RUN = "from weft._command import main; main()"


def run(*arguments, **options):
    return subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, timeout=60, check=False,
                          **options)


class Command(unittest.TestCase):
    @unittest.skipUnless(_command.PROGRAM.exists(), "this build has no command")
    def test_the_command_gets_the_arguments_and_returns_the_exit_code(self):
        done = run("--version")
        self.assertEqual((done.returncode, done.stdout), (0, f"weft {weft.__version__}\n"))
        done = run("no-such-command")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'no-such-command'", done.stderr)

    def test_a_package_without_the_program_says_so(self):
        with tempfile.TemporaryDirectory() as work:
            package = Path(work, "weft")
            package.mkdir()
            (package / "__init__.py").touch()
            shutil.copy(_command.__file__, package)
            done = run("--version", env={"PYTHONPATH": work})
        self.assertEqual(done.returncode, 127)
        self.assertIn("weft: this build of the package has no command", done.stderr)

    def test_a_program_that_cannot_run_is_named(self):
        with tempfile.TemporaryDirectory() as work:
            package = Path(work, "weft")
            (package / "bin").mkdir(parents=True)
            (package / "__init__.py").touch()
            (package / "bin/weft").touch(mode=0o600)
            shutil.copy(_command.__file__, package)
            done = run("--version", env={"PYTHONPATH": work})
        self.assertEqual(done.returncode, 127)
        self.assertIn("bin/weft cannot run: Permission denied", done.stderr)


if __name__ == "__main__":
    unittest.main()
