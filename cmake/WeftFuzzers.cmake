# SPDX-License-Identifier: MIT
# Each x_fuzz.cc becomes the libFuzzer program x_fuzz. Built by cmake/build_fuzzers.cmake.
file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS weft/*_fuzz.cc)
foreach(source IN LISTS fuzzers)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE weft weft_schemas)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
