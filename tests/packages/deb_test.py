# SPDX-License-Identifier: MIT
"""Installs the Debian packages into clean roots, and uses them from outside the repository.

usage: deb_test.py FOLDER: FOLDER has the .deb files of `./dev package deb`. A clean root has this
machine's copies of what the packages depend on, and nothing else (clean_root.py). Exit code 77: no root can be made here.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from clean_root import CleanRoot, names_of, why_not

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ROOT / "tests/install"
# The package of a library has the number of its soname (section 8.1 of Debian's policy).
LIBRARIES = {"libweft0.1": "libweft.so.0.1", "libweft-topics0.1": "libweft_topics.so.0.1",
             "libweft-topics-c1": "libweft_topics_c.so.1"}
NAMES = [*LIBRARIES, "libweft-dev", "weft", "libzmq5-weft"]
TRIPLET = "x86_64-linux-gnu"


class Package:
    def __init__(self, file):
        self.file = file
        self.fields = dict(line.split(": ", 1) for line in self.ask("-f").splitlines() if ": " in line)
        self.name = self.fields["Package"]
        listed = [line.split(None, 5) for line in self.ask("-c").splitlines()]
        self.files = [entry[5][1:].split(" -> ")[0] for entry in listed if not entry[0].startswith("d")]
        self.modes = {entry[5][1:].split(" -> ")[0]: (entry[0], entry[1]) for entry in listed}

    def ask(self, option, *more):
        return subprocess.run(["dpkg-deb", option, self.file, *more], capture_output=True, text=True, check=True).stdout

    def control(self, name):
        return subprocess.run(["dpkg-deb", "-I", self.file, name], capture_output=True, text=True, check=True).stdout

    def needs(self):
        return {name for group in names_of(self.fields.get("Depends", "")) for name in group}


def check_contents(packages):
    owners = {}
    for package in packages.values():
        assert package.fields["Version"].split("-")[0] == version(), package.fields
        assert f"/usr/share/doc/{package.name}/copyright" in package.files, package.name
        for file in package.files:
            assert owners.setdefault(file, package.name) == package.name, f"{file} is in two packages"
        for file, (mode, owner) in package.modes.items():
            assert owner == "root/root" and (mode[0] == "l" or mode[5] == mode[8] == "-"), f"{file} is {mode} {owner}"
    development, program, compat = (packages[name] for name in NAMES[-3:])
    for name, soname in LIBRARIES.items():
        check_library(packages[name], soname)
        exactly = f"{name} (= {packages[name].fields['Version']})"
        assert exactly in development.fields["Depends"], development.fields["Depends"]
        assert (exactly in packages["libweft-topics0.1"].fields["Depends"]) == (name == "libweft0.1")
    system = set().union(*(packages[name].needs() for name in LIBRARIES)) - set(LIBRARIES)
    assert {"libc6", "libstdc++6", "libssl3", "libsodium23", "libsqlite3-0", "zlib1g"} <= system, system
    assert not {"libsqlite3-0", *LIBRARIES} & packages["libweft0.1"].needs(), packages["libweft0.1"].fields["Depends"]
    assert not set(LIBRARIES) & packages["libweft-topics-c1"].needs(), packages["libweft-topics-c1"].fields["Depends"]
    assert system >= program.needs() >= {"libc6", "libsqlite3-0"}, program.fields["Depends"]
    assert {"libssl-dev", "libsodium-dev", "zlib1g-dev", "libsqlite3-dev"} <= development.needs()
    pages = [file for file in program.files if "/man1/" in file]
    assert {"/usr/bin/weft", "/usr/share/man/man1/weft.1", "/usr/share/man/man1/weft-kv-get.1",
            "/usr/share/bash-completion/completions/weft", "/usr/share/zsh/site-functions/_weft",
            "/usr/share/fish/vendor_completions.d/weft.fish", "/usr/lib/systemd/user/weft-hub.service"} <= set(program.files)
    assert len(pages) > 30, pages
    folders = (f"/usr/lib/{TRIPLET}/weft/", "/usr/include/weft-zmq/", "/usr/share/doc/libzmq5-weft/")
    strangers = [file for file in compat.files if not file.startswith(folders)]
    assert not strangers, f"libzmq5-weft has files in folders of others: {strangers}"
    assert "libzmq5" not in compat.fields.get("Conflicts", "") + compat.fields.get("Replaces", ""), compat.fields


def check_library(package, soname):
    """One shared library, under its soname, and the sentence by which programs find its package."""
    links = [file.split("/")[-1] for file in package.files if ".so" in file and package.modes[file][0][0] == "l"]
    assert links == [soname], f"{package.name} has the links {links}"
    library, number = soname.split(".so.")
    first = ".".join([*version().split(".")[:2], "0"])
    assert package.control("shlibs") == f"{library} {number} {package.name} (>= {first})\n", package.control("shlibs")
    assert "ldconfig" in package.control("triggers"), package.name


def version():
    lines = (ROOT / "weft/base/version.h").read_text(encoding="utf-8").splitlines()
    return ".".join(line.split()[2] for part in ("MAJOR", "MINOR", "PATCH") for line in lines
                    if line.startswith(f"#define WEFT_VERSION_{part} "))


def check_program(packages, work):
    """The command alone, in a root that has only what its package depends on."""
    root = CleanRoot(work)
    said = root.dpkg("--install", packages["weft"].file, expected=1)
    assert "depends on" in said, f"weft was configured in a root without its dependencies:\n{said}"
    root.dpkg("--purge", "weft")
    root.add([[name] for name in packages["weft"].needs()])
    root.dpkg("--install", packages["weft"].file)
    assert root.run("weft", "--version").strip().endswith(version())
    script = """set -e
    cd /tmp; umask 077; mkdir fleet
    weft hub --directory fleet 2> hub.log & hub=$!
    weft kv put config color blue --directory fleet > revision
    weft kv get config color --directory fleet
    weft topic sub 'px.*' --count 1 --directory fleet & sub=$!
    weft topic pub px.AAPL 188.20 --directory fleet > /dev/null
    wait $sub; kill $hub; wait $hub; rm -r fleet"""
    assert root.run("sh", "-c", script) == "blue\npx.AAPL 188.20\n"
    root.dpkg("--purge", "weft")
    assert not (root.path / "usr/bin/weft").exists()


def sum_of(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_libraries(packages, work):
    """A project in C++, one in C and one in C for libzmq, built in a root that also has Debian's libzmq."""
    root = CleanRoot(work)
    root.add([["g++"], ["gcc"], ["cmake"], ["ninja-build"], ["pkg-config"], ["libzmq3-dev"], ["libzmq5"]])
    others = {f"usr/lib/{TRIPLET}/libzmq.so.5", "usr/include/zmq.h", f"usr/lib/{TRIPLET}/pkgconfig/libzmq.pc"}
    before = {file: sum_of(root.path / file) for file in others}
    needed = set().union(*(packages[name].needs() for name in (*LIBRARIES, "libweft-dev", "libzmq5-weft"))) - set(LIBRARIES)
    root.add([[name] for name in needed])
    said = root.dpkg("--install", packages["libweft-dev"].file, expected=1)
    assert all(f"depends on {name}" in said for name in LIBRARIES), said
    said = root.dpkg("--install", packages["libweft-topics0.1"].file, expected=1)
    assert "depends on libweft0.1" in said, said
    root.dpkg("--install", *(packages[name].file for name in (*LIBRARIES, "libweft-dev", "libzmq5-weft")))
    found = root.run("ldconfig", "-p")
    for library in LIBRARIES.values():
        assert f"/{library}\n" in found, f"the loader does not find {library}"
    assert "/weft/libzmq" not in found, "the loader finds Weft's libzmq.so.5 without LD_LIBRARY_PATH"

    for name in ("topics", "topics_c", "compat"):
        shutil.copytree(INSTALL / name, root.path / "srv" / name)
    use_topics(root)
    use_topics_in_c(root)
    use_in_the_place_of_libzmq(root)
    assert {file: sum_of(root.path / file) for file in others} == before, "a file of Debian's libzmq changed"

    root.dpkg("--purge", "libzmq5-weft", "libweft-dev", *LIBRARIES)
    left = [file for package in packages.values() for file in package.files if (root.path / file[1:]).exists()]
    assert not left, f"files that were left: {left}"
    assert {file: sum_of(root.path / file) for file in others} == before


