# SPDX-License-Identifier: MIT
# The library without its optional packages: CMake configures, and each source that asks for one of them compiles without
# all of them, with warnings as errors. Empties WORK first.
cmake_minimum_required(VERSION 3.25)
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGV}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
set(ENV{PKG_CONFIG_LIBDIR} ${WORK}/none)  # there is no libsodium
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DWEFT_BUILD_TESTS=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON -DWEFT_HTTP_PARSER=OFF -DWEFT_HTTP_PARSER_INCLUDE=OFF)

file(GLOB_RECURSE files ${SOURCE}/weft/*.cc)
list(FILTER files EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
set(checked 0)
foreach(file IN LISTS files)
  file(STRINGS ${file} lines REGEX "WEFT_HAVE_(OPENSSL|SODIUM|HTTP_PARSER)")
  if(lines)
    run(${CXX} -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror -I${SOURCE} ${file})
    math(EXPR checked "${checked} + 1")
  endif()
endforeach()
if(checked LESS 3)
  message(FATAL_ERROR "only ${checked} sources ask for an optional package: this test found none")
endif()
message(STATUS "${checked} sources compile without the optional packages")
