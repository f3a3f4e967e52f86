# SPDX-License-Identifier: MIT
# Most of what compiling a source of the library takes is reading the standard headers. For builds that are made to run tests
# (sanitizers, fuzzers); the others show that each source includes what it uses.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/library_headers.cc CONTENT "")
add_library(library_headers OBJECT ${PROJECT_BINARY_DIR}/library_headers.cc)
target_precompile_headers(library_headers PRIVATE
  <algorithm> <array> <atomic> <chrono> <concepts> <coroutine> <cstddef> <cstdint> <cstring> <functional> <limits> <map>
  <memory> <mutex> <new> <optional> <set> <span> <string> <string_view> <thread> <type_traits> <utility> <vector>)
foreach(folder IN LISTS weft_folders)
  if(TARGET weft_${folder} AND NOT folder STREQUAL "zmtp")  # its definition of libsodium is another command line
    target_precompile_headers(weft_${folder} REUSE_FROM library_headers)
  endif()
endforeach()