def use_topics(root):
    for shared in ("OFF", "ON"):
        build = f"/srv/topics_{shared}"
        root.run("cmake", "-S", "/srv/topics", "-B", build, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=g++",
                 f"-DBUILD_SHARED_LIBS={shared}")
        root.run("cmake", "--build", build)
        (root.path / f"tmp/fleet_{shared}").mkdir(mode=0o700)
        root.run(f"{build}/program", "kept", f"/tmp/fleet_{shared}")
        assert ("libweft_topics.so.0.1" in root.run("readelf", "-d", f"{build}/program")) == (shared == "ON")
    root.run("sh", "-c", "g++ -std=c++20 -Wall -Werror /srv/topics/program.cc $(pkg-config --cflags --libs weft-topics) "
             "-o /srv/by_pkg_config && mkdir -m 700 /tmp/fleet && /srv/by_pkg_config kept /tmp/fleet")
    assert root.run("pkg-config", "--modversion", "weft").strip() == version()


def use_topics_in_c(root):
    root.run("cmake", "-S", "/srv/topics_c", "-B", "/srv/c", "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc")
    root.run("cmake", "--build", "/srv/c")
    assert root.run("/srv/c/program") == "189.5\n"
    assert root.run("sh", "-c", "gcc /srv/topics_c/program.c $(pkg-config --cflags --libs weft-topics-c) -o /srv/c_program "
                    "&& /srv/c_program") == "189.5\n"


