# SPDX-License-Identifier: MIT
"""A share of the processors for this process and all that it starts, by a control group of the kernel; see cgroups(7)."""

import contextlib
import os
import pathlib

PERIOD_US = 100_000  # the kernel's default; a group that has used its share rests until the next period


def parse_own(text, mounts):
    """[(version, folder of our group)] with the processors' controller, from /proc/self/cgroup and /proc/self/mounts.

    >>> parse_own("4:cpu,cpuacct:/a\\n0::/b\\n", "c /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\\n")
    [(1, '/sys/fs/cgroup/cpu/a')]
    >>> parse_own("0::/b\\n", "c /sys/fs/cgroup cgroup2 rw 0 0\\n")
    [(2, '/sys/fs/cgroup/b')]
    >>> parse_own("0::/\\n", "")
    []
    """
    found = []
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        for mount in (mount.split() for mount in mounts.splitlines()):
            first = "cpu" in controllers.split(",") and mount[2] == "cgroup" and "cpu" in mount[3].split(",")
            second = number == "0" and mount[2] == "cgroup2"
            if first or second:
                found.append((1 if first else 2, mount[1] + ("" if path == "/" else path)))
    return sorted(found)


@contextlib.contextmanager
def limited_to(cpus):
    """Inside, this process and those that it starts get so many processors' time. OSError: the system forbids it."""
    own = parse_own(*(pathlib.Path("/proc/self", name).read_text(encoding="ascii") for name in ("cgroup", "mounts")))
    if not own:
        raise OSError("no control group for processors is mounted")
    version, parent = own[0]
    parent = pathlib.Path(parent)
    group = parent / f"weft-bench-{os.getpid()}"
    group.mkdir()
    try:
        quota = round(cpus * PERIOD_US)
        if version == 1:
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        (group / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            (parent / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        group.rmdir()
