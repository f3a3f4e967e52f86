# SPDX-License-Identifier: MIT
# Precompiles the standard headers, which take most of the time of compiling a source. Only for builds that run tests
# (sanitizers, fuzzers): the other builds prove that each source includes the headers that it uses.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/library_headers.cc CONTENT "")
add_library(library_headers OBJECT ${PROJECT_BINARY_DIR}/library_headers.cc)
target_precompile_headers(library_headers PRIVATE
  <algorithm> <array> <atomic> <chrono> <concepts> <coroutine> <cstddef> <cstdint> <cstring> <functional> <limits> <map>
  <memory> <mutex> <new> <optional> <set> <span> <string> <string_view> <thread> <type_traits> <utility> <vector>)
foreach(folder IN LISTS weft_folders weft_topics_folders)
  if(TARGET weft_${folder} AND NOT folder STREQUAL "zmtp")  # its definition of libsodium is another command line
    target_precompile_headers(weft_${folder} REUSE_FROM library_headers)
  endif()
endforeach()
