# SPDX-License-Identifier: MIT
# The target that `./dev libdir` builds compiles the sources of the C interface and of the engine, and none of the server
# framework, of topics or of a test: it builds in a part of the time of the whole.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${NINJA} -C ${BUILD} -t commands weft_zmq OUTPUT_VARIABLE commands COMMAND_ERROR_IS_FATAL ANY)
if(NOT commands MATCHES "weft_msg\\.dir" OR NOT commands MATCHES "capi/libzmq\\.so")
  message(FATAL_ERROR "these are not the commands of libzmq.so.5:\n${commands}")
endif()
if(commands MATCHES "CMakeFiles/([a-z_]*(serve|topic|store|nats|test)[a-z_]*)\\.dir")
  message(FATAL_ERROR "./dev libdir compiles ${CMAKE_MATCH_1}")
endif()
