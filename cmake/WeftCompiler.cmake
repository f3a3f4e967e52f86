# SPDX-License-Identifier: MIT
# Warnings, sanitizers and ccache, for the whole tree.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion)
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)  # an assertion names weft/x.cc, not a machine's path
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-deprecated-declarations)  # std::stable_sort of GCC's library calls a deprecated function
endif()
if(WEFT_WERROR)
  add_compile_options(-Werror)
endif()

if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
  if(WEFT_SANITIZE MATCHES "undefined")
    # An access through null ends the program without a check, and AddressSanitizer finds the errors that object-size
    # finds. The two take a third of the time of compiling. The check of a vptr opens a pipe to see whether memory can be
    # read, and without descriptors it reports a type that is right.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=null,object-size,vptr)
    add_link_options(-fno-sanitize-recover=undefined)
  endif()
endif()

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${WEFT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WEFT_CCACHE})
endif()
