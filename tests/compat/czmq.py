# SPDX-License-Identifier: MIT
"""CZMQ's own tests, from Debian's source package, on libzmq and on ours, side by side.

CZMQ is built once, against our zmq.h. Each of its classes is tested in a process of its own, so that a crash or a hang
is one line. Needs apt-get, which reads the sources' index into build/, not into the system.
"""

import os
import re
import shutil
import subprocess
import sys

from weft_compat.reference import begin
from weft_compat.runs import ROOT, check_loaded, launcher, run, run_process, say, side_by_side, side_by_side_parser

LIMIT = 120  # seconds for a class


def fetch(work):
    """Returns the folder of CZMQ's sources; downloads them once."""
    source = work / "source"
    if not source.exists():
        if shutil.which("apt-cache") is None:
            print("czmq.py: apt-get is missing", file=sys.stderr)
            sys.exit(3)
        say("download the source package of CZMQ")
        for folder in ("lists/partial", "cache/archives/partial", "download"):
            (work / folder).mkdir(parents=True, exist_ok=True)
        policy = subprocess.run(["apt-cache", "policy", "libczmq-dev"], capture_output=True, text=True, check=True).stdout
        origin = re.search(r"^ +\d+ (https?://\S+) (\S+)/(\S+) \S+ Packages$", policy, re.MULTILINE)
        if not origin:
            print("czmq.py: apt knows no archive with libczmq-dev", file=sys.stderr)
            sys.exit(3)
        (work / "sources.list").write_text(f"deb-src {origin[1]} {origin[2]} {origin[3]}\n")
        options = {"Etc::SourceList": "sources.list", "State::Lists": "lists", "Cache": "cache"}
        apt = ["apt-get", "-qq", "-o", "Dir::Etc::SourceParts=/dev/null", "-o", "APT::Sandbox::User=root"]
        for key, value in options.items():
            apt += ["-o", f"Dir::{key}={work / value}"]
        run([*apt, "update"], work / "update.log")
        run([*apt, "source", "--download-only", "czmq"], work / "fetch.log", cwd=work / "download")
        archive = next((work / "download").glob("czmq_*.orig.tar.gz"))
        (work / "unpacking").mkdir(exist_ok=True)
        run(["tar", "xzf", archive, "-C", work / "unpacking"], work / "unpack.log")
        next((work / "unpacking").glob("czmq-*")).rename(source)
    return source


def build(work, source, library):
    say("build CZMQ")
    command = ["cmake", "-S", source, "-B", work / "build", "-G", "Ninja", "-Wno-dev", *launcher()]
    command += ["-DENABLE_DRAFTS=OFF", "-DCZMQ_BUILD_STATIC=OFF", "-DBUILD_TESTING=ON", "-DCMAKE_BUILD_TYPE=Release"]
    command += [f"-DCZMQ_WITH_{name}=OFF" for name in ("SYSTEMD", "LZ4", "LIBCURL", "NSS", "LIBMICROHTTPD")]
    command += [f"-DLIBZMQ_INCLUDE_DIRS={ROOT / 'capi'}", f"-DLIBZMQ_LIBRARIES={library}"]
    command += ["-DCMAKE_C_FLAGS=-w", "-DCMAKE_POLICY_VERSION_MINIMUM=3.5"]
    run(command, work / "configure.log")
    run(["cmake", "--build", work / "build", "--target", "czmq_selftest"], work / "build.log")
    return next(path for path in (work / "build").rglob("czmq_selftest") if path.is_file())


def main():
    arguments, library, theirs, work = begin(side_by_side_parser("czmq", __doc__))
    source = fetch(work)
    program = build(work, source, library)
    for one in (library, theirs):
        check_loaded(program, one)
    environment = dict(os.environ, LD_LIBRARY_PATH=str(theirs.parent))
    listing = subprocess.run([program, "--list"], env=environment, capture_output=True, text=True, check=True).stdout
    tests = [words[0] for words in map(str.split, listing.splitlines()) if words and re.fullmatch(r"z\w+", words[0])]

    def test(name, library, log):
        return run_process([program, "--test", name], library, log, LIMIT).fault()

    side_by_side(arguments, tests, theirs, test)


if __name__ == "__main__":
    main()
