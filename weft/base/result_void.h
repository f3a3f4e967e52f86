// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/result_chain.h"

namespace weft {

// Result<void>: success, or the Error of the operation. An Error of code ok is success.
// Affinity: a value. Cost: an Error; returned in two registers. Included by result.h. Its invariants hold
// here too, except that an ok Error is a success.
template <>
class [[nodiscard]] Result<void> : public detail::ResultChain<Result<void>> {
 public:
  using value_type = void;
  using error_type = Error;
  using unexpected_type = Error;
  template <typename U>
  using rebind = Result<U>;

  constexpr Result() noexcept = default;
  constexpr Result(Error error) noexcept : error_(error) {}      // NOLINT(google-explicit-constructor)
  constexpr Result(Errc code) noexcept : Result(Error(code)) {}  // NOLINT(google-explicit-constructor)
  constexpr explicit Result(std::in_place_t) noexcept {}
  // The arguments of Error.
  constexpr explicit Result(unexpect_t, Error error = {}) noexcept : error_(detail::refusal(error)) {}
  constexpr explicit Result(unexpect_t, Errc code, StaticText text = {}, int os_errno = 0) noexcept
      : Result(unexpect, Error(code, text, os_errno)) {}
  constexpr explicit Result(unexpect_t, ErrorDomain domain, std::uint16_t value, StaticText text = {},
                            int os_errno = 0) noexcept
      : Result(unexpect, Error(domain, value, text, os_errno)) {}
  constexpr Result(detail::FromError, const Error::Parts& error) noexcept : error_(error) {}

  [[nodiscard]] constexpr bool has_value() const noexcept { return error_.parts().number == 0; }
  constexpr explicit operator bool() const noexcept { return has_value(); }
  constexpr void value() const noexcept { return **this; }
  constexpr void operator*() const noexcept {
    if (!has_value()) [[unlikely]] {
      detail::die_of_no_value(error_);
    }
  }
  // ok on success.
  [[nodiscard]] constexpr Error error() const noexcept { return error_; }
  template <typename G = Error>
  [[nodiscard]] constexpr Error error_or(G&& fallback) const {
    return has_value() ? static_cast<Error>(std::forward<G>(fallback)) : error_;
  }

  constexpr void emplace() noexcept { error_ = Error(); }
  constexpr void swap(Result& other) noexcept { std::swap(error_, other.error_); }
  friend constexpr void swap(Result& a, Result& b) noexcept { a.swap(b); }

  friend constexpr bool operator==(const Result& a, const Result& b) noexcept {
    return a.has_value() ? b.has_value() : a.error_ == b.error_;
  }
  template <detail::IsError E>
  friend constexpr bool operator==(const Result& a, const E& error) noexcept {
    return a.error_ == error;
  }

 private:
  Error error_;
};

}  // namespace weft
