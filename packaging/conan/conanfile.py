# SPDX-License-Identifier: MIT
"""Weft for Conan 2, built from the tree around this file: `conan create packaging/conan`."""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt, Dnf


class Weft(ConanFile):
    name = "weft"
    license = "MIT"
    description = "Messages between threads, processes and machines"
    topics = ("messaging", "zeromq", "publish-subscribe", "server")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "../../weft/base/version.h"))
        self.version = ".".join(re.findall(r"#define WEFT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    def export_sources(self):
        tree = os.path.join(self.recipe_folder, "../..")
        copy(self, "CMakeLists.txt", tree, self.export_sources_folder)
        copy(self, "LICENSE", tree, self.export_sources_folder)
        for folder in ("capi", "cmake", "tools/weft", "weft"):
            copy(self, f"{folder}/*", tree, self.export_sources_folder, excludes=("*_test.cc", "*_fuzz.cc", "*_bench.cc"))

    def validate(self):
        check_min_cppstd(self, 20)

    # One package has both kinds of libraries; the option chooses for the program.
    def package_id(self):
        del self.info.options.shared

    # The libraries come from the system, as in a build without Conan.
    def system_requirements(self):
        Apt(self).install(["libsodium-dev", "libssl-dev", "libsqlite3-dev", "zlib1g-dev", "pkg-config"])
        Dnf(self).install(["libsodium-devel", "openssl-devel", "sqlite-devel", "zlib-devel", "pkgconf-pkg-config"])

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for name in ("WEFT_BUILD_TESTS", "WEFT_BUILD_BENCH"):
            toolchain.cache_variables[name] = False
        toolchain.cache_variables["WEFT_REQUIRE_TLS"] = True
        toolchain.cache_variables["WEFT_REQUIRE_CURVE"] = True
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    # weftConfig.cmake of the installed tree makes the targets weft::weft, weft::topics and weft::topics_c.
    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/weft"]
        self.cpp_info.set_property("pkg_config_name", "none")
