# SPDX-License-Identifier: MIT
# Each x_fuzz.cc becomes the libFuzzer program x_fuzz. Built by cmake/build_fuzzers.cmake. The build leaves the sockets
# out: no parser needs them, and they take the longest to build.
set(fuzzed)
foreach(folder IN LISTS weft_folders)
  if(TARGET weft_${folder} AND NOT folder STREQUAL "msg")
    list(APPEND fuzzed $<TARGET_OBJECTS:weft_${folder}>)
  endif()
endforeach()
add_library(weft_fuzzed STATIC ${fuzzed})
target_include_directories(weft_fuzzed PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(weft_fuzzed PUBLIC Threads::Threads PRIVATE ${sodium_LINK_LIBRARIES}
  ${weft_optional_link})
file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS weft/*_fuzz.cc)
foreach(source IN LISTS fuzzers)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE weft_fuzzed weft_schemas)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
