# SPDX-License-Identifier: MIT
"""The machine card: what a figure was measured on, and whether two sets of figures may be compared."""

import ast
import hashlib
import os
import pathlib
import platform
import re
import subprocess

from weft_bench import ROOT

SAME = ("processor", "cpus", "kernel", "quota", "harness")  # what must be equal for a comparison
HARNESS = ("*.cc", "*.h", "engine/*.cc", "engine/*.h", "micro/*.cc", "micro/*.h", "server/*.cc", "server/*.h",
           "topics/*.cc", "topics/*.h", "weft_bench/harness/*.py", "weft_bench/stats.py")  # in bench/: how things are measured
# The files in bench/ that measure the rows of a suite.
HARNESS_OF = {"sockets": ("*.cc", "*.h", "engine/*.cc", "engine/*.h", "weft_bench/harness/rounds.py",
                          "weft_bench/harness/child.py", "weft_bench/harness/pyzmq_child.py", "weft_bench/stats.py"),
              "server": ("*.cc", "*.h", "server/*.cc", "server/*.h", "weft_bench/harness/server_rounds.py",
                         "weft_bench/harness/child.py", "weft_bench/stats.py")}
VULNERABILITIES = pathlib.Path("/sys/devices/system/cpu/vulnerabilities")


def read(path):
    """The text of a file without its end, or ""."""
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def output_of(*command):
    """What a command prints, or "" when there is none."""
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def field(text, name):
    """
    >>> field("a: 1\\nmodel name : Fast One\\n", "model name")
    'Fast One'
    """
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def caches():
    """'L1d 32K, L2 1024K, L3 32M' of the first processor."""
    parts = []
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(read(index / "type"), "")
        parts.append(f"L{read(index / 'level')}{kind} {read(index / 'size')}")
    return ", ".join(parts)


def mitigations():
    """The names of the vulnerabilities that cost time here."""
    try:
        names = sorted(file.name for file in VULNERABILITIES.iterdir() if read(file).startswith("Mitigation"))
    except OSError:
        names = []
    return ", ".join(names) or "none"


def build_flags(build):
    cache = read(build / "CMakeCache.txt")
    kind = re.search(r"^CMAKE_BUILD_TYPE:\w+=(.*)$", cache, re.MULTILINE)
    kind = kind[1] if kind else ""
    parts = [kind]
    for name in ("CMAKE_CXX_FLAGS", f"CMAKE_CXX_FLAGS_{kind.upper()}"):
        found = re.search(rf"^{name}:\w+=(.*)$", cache, re.MULTILINE)
        parts.append(found[1] if found else "")
    return " ".join(part for part in parts if part)


def files_of(patterns, folder=ROOT / "bench"):
    return sorted(file for pattern in patterns for file in folder.glob(pattern))


def harness():
    """A digest of what measures: figures of different ones are not compared."""
    digest = hashlib.sha256()
    for file in files_of(HARNESS):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def code_of(file):
    """A source without comments, docstrings and layout."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        return " ".join(re.sub(r"(?m)//.*$", "", text).split())
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def harness_of(suite, folder=ROOT / "bench"):
    """A digest of the code that measures a suite. Tests of it do not count, nor do comments."""
    digest = hashlib.sha256()
    for file in files_of(HARNESS_OF[suite], folder):
        if not file.stem.endswith("_test"):
            digest.update(f"{file.relative_to(folder)}: {code_of(file)}\n".encode())
    return digest.hexdigest()[:12]


def card(build):
    """What is known of this machine and this build; every value is a text."""
    processor = read("/proc/cpuinfo")
    memory = int(re.sub(r"\D", "", field(read("/proc/meminfo"), "MemTotal")) or 0)
    return {
        "processor": field(processor, "model name") or platform.processor() or platform.machine(),
        "cpus": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "caches": caches(),
        "memory": f"{memory / 2**20:.1f} GB",
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not told",
        "virtual": "yes" if "hypervisor" in field(processor, "flags").split() else "no",
        "kernel": platform.release(),
        "mitigations": mitigations(),
        "quota": read("/sys/fs/cgroup/cpu.max") or "none",
        "compiler": (output_of("c++", "--version").splitlines() or ["unknown"])[0],
        "flags": build_flags(build) or "unknown",
        "commit": output_of("git", "rev-parse", "--short=12", "HEAD") or "unknown",
        "harness": harness(),
        "tree": "changed" if output_of("git", "status", "--porcelain") else "clean",
        "load before": read("/proc/loadavg").rsplit(" ", 2)[0],
    }


def differences(one, other):
    """Why two cards may not be compared; empty when they may.

    >>> differences({"processor": "x", "cpus": "2 of 2"}, {"processor": "y", "cpus": "2 of 2"})
    ["processor: 'x' and 'y'"]
    """
    return [f"{key}: {one.get(key)!r} and {other.get(key)!r}" for key in SAME if one.get(key) != other.get(key)]
