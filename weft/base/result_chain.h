// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"

// The parts that Result<T>, Result<T&> and Result<void> share. Internal to result.h, which includes this
// header.
namespace weft {

template <typename T = void>
class Result;

// Selects the constructor that makes an error of its arguments, as std::unexpect does.
struct unexpect_t {  // NOLINT(readability-identifier-naming): the standard's name
  explicit unexpect_t() = default;
};
inline constexpr unexpect_t unexpect{};  // NOLINT(readability-identifier-naming)

namespace detail {

// Names the error on stderr and aborts.
[[noreturn, gnu::cold]] void die_of_no_value(Error error) noexcept;

template <typename T>
inline constexpr bool kIsResult = false;
template <typename T>
inline constexpr bool kIsResult<Result<T>> = true;

template <typename T>
concept IsError = std::same_as<std::remove_cvref_t<T>, Error> || std::same_as<std::remove_cvref_t<T>, Errc>;

// True for any argument that does not select a constructor of its own.
template <typename U>
concept IsPlain = !IsError<U> && !std::same_as<std::remove_cvref_t<U>, std::in_place_t> &&
                  !std::same_as<std::remove_cvref_t<U>, unexpect_t>;

template <typename A, typename B>
concept ComparesTo = requires(const A& a, const B& b) {
  { a == b } -> std::convertible_to<bool>;
};

// The content of the error state. An Error that is ok becomes invalid_state, since there is no value.
constexpr Error::Parts refusal(Error error) noexcept {
  if (error.parts().number == 0) [[unlikely]] {
    return Error(Errc::invalid_state, "a Result was made of an Error that is ok").parts();
  }
  return error.parts();
}

template <typename A>
constexpr decltype(auto) pointee(A&& a) {
  if constexpr (std::is_pointer_v<std::remove_cvref_t<A>>) {
    return *a;
  } else {
    return std::forward<A>(a);
  }
}

// std::invoke, without <functional>.
template <typename F, typename... Args>
constexpr std::invoke_result_t<F, Args...> call(F&& f, Args&&... args) {
  if constexpr (std::is_member_object_pointer_v<std::remove_cvref_t<F>>) {
    return ((pointee(std::forward<Args>(args)).*f), ...);
  } else if constexpr (std::is_member_function_pointer_v<std::remove_cvref_t<F>>) {
    return ((pointee(std::forward<Args>(args)).*f)(), ...);
  } else {
    return std::forward<F>(f)(std::forward<Args>(args)...);
  }
}

// The return type of a function of the value of `Self`. A Result<void> calls the function without an
// argument.
template <typename F, typename Self>
struct CallOf {
  using Type = std::invoke_result_t<F, decltype(*std::declval<Self>())>;
};
template <typename F, typename Self>
  requires std::is_void_v<typename std::remove_cvref_t<Self>::value_type>
struct CallOf<F, Self> {
  using Type = std::invoke_result_t<F>;
};

struct FromCall {};   // selects the constructor that makes the value of a call, in place
struct FromError {};  // selects the constructor that takes the parts of another Result's error, unchecked

// Whether a new Result can take over the value, if there is one.
template <typename Self>
concept PassesOn =
    std::is_void_v<typename std::remove_cvref_t<Self>::value_type> ||
    std::is_constructible_v<typename std::remove_cvref_t<Self>::value_type, decltype(*std::declval<Self>())>;

template <typename Self>
constexpr auto pass_on(Self&& self) {
  using Same = std::remove_cvref_t<Self>;
  if constexpr (std::is_void_v<typename Same::value_type>) {
    return Same();
  } else {
    return Same(std::in_place, *std::forward<Self>(self));
  }
}

template <typename Self, typename F>
constexpr auto and_then(Self&& self, F&& f) {
  using Next = std::remove_cvref_t<typename CallOf<F, Self>::Type>;
  static_assert(kIsResult<Next>, "and_then takes a function that returns a Result; transform takes others");
  if (!self.has_value()) {
    return Next(FromError(), self.error().parts());
  }
  if constexpr (std::is_void_v<typename std::remove_cvref_t<Self>::value_type>) {
    return Next(call(std::forward<F>(f)));
  } else {
    return Next(call(std::forward<F>(f), *std::forward<Self>(self)));
  }
}

template <typename Self, typename F>
constexpr auto transform(Self&& self, F&& f) {
  using Value = std::remove_cv_t<typename CallOf<F, Self>::Type>;
  constexpr bool kNoArgument = std::is_void_v<typename std::remove_cvref_t<Self>::value_type>;
  if (!self.has_value()) {
    return Result<Value>(FromError(), self.error().parts());
  }
  if constexpr (!std::is_void_v<Value>) {
    if constexpr (kNoArgument) {
      return Result<Value>(FromCall(), std::forward<F>(f));
    } else {
      return Result<Value>(FromCall(), std::forward<F>(f), *std::forward<Self>(self));
    }
  } else {
    if constexpr (kNoArgument) {
      call(std::forward<F>(f));
    } else {
      call(std::forward<F>(f), *std::forward<Self>(self));
    }
    return Result<Value>();
  }
}

template <typename Self, typename F>
constexpr auto or_else(Self&& self, F&& f) {
  using Same = std::remove_cvref_t<Self>;
  static_assert(std::same_as<std::remove_cvref_t<std::invoke_result_t<F, Error>>, Same>,
                "or_else takes a function of an Error that returns the same Result");
  if (self.has_value()) [[likely]] {
    return pass_on(std::forward<Self>(self));
  }
  return Same(call(std::forward<F>(f), self.error()));
}

template <typename Self, typename F>
constexpr auto transform_error(Self&& self, F&& f) {
  static_assert(std::is_convertible_v<std::invoke_result_t<F, Error>, Error>,
                "transform_error takes a function of an Error that returns an Error");
  if (self.has_value()) [[likely]] {
    return pass_on(std::forward<Self>(self));
  }
  return std::remove_cvref_t<Self>(unexpect, Error(call(std::forward<F>(f), self.error())));
}

// The operations of std::expected that take a function, for all four kinds of *this. Empty base class of each
// Result.
template <typename Self>
class ResultChain {
 public:
  // f(value) returns the next Result. An error is passed on without calling f.
  template <typename F>
  constexpr auto and_then(F&& f) & {
    return detail::and_then(static_cast<Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto and_then(F&& f) const& {
    return detail::and_then(static_cast<const Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto and_then(F&& f) && {
    return detail::and_then(static_cast<Self&&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto and_then(F&& f) const&& {
    return detail::and_then(static_cast<const Self&&>(*this), std::forward<F>(f));
  }

  // f(value) returns the next value, a reference or nothing. An error is passed on without calling f.
  template <typename F>
  constexpr auto transform(F&& f) & {
    return detail::transform(static_cast<Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto transform(F&& f) const& {
    return detail::transform(static_cast<const Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto transform(F&& f) && {
    return detail::transform(static_cast<Self&&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto transform(F&& f) const&& {
    return detail::transform(static_cast<const Self&&>(*this), std::forward<F>(f));
  }

  // The same as transform.
  template <typename F>
  constexpr auto map(F&& f) & {
    return detail::transform(static_cast<Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto map(F&& f) const& {
    return detail::transform(static_cast<const Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto map(F&& f) && {
    return detail::transform(static_cast<Self&&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto map(F&& f) const&& {
    return detail::transform(static_cast<const Self&&>(*this), std::forward<F>(f));
  }

  // f(error) returns the same kind of Result. A value is passed on without calling f.
  template <typename F>
  constexpr auto or_else(F&& f) &
    requires PassesOn<Self&>
  {
    return detail::or_else(static_cast<Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto or_else(F&& f) const&
    requires PassesOn<const Self&>
  {
    return detail::or_else(static_cast<const Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto or_else(F&& f) &&
    requires PassesOn<Self&&>
  {
    return detail::or_else(static_cast<Self&&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto or_else(F&& f) const&&
    requires PassesOn<const Self&&>
  {
    return detail::or_else(static_cast<const Self&&>(*this), std::forward<F>(f));
  }

  // f(error) returns another Error. A value is passed on without calling f.
  template <typename F>
  constexpr auto transform_error(F&& f) &
    requires PassesOn<Self&>
  {
    return detail::transform_error(static_cast<Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto transform_error(F&& f) const&
    requires PassesOn<const Self&>
  {
    return detail::transform_error(static_cast<const Self&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto transform_error(F&& f) &&
    requires PassesOn<Self&&>
  {
    return detail::transform_error(static_cast<Self&&>(*this), std::forward<F>(f));
  }
  template <typename F>
  constexpr auto transform_error(F&& f) const&&
    requires PassesOn<const Self&&>
  {
    return detail::transform_error(static_cast<const Self&&>(*this), std::forward<F>(f));
  }

 private:
  friend Self;
  constexpr ResultChain() noexcept = default;
};

}  // namespace detail
}  // namespace weft
