// SPDX-License-Identifier: MIT
// Valgrind's client requests. They do nothing where Valgrind's headers are not installed or the program runs
// without it.
#pragma once

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) static_cast<void>(name)
#endif
