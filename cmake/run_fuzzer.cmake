# SPDX-License-Identifier: MIT
# cmake -DPROGRAM= -DSOURCE= -DWORK= -P: runs one fuzzer for WEFT_FUZZ_SECONDS (5). The fuzzer keeps its corpus for the
# next run in WORK/corpus; x_fuzz.corpus/ beside x_fuzz.cc holds the seeds, if any. A crash leaves its input in WORK.
cmake_minimum_required(VERSION 3.25)
set(seconds 5)
if(DEFINED ENV{WEFT_FUZZ_SECONDS})
  set(seconds $ENV{WEFT_FUZZ_SECONDS})
endif()
file(MAKE_DIRECTORY ${WORK}/corpus)
string(REGEX REPLACE "\\.cc$" ".corpus" seeds ${SOURCE})
if(NOT IS_DIRECTORY ${seeds})
  set(seeds)
endif()
set(ENV{UBSAN_OPTIONS} print_stacktrace=1)
execute_process(COMMAND ${PROGRAM} -max_total_time=${seconds} -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
  -artifact_prefix=${WORK}/ ${WORK}/corpus ${seeds} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "fuzzer failed (${result}); repeat it with ${PROGRAM} <the file in ${WORK}/ named above>")
endif()
