# SPDX-License-Identifier: MIT
# An overlay port: it builds the tree around this file, and downloads nothing of Weft.
#   vcpkg install weft --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
vcpkg_find_acquire_program(PKGCONFIG)  # finds libsodium

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DWEFT_BUILD_TESTS=OFF
    -DWEFT_BUILD_BENCH=OFF
    -DWEFT_INSTALL=ON
    -DWEFT_REQUIRE_TLS=ON
    -DWEFT_REQUIRE_CURVE=ON
    "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}"
    # The command line is not a part of a library's port.
    -DWEFT_CLI11=WEFT_CLI11-NOTFOUND
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/weft)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
