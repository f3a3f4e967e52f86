// SPDX-License-Identifier: MIT
#pragma once

#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/base/assert.h"
#include "weft/base/error.h"

namespace weft {

// Result<T>: a T, or the Error that says why there is none.
// Affinity: a value. Cost: no allocation. value() on an error is a bug of the caller and aborts; look first.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(Error error) noexcept : has_value_(false), error_(error) {}  // NOLINT(google-explicit-constructor)
  Result(Errc code) noexcept : Result(Error(code)) {}                 // NOLINT(google-explicit-constructor)
  Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>)   // NOLINT(google-explicit-constructor)
      : has_value_(true), value_(std::move(value)) {}

  Result(const Result& other) : has_value_(other.has_value_) {
    if (has_value_) {
      ::new (&value_) T(other.value_);
    } else {
      error_ = other.error_;
    }
  }
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : has_value_(other.has_value_) {
    if (has_value_) {
      ::new (&value_) T(std::move(other.value_));
    } else {
      error_ = other.error_;
    }
  }
  Result& operator=(Result other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    this->~Result();
    ::new (this) Result(std::move(other));
    return *this;
  }
  ~Result() {
    if (has_value_) {
      value_.~T();
    }
  }

  [[nodiscard]] bool has_value() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return has_value_; }

  [[nodiscard]] T& value() & { return checked(), value_; }
  [[nodiscard]] const T& value() const& { return checked(), value_; }
  [[nodiscard]] T&& value() && { return checked(), std::move(value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // ok when there is a value.
  [[nodiscard]] Error error() const noexcept { return has_value_ ? Error() : error_; }

  template <typename U>
  [[nodiscard]] T value_or(U&& fallback) && {
    return has_value_ ? std::move(value_) : static_cast<T>(std::forward<U>(fallback));
  }

 private:
  void checked() const { WEFT_ASSERT(has_value_); }

  bool has_value_;
  union {
    T value_;
    Error error_;
  };
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() noexcept = default;
  Result(Error error) noexcept : error_(error) {}      // NOLINT(google-explicit-constructor)
  Result(Errc code) noexcept : Result(Error(code)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return error_.code() == Errc::ok; }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const { WEFT_ASSERT(has_value()); }
  [[nodiscard]] Error error() const noexcept { return error_; }

 private:
  Error error_;
};

namespace detail {
template <typename T>
T take_value(Result<T>& result) {
  return std::move(result).value();
}
inline void take_value(Result<void>&) {}
}  // namespace detail

}  // namespace weft

// Yields the value of a Result, or returns its Error from the enclosing function.
#define WEFT_TRY(expression)                     \
  __extension__({                                \
    auto weft_try_result = (expression);         \
    if (!weft_try_result) [[unlikely]] {         \
      return weft_try_result.error();            \
    }                                            \
    ::weft::detail::take_value(weft_try_result); \
  })
