// SPDX-License-Identifier: MIT
#pragma once

// The version of these headers. CMakeLists.txt reads it from this line.
#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0
// For example, 1.2.3 is 10203.
#define WEFT_VERSION (WEFT_VERSION_MAJOR * 10000 + WEFT_VERSION_MINOR * 100 + WEFT_VERSION_PATCH)

#if __cplusplus < 202002L
#error Weft needs C++20: compile with -std=c++20, or with CMAKE_CXX_STANDARD 20
#endif
