# SPDX-License-Identifier: MIT
"""mypy and pyright, both strict, over the package, over a program that uses each part of it, and over the programs of
docs/python.md. Ends with 77, which is a skipped test, where the tools of deps/pip-types.txt cannot be installed.

The tools are in the folder `types` of the current one, which the first run makes.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "deps/pip-types.txt"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(*command, **options):
    words = [str(part) for part in command]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=90, **options)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(words, 124, "", str(late))


def tools():
    """The folder of the programs; None with the reason printed: there are none."""
    place, stamp = Path("types").absolute(), Path("types/installed.txt").absolute()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != LIST.read_text(encoding="utf-8"):
        for command in ([sys.executable, "-m", "venv", "--clear", place],
                        [place / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                         "--requirement", LIST]):
            done = run(*command)
            if done.returncode != 0:
                print(f"not here: the tools of deps/pip-types.txt cannot be installed:\n{done.stderr}")
                return None
        # pyright's package brings pyright from npm at its first run.
        done = run(place / "bin/pyright", "--version")
        if done.returncode != 0:
            print(f"not here: pyright cannot be installed:\n{done.stdout}{done.stderr}")
            return None
        stamp.write_text(LIST.read_text(encoding="utf-8"), encoding="utf-8")
    return place / "bin"


def main():
    programs = tools()
    if programs is None:
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for module in (ROOT / "python/weft").glob("*.py*"):
            (work / "weft").mkdir(exist_ok=True)
            (work / "weft" / module.name).write_bytes(module.read_bytes())
        (work / "weft/py.typed").touch()
        (work / "use.py").write_bytes((ROOT / "tests/python/typed_use.py").read_bytes())
        blocks = BLOCK.findall((ROOT / "docs/python.md").read_text(encoding="utf-8"))
        assert len(blocks) > 4, blocks
        for number, block in enumerate(blocks):
            (work / f"page_{number}.py").write_text(block, encoding="utf-8")
        (work / "pyrightconfig.json").write_text(json.dumps({
            "typeCheckingMode": "strict", "pythonVersion": "3.11", "reportMissingModuleSource": False,
            "reportUnnecessaryTypeIgnoreComment": True, "enableTypeIgnoreComments": False}), encoding="utf-8")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        pages = [f"page_{number}.py" for number in range(len(blocks))]
        for command in ([programs / "mypy", "--strict", "--python-version", "3.11", "-p", "weft"],
                        # A program of the page is a script: its functions need no types.
                        [programs / "mypy", "--strict", "--python-version", "3.11", "use.py"],
                        [programs / "mypy", "--strict", "--allow-untyped-defs", "--allow-untyped-calls", "--python-version",
                         "3.11", "--scripts-are-modules", *pages],
                        [programs / "pyright", "weft", "use.py"]):
            done = run(*command, cwd=work, env=environment)
            print(f"{Path(command[0]).name} {' '.join(command[1:])[:60]}: {done.stdout.strip().splitlines()[-1]}")
            if done.returncode != 0:
                failed = 1
                print(done.stdout, done.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
