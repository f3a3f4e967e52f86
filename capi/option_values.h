// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "capi/handles.h"
#include "weft/msg/message/options.h"

// The rules by which the rows of options.cc read and write a value of the C interface.
namespace weft::capi {

inline int answer(const Result<void>& result) noexcept { return result ? 0 : fail(result.error()); }

// --- raw values ---

// Copies a value into the caller's bytes and fills the rest with zeros, so that a wider integer reads well.
inline int put_bytes(void* value, size_t* size, const void* what, size_t length) noexcept {
  if (*size < length) {
    return fail(EINVAL);
  }
  if (length != 0) {
    std::memcpy(value, what, length);
  }
  std::memset(static_cast<char*>(value) + length, 0, *size - length);
  *size = length;
  return 0;
}
template <typename T>
int put(void* value, size_t* size, T what) noexcept {
  return put_bytes(value, size, &what, sizeof(T));
}
// The caller's size must be exact.
template <typename T>
int put_exactly(void* value, size_t* size, T what) noexcept {
  return *size == sizeof(T) ? put(value, size, what) : fail(EINVAL);
}
template <typename T>
bool take(const void* value, size_t size, T& what) noexcept {
  if (value == nullptr || size != sizeof(T)) {
    (void)fail(EINVAL);
    return false;
  }
  std::memcpy(&what, value, sizeof(T));
  return true;
}

// --- options that are rows of weft::option; the C interface has int for bool and milliseconds for durations ---

template <typename T>
int to_int(const T& value) noexcept {
  if constexpr (std::is_same_v<T, Duration>) {
    return value < Duration::zero()
               ? -1
               : static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(value).count());
  } else {
    return static_cast<int>(value);
  }
}

template <const auto& kRow>
int read_row(SocketHandle& handle, void* value, size_t* size) {
  using T = std::remove_cvref_t<decltype(std::declval<Options>().*kRow.member)>;
  const Options options = handle.core->options_copy();
  if constexpr (std::is_same_v<T, std::string>) {
    const std::string& text = options.*kRow.member;
    return put_bytes(value, size, text.data(), text.size());
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return put_exactly(value, size, options.*kRow.member);
  } else {
    return put_exactly(value, size, to_int(options.*kRow.member));
  }
}

template <const auto& kRow>
int write_row(SocketHandle& handle, const void* value, size_t size) {
  using T = std::remove_cvref_t<decltype(std::declval<Options>().*kRow.member)>;
  T wanted{};
  if constexpr (std::is_same_v<T, std::string>) {
    if (value == nullptr || size == 0) {
      return fail(EINVAL);
    }
    wanted.assign(static_cast<const char*>(value), size);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    if (!take(value, size, wanted)) {
      return -1;
    }
  } else {
    int number = 0;
    if (!take(value, size, number)) {
      return -1;
    }
    if constexpr (std::is_same_v<T, bool>) {
      if (number != 0 && number != 1) {
        return fail(EINVAL);
      }
      wanted = number != 0;
    } else if constexpr (std::is_same_v<T, Duration>) {
      if (number < -1 || number < kRow.min) {
        return fail(EINVAL);
      }
      wanted = number < 0 ? Duration(-1) : Duration(std::chrono::milliseconds(number));
    } else {
      wanted = number;
    }
  }
  return answer(msg::set_up(*handle.core, &msg::SocketCore::set_options,
                            [&](Options& options) { return set_option(options, kRow, std::move(wanted)); }));
}

template <typename Change>
int change(SocketHandle& handle, Change change) {
  return answer(msg::set_up(*handle.core, &msg::SocketCore::set_options, [&](Options& options) {
    change(options);
    return Result<void>();
  }));
}

}  // namespace weft::capi
