# SPDX-License-Identifier: MIT
# The library without its optional packages: CMake configures, and each source that asks for one of them compiles without
# all of them, with warnings as errors. These objects and the others of BUILD make a program that links none of the
# packages, whose volatile topics work, and whose kept topics are refused. Empties WORK first.
cmake_minimum_required(VERSION 3.25)
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGV}\n${output}")
  endif()
  set(output ${output} PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
set(ENV{PKG_CONFIG_LIBDIR} ${WORK}/none)  # there is no libsodium
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DWEFT_BUILD_TESTS=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON -DCMAKE_DISABLE_FIND_PACKAGE_SQLite3=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON)

# The installed package asks for none that the build lacks.
set(packages "sqlite|libssl|libcrypto|openssl|sodium|zlib|libz[.]")
file(GLOB_RECURSE files ${WORK}/CMakeFiles/Export/weftTargets*.cmake ${WORK}/weft.pc ${WORK}/weft-topics.pc)
list(LENGTH files count)
if(count LESS 3)
  message(FATAL_ERROR "the files of the package are not where this test expects them: ${files}")
endif()
foreach(file IN LISTS files)
  file(STRINGS ${file} lines REGEX "${packages}")
  if(lines)
    message(FATAL_ERROR "${file} asks for a package that is absent: ${lines}")
  endif()
endforeach()

file(GLOB_RECURSE files ${SOURCE}/weft/*.cc)
list(FILTER files EXCLUDE REGEX "(_(test|fuzz|bench)|/test_[a-z_]+)\\.cc$")
set(objects)
foreach(file IN LISTS files)
  file(STRINGS ${file} lines REGEX "WEFT_HAVE_(OPENSSL|SODIUM|SQLITE|ZLIB|TOML)")
  if(lines)
    file(RELATIVE_PATH object ${SOURCE} ${file})
    string(REPLACE "/" "_" object ${object}.o)
    run(${CXX} -std=c++20 -c -Wall -Wextra -Wconversion -Wshadow -Werror -I${SOURCE} ${file} -o ${WORK}/${object})
    list(APPEND objects ${WORK}/${object})
  endif()
endforeach()
list(LENGTH objects checked)
if(checked LESS 5)
  message(FATAL_ERROR "only ${checked} sources ask for an optional package: this test found none")
endif()
message(STATUS "${checked} sources compile without the optional packages")

# The linker prefers the objects to the members of BUILD's archives.
run(${CXX} -std=c++20 -I${SOURCE} ${SOURCE}/tests/install/topics/program.cc ${objects} ${BUILD}/libweft_topics.a
  ${BUILD}/libweft.a -pthread -o ${WORK}/program)
run(ldd ${WORK}/program)
if(output MATCHES "(${packages})")
  message(FATAL_ERROR "a program without the optional packages loads ${CMAKE_MATCH_1}")
endif()
file(MAKE_DIRECTORY ${WORK}/fleet)
file(CHMOD ${WORK}/fleet PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
run(${WORK}/program not_supported ${WORK}/fleet)
message(STATUS "${output}")
