# SPDX-License-Identifier: MIT
"""A root of a Debian system that has the named packages, what they depend on, and nothing else.

The files come from this machine's own installation, and the records of dpkg with them, so that `dpkg --root` finds the
same conflicts and missing dependencies as on a new machine. No network is used. Needs root.
"""

import os
import shutil
import stat
import subprocess
from pathlib import Path

RECORDS = Path("/var/lib/dpkg")
LEFT_OUT = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/", "/usr/share/zoneinfo/")


def why_not():
    """Why no root can be made here; None if one can."""
    if os.geteuid() != 0:
        return "only root enters a new root"
    if shutil.which("dpkg") is None or not (RECORDS / "status").exists():
        return "this is not a Debian system"
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return None if probe.returncode == 0 else "this system permits no new mount namespace"


class Stanzas:
    """The installed packages of this machine: the paragraph of each in dpkg's status, by name."""

    def __init__(self):
        self.by_name, self.provided = {}, {}
        for paragraph in (RECORDS / "status").read_text(encoding="utf-8").split("\n\n"):
            fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
            if fields.get("Status") == "install ok installed":
                self.by_name[fields["Package"]] = (fields, paragraph.strip("\n"))
                for name in names_of(fields.get("Provides", "")):
                    self.provided.setdefault(name[0], fields["Package"])

    def closure(self, wanted):
        """The packages of these dependencies, with their own. KeyError: this machine lacks one."""
        found, open_ = set(), list(wanted)
        while open_:
            choices = open_.pop()
            chosen = next((self.provided.get(each, each) if each not in self.by_name else each for each in choices
                           if each in self.by_name or each in self.provided), None)
            if chosen is None:
                raise KeyError(" | ".join(choices))
            if chosen not in found:
                found.add(chosen)
                fields = self.by_name[chosen][0]
                open_ += names_of(fields.get("Pre-Depends", "")) + names_of(fields.get("Depends", ""))
        return found


def names_of(field):
    """[["a"], ["b", "c"]] of "a (>= 1), b | c:any"."""
    groups = [[choice.split("(")[0].strip().split(":")[0] for choice in group.split("|")] for group in field.split(",")]
    return [group for group in groups if group != [""]]


class CleanRoot:
    def __init__(self, path):
        self.path, self.packages, self.stanzas = Path(path), set(), Stanzas()
        for folder in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            if Path("/", folder).is_symlink():  # where /usr is merged, no package has these
                (self.path / folder).symlink_to(os.readlink(f"/{folder}"))
        for folder in ("tmp", "proc", "dev", "srv", "etc", "usr/bin", "var/lib/dpkg/info", "var/lib/dpkg/updates",
                       "var/lib/dpkg/triggers"):
            (self.path / folder).mkdir(parents=True, exist_ok=True)
        (self.path / "tmp").chmod(0o1777)
        (self.path / "var/lib/dpkg/available").touch()
        shutil.copy(RECORDS / "triggers/ldconfig", self.path / "var/lib/dpkg/triggers/ldconfig")
        self.add([["dash"], ["coreutils"], ["libc-bin"], ["dpkg"], ["grep"], ["sed"]])
        if not (self.path / "usr/bin/sh").is_symlink():
            (self.path / "usr/bin/sh").symlink_to("dash")

    def add(self, wanted):
        """Puts packages of this machine into the root, with what they depend on."""
        for name in sorted(self.stanzas.closure(wanted) - self.packages):
            self.packages.add(name)
            fields, paragraph = self.stanzas.by_name[name]
            with open(self.path / "var/lib/dpkg/status", "a", encoding="utf-8") as status:
                status.write(paragraph + "\n\n")
            for prefix in (name, f"{name}:{fields['Architecture']}"):
                if (RECORDS / f"info/{prefix}.list").exists():
                    break
            for record in RECORDS.glob(f"info/{prefix}.*"):
                shutil.copy(record, self.path / "var/lib/dpkg/info")
            for line in (RECORDS / f"info/{prefix}.list").read_text(encoding="utf-8").splitlines():
                if not line.startswith(LEFT_OUT) and os.path.lexists(line):
                    self.copy(Path(line))
        self.run("ldconfig")

    def copy(self, file):
        if file == Path("/."):
            return
        to = self.path / os.path.relpath(os.path.realpath(file.parent), "/") / file.name
        if os.path.lexists(to):
            return
        mode = os.lstat(file).st_mode
        if stat.S_ISLNK(mode):
            to.parent.mkdir(parents=True, exist_ok=True)
            to.symlink_to(os.readlink(file))
        elif stat.S_ISDIR(mode):
            to.mkdir(parents=True)
        elif stat.S_ISREG(mode):
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, to)

    def run(self, *command, expected=0, environment=None, cwd="/"):
        """Runs a command in the root, with nothing of this machine except the kernel, /proc and /dev. Returns its output."""
        script = ('mount --bind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /usr/bin/env -i '
                  '--chdir="$1" "${@:2}"')
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/srv", "LC_ALL": "C.UTF-8", **(environment or {})}
        done = subprocess.run(["unshare", "--mount", "bash", "-c", script, str(self.path), cwd,
                               *(f"{name}={value}" for name, value in variables.items()), *map(str, command)],
                              capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == expected, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def dpkg(self, *arguments, expected=0):
        done = subprocess.run(["dpkg", f"--root={self.path}", "--force-unsafe-io", *map(str, arguments)],
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == expected, f"dpkg {arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr
