# SPDX-License-Identifier: MIT
# cmake -DSOURCE= [-DPAGE=] -P: writes docs/api.md, or PAGE, from weft/public.txt and the #includes of those headers. A heading per
# room, with the first line of its README.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/WeftHeaders.cmake)
if(NOT PAGE)
  set(PAGE ${SOURCE}/docs/api.md)
endif()

weft_public_headers(${SOURCE} public)
weft_support_headers(${SOURCE} support)
set(text [=[
# The public headers

<!-- Made by ./dev api from weft/public.txt and the READMEs of the rooms: edit those. -->

Include each header that you use, by its path: `#include "weft/sync/wait_queue.h"`. A header that is not on this page does not belong
to the interface: any release may change or remove it.
]=])
set(room "weft")
foreach(header IN LISTS public)
  get_filename_component(folder ${header} DIRECTORY)
  if(NOT folder STREQUAL room)
    file(STRINGS ${SOURCE}/${folder}/README.md title LIMIT_COUNT 1)
    string(REGEX REPLACE "^# " "" title "${title}")
    string(APPEND text "\n## ${title}\n\n| header | contents |\n|---|---|\n")
  elseif(folder STREQUAL "weft")
    string(APPEND text "\n| header | contents |\n|---|---|\n")
  endif()
  set(room ${folder})
  string(APPEND text "| [${header}](../${header}) | ${about_${header}} |\n")
endforeach()
string(APPEND text [=[

## Support headers

The headers above include these, so the compiler needs them and they are installed. Do not include them yourself: their
contents may change in any release.

]=])
set(room "")
foreach(header IN LISTS support)
  get_filename_component(folder ${header} DIRECTORY)
  get_filename_component(name ${header} NAME)
  if(folder STREQUAL room)
    string(APPEND text ", `${name}`")
  else()
    if(room)
      string(APPEND text "\n")
    endif()
    string(APPEND text "- ${folder}: `${name}`")
  endif()
  set(room ${folder})
endforeach()
file(WRITE ${PAGE} "${text}\n")
