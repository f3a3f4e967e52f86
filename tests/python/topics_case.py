# SPDX-License-Identifier: MIT
"""For the programs of this folder."""

import contextlib
import tempfile
import threading
import unittest

import weft

PATIENCE = 20.0  # seconds; only a test that fails waits so long
MESSAGES = 2000


class Case(unittest.TestCase):
    fleets = 0

    def setUp(self):
        Case.fleets += 1
        self.fleet = f"inproc:{Case.fleets}"
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def open(self, fleet=None, **options):
        return self.stack.enter_context(weft.Topics(fleet or self.fleet, **options))

    def open_local(self):
        directory = self.stack.enter_context(tempfile.TemporaryDirectory())
        return self.open("local:test", runtime_directory=directory, store_directory=directory), directory

    def start(self, target, *arguments):
        """A thread whose exception fails the test."""
        failures = []

        def run():
            try:
                target(*arguments)
            except BaseException as error:
                failures.append(error)

        def join():
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
            self.assertEqual(failures, [])

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return join

    def raises(self, kind, code, text=""):
        @contextlib.contextmanager
        def checked():
            with self.assertRaises(kind) as raised:
                yield
            self.assertEqual(raised.exception.code, code)
            self.assertIn(text, str(raised.exception))

        return checked()
