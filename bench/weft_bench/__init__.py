# SPDX-License-Identifier: MIT
"""The Python half of the benchmarks: see README.md."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]  # of the checkout
BENCH = ROOT / "bench"
