// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/result_chain.h"
#include "weft/base/result_reference.h"
#include "weft/base/result_void.h"
#include "weft/base/version.h"

namespace weft {

namespace detail {

// std::expected's rule for Result<T> from Result<U>: a T that the whole Result converts to is not made of the
// value.
template <typename T, typename From, typename Value>
concept Unwraps = std::is_constructible_v<T, Value> &&
                  (std::same_as<std::remove_cv_t<T>, bool> ||
                   (!std::is_constructible_v<T, From&> && !std::is_constructible_v<T, const From&> &&
                    !std::is_constructible_v<T, From> && !std::is_constructible_v<T, const From> &&
                    !std::is_convertible_v<From&, T> && !std::is_convertible_v<const From&, T> &&
                    !std::is_convertible_v<From, T> && !std::is_convertible_v<const From, T>));

template <typename From>
using ValueOf = decltype(*std::declval<From>());

template <typename T>
inline constexpr bool kTrivialCopyAssign =
    std::is_trivially_copy_assignable_v<T> && std::is_trivially_copy_constructible_v<T> &&
    std::is_trivially_destructible_v<T>;
template <typename T>
inline constexpr bool kTrivialMoveAssign =
    std::is_trivially_move_assignable_v<T> && std::is_trivially_move_constructible_v<T> &&
    std::is_trivially_destructible_v<T>;

}  // namespace detail

// Result<T>: a T, or an Error with the reason. It is C++23's std::expected<T, Error> in C++20. T is an object, a
// reference (result_reference.h) or void (result_void.h). The differences:
// - An Error or an Errc makes an error, without a wrapper. std::in_place makes a value of such a type.
// - error() is valid at any time, and ok if there is a value. It is 16 bytes by value.
// - Reading the value of an error is a bug of the caller: value(), * and -> name the error and abort in every build.
//   The check costs nothing after a test of the Result, because the compiler finds that it cannot fail.
// - map is another name of transform; transform may return a reference.
// Affinity: a value. Cost: no allocation. T of up to 8 bytes: 16 bytes, in two registers if T is trivially
// copyable.
// Invariants:
// 1. has_value() and error() != Errc::ok are opposites. An Error that is ok becomes the error invalid_state.
// 2. Result<T> is trivially copyable, movable, assignable, destructible where T is.
// 3. An exception in an assignment or swap that changes the state leaves the state, and an error, unchanged.
template <typename T>
class [[nodiscard]] Result : public detail::ResultChain<Result<T>> {
  static_assert(std::is_object_v<T> && !std::is_array_v<T> && !std::same_as<std::remove_cv_t<T>, std::in_place_t> &&
                    !std::same_as<std::remove_cv_t<T>, unexpect_t>,
                "a Result holds an object, an lvalue reference or nothing");

 public:
  using value_type = T;
  using error_type = Error;
  using unexpected_type = Error;
  template <typename U>
  using rebind = Result<U>;

  constexpr Result() noexcept(std::is_nothrow_default_constructible_v<T>)
    requires std::is_default_constructible_v<T>
      : value_() {}
  constexpr Result(Error error) noexcept
      : Result(detail::FromError(), detail::refusal(error)) {}   // NOLINT(google-explicit-constructor)
  constexpr Result(Errc code) noexcept : Result(Error(code)) {}  // NOLINT(google-explicit-constructor)

  template <typename U = T>
    requires(detail::IsPlain<U> && !std::same_as<std::remove_cvref_t<U>, Result> && std::is_constructible_v<T, U> &&
             (!std::same_as<std::remove_cv_t<T>, bool> || !detail::kIsResult<std::remove_cvref_t<U>>))
  constexpr explicit(!std::is_convertible_v<U, T>) Result(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>)
      : value_(std::forward<U>(value)) {}

