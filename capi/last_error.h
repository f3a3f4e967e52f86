// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/error.h"

// Exported: if a program loads libzmq.so.5 and libweft_topics_c.so, the dynamic linker gives both libraries the same
// one of the two functions, and so the thread has one last error. `text` is never freed.
extern "C" __attribute__((visibility("default"))) void weft_note_error(const char* text, std::uint64_t number);

namespace weft::capi {

// The error of the calling thread that weft_last_error_text() returns. Cost: two stores; the text is made when a
// program reads it.
inline void note(const Error& error) noexcept { weft_note_error(error.text(), error.parts().number); }

// The error of an errno that a call of libzmq's interface sets.
[[nodiscard]] Error error_of_errno(int code) noexcept;

// Sets errno, notes the error and returns -1.
int fail(int code) noexcept;

}  // namespace weft::capi
