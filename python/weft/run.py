# SPDX-License-Identifier: MIT
"""python -m weft.run program.py [arguments]: runs a pyzmq program on Weft. -m NAME runs a module.

Preloads the library of this package, so that it comes before the libzmq of pyzmq's wheel, and checks with a context of
pyzmq that the calls arrive. Children of the program inherit the preloading. Ends with 2 if another library would answer.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import runpy
import sys
from typing import Any, List, NoReturn

from . import _lib

_MARK = "WEFT_RUN_PRELOADED"


def _refuse(why: str) -> NoReturn:
    print(f"weft.run: {why}", file=sys.stderr)
    sys.exit(2)


def _check_bound() -> str:
    """The sentence that says what pyzmq is bound to; refuses when that is not Weft."""
    try:
        zmq: Any = importlib.import_module("zmq")
    except ImportError as error:
        _refuse(f"pyzmq cannot be imported: {error}")
    context = zmq.Context()
    try:
        # Weft takes only its own handles, so a context of another libzmq is refused with EFAULT.
        if _lib.lib.zmq_ctx_get(ctypes.c_void_p(context.underlying), 1) < 0:
            _refuse(f"pyzmq {zmq.__version__} did not take the preloaded library: its calls go to another libzmq "
                    f"({zmq.zmq_version()})")
    finally:
        context.term()
    return f"pyzmq {zmq.__version__} is bound to Weft {_lib.version()} ({_lib.LIBRARY})"


def main(arguments: List[str]) -> None:
    """Runs the program of `arguments`; returns when it has ended."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
        sys.exit(0 if arguments else 2)
    if os.environ.get(_MARK) != str(_lib.LIBRARY):
        before = os.environ.get("LD_PRELOAD", "")
        os.environ["LD_PRELOAD"] = f"{_lib.LIBRARY}:{before}" if before else str(_lib.LIBRARY)
        os.environ[_MARK] = str(_lib.LIBRARY)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "weft.run", *arguments])
    bound = _check_bound()
    if not os.environ.get("WEFT_RUN_QUIET"):
        print(f"weft.run: {bound}", file=sys.stderr)
    if arguments[0] == "-m":
        if len(arguments) < 2:
            _refuse("-m needs the name of a module")
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        if not os.path.exists(arguments[0]):
            _refuse(f"there is no file {arguments[0]}")
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
