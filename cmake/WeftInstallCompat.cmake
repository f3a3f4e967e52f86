# SPDX-License-Identifier: MIT
# `cmake --install BUILD --component compat`: Weft in the place of libzmq: libzmq.so.5, zmq.h, zmq_utils.h, libzmq.pc
# and the CMake package ZeroMQ, all as of libzmq 4.3.5. A plain `cmake --install` installs none of these files,
# because they would shadow a real libzmq.
set(weft_zmq_version 4.3.5)  # as zmq_version() returns
set(compat COMPONENT compat EXCLUDE_FROM_ALL)

set_target_properties(weft_zmq PROPERTIES EXPORT_NAME libzmq)
install(TARGETS weft_zmq EXPORT ZeroMQTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ${compat} NAMELINK_COMPONENT compat
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES capi/zmq.h capi/zmq_utils.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${compat})

set(zeromq_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ZeroMQ)
configure_package_config_file(cmake/ZeroMQConfig.cmake.in cmake/ZeroMQConfig.cmake INSTALL_DESTINATION ${zeromq_cmake_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(cmake/ZeroMQConfigVersion.cmake VERSION ${weft_zmq_version} COMPATIBILITY AnyNewerVersion)
install(EXPORT ZeroMQTargets DESTINATION ${zeromq_cmake_dir} ${compat})
install(FILES ${PROJECT_BINARY_DIR}/cmake/ZeroMQConfig.cmake ${PROJECT_BINARY_DIR}/cmake/ZeroMQConfigVersion.cmake
  DESTINATION ${zeromq_cmake_dir} ${compat})

configure_file(cmake/libzmq.pc.in libzmq.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/libzmq.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${compat})
