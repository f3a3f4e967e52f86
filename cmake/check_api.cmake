# SPDX-License-Identifier: MIT
# cmake -DSOURCE= -DPAGE= -P: docs/api.md equals the page that weft/public.txt, the
# #includes and the READMEs make, which goes to PAGE.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/api_page.cmake)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${PAGE} ${SOURCE}/docs/api.md RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "docs/api.md is not what ./dev api makes; run it")
endif()
