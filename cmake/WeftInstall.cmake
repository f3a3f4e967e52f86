# SPDX-License-Identifier: MIT
# `cmake --install`: weft and weft_topics, each static and shared, weft_topics_c, the public headers, weftConfig.cmake,
# weft.pc, weft-topics.pc and weft-topics-c.pc. The tree may be moved afterwards. Each component is a Debian package
# (WeftPackages): a shared library is a component of its own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(development COMPONENT development)
install(TARGETS weft weft_topics EXPORT weftTargets ARCHIVE ${development})
install(TARGETS weft_shared EXPORT weftTargets LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS weft_topics_shared EXPORT weftTargets LIBRARY COMPONENT topics_library NAMELINK_COMPONENT development)
install(TARGETS weft_topics_c EXPORT weftTargets LIBRARY COMPONENT topics_c_library NAMELINK_COMPONENT development)
install(FILES capi/weft_topics.h capi/weft_topics_kept.h capi/weft_error.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${development})
# The list is made at the time of the installation: an #include may have come since the build was configured.
install(CODE "
  include(\"${PROJECT_SOURCE_DIR}/cmake/WeftHeaders.cmake\")
  weft_install_headers(\"${PROJECT_SOURCE_DIR}\" \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")" ${development})

set(weft_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
configure_package_config_file(cmake/weftConfig.cmake.in cmake/weftConfig.cmake INSTALL_DESTINATION ${weft_cmake_dir})
write_basic_package_version_file(cmake/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${weft_cmake_dir} ${development})
install(FILES ${PROJECT_BINARY_DIR}/cmake/weftConfig.cmake ${PROJECT_BINARY_DIR}/cmake/weftConfigVersion.cmake
  DESTINATION ${weft_cmake_dir} ${development})

# The .pc files find their prefix from their own place.
file(RELATIVE_PATH weft_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" weft_pc_to_prefix "${weft_pc_to_prefix}")
set(weft_topics_pc_requires)
if(SQLite3_FOUND)
  set(weft_topics_pc_requires sqlite3)
endif()
foreach(name weft weft-topics weft-topics-c)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    ${development})
endforeach()
