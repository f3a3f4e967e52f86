// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <cstdlib>

// WEFT_ASSERT states a fact that only a bug in Weft itself can break. It stays on in every build and aborts
// with the place and the text. The operating system, a peer or a caller that misbehaves gets an Error
// instead, never an assertion.
#define WEFT_ASSERT(condition)                                                                     \
  do {                                                                                             \
    if (!(condition)) [[unlikely]] {                                                               \
      std::fprintf(stderr, "weft: internal error at %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)

// WEFT_DCHECK is WEFT_ASSERT for checks that cost too much in a release build.
#ifdef NDEBUG
#define WEFT_DCHECK(condition) \
  do {                         \
  } while (false)
#else
#define WEFT_DCHECK(condition) WEFT_ASSERT(condition)
#endif
