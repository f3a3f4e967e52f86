# SPDX-License-Identifier: MIT
"""The lists beside this file that say how cases run. A line is: columns, then the reason."""

import dataclasses
import fnmatch
import pathlib

FOLDER = pathlib.Path(__file__).parent
OWN_PROCESS = FOLDER / "own_process.txt"
NIGHTLY = FOLDER / "nightly.txt"
SKIPS = FOLDER / "skips.txt"
SLOW = FOLDER / "slow.txt"
BUILDS = ("plain", "address", "thread")  # by their sanitizer
KINDS = ("own", "alone")


def rows(file, columns):
    """The rows of a list, each a tuple of its columns and the rest of the line.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+") as file:
    ...     _ = file.write("# comment\\n\\nown  a_test  Fork.*  it forks\\n")
    ...     file.flush()
    ...     rows(file.name, 3)
    [('own', 'a_test', 'Fork.*', 'it forks')]
    """
    found = []
    for number, line in enumerate(pathlib.Path(file).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split(None, columns)
        if len(cells) != columns + 1:
            raise ValueError(f"{file}:{number}: {columns} columns and a reason are wanted: {line}")
        found.append(tuple(cells))
    return found


@dataclasses.dataclass(frozen=True)
class Processes:
    """Which cases of one program need a process of their own ("own"), and which the whole machine ("alone")."""

    program: str
    patterns: tuple  # (kind, pattern)

    @classmethod
    def of(cls, program, file=OWN_PROCESS):
        lines = rows(file, 3)
        for kind, _, pattern, _ in lines:
            if kind not in KINDS:
                raise ValueError(f"{file}: {pattern}: {kind} is none of {', '.join(KINDS)}")
        return cls(program, tuple((kind, pattern) for kind, of, pattern, _ in lines if of == program))

    def kind(self, case):
        """"own", "alone", or "shared" for a case that runs beside the others of its program.

        A name of several patterns has the strictest kind.

        >>> processes = Processes("a_test", (("own", "Fork.*"), ("alone", "Quiet*")))
        >>> processes.kind("Fork.A"), processes.kind("QuietFork.A"), processes.kind("Other.Fork.A")
        ('own', 'alone', 'shared')
        """
        kinds = {kind for kind, pattern in self.patterns if fnmatch.fnmatchcase(case, pattern)}
        return "alone" if "alone" in kinds else "own" if "own" in kinds else "shared"


@dataclasses.dataclass(frozen=True)
class Nightly:
    """The cases of one program that a build runs in the nightly effort only."""

    patterns: tuple

    @classmethod
    def of(cls, program, build, file=NIGHTLY):
        patterns = []
        for builds, of, pattern, _ in rows(file, 3):
            named = BUILDS if builds == "all" else builds.split(",")
            if set(named) - set(BUILDS):
                raise ValueError(f"{file}: {builds}: the builds are {', '.join(BUILDS)}, and all")
            if build in named and fnmatch.fnmatchcase(program, of):
                patterns.append(pattern)
        return cls(tuple(patterns))

    def has(self, case):
        """
        >>> Nightly(("Slow.*", "*/wss")).has("Slow.A"), Nightly(()).has("Slow.A")
        (True, False)
        """
        return any(fnmatch.fnmatchcase(case, pattern) for pattern in self.patterns)


@dataclasses.dataclass(frozen=True)
class Skips:
    """The cases of one program that may be skipped, each with the words that it then says."""

    rows: tuple  # (pattern, words)

    @classmethod
    def of(cls, program, file=SKIPS):
        return cls(tuple((pattern, words) for of, pattern, words in rows(file, 2) if of == program))

    def permit(self, case, output):
        """
        >>> skips = Skips((("Ipv6.*", "no IPv6 here"),))
        >>> skips.permit("Ipv6.A", "a.cc:1: Skipped\\nno IPv6 here"), skips.permit("Ipv6.A", "no")
        (True, False)
        >>> skips.permit("A.B", "no IPv6 here")
        False
        """
        return any(fnmatch.fnmatchcase(case, pattern) and words in output for pattern, words in self.rows)


def has_reason_to_be_slow(case, file=SLOW):
    """
    >>> has_reason_to_be_slow("HubKillTest.ManyMessages"), has_reason_to_be_slow("Bytes.AreCopied")
    (True, False)
    """
    return any(fnmatch.fnmatchcase(case, pattern) for pattern, _ in rows(file, 1))


def is_quiet(case):
    """Whether the name says that the case measures or counts.

    >>> is_quiet("QuietSlow.Waits"), is_quiet("EveryTransport/QuietSlow.Waits/tcp"), is_quiet("Slow.IsQuiet")
    (True, True, False)
    """
    return case.startswith("Quiet") or "/Quiet" in case.split(".")[0]