  template <typename... Args>
    requires std::is_constructible_v<T, Args...>
  constexpr explicit Result(std::in_place_t, Args&&... args) noexcept(std::is_nothrow_constructible_v<T, Args...>)
      : value_(std::forward<Args>(args)...) {}
  template <typename U, typename... Args>
    requires std::is_constructible_v<T, std::initializer_list<U>&, Args...>
  constexpr explicit Result(std::in_place_t, std::initializer_list<U> list, Args&&... args) noexcept(
      std::is_nothrow_constructible_v<T, std::initializer_list<U>&, Args...>)
      : value_(list, std::forward<Args>(args)...) {}
  // The arguments of Error.
  constexpr explicit Result(unexpect_t, Error error = {}) noexcept : Result(error) {}
  constexpr explicit Result(unexpect_t, Errc code, StaticText text = {}, int os_errno = 0) noexcept
      : Result(Error(code, text, os_errno)) {}
  constexpr explicit Result(unexpect_t, ErrorDomain domain, std::uint16_t value, StaticText text = {},
                            int os_errno = 0) noexcept
      : Result(Error(domain, value, text, os_errno)) {}
  template <typename F, typename... Args>
  constexpr Result(detail::FromCall, F&& f, Args&&... args)
      : value_(detail::call(std::forward<F>(f), std::forward<Args>(args)...)) {}
  constexpr Result(detail::FromError, const Error::Parts& error) noexcept : text_(error.text), number_(error.number) {}

  // Converts the Result of another type.
  template <typename U>
    requires(!std::is_void_v<U> && detail::Unwraps<T, Result<U>, detail::ValueOf<const Result<U>&>>)
  constexpr explicit(!std::is_convertible_v<detail::ValueOf<const Result<U>&>, T>)
      Result(const Result<U>& other) noexcept(std::is_nothrow_constructible_v<T, detail::ValueOf<const Result<U>&>>) {
    construct_as(other);
  }
  template <typename U>
    requires(!std::is_void_v<U> && detail::Unwraps<T, Result<U>, detail::ValueOf<Result<U>>>)
  constexpr explicit(!std::is_convertible_v<detail::ValueOf<Result<U>>, T>)
      Result(Result<U>&& other) noexcept(std::is_nothrow_constructible_v<T, detail::ValueOf<Result<U>>>) {
    construct_as(std::move(other));
  }

  Result(const Result& other) = delete;
  constexpr Result(const Result& other)
    requires(std::is_trivially_copy_constructible_v<T>)
  = default;
  constexpr Result(const Result& other) noexcept(std::is_nothrow_copy_constructible_v<T>)
    requires(std::is_copy_constructible_v<T> && !std::is_trivially_copy_constructible_v<T>)
  {
    construct_as(other);
  }
  constexpr Result(Result&& other)
    requires(std::is_trivially_move_constructible_v<T>)
  = default;
  constexpr Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>)
    requires(std::is_move_constructible_v<T> && !std::is_trivially_move_constructible_v<T>)
  {
    construct_as(std::move(other));
  }

  constexpr ~Result()
    requires(std::is_trivially_destructible_v<T>)
  = default;
  constexpr ~Result() { destroy_value(); }

  Result& operator=(const Result& other) = delete;
  constexpr Result& operator=(const Result& other)
    requires(detail::kTrivialCopyAssign<T>)
  = default;
  constexpr Result& operator=(const Result& other) noexcept(  // NOLINT(bugprone-unhandled-self-assignment)
      std::is_nothrow_copy_constructible_v<T> && std::is_nothrow_copy_assignable_v<T>)
    requires(std::is_copy_constructible_v<T> && std::is_copy_assignable_v<T> && !detail::kTrivialCopyAssign<T>)
  {
    assign(other);
    return *this;
  }
  constexpr Result& operator=(Result&& other)
    requires(detail::kTrivialMoveAssign<T>)
  = default;
  constexpr Result& operator=(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T> &&
                                                       std::is_nothrow_move_assignable_v<T>)
    requires(std::is_move_constructible_v<T> && std::is_move_assignable_v<T> && !detail::kTrivialMoveAssign<T>)
  {
    assign(std::move(other));
    return *this;
  }
  template <typename U = T>
    requires(detail::IsPlain<U> && !std::same_as<std::remove_cvref_t<U>, Result> && std::is_constructible_v<T, U> &&
             std::is_assignable_v<T&, U>)
  constexpr Result& operator=(U&& value) {
    if (has_value()) {
      value_ = std::forward<U>(value);
    } else {
      construct_over_error(std::forward<U>(value));
    }
    return *this;
  }
  template <detail::IsError E>
  constexpr Result& operator=(const E& error) noexcept {
    set_error(detail::refusal(error));
    return *this;
  }

