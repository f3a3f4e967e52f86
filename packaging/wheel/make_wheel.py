# SPDX-License-Identifier: MIT
"""Makes the wheel of python/ for every Linux whose glibc is new enough, with the libraries and the command inside.

usage: make_wheel.py BUILD OUT: BUILD is a folder with the built targets weft_zmq, weft_topics_c and weft_cli of the preset
`wheel`, OUT gets the wheel in the place of an older one. It runs in an environment with the packages of deps/pip-wheel.txt.
Exit code 1: the wheel was refused, with the reason.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    build, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    for part in ("capi/libzmq.so.5", "capi/libweft_topics_c.so.1", "tools/weft/weft"):
        if not (build / part).exists():
            sys.exit(f"{build} has no {part}")
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        plain, whole = Path(name, "plain"), Path(name, "whole")
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
            "--wheel-dir", plain, ROOT / "python", SKBUILD_CMAKE_DEFINE=f"WEFT_PYTHON_BUILD={build}")
        # The oldest glibc decides the tag: that of the newest symbol which a file of the wheel needs.
        run(sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "--strip", "--wheel-dir", whole,
            *plain.glob("*.whl"), PATH=tools)
        (made,) = whole.glob("*.whl")
        if "-manylinux_" not in made.name:
            sys.exit(f"{made.name} runs only on this machine: auditwheel found no tag for other systems")
        for old in out.glob("weft-*.whl"):
            old.unlink()
        (out / made.name).write_bytes(made.read_bytes())
    print(out / made.name)


if __name__ == "__main__":
    main()
