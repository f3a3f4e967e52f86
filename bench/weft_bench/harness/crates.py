# SPDX-License-Identifier: MIT
"""The rivals that are crates of Rust, and cargo, which builds them in the folder of the build."""

import os
import pathlib
import shutil
import subprocess

from weft_bench import BENCH
from weft_bench.harness import server_cells

SOURCES = BENCH / "server/crates"
OFFLINE = "WEFT_TEST_OFFLINE"  # set: cargo uses what an earlier run has downloaded
BUILD_S = 1800
SHOWN = 300  # characters of cargo's reason


def cargo():
    """The path of cargo, which rustup may have put where PATH does not lead, or None."""
    home = os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo"
    return shutil.which("cargo", path=os.pathsep.join([os.environ.get("PATH", ""), str(pathlib.Path(home, "bin"))]))


def program(build, name, role="server"):
    """The server of a crate, or its client; `build` is bench/server in the folder of the build."""
    return build / f"crates/release/{role}_{name}"


def manifest_in(folder, sources):
    """A copy of a crate's sources in the folder of the build, beside which cargo keeps its lock; the copy's manifest."""
    shutil.copytree(sources, folder / "sources", dirs_exist_ok=True)  # with their times, so that cargo sees no change
    return folder / "sources/Cargo.toml"


def reason_in(log):
    """
    >>> reason_in("   Compiling x v1.0\\nerror: no such file\\n\\nCaused by:\\n  nothing\\nwarning: build failed")
    'error: no such file'
    >>> reason_in("")
    'cargo failed'
    """
    lines = [line.strip() for line in log.splitlines()]
    return next((line for line in lines if line.startswith("error")), lines[-1] if lines else "cargo failed")[:SHOWN]


def make(build, names):
    """Builds the servers of these crates. The reason that there are none, or None.

    The first build downloads and compiles their dependencies; a later one finds that nothing has changed."""
    found = cargo()
    if found is None:
        return "there is no cargo (Rust's rustup installs it)"
    log = build / "crates.log"
    command = [found, "build", "--release", "--manifest-path", str(manifest_in(build, SOURCES)), "--target-dir", str(build / "crates")]
    command += [f"--bin=server_{name}" for name in names]
    command += [f"--bin=client_{name}" for name in names if name in server_cells.RPC_CLIENTS]
    command += (["--offline"] if os.environ.get(OFFLINE) else [])
    try:
        with log.open("w", encoding="utf-8") as output:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, timeout=BUILD_S,
                                  check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return f"{reason_in(log.read_text(encoding='utf-8', errors='replace'))}; {log}"
