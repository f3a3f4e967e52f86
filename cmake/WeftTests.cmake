# SPDX-License-Identifier: MIT
# One test program per folder, and the fuzzers.
find_package(GTest REQUIRED)
find_library(WEFT_PROTOBUF_LIBRARY protobuf)  # bodies of remote calls
find_path(WEFT_PROTOBUF_INCLUDE google/protobuf/wrappers.pb.h)
find_library(WEFT_RAPIDCHECK rapidcheck)  # x_property_test.cc: a part beside a simple model of it
find_program(WEFT_ANY_PYTHON python3 REQUIRED)

# weft_add_cases(TARGET LABEL [SHARDS N] [FILTER F PREFIX P ENVIRONMENT E]): the cases of a GoogleTest program, as the
# ctest tests `cases.TARGET`, or one for each of N shards. tools/testing/own_process.txt lists the cases that run in a
# process of their own; those that run alone are `cases.TARGET.alone`.
set(weft_shards_of_conformance_test 8)
set(weft_shards_of_exhaustion_test 2)
set(weft_shards_of_sync_model_test 2)
set(weft_shards_of_topic_test 3)
set(weft_shards_of_serve_test 2)
set(weft_shards_of_msg_test 2)
set(weft_shards_of_store_test 2)
set(weft_own_process ${PROJECT_SOURCE_DIR}/tools/testing/own_process.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${weft_own_process})
set(weft_sanitizer plain)
if(WEFT_SANITIZE MATCHES "address|thread")
  set(weft_sanitizer ${CMAKE_MATCH_0})
endif()
function(weft_add_cases target label)
  cmake_parse_arguments(PARSE_ARGV 2 cases "" "SHARDS;FILTER;PREFIX;ENVIRONMENT" "")
  set(name cases.${cases_PREFIX}${target})
  if(NOT cases_SHARDS)
    set(cases_SHARDS 1)
  endif()
  set(options --name ${target} --build ${weft_sanitizer})
  if(cases_FILTER)
    list(APPEND options --filter ${cases_FILTER} --prefix ${cases_PREFIX})
  endif()
  set(entries)
  if(cases_SHARDS GREATER 1)
    foreach(shard RANGE 1 ${cases_SHARDS})
      weft_add_cases_entry(${name}.${shard}of${cases_SHARDS} ${options} --shard ${shard}/${cases_SHARDS})
    endforeach()
  else()
    weft_add_cases_entry(${name} ${options})
  endif()
  file(STRINGS ${weft_own_process} alone REGEX "^alone +${target} ")
  if(alone)
    weft_add_cases_entry(${name}.alone ${options} --alone)
    set_tests_properties(${name}.alone PROPERTIES RUN_SERIAL TRUE)
  endif()
  set_tests_properties(${entries} PROPERTIES LABELS ${label} TIMEOUT 3600 ENVIRONMENT "${cases_ENVIRONMENT}")
  set(weft_entries ${entries} PARENT_SCOPE)
endfunction()
macro(weft_add_cases_entry entry)  # of weft_add_cases alone: the runner itself stops a case that hangs
  add_test(NAME ${entry} COMMAND ${WEFT_ANY_PYTHON} -B ${PROJECT_SOURCE_DIR}/tools/testing/run_cases.py
    --results ${PROJECT_BINARY_DIR}/cases/${entry}.json ${ARGN} $<TARGET_FILE:${target}>)
  list(APPEND entries ${entry})
endmacro()

# weft_nightly(TEST...): tests that only `./dev test --nightly` runs. Each has a smaller one beside it for every day.
function(weft_nightly)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS nightly)
endfunction()

# The headers that every test includes and that take longest to read, compiled once.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "")
add_executable(test_headers ${PROJECT_BINARY_DIR}/test_headers.cc)
target_link_libraries(test_headers PRIVATE weft GTest::gtest_main)
target_compile_options(test_headers PRIVATE -O0)
target_precompile_headers(test_headers PRIVATE
  <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <set> <string> <thread> <vector>
  <gtest/gtest.h>)

