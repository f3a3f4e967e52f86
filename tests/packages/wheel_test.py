# SPDX-License-Identifier: MIT
"""Makes the wheel from a finished build, and tests it by python_test.py.

usage: wheel_test.py BUILD: a folder with the built targets of the preset `wheel`; BUILD/packages gets the wheel. Exit code 77:
the tools of deps/pip-wheel.txt cannot be installed here. Runs in an environment that has pyzmq.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main():
    build = Path(sys.argv[1]).resolve()
    tools, packages = build / "venv", build / "packages"
    subprocess.run([sys.executable, "-m", "venv", tools], check=True)
    installed = subprocess.run([tools / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                                "--requirement", ROOT / "deps/pip-wheel.txt"], capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        print(f"not here: the tools of deps/pip-wheel.txt cannot be installed:\n{installed.stderr}")
        return 77
    subprocess.run([tools / "bin/python", "-B", ROOT / "packaging/wheel/make_wheel.py", build, packages], check=True)
    (wheel,) = packages.glob("weft-*.whl")
    return subprocess.run([sys.executable, "-B", ROOT / "tests/packages/python_test.py", wheel,
                           sysconfig.get_path("platlib")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
