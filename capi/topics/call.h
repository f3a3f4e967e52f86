// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <type_traits>

#include "capi/last_error.h"
#include "capi/weft_topics.h"
#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/wire/headers.h"

// The translation of calls: errors to codes, and arguments of C to those of weft/topic.
namespace weft::capi::topics {

inline constexpr Error kNullPointer(Errc::invalid_argument, "a pointer is null");

// Notes the error, and returns its code.
[[nodiscard]] int code_of(const Error& error) noexcept;

// Runs the body of a function of the C interface, through which no exception passes. Returns the result's number, 0 for
// a result without one, or the code of its error. Not noexcept: the stack of a cancelled thread unwinds through it.
template <typename Body>
[[nodiscard]] int call(Body&& body) {
  try {
    const auto result = body();
    if (!result) {
      return code_of(result.error());
    }
    if constexpr (std::is_same_v<decltype(result), const Result<int>>) {
      return *result;
    } else {
      return 0;
    }
  } catch (const std::bad_alloc&) {
    return code_of(Error(Errc::resource_exhausted, "no memory"));
  } catch (const std::exception&) {
    return code_of(Error(Errc::system, "an exception of the standard library"));
  }
}

// The deadline of a call that waits. `waits` is false for a timeout of 0. Fails with invalid_argument.
struct Patience {
  Instant deadline = kNever;
  bool waits = true;
};
[[nodiscard]] Result<Patience> patience_of(std::int64_t timeout_ms) noexcept;
// Fails with invalid_argument if the number is negative.
[[nodiscard]] Result<Duration> duration_of(std::int64_t milliseconds) noexcept;

[[nodiscard]] inline std::string_view text_or_empty(const char* text) noexcept {
  return text == nullptr ? std::string_view() : std::string_view(text);
}
[[nodiscard]] inline Result<std::string_view> text_of(const char* text) noexcept {
  return text == nullptr ? Result<std::string_view>(kNullPointer) : Result<std::string_view>(text);
}
[[nodiscard]] inline Result<Bytes> bytes_of(const void* data, std::size_t size) noexcept {
  return data == nullptr && size != 0 ? Result<Bytes>(kNullPointer)
                                      : Result<Bytes>(Bytes(static_cast<const std::uint8_t*>(data), size));
}
[[nodiscard]] Result<Headers> headers_of(const weft_topics_header* headers, std::size_t count);

// A copy of the caller's options, whose structure may be that of an earlier or a later version. Errors:
// invalid_argument (the size); not_supported (a member that this version does not have is not 0).
template <typename Options>
[[nodiscard]] Result<Options> options_of(const Options* given) noexcept {
  Options options{};
  if (given == nullptr) {
    options.struct_size = sizeof options;
    return options;
  }
  constexpr std::size_t kMost = 4096;
  const std::size_t size = given->struct_size;
  if (size < sizeof(std::size_t) || size > kMost) {
    return Error(Errc::invalid_argument, "struct_size is not the size of the options");
  }
  std::memcpy(&options, given, std::min(size, sizeof options));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof options && std::any_of(bytes + sizeof options, bytes + size, [](auto byte) { return byte != 0; })) {
    return Error(Errc::not_supported, "an option of a later version");
  }
  return options;
}

}  // namespace weft::capi::topics
