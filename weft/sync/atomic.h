// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

// The one place that chooses the atomics: std::atomic, or the model checker's when a model test is compiled.
#ifdef WEFT_MODEL_CHECK
#include "tests/support/model.h"

namespace weft::sync {
template <typename T>
using Atomic = weft::model::Atomic<T>;
template <typename T>
using Plain = weft::model::Plain<T>;
}  // namespace weft::sync
#else
#include <atomic>

namespace weft::sync {
template <typename T>
using Atomic = std::atomic<T>;
template <typename T>
using Plain = T;  // plain data that passes between threads: the checker watches it for races
}  // namespace weft::sync
#endif

namespace weft::sync {

// Two lines, because the adjacent-line prefetcher moves lines in pairs.
inline constexpr std::size_t kLineSize = 128;

}  // namespace weft::sync