  template <typename... Args>
    requires std::is_nothrow_constructible_v<T, Args...>
  constexpr T& emplace(Args&&... args) noexcept {
    destroy_value();
    return construct_over_error(std::forward<Args>(args)...);
  }
  template <typename U, typename... Args>
    requires std::is_nothrow_constructible_v<T, std::initializer_list<U>&, Args...>
  constexpr T& emplace(std::initializer_list<U> list, Args&&... args) noexcept {
    destroy_value();
    return construct_over_error(list, std::forward<Args>(args)...);
  }

  constexpr void swap(Result& other) noexcept(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_swappable_v<T>)
    requires(std::is_swappable_v<T> && std::is_move_constructible_v<T>)
  {
    using std::swap;
    if (has_value() && other.has_value()) {
      swap(value_, other.value_);
    } else if (has_value()) {
      give_value_for_error(other);
    } else if (other.has_value()) {
      other.give_value_for_error(*this);
    } else {
      swap(text_, other.text_);
      swap(number_, other.number_);
    }
  }
  friend constexpr void swap(Result& a, Result& b) noexcept(noexcept(a.swap(b)))
    requires(std::is_swappable_v<T> && std::is_move_constructible_v<T>)
  {
    a.swap(b);
  }

  [[nodiscard]] constexpr bool has_value() const noexcept { return number_ == 0; }
  constexpr explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] constexpr T& value() & noexcept { return **this; }
  [[nodiscard]] constexpr const T& value() const& noexcept { return **this; }
  [[nodiscard]] constexpr T&& value() && noexcept { return *std::move(*this); }
  [[nodiscard]] constexpr const T&& value() const&& noexcept { return *std::move(*this); }
  constexpr T& operator*() & noexcept { return check(), value_; }
  constexpr const T& operator*() const& noexcept { return check(), value_; }
  constexpr T&& operator*() && noexcept { return check(), std::move(value_); }
  constexpr const T&& operator*() const&& noexcept { return check(), std::move(value_); }
  constexpr T* operator->() noexcept { return check(), std::addressof(value_); }
  constexpr const T* operator->() const noexcept { return check(), std::addressof(value_); }

  // ok if there is a value.
  [[nodiscard]] constexpr Error error() const noexcept {
    return Error(Error::Parts{has_value() ? nullptr : text_, number_});
  }

  template <typename U = std::remove_cv_t<T>>
  [[nodiscard]] constexpr std::remove_cv_t<T> value_or(U&& fallback) const& {
    if (has_value()) {
      return value_;
    }
    return static_cast<std::remove_cv_t<T>>(std::forward<U>(fallback));
  }
  template <typename U = std::remove_cv_t<T>>
  [[nodiscard]] constexpr std::remove_cv_t<T> value_or(U&& fallback) && {
    if (has_value()) {
      return std::move(value_);
    }
    return static_cast<std::remove_cv_t<T>>(std::forward<U>(fallback));
  }
  template <typename G = Error>
  [[nodiscard]] constexpr Error error_or(G&& fallback) const {
    return has_value() ? static_cast<Error>(std::forward<G>(fallback)) : error();
  }

  // Equal values, or equal errors.
  template <typename U>
    requires(!std::is_void_v<U> && detail::ComparesTo<T, std::remove_reference_t<U>>)
  friend constexpr bool operator==(const Result& a, const Result<U>& b) {
    return a.has_value() && b.has_value() ? static_cast<bool>(*a == *b) : a.error() == b.error();
  }
  template <std::same_as<Result> R, typename U>  // R is deduced: a type that merely converts to a Result does not match
    requires(!detail::kIsResult<U> && !detail::IsError<U> && detail::ComparesTo<T, U>)
  friend constexpr bool operator==(const R& a, const U& value) {
    return a.has_value() && static_cast<bool>(*a == value);
  }
  template <detail::IsError E>
  friend constexpr bool operator==(const Result& a, const E& error) noexcept {
    return a.error() == error;
  }

 private:
  // Puts the error back when constructing the value in its place threw.
  struct Restorer {
    constexpr ~Restorer() {
      if (result != nullptr) {
        std::construct_at(std::addressof(result->text_), text);
      }
    }
    Result* result;
    const char* text;
  };

  constexpr void check() const noexcept {
    if (!has_value()) [[unlikely]] {
      detail::die_of_no_value(error());
    }
  }
  constexpr void destroy_value() noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      if (has_value()) {
        std::destroy_at(std::addressof(value_));
      }
    }
  }
  constexpr void set_error(const Error::Parts& error) noexcept {
    destroy_value();
    std::construct_at(std::addressof(text_), error.text);
    number_ = error.number;
  }

  // For constructors: the union is still empty.
  template <typename From>
  constexpr void construct_as(From&& other) {
    if (other.has_value()) {
      std::construct_at(std::addressof(value_), *std::forward<From>(other));
    } else {
      const Error::Parts error = other.error().parts();
      std::construct_at(std::addressof(text_), error.text);
      number_ = error.number;
    }
  }
  template <typename From>
  constexpr void assign(From&& other) {
    if (!other.has_value()) {
      set_error(other.error().parts());
    } else if (has_value()) {
      value_ = *std::forward<From>(other);
    } else {
      construct_over_error(*std::forward<From>(other));
    }
  }
  template <typename... Args>
  constexpr T& construct_over_error(Args&&... args) noexcept(std::is_nothrow_constructible_v<T, Args...>) {
    T* made = nullptr;
    if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
      made = std::construct_at(std::addressof(value_), std::forward<Args>(args)...);
    } else {
      Restorer restorer{this, text_};
      made = std::construct_at(std::addressof(value_), std::forward<Args>(args)...);
      restorer.result = nullptr;
    }
    number_ = 0;
    return *made;
  }
  constexpr void give_value_for_error(Result& other) {
    const Error::Parts error = other.error().parts();
    other.construct_over_error(std::move(value_));
    set_error(error);
  }

  union {
    T value_;
    const char* text_;  // the error's
  };
  std::uint64_t number_ = 0;  // the error's, never 0; 0: there is a value
};

