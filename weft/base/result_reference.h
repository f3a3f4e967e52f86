// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/result_chain.h"

namespace weft {

// Ref<T>: the type that WEFT_TRY yields for a Result<T&>. It converts to the reference: `T& x =
// WEFT_TRY(find(id));`.
template <typename T>
class Ref {
 public:
  constexpr Ref(T& to) noexcept : to_(std::addressof(to)) {}  // NOLINT(google-explicit-constructor)

  constexpr operator T&() const noexcept { return *to_; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] constexpr T& get() const noexcept { return *to_; }
  constexpr T* operator->() const noexcept { return to_; }

 private:
  T* to_;
};

namespace detail {
// U binds to a T& without a temporary, which would be destroyed at once.
template <typename U, typename T>
concept BindsTo = IsPlain<U> && std::is_lvalue_reference_v<U> && std::convertible_to<std::remove_reference_t<U>*, T*>;
}  // namespace detail

// Result<T&>: a reference to a T that another object owns, or an Error with the reason. Assignment rebinds the
// reference and does not assign to the T. A const Result does not make the T const.
// Affinity: a value. Cost: 16 trivially copyable bytes. Included by result.h, whose invariants hold here too.
template <typename T>
class [[nodiscard]] Result<T&> : public detail::ResultChain<Result<T&>> {
 public:
  using value_type = T&;
  using error_type = Error;
  using unexpected_type = Error;
  template <typename U>
  using rebind = Result<U>;

  constexpr Result(Error error) noexcept
      : Result(detail::FromError(), detail::refusal(error)) {}   // NOLINT(google-explicit-constructor)
  constexpr Result(Errc code) noexcept : Result(Error(code)) {}  // NOLINT(google-explicit-constructor)
  template <typename U>
    requires detail::BindsTo<U&&, T>
  constexpr Result(U&& to) noexcept : value_(std::addressof(to)) {}  // NOLINT(google-explicit-constructor)
  template <typename U>
    requires std::convertible_to<U*, T*>
  constexpr Result(Ref<U> to) noexcept : value_(std::addressof(to.get())) {}  // NOLINT(google-explicit-constructor)
  template <typename U>
    requires(!std::same_as<U, T> && std::convertible_to<U*, T*>)
  constexpr Result(const Result<U&>& other) noexcept  // NOLINT(google-explicit-constructor)
      : Result(other.has_value() ? Result(*other) : Result(other.error())) {}
  template <typename U>
    requires detail::BindsTo<U&&, T>
  constexpr explicit Result(std::in_place_t, U&& to) noexcept : value_(std::addressof(to)) {}
  // The arguments of Error.
  constexpr explicit Result(unexpect_t, Error error = {}) noexcept : Result(error) {}
  constexpr explicit Result(unexpect_t, Errc code, StaticText text = {}, int os_errno = 0) noexcept
      : Result(Error(code, text, os_errno)) {}
  constexpr explicit Result(unexpect_t, ErrorDomain domain, std::uint16_t value, StaticText text = {},
                            int os_errno = 0) noexcept
      : Result(Error(domain, value, text, os_errno)) {}
  template <typename F, typename... Args>
  constexpr Result(detail::FromCall, F&& f, Args&&... args)
      : Result(detail::call(std::forward<F>(f), std::forward<Args>(args)...)) {}
  constexpr Result(detail::FromError, const Error::Parts& error) noexcept : text_(error.text), number_(error.number) {}

  [[nodiscard]] constexpr bool has_value() const noexcept { return number_ == 0; }
  constexpr explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] constexpr T& value() const noexcept { return **this; }
  constexpr T& operator*() const noexcept { return *operator->(); }
  constexpr T* operator->() const noexcept {
    if (!has_value()) [[unlikely]] {
      detail::die_of_no_value(error());
    }
    return value_;
  }
  // ok when there is a value.
  [[nodiscard]] constexpr Error error() const noexcept {
    return Error(Error::Parts{has_value() ? nullptr : text_, number_});
  }
  template <typename U>
  [[nodiscard]] constexpr std::remove_cv_t<T> value_or(U&& fallback) const {
    if (has_value()) {
      return **this;
    }
    return static_cast<std::remove_cv_t<T>>(std::forward<U>(fallback));
  }
  template <typename G = Error>
  [[nodiscard]] constexpr Error error_or(G&& fallback) const {
    return has_value() ? static_cast<Error>(std::forward<G>(fallback)) : error();
  }

  template <typename U>
    requires detail::BindsTo<U&&, T>
  constexpr T& emplace(U&& to) noexcept {
    *this = Result(to);
    return to;
  }
  constexpr void swap(Result& other) noexcept {
    const Result mine = *this;
    *this = other;
    other = mine;
  }
  friend constexpr void swap(Result& a, Result& b) noexcept { a.swap(b); }

  template <typename U>
    requires detail::ComparesTo<T, std::remove_reference_t<U>>
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
  union {
    T* value_;
    const char* text_;
  };
  std::uint64_t number_ = 0;  // the error's, never 0; 0: there is a value
};

}  // namespace weft
