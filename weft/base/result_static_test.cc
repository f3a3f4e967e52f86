// SPDX-License-Identifier: MIT
// The promises of [expected.object] and [expected.void] in the C++23 standard, checked on Result by the
// compiler: existence, triviality, noexcept, refusal to compile, use at compile time. result_expected_test.cc
// checks the others.
#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/result.h"
namespace weft {
namespace {

// A value type whose special member functions are chosen by the template's arguments.
template <bool kCopies, bool kMoves, bool kNothrow>
struct Kind {
  Kind() noexcept(kNothrow) {}
  Kind(const Kind&) noexcept(kNothrow)
    requires kCopies
  {}
  Kind(Kind&&) noexcept(kNothrow)
    requires kMoves
  {}
  Kind& operator=(const Kind&) noexcept(kNothrow)
    requires kCopies
  {
    return *this;
  }
  Kind& operator=(Kind&&) noexcept(kNothrow)
    requires kMoves
  {
    return *this;
  }
  ~Kind() {}  // NOLINT(modernize-use-equals-default): not trivial
};
using Copied = Kind<true, true, true>;
using Throwing = Kind<true, true, false>;
using Moved = Kind<false, true, true>;
struct Pinned {  // neither copied nor moved
  explicit Pinned(int number) : value(number) {}
  Pinned(Pinned&&) = delete;
  int value;
};
struct NoDefault {
  explicit NoDefault(int number) noexcept : value(number) {}
  int value;
};
struct ConstMember {  // trivially copied, not assigned
  const int value = 1;
};

// [expected.object.cons], [expected.object.dtor], [expected.object.assign]: existence, triviality, noexcept.
template <typename T>
inline constexpr bool kSameTrivialities =
    std::is_trivially_copy_constructible_v<Result<T>> == std::is_trivially_copy_constructible_v<T> &&
    std::is_trivially_move_constructible_v<Result<T>> == std::is_trivially_move_constructible_v<T> &&
    std::is_trivially_destructible_v<Result<T>> == std::is_trivially_destructible_v<T> &&
    std::is_trivially_copyable_v<Result<T>> == std::is_trivially_copyable_v<T>;
template <typename T>
inline constexpr bool kSameMembers =
    std::is_default_constructible_v<Result<T>> == std::is_default_constructible_v<T> &&
    std::is_copy_constructible_v<Result<T>> == std::is_copy_constructible_v<T> &&
    std::is_move_constructible_v<Result<T>> == std::is_move_constructible_v<T> &&
    std::is_copy_assignable_v<Result<T>> == std::is_copy_assignable_v<T> &&
    std::is_move_assignable_v<Result<T>> == std::is_move_assignable_v<T> &&
    std::is_swappable_v<Result<T>> == (std::is_swappable_v<T> && std::is_move_constructible_v<T>);
template <typename T>
inline constexpr bool kSameNoexcept =
    std::is_nothrow_default_constructible_v<Result<T>> == std::is_nothrow_default_constructible_v<T> &&
    std::is_nothrow_copy_constructible_v<Result<T>> == std::is_nothrow_copy_constructible_v<T> &&
    std::is_nothrow_move_constructible_v<Result<T>> == std::is_nothrow_move_constructible_v<T> &&
    std::is_nothrow_move_assignable_v<Result<T>> ==
        (std::is_nothrow_move_assignable_v<T> && std::is_nothrow_move_constructible_v<T>) &&
    std::is_nothrow_swappable_v<Result<T>> ==
        (std::is_nothrow_swappable_v<T> && std::is_nothrow_move_constructible_v<T>);
template <typename T>
inline constexpr bool kIsLike = kSameTrivialities<T> && kSameMembers<T> && kSameNoexcept<T>;

static_assert(kIsLike<int> && kIsLike<bool> && kIsLike<double> && kIsLike<const char*> && kIsLike<Error> &&
              kIsLike<Errc>);
static_assert(kIsLike<std::string> && kIsLike<std::vector<int>> && kIsLike<std::unique_ptr<int>> &&
              kIsLike<Result<int>>);
static_assert(kIsLike<Copied> && kIsLike<Throwing> && kIsLike<Moved> && kIsLike<NoDefault>);
static_assert(kSameMembers<Pinned> && kSameMembers<ConstMember> && kSameMembers<const int>);
static_assert(!std::is_move_constructible_v<Result<Pinned>> &&
              std::is_constructible_v<Result<Pinned>, std::in_place_t, int>);
static_assert(std::is_trivially_copyable_v<Result<void>> && sizeof(Result<void>) == 16);
static_assert(std::is_trivially_copyable_v<Result<std::string&>> && sizeof(Result<std::string&>) == 16);
static_assert(sizeof(Result<bool>) == 16 && sizeof(Result<double>) == 16 && sizeof(Result<std::unique_ptr<int>>) == 16);
static_assert(sizeof(Result<std::string>) == sizeof(std::string) + 8);

// The arguments that make a Result, explicitly or implicitly.
template <typename T, typename From>
inline constexpr bool kExplicit = std::is_constructible_v<Result<T>, From> && !std::is_convertible_v<From, Result<T>>;
template <typename T, typename From>
inline constexpr bool kImplicit = std::is_convertible_v<From, Result<T>>;
static_assert(kImplicit<int, short> && kImplicit<std::string, const char*> && kExplicit<NoDefault, int>);
static_assert(kImplicit<int, Error> && kImplicit<int, Errc> && kImplicit<void, Error> && kImplicit<void, Errc>);
static_assert(kImplicit<long, Result<int>> && kImplicit<std::string, const Result<const char*>&>);
static_assert(kExplicit<NoDefault, Result<int>> && kExplicit<std::vector<int>, std::size_t>);
static_assert(!std::is_constructible_v<Result<int>, std::string> &&
              !std::is_constructible_v<Result<int>, Result<std::string>>);
static_assert(!std::is_constructible_v<Result<int>, Result<void>> &&
              !std::is_constructible_v<Result<void>, Result<int>>);
static_assert(!std::is_constructible_v<Result<void>, int>);
static_assert(kExplicit<std::string, std::in_place_t> && kExplicit<std::string, unexpect_t>);
static_assert(std::is_constructible_v<Result<int>, unexpect_t, Errc, const char*, int>);
static_assert(!std::is_constructible_v<Result<int>, unexpect_t, std::string>);
static_assert(!std::is_assignable_v<Result<NoDefault>&, int> &&
              std::is_assignable_v<Result<std::string>&, const char*>);
static_assert(std::is_assignable_v<Result<Pinned>&, Errc> && std::is_assignable_v<Result<ConstMember>&, Error>);

// A reference binds only to an object that lives on, and only to a type that needs no temporary.
struct Base {};
struct Derived : Base {};
static_assert(kImplicit<int&, int&> && kImplicit<const int&, int&> && kImplicit<Base&, Derived&>);
static_assert(kImplicit<const int&, Result<int&>> && kImplicit<Base&, Result<Derived&>>);
static_assert(!std::is_constructible_v<Result<int&>, int> && !std::is_constructible_v<Result<int&>, const int&>);
static_assert(!std::is_constructible_v<Result<const int&>, int> && !std::is_constructible_v<Result<const int&>, long&>);
static_assert(!std::is_constructible_v<Result<const std::string&>, const char (&)[4]>);
static_assert(!std::is_constructible_v<Result<Derived&>, Base&> && !std::is_default_constructible_v<Result<int&>>);

// The kinds of access, by the kind of the Result.
template <typename R>
using Star = decltype(*std::declval<R>());
template <typename R>
using Value = decltype(std::declval<R>().value());
template <typename R, typename Expected>
inline constexpr bool kGives = std::same_as<Star<R>, Expected> && std::same_as<Value<R>, Expected>;
static_assert(kGives<Result<int>&, int&> && kGives<const Result<int>&, const int&>);
static_assert(kGives<Result<int>, int&&> && kGives<const Result<int>, const int&&>);
static_assert(kGives<Result<int&>&, int&> && kGives<const Result<int&>&, int&> && kGives<Result<int&>, int&>);
static_assert(kGives<Result<void>&, void> && kGives<const Result<void>, void>);
static_assert(noexcept(std::declval<Result<std::string>&>().value()) && noexcept(*std::declval<Result<std::string>>()));
static_assert(std::same_as<decltype(std::declval<const Result<std::string>&>().operator->()), const std::string*>);
static_assert(!std::is_convertible_v<Result<int>, bool> && std::is_constructible_v<bool, Result<int>>);
static_assert(std::same_as<Result<int>::value_type, int> && std::same_as<Result<int>::error_type, Error>);
static_assert(std::same_as<Result<int>::rebind<long>, Result<long>>);

// Expressions that must not compile.
template <typename R, typename... Args>
concept Emplaces = requires(R& result, Args&&... args) { result.emplace(std::forward<Args>(args)...); };
static_assert(Emplaces<Result<int>, int> && Emplaces<Result<Pinned&>, Pinned&> && Emplaces<Result<void>>);
static_assert(!Emplaces<Result<std::string>, const char*> &&
              !Emplaces<Result<int&>, int>);  // could throw; would dangle
template <typename R>
concept Recovers =
    requires(R&& result) { std::forward<R>(result).or_else([](Error) { return std::remove_cvref_t<R>(); }); };
static_assert(Recovers<Result<int>&> && Recovers<Result<std::unique_ptr<int>>> && Recovers<const Result<void>&>);
static_assert(!Recovers<Result<std::unique_ptr<int>>&> && !Recovers<const Result<std::unique_ptr<int>>>);
template <typename A, typename B>
concept Compares = requires(const A& a, const B& b) { a == b; };
static_assert(Compares<Result<int>, Result<long>> && Compares<Result<int>, int> && Compares<Result<int>, Errc>);
static_assert(Compares<Result<void>, Error> && Compares<Error, Result<int>> && Compares<Result<int&>, int>);
static_assert(!Compares<Result<NoDefault>, Result<NoDefault>> && !Compares<Result<int>, std::string>);
static_assert(!Compares<Result<int>, Result<void>>);

// Everything at compile time.
struct Owner {  // not trivial in any way
  constexpr explicit Owner(int number) noexcept : value(new int(number)) {}
  constexpr Owner(const Owner& other) : value(new int(*other.value)) {}
  constexpr Owner(Owner&& other) noexcept : value(std::exchange(other.value, nullptr)) {}
  constexpr Owner& operator=(Owner other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  constexpr ~Owner() { delete value; }
  int* value;
};

template <typename T>
constexpr bool lives_at_compile_time(T one, T two) {
  Result<T> a(std::in_place, one);
  Result<T> b = a;
  b = Errc::closed;
  a = std::move(b);
  const bool was_error = !a && a == Errc::closed && a.error_or(Errc::system) == Errc::closed;
  a = two;
  Result<T> c(unexpect, Errc::timed_out, "late", 5);
  swap(a, c);
  const bool swapped = c && !a && a.error().os_errno() == 5;
  const Result<T>& same = c;
  c = same;
  a = c;
  a = T(one);
  auto next = std::move(a).transform([](T value) { return value; }).and_then([](T value) { return Result<T>(value); });
  next =
      std::move(next).or_else([](Error error) { return Result<T>(error); }).transform_error([](Error e) { return e; });
  c = Error(Errc::closed);
  return was_error && swapped && next.has_value() && std::move(c).value_or(one).value != nullptr;
}
static_assert(lives_at_compile_time(Owner(1), Owner(2)));
static_assert([] {
  Result<int> a;
  a = 5;
  Result<int> b(Errc::closed);
  swap(a, b);
  a = b;
  int place = 1;
  Result<int&> to = place;
  *to += *a;
  Result<void> done;
  done = Errc::closed;
  done.emplace();
  return *Result<long>(a) == 5 && place == 6 && done && to == 6 && a == Result<long>(5) &&
         a.map([](int i) { return i; }) == 5;
}());

}  // namespace
}  // namespace weft