namespace detail {
template <typename T>
constexpr T take_value(Result<T>& result) noexcept(std::is_nothrow_move_constructible_v<T>) {
  return *std::move(result);
}
template <typename T>
constexpr Ref<T> take_value(Result<T&>& result) noexcept {
  return *result;
}
constexpr void take_value(Result<void>& /*result*/) noexcept {}
}  // namespace detail

}  // namespace weft

// Yields the value of a Result, or returns its Error from the enclosing function. That function returns a
// Result of any type or an Error. A Result<T&> yields a Ref<T>, which converts to the reference.
// Each use has a variable of its own, since one use may contain another.
#define WEFT_TRY(...) WEFT_TRY_COUNTED(__COUNTER__, __VA_ARGS__)
#define WEFT_TRY_COUNTED(number, ...) WEFT_TRY_JOINED(number, __VA_ARGS__)
#define WEFT_TRY_JOINED(number, ...) WEFT_TRY_NAMED(weft_try_in_coroutines_is_WEFT_CO_TRY_##number, __VA_ARGS__)
#define WEFT_TRY_NAMED(name, ...)     \
  __extension__({                     \
    auto name = (__VA_ARGS__);        \
    if (!name) [[unlikely]] {         \
      return name.error();            \
    }                                 \
    ::weft::detail::take_value(name); \
  })
