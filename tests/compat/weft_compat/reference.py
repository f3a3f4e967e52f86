# SPDX-License-Identifier: MIT
"""The libzmq to compare with: its tree, from the crate that carries it, and the library built from that tree."""

import os
import shutil
import sys

from weft_compat.runs import ROOT, existing, launcher, run, say

CRATE = "zeromq-src"
VERSION = "0.3.6"  # carries libzmq 4.3.5
WORK = ROOT / "build/compat/libzmq"
SKIP = 77  # the exit status that ctest takes for "skipped"
OFFLINE = "WEFT_TEST_OFFLINE"  # set to anything: a machine without the registry skips instead of failing


def fetch(work=WORK):
    """Returns the folder of libzmq's tree; downloads the crate once."""
    tree = work / "vendor" / CRATE / "vendor"
    if not (tree / "include/zmq.h").exists():
        if os.environ.get(OFFLINE):
            print(f"skipped: {CRATE} {VERSION} is not there, and {OFFLINE} forbids to download it")
            sys.exit(SKIP)
        if shutil.which("cargo") is None:
            print("compat: cargo is missing; it downloads libzmq's tree (deps/setup.sh installs it)", file=sys.stderr)
            sys.exit(3)
        say(f"download {CRATE} {VERSION}")
        (work / "fetch/src").mkdir(parents=True, exist_ok=True)
        (work / "fetch/src/lib.rs").write_text("")
        (work / "fetch/Cargo.toml").write_text(
            f'[package]\nname = "fetch"\nversion = "0.0.0"\n[dependencies]\n{CRATE} = "={VERSION}"\n'
        )
        run(["cargo", "vendor", str(work / "vendor")], work / "fetch.log", cwd=work / "fetch")
    return tree


def build_reference(tree, work=WORK):
    """Builds libzmq from its tree, with drafts, CURVE and WebSocket. Returns the library."""
    folder = work / "reference"
    library = folder / "lib/libzmq.so.5"
    if not library.exists():
        say("build libzmq from its tree")
        switches = ["BUILD_STATIC=OFF", "BUILD_TESTS=OFF", "ENABLE_DRAFTS=ON", "WITH_LIBSODIUM=ON", "ENABLE_CURVE=ON"]
        switches += ["ENABLE_WS=ON", "ZMQ_HAVE_TIPC=OFF", "WITH_PERF_TOOL=OFF", "WITH_DOCS=OFF", "ENABLE_CPACK=OFF"]
        switches += ["CMAKE_BUILD_TYPE=Release"]
        command = ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", "-Wno-dev", *launcher()]
        run(command + [f"-D{switch}" for switch in switches], work / "reference.configure.log")
        run(["cmake", "--build", folder, "--target", "libzmq"], work / "reference.build.log")
    return library


def begin(parser):
    """The beginning of a suite that compares with this libzmq.

    Returns the arguments, our library, libzmq, and the suite's folder: build/compat/ and the last word of the parser's name.
    """
    arguments = parser.parse_intermixed_args()
    ours = existing(arguments.library)
    work = ROOT / "build/compat" / parser.prog.split()[-1]
    work.mkdir(parents=True, exist_ok=True)
    return arguments, ours, build_reference(fetch()), work
