# SPDX-License-Identifier: MIT
"""python3 -m weft_bench.doctests: the examples in the docstrings of every module hold."""

import doctest
import importlib
import pkgutil
import sys

import weft_bench

NEED_A_PACKAGE = ("zmq", "jinja2", "markupsafe", "jsonschema")  # of deps/pip.txt


def main():
    attempted = failed = 0
    for found in pkgutil.walk_packages(weft_bench.__path__, "weft_bench."):
        if found.name.endswith("_test"):
            continue  # takes arguments
        try:
            result = doctest.testmod(importlib.import_module(found.name))
        except ModuleNotFoundError as error:
            if error.name not in NEED_A_PACKAGE:
                raise
            print(f"left out: {found.name} needs {error.name}")
            continue
        attempted, failed = attempted + result.attempted, failed + result.failed
    print(f"{attempted} examples, {failed} failed")
    return 1 if failed or not attempted else 0


if __name__ == "__main__":
    sys.exit(main())
