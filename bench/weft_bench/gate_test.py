# SPDX-License-Identifier: MIT
"""gate_test.py PROBE: 25 comparisons of a program with itself raise no alarm; one that does a tenth more work is caught."""

import subprocess
import sys
import unittest

from weft_bench import stats

PROBE = sys.argv.pop(1)
WORK = 4000
NULLS = 25


def of_probe(work):
    def once(which):
        done = subprocess.run([PROBE, str(work[which])], capture_output=True, text=True, check=True)
        return float(done.stdout)
    return once


class Gate(unittest.TestCase):
    def test_the_same_program_raises_no_alarm(self):
        once = of_probe({"old": WORK, "new": WORK, "old again": WORK})
        alarms = [result for result in (stats.compare(once, stats.THROUGHPUT_LEAST) for _ in range(NULLS))
                  if result["alarm"]]
        self.assertEqual(alarms, [])

    def test_a_tenth_more_work_is_caught(self):
        once = of_probe({"old": WORK, "new": WORK * 11 // 10, "old again": WORK})
        self.assertTrue(any(stats.compare(once, stats.THROUGHPUT_LEAST)["alarm"] for _ in range(3)))

    def test_a_tenth_less_work_is_no_alarm(self):
        once = of_probe({"old": WORK, "new": WORK * 9 // 10, "old again": WORK})
        self.assertFalse(stats.compare(once, stats.THROUGHPUT_LEAST)["alarm"])


if __name__ == "__main__":
    unittest.main()
