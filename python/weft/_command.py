# SPDX-License-Identifier: MIT
"""The command weft: replaces this process by the program that the package carries."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).absolute().parent / "bin" / "weft"


def main() -> None:
    """Runs the program with the arguments of this process, and never returns."""
    try:
        os.execv(PROGRAM, ["weft", *sys.argv[1:]])
    except FileNotFoundError:
        print("weft: this build of the package has no command: CLI11 or nlohmann/json was missing", file=sys.stderr)
    except OSError as error:
        print(f"weft: {PROGRAM} cannot run: {error.strerror}", file=sys.stderr)
    sys.exit(127)
