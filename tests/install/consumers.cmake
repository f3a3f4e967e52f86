# SPDX-License-Identifier: MIT
# Installs the build, moves the tree, then uses it as another project would: EXAMPLES with find_package(weft) (static),
# two of them with pkg-config (shared), and every public header in one program. Empties WORK first.
cmake_minimum_required(VERSION 3.25)
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGV}\n${output}")
  endif()
endfunction()

set(prefix ${WORK}/moved)
file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${prefix})

include(${SOURCE}/cmake/WeftHeaders.cmake)
weft_public_headers(${SOURCE} headers)

message(STATUS "find_package(weft)")
run(${CMAKE_COMMAND} -S ${SOURCE}/examples -B ${WORK}/cmake -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${WORK}/cmake --parallel 2 --target ${EXAMPLES})
run(${WORK}/cmake/hello)
run(${WORK}/cmake/topics)

message(STATUS "pkg-config weft")
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIBDIR})
foreach(package weft weft-topics)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${package} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags_${package} UNIX_COMMAND "${output}")
endforeach()
file(MAKE_DIRECTORY ${WORK}/pkg-config)
run(${CXX} -std=c++20 ${SOURCE}/examples/hello.cc ${flags_weft} -o ${WORK}/pkg-config/hello)
run(${CXX} -std=c++20 ${SOURCE}/examples/topics.cc ${flags_weft-topics} -o ${WORK}/pkg-config/topics)
run(${WORK}/pkg-config/hello)
run(${WORK}/pkg-config/topics)

message(STATUS "every public header")
set(all ${WORK}/all_headers.cc)
file(WRITE ${all} "")
foreach(header IN LISTS headers)
  file(APPEND ${all} "#include <${header}>\n")
endforeach()
file(APPEND ${all} "int main() {}\n")
run(${CXX} -std=c++20 ${all} ${flags_weft-topics} -o ${WORK}/all_headers)
