# SPDX-License-Identifier: MIT
"""Names of a module that another module gives when a program first uses one of them."""

from __future__ import annotations

import importlib
from typing import Any, Callable


def names_of(module: str, user: str) -> Callable[[str], Any]:
    """The __getattr__ of `user`: the public names of `module` are its names. A program that uses none of them does not load
    `module`."""

    def find(name: str) -> Any:
        if not name.startswith("_"):
            given = importlib.import_module(module)
            if name in given.__all__:
                return getattr(given, name)
        raise AttributeError(f"module {user!r} has no attribute {name!r}")

    return find
