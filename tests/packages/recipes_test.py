# SPDX-License-Identifier: MIT
"""Checks the recipes of packaging/ that need a tool or a network which a test does not have: the port of vcpkg and the
image. Every file, target, option, package and version that they name is there.

usage: recipes_test.py CMAKE. The port is run by CMake with functions that record their arguments, in the place of vcpkg's.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PORT = ROOT / "packaging/vcpkg/weft"
IMAGE = ROOT / "packaging/container/Dockerfile"
# vcpkg's helpers that a port may call, as its documentation lists them.
HELPERS = ("vcpkg_find_acquire_program", "vcpkg_cmake_configure", "vcpkg_cmake_install", "vcpkg_cmake_config_fixup",
           "vcpkg_fixup_pkgconfig", "vcpkg_install_copyright")


def version():
    lines = (ROOT / "weft/base/version.h").read_text(encoding="utf-8").splitlines()
    return ".".join(line.split()[2] for part in ("MAJOR", "MINOR", "PATCH") for line in lines
                    if line.startswith(f"#define WEFT_VERSION_{part} "))


def known_names():
    """The options, cached variables and searched names that the project declares, with CMake's own."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in [
        ROOT / "CMakeLists.txt", ROOT / "tools/weft/CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")])
    declared = re.findall(r"^\s*(?:option|find_path|find_program|find_library)\((\w+)", text, re.MULTILINE)
    return {*declared, *re.findall(r"^\s*set\((\w+) .* CACHE ", text, re.MULTILINE), "PKG_CONFIG_EXECUTABLE"}


def check_port(cmake):
    manifest = json.loads((PORT / "vcpkg.json").read_text(encoding="utf-8"))
    assert manifest["name"] == PORT.name and re.fullmatch(r"[a-z0-9-]+", manifest["name"]), manifest["name"]
    assert manifest["version"] == version(), f"vcpkg.json has {manifest['version']}, and the tree is {version()}"
    names = [each if isinstance(each, str) else each["name"] for each in manifest["dependencies"]]
    assert names == sorted(names) and len(set(names)) == len(names), f"not in order: {names}"
    assert {"libsodium", "openssl", "sqlite3", "zlib", "vcpkg-cmake", "vcpkg-cmake-config"} <= set(names), names
    with tempfile.TemporaryDirectory() as work:
        functions = "\n".join(f'function({name})\nfile(APPEND "${{RECORD}}" "{name};${{ARGV}}\\n")\nendfunction()'
                              for name in HELPERS)
        script = Path(work, "run.cmake")
        script.write_text(f'cmake_minimum_required(VERSION 3.25)\nset(RECORD "{work}/calls")\n'
                          f'set(CURRENT_PACKAGES_DIR "{work}/package")\nset(PORT {PORT.name})\nset(PKGCONFIG pkg-config)\n'
                          f'{functions}\ninclude("{PORT}/portfile.cmake")\n', encoding="utf-8")
        subprocess.run([cmake, "-P", script], check=True, capture_output=True, text=True)
        calls = [line.split(";") for line in Path(work, "calls").read_text(encoding="utf-8").splitlines()]
        assert Path(work, f"package/share/{PORT.name}/usage").exists()
    by_name = {call[0]: call[1:] for call in calls}
    assert list(by_name) == list(HELPERS), f"the port calls {list(by_name)}"
    configure = by_name["vcpkg_cmake_configure"]
    assert (Path(configure[configure.index("SOURCE_PATH") + 1]) / "weft/base/version.h").exists(), configure
    options = [word[2:].split("=")[0] for word in configure if word.startswith("-D")]
    unknown = set(options) - known_names()
    assert len(options) > 3 and not unknown, f"the project has no option {unknown}"
    config = (ROOT / "cmake/weftConfig.cmake.in").read_text(encoding="utf-8")
    for target in re.findall(r"weft::\w+", (PORT / "usage").read_text(encoding="utf-8")):
        assert target in config, f"usage names {target}"


def check_image():
    text = IMAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    listed = (ROOT / "deps/apt.txt").read_text(encoding="utf-8")
    known = {line.split("#")[0].strip() for line in listed.splitlines()} - {""}
    installed = re.search(r"--no-install-recommends\s+(.*?) &&", text).group(1).split()
    assert set(installed) <= known and "g++" in installed, f"deps/apt.txt has no {set(installed) - known}"
    copied = [words for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE) for words in [line.split()]]
    for *sources, to in copied:
        for source in sources:
            assert (ROOT / source).exists(), f"the Dockerfile copies {source}"
    copied_names = {source for *sources, _ in copied for source in sources}
    presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
    for kind in ("configurePresets", "buildPresets"):
        assert "deb" in {preset["name"] for preset in presets[kind]}, kind
    return copied_names


def check_image_builds(cmake, names):
    """The copied files alone configure, and have the package of the command."""
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work, "tree")
        for name in names:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).symlink_to(ROOT / name)
        done = subprocess.run([cmake, "--preset", "deb", "-B", f"{work}/build"], cwd=tree, capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, f"the files of the image do not configure:\n{done.stdout}{done.stderr}"
        packed = Path(work, "build/CPackConfig.cmake").read_text(encoding="utf-8")
        assert re.search(r'set\(CPACK_COMPONENTS_ALL ".*program.*"\)', packed), "the image would have no command weft"


def main():
    check_port(sys.argv[1])
    check_image_builds(sys.argv[1], check_image())
    print("the port of vcpkg and the image name nothing that is missing")


if __name__ == "__main__":
    main()
