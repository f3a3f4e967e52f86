# SPDX-License-Identifier: MIT
"""Further libraries with libzmq's ABI: cargo brings them, and they are built in the folder of the build."""

import dataclasses
import json
import os
import pathlib
import subprocess

from weft_bench import BENCH
from weft_bench.harness.crates import BUILD_S, OFFLINE, cargo, manifest_in, reason_in

SOURCES = BENCH / "rivals"
LIBZMQ = {"BUILD_STATIC": "OFF", "BUILD_TESTS": "OFF", "WITH_PERF_TOOL": "OFF", "WITH_DOCS": "OFF", "ENABLE_CPACK": "OFF",
          "WITH_LIBSODIUM": "ON", "ENABLE_CURVE": "ON", "CMAKE_BUILD_TYPE": "Release"}
LIBZMQ_FLAGS = "-O3 -DNDEBUG -flto"


class RivalError(Exception):
    """A rival cannot be built here."""


@dataclasses.dataclass
class Library:
    file: pathlib.Path
    built: str  # its version, and the flags that it was built with


def run(command, log):
    """Standard output. Its errors go to a file, from which the reason of a failure comes."""
    with log.open("w", encoding="utf-8") as errors:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, timeout=BUILD_S, check=False,
                                  text=True)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RivalError(str(error)) from error
    if done.returncode != 0:
        raise RivalError(f"{reason_in(log.read_text(encoding='utf-8', errors='replace'))}; {log}")
    return done.stdout


def cargo_with(words, folder):
    found = cargo()
    if found is None:
        raise RivalError("there is no cargo (Rust's rustup installs it)")
    offline = ["--offline"] if os.environ.get(OFFLINE) else []
    return run([found, *words, "--manifest-path", str(manifest_in(folder, SOURCES)), *offline], folder / f"{words[0]}.log")


def tree_of(metadata, crate):
    """The folder of a crate, from what `cargo metadata` prints.

    >>> tree_of('{"packages": [{"name": "a", "manifest_path": "/x/a-1/Cargo.toml"}]}', "a")
    PosixPath('/x/a-1')
    """
    return next(pathlib.Path(each["manifest_path"]).parent for each in json.loads(metadata)["packages"] if each["name"] == crate)


def build_libzmq(folder):
    library = folder / "libzmq/lib/libzmq.so.5"
    if not library.exists():
        tree = tree_of(cargo_with(["metadata", "--format-version", "1"], folder), "zeromq-src") / "vendor"
        options = [f"-D{name}={value}" for name, value in {**LIBZMQ, "CMAKE_CXX_FLAGS_RELEASE": LIBZMQ_FLAGS}.items()]
        run(["cmake", "-S", str(tree), "-B", str(folder / "libzmq"), "-Wno-dev", *options], folder / "libzmq.configure.log")
        run(["cmake", "--build", str(folder / "libzmq"), "--parallel", str(os.cpu_count()), "--target", "libzmq"], folder / "libzmq.log")
    return Library(library, f"libzmq 4.3.5 of zeromq-src 0.3.6, {LIBZMQ_FLAGS}")


def build_omq(folder):
    cargo_with(["build", "--release", "--target-dir", str(folder / "crates")], folder)
    found = sorted((folder / "crates/release").glob("**/libomq_zmq*.so"))
    if not found:
        raise RivalError("cargo made no libomq_zmq.so")
    return Library(found[0], "omq-libzmq 0.8.0, opt-level 3, fat LTO")


BUILDERS = {"libzmq_lto": build_libzmq, "omq": build_omq}


def make(folder, say):
    """{name: Library} of those that can be built here. The first build downloads and compiles for minutes."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, build in BUILDERS.items():
        say(f"build {name}")
        try:
            found[name] = build(folder)
        except RivalError as error:
            say(f"without {name}: {error}")
    return found
