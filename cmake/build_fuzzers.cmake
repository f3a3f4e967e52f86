# SPDX-License-Identifier: MIT
# cmake -DSOURCE= -DBINARY= -DCXX= -DGENERATOR= -P: configures and builds the fuzzers with clang.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BINARY} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1"
  -DWEFT_SANITIZE=fuzzer-no-link,address,undefined -DWEFT_BUILD_FUZZERS=ON -DCMAKE_UNITY_BUILD=ON
  -DWEFT_BUILD_TESTS=OFF -DWEFT_BUILD_BENCH=OFF
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE fuzzers ${SOURCE}/weft/*_fuzz.cc)
set(names)
foreach(source IN LISTS fuzzers)
  get_filename_component(name ${source} NAME_WE)
  list(APPEND names ${name})
endforeach()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BINARY} --parallel 2 --target ${names} COMMAND_ERROR_IS_FATAL ANY)