set(weft_tests_without_threads base_test zmtp_test fuzz_test store_test)  # ThreadSanitizer has nothing to find in them
set(weft_tests_of_each_build capi_test mem_test)  # they have cases that no sanitizer permits
set(weft_nightly_with_threads exhaustion_test hub_kill_test)  # ThreadSanitizer runs them in the nightly effort only
add_custom_target(nightly_tests)  # what `unit_tests` leaves out too
add_custom_target(unit_tests)  # what `all` leaves out: `./dev test` runs the cases in the sanitized builds
function(weft_add_test_program target)
  add_executable(${target} EXCLUDE_FROM_ALL ${ARGN})
  target_link_libraries(${target} PRIVATE weft weft_schemas GTest::gtest_main)
  if(target STREQUAL serve_test AND WEFT_PROTOBUF_LIBRARY AND WEFT_PROTOBUF_INCLUDE)
    target_link_libraries(${target} PRIVATE ${WEFT_PROTOBUF_LIBRARY})
    target_compile_definitions(${target} PRIVATE WEFT_TEST_PROTOBUF)
  endif()
  if(WEFT_RAPIDCHECK)
    target_link_libraries(${target} PRIVATE ${WEFT_RAPIDCHECK})
  endif()
  if(WEFT_SANITIZE MATCHES "thread" AND target IN_LIST weft_tests_without_threads)
    return()
  endif()
  set(label unit)
  if(target MATCHES "_model_test$")
    set(label model)
  elseif(target IN_LIST weft_tests_of_each_build AND NOT WEFT_SANITIZE)
    set(label plain)
  endif()
  if(NOT label STREQUAL unit)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL OFF)
  endif()
  weft_add_cases(${target} ${label} SHARDS ${weft_shards_of_${target}})
  if(WEFT_SANITIZE MATCHES "thread" AND target IN_LIST weft_nightly_with_threads)
    weft_nightly(${weft_entries})
    add_dependencies(nightly_tests ${target})
  else()
    add_dependencies(unit_tests ${target})
  endif()