def use_in_the_place_of_libzmq(root):
    place = f"/usr/lib/{TRIPLET}/weft"
    root.run("cmake", "-S", "/srv/compat", "-B", "/srv/zmq", "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc",
             f"-DZeroMQ_DIR={place}/cmake/ZeroMQ")
    root.run("cmake", "--build", "/srv/zmq")
    assert root.run("/srv/zmq/program") == "4.3.5 4.3.5\n"
    compile_ = "gcc -Wall /srv/compat/program.c $(pkg-config --cflags --libs libzmq) -o "
    root.run("sh", "-c", compile_ + "/srv/ours && readelf -d /srv/ours | grep -q 'RUNPATH.*/weft'",
             environment={"PKG_CONFIG_PATH": f"{place}/pkgconfig"})
    assert root.run("/srv/ours") == "4.3.5 4.3.5\n"
    # Without options a build gets Debian's libzmq. Its program runs on Weft's with LD_LIBRARY_PATH.
    root.run("sh", "-c", compile_ + "/srv/theirs")
    theirs = root.run("/srv/theirs").split()
    assert theirs[0] == theirs[1] != "4.3.5", theirs
    assert root.run("/srv/theirs", environment={"LD_LIBRARY_PATH": place}) == f"{theirs[0]} 4.3.5\n"


def main():
    packages = {package.name: package for package in map(Package, sorted(Path(sys.argv[1]).glob("*.deb")))}
    assert sorted(packages) == sorted(NAMES), f"{sys.argv[1]} has the packages {sorted(packages)}"
    check_contents(packages)
    print("the files, modes and dependencies of the packages are right")
    if reason := why_not():
        print(f"not here: {reason}; the packages were not installed")
        return 77
    for check in (check_program, check_libraries):
        with tempfile.TemporaryDirectory() as work:
            check(packages, work)
        print(f"{check.__name__}: {check.__doc__.splitlines()[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
