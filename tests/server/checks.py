# SPDX-License-Identifier: MIT
"""For the scripts of this folder: a comparison that ends the script, and clients that go to this host without a proxy."""
import os
import sys

SHOWN = 2000  # characters of a value


def check(what, expected, got):
    if expected != got:
        sys.exit(f"{what}: expected {str(expected)[:SHOWN]!r}, got {str(got)[:SHOWN]!r}")


def go_without_proxy():
    """For requests, httpx, curl and websockets, which read the environment."""
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
