# SPDX-License-Identifier: MIT
"""Runs the commands of docs/first-day.md, prints each with its output, and compares the outputs with the page.

usage: first_day.py build BUILD CC: with the programs of a build
       first_day.py packages DEBS WHEELS: with the Debian packages and the wheel of these folders, in a clean root. Exit code
77: no root can be made here, or there is no wheel.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/packages"))
from clean_root import CleanRoot, names_of, why_not  # noqa: E402

PAGE = (ROOT / "docs/first-day.md").read_text(encoding="utf-8")
LIBRARIES = ("libweft0.1", "libweft-topics0.1", "libweft-topics-c1")
MARK = "\x1e"  # before the output of each command


def files_of_page():
    """The programs: {name: text}."""
    return dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def commands_of(page):
    """[command, output] of each command of the blocks of a console."""
    steps = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                steps.append([line[2:-1], ""])
            else:
                steps[-1][1] += line
    return steps


def script_of(steps):
    return "".join(f"printf '{MARK}'\n{command}\n" for command, _ in steps)


def compare(steps, output):
    said = output.split(MARK)[1:]
    for (command, shown), came in zip(steps, said):
        print(f"$ {command}\n{came}", end="")
        assert came == shown, f"the page shows:\n{shown}"
    assert len(said) == len(steps), f"{len(said)} of {len(steps)} commands ran"


def check_readme(steps):
    """The first pages have a part of the commands, with the same outputs in the same order."""
    for name in ("README.md", "README.ko.md"):
        rest = iter(steps)
        part = commands_of((ROOT / name).read_text(encoding="utf-8"))
        assert len(part) > 3, f"{name} has no tour"
        for step in part:
            assert step in rest, f"{name} has a step that the page does not have there: {step}"


def with_build(steps, build, compiler):
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for file, text in files_of_page().items():
            (work / file).write_text(text, encoding="utf-8")
        for folder in ("bin", "day/bin", "run"):
            (work / folder).mkdir(parents=True, mode=0o700)
        (work / "bin/gcc").symlink_to(compiler)
        (work / "weft-topics-c.pc").write_text(
            f"Name: weft-topics-c\nDescription: of the build\nVersion: 0\nCflags: -I{ROOT}/capi\n"
            f"Libs: -L{build}/capi -Wl,-rpath,{build}/capi -lweft_topics_c\n", encoding="utf-8")
        python = work / "day/bin/python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={build}/tests/python/site exec {shlex.quote(sys.executable)} -B "$@"\n',
                          encoding="utf-8")
        python.chmod(0o700)
        environment = {"PATH": f"{work}/bin:{build}/tools/weft:{os.environ['PATH']}", "PKG_CONFIG_PATH": name, "HOME": name,
                       "XDG_RUNTIME_DIR": f"{work}/run", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(["bash", "-e", "-c", script_of(steps)], cwd=work, env=environment, capture_output=True, text=True,
                              timeout=100, check=False)
    compare(steps, done.stdout)
    assert done.returncode == 0, done.stderr


def with_packages(steps, debs, wheels):
    wheel = next(Path(wheels).glob("weft-*.whl"), None)
    if reason := why_not() or (None if wheel else f"there is no wheel in {wheels}"):
        print(f"not here: {reason}")
        return 77
    wanted = [next(Path(debs).glob(f"{name}_*.deb")) for name in (*LIBRARIES, "libweft-dev", "weft")]
    with tempfile.TemporaryDirectory() as name:
        root = CleanRoot(name)
        root.add([["bash"], ["gcc"], ["pkg-config"], ["python3-venv"]])
        needed = {choice for file in wanted for group in names_of(subprocess.run(
            ["dpkg-deb", "-f", file, "Depends"], capture_output=True, text=True, check=True).stdout.strip()) for choice in group}
        root.add([[each] for each in needed - set(LIBRARIES)])
        print(f"$ dpkg --install {' '.join(file.name for file in wanted)}\n{root.dpkg('--install', *wanted)}", end="")
        (root.path / "srv" / wheel.name).write_bytes(wheel.read_bytes())
        for command in ("python3 -m venv day", f"day/bin/pip install --no-index --disable-pip-version-check {wheel.name}"):
            print(f"$ {command}\n{root.run(*command.split(), cwd='/srv')}", end="")
        for file, text in files_of_page().items():
            (root.path / "srv" / file).write_text(text, encoding="utf-8")
        compare(steps, root.run("bash", "-e", "-c", script_of(steps), cwd="/srv"))
    return 0


def main():
    steps = commands_of(PAGE)
    assert len(steps) > 10 and set(files_of_page()) == {"order.c", "kitchen.py"}
    check_readme(steps)
    mode, first, second = sys.argv[1:]
    return with_build(steps, Path(first).resolve(), second) if mode == "build" else with_packages(steps, first, second)


if __name__ == "__main__":
    sys.exit(main())
