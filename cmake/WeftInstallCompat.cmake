# SPDX-License-Identifier: MIT
# `cmake --install BUILD --component compat`: Weft in the place of libzmq: libzmq.so.5, zmq.h, zmq_utils.h, weft_error.h, libzmq.pc
# and the CMake package ZeroMQ, all as of libzmq 4.3.5. A plain `cmake --install` installs none of these files,
# because they would shadow a real libzmq. In the Debian packages they stand in folders of their own.
set(weft_compat_libdir ${CMAKE_INSTALL_LIBDIR})
set(weft_compat_includedir ${CMAKE_INSTALL_INCLUDEDIR})
set(weft_compat_rpath)
if(WEFT_DEB)
  set(weft_compat_libdir ${CMAKE_INSTALL_LIBDIR}/weft)
  set(weft_compat_includedir ${CMAKE_INSTALL_INCLUDEDIR}/weft-zmq)
  set(weft_compat_rpath "-Wl,-rpath,\${libdir} ")  # the loader does not search there
endif()
set(weft_zmq_version 4.3.5)  # as zmq_version() returns
set(compat COMPONENT compat EXCLUDE_FROM_ALL)

set_target_properties(weft_zmq PROPERTIES EXPORT_NAME libzmq)
install(TARGETS weft_zmq EXPORT ZeroMQTargets
  LIBRARY DESTINATION ${weft_compat_libdir} ${compat} NAMELINK_COMPONENT compat
  INCLUDES DESTINATION ${weft_compat_includedir})
install(FILES capi/zmq.h capi/zmq_utils.h capi/weft_error.h DESTINATION ${weft_compat_includedir} ${compat})

set(zeromq_cmake_dir ${weft_compat_libdir}/cmake/ZeroMQ)
configure_package_config_file(cmake/ZeroMQConfig.cmake.in cmake/ZeroMQConfig.cmake INSTALL_DESTINATION ${zeromq_cmake_dir}
  PATH_VARS weft_compat_includedir weft_compat_libdir)
write_basic_package_version_file(cmake/ZeroMQConfigVersion.cmake VERSION ${weft_zmq_version} COMPATIBILITY AnyNewerVersion)
install(EXPORT ZeroMQTargets DESTINATION ${zeromq_cmake_dir} ${compat})
install(FILES ${PROJECT_BINARY_DIR}/cmake/ZeroMQConfig.cmake ${PROJECT_BINARY_DIR}/cmake/ZeroMQConfigVersion.cmake
  DESTINATION ${zeromq_cmake_dir} ${compat})

file(RELATIVE_PATH weft_compat_to_prefix /${weft_compat_libdir}/pkgconfig /)
string(REGEX REPLACE "/$" "" weft_compat_to_prefix "${weft_compat_to_prefix}")
configure_file(cmake/libzmq.pc.in libzmq.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/libzmq.pc DESTINATION ${weft_compat_libdir}/pkgconfig ${compat})