endfunction()
function(weft_add_unit_test target)
  weft_add_test_program(${target} ${ARGN})
  target_compile_options(${target} PRIVATE -O0)  # the library that it tests is optimised; this saves half of the time
  # The library is checked for undefined behaviour. Its rooms of templates are checked in their tests, but for alignment,
  # which costs much of the compiler's time there: the library and mem_test have that check.
  if(WEFT_SANITIZE MATCHES "undefined" AND NOT target STREQUAL mem_test)
    if(target MATCHES "^(base|sync|rt|zmtp|fuzz)_test$")
      target_compile_options(${target} PRIVATE -fno-sanitize=alignment)
    else()
      target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM test_headers)
  # CMAKE_UNITY_BUILD compiles several sources of a large program at a time, so names of their own differ. GCC takes the
  # names of one for those of a header of the others.
  if(target MATCHES "^(base|sys|sync|mem|zmtp|net|store|stop_orders)_test$")
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  elseif(CMAKE_UNITY_BUILD)
    target_compile_options(${target} PRIVATE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

file(GLOB test_support CONFIGURE_DEPENDS tests/support/*.cc)
foreach(folder IN LISTS weft_folders weft_topics_folders)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS weft/${folder}/*_test.cc weft/${folder}/test_*.cc)
  if(NOT WEFT_RAPIDCHECK OR WEFT_SANITIZE MATCHES "thread")  # a property test has one thread
    list(FILTER tests EXCLUDE REGEX "_property_test\\.cc$")
  endif()
  set(model_tests ${tests})
  list(FILTER tests EXCLUDE REGEX "_model_test\\.cc$")
  list(FILTER model_tests INCLUDE REGEX "_model_test\\.cc$")
  if(tests)
    weft_add_unit_test(${folder}_test ${tests})
    if(folder IN_LIST weft_topics_folders)
      target_link_libraries(${folder}_test PRIVATE weft_topics)
    endif()
  endif()
  # Model tests are a program of their own: the same templates, compiled with the model checker's atomics instead of the
  # machine's. Not with sanitizers: the checker itself finds races, leaks and uses of freed memory, on stacks of its
  # own, which sanitizers do not follow.
  if(model_tests AND NOT WEFT_SANITIZE)
    weft_add_test_program(${folder}_model_test ${model_tests} ${test_support})
    target_compile_definitions(${folder}_model_test PRIVATE WEFT_MODEL_CHECK)
    set_target_properties(${folder}_model_test PROPERTIES UNITY_BUILD OFF)
  endif()
endforeach()

# Runs the tests of loops, cores and servers once more with io_uring. Where the system forbids io_uring they run with
# epoll, and io_uring.LoopPoller.* is skipped with the reason.
weft_add_cases(rt_test unit FILTER "Loop*:Runtime*:Core*:Call*:PostWait*:TaskTime*:TaskWork*"
  PREFIX io_uring. ENVIRONMENT WEFT_POLLER=io_uring)
weft_add_cases(serve_test unit FILTER "*ServerTest*:*StopTest*:*SessionTest*:*LimitsTest*:*AcceptMode*:*Slow*"
  PREFIX io_uring. ENVIRONMENT WEFT_POLLER=io_uring)

# Compares with libsodium's own result for the same bytes.
if(sodium_FOUND)
  set_source_files_properties(weft/zmtp/curve_box_test.cc PROPERTIES COMPILE_DEFINITIONS WEFT_HAVE_SODIUM
    SKIP_PRECOMPILE_HEADERS ON)
  target_include_directories(zmtp_test SYSTEM PRIVATE ${sodium_INCLUDE_DIRS})
  target_link_libraries(zmtp_test PRIVATE ${sodium_LINK_LIBRARIES})
endif()

# A VFS of the tests loses unsynced writes, and has no room.
if(SQLite3_FOUND AND TARGET store_test)
  target_compile_definitions(store_test PRIVATE WEFT_HAVE_SQLITE)
  target_include_directories(store_test SYSTEM PRIVATE ${SQLite3_INCLUDE_DIRS})
  target_link_libraries(store_test PRIVATE ${SQLite3_LIBRARIES})
endif()

# These tests use OpenSSL for their certificates and for an old client.
if(OPENSSL_FOUND)
  foreach(folder net serve topic)
    file(GLOB_RECURSE tls_tests CONFIGURE_DEPENDS weft/${folder}/tls*_test.cc)
    set_source_files_properties(${tls_tests} PROPERTIES COMPILE_DEFINITIONS WEFT_HAVE_OPENSSL
      SKIP_PRECOMPILE_HEADERS ON)
    target_include_directories(${folder}_test SYSTEM PRIVATE ${OPENSSL_INCLUDE_DIR})
    target_link_libraries(${folder}_test PRIVATE ${OPENSSL_SSL_LIBRARY} ${OPENSSL_CRYPTO_LIBRARY})
  endforeach()
endif()

# Fuzzers need clang, so they have a build of their own inside this one. The first test makes it; one test per x_fuzz.cc
# runs it. Every day tests/fuzz replays their finds.
find_program(WEFT_FUZZ_CXX NAMES clang++-19)
file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS weft/*_fuzz.cc)
if(WEFT_FUZZ_CXX AND fuzzers AND NOT WEFT_SANITIZE)
  set(fuzz_dir ${PROJECT_BINARY_DIR}/fuzz)
  add_test(NAME fuzz.build COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DBINARY=${fuzz_dir}
    -DCXX=${WEFT_FUZZ_CXX} -DGENERATOR=${CMAKE_GENERATOR} -P ${PROJECT_SOURCE_DIR}/cmake/build_fuzzers.cmake)
  set_tests_properties(fuzz.build PROPERTIES LABELS fuzz FIXTURES_SETUP fuzzers TIMEOUT 900 PROCESSORS 2)
  weft_nightly(fuzz.build)
  foreach(source IN LISTS fuzzers)
    get_filename_component(name ${source} NAME_WE)
    add_test(NAME fuzz.${name} COMMAND ${CMAKE_COMMAND} -DPROGRAM=${fuzz_dir}/${name} -DSOURCE=${source}
      -DWORK=${fuzz_dir}/runs/${name} -P ${PROJECT_SOURCE_DIR}/cmake/run_fuzzer.cmake)
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz FIXTURES_REQUIRED fuzzers TIMEOUT 0)
    weft_nightly(fuzz.${name})
  endforeach()
endif()
