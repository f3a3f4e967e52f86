// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <coroutine>
#include <type_traits>

namespace weft::rt::detail {

// GCC before 13 destroys a closure that owns something twice when it is a temporary of a co_await expression: it copies
// the closure's bytes into the frame and then destroys both. No function that gets the closure can repair that.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
inline constexpr bool kClosuresEndTwice = true;
#else
inline constexpr bool kClosuresEndTwice = false;
#endif

// AwaitByName: an awaiter made from a function that may be such a temporary. It is awaited by its name only:
// `auto calling = runtime.call(1, [text] {...}); co_await calling;`. There the closure's expression has no co_await.
template <typename Awaiter>
class [[nodiscard]] AwaitByName final : public Awaiter {
 public:
  using Awaiter::Awaiter;

  class Reference {
   public:
    explicit Reference(Awaiter& awaiter) noexcept : awaiter_(awaiter) {}
    [[nodiscard]] bool await_ready() const noexcept { return awaiter_.await_ready(); }
    template <typename Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) {
      return awaiter_.await_suspend(coroutine);
    }
    [[nodiscard]] decltype(auto) await_resume() { return awaiter_.await_resume(); }

   private:
    Awaiter& awaiter_;
  };
  [[nodiscard]] Reference operator co_await() & noexcept { return Reference(*this); }
  // GCC 12 would destroy the closure twice. Give the awaiter a name, and await that.
  void operator co_await() && = delete;
};

template <typename Awaiter>
inline constexpr bool kAwaitedByName = false;
template <typename Awaiter>
inline constexpr bool kAwaitedByName<AwaitByName<Awaiter>> = true;

// A function of type F, for a parameter F&&, that is an rvalue, owns something, and is like a closure or an aggregate.
// A class with a default constructor of its own, for example std::function, is destroyed once.
template <typename F>
inline constexpr bool kOwningClosure = !std::is_lvalue_reference_v<F> && !std::is_trivially_destructible_v<F> &&
                                       (std::is_aggregate_v<F> || !std::default_initializable<F>);

template <typename Awaiter, typename F>
using ClosureAwaiter = std::conditional_t<kClosuresEndTwice && kOwningClosure<F>, AwaitByName<Awaiter>, Awaiter>;

}  // namespace weft::rt::detail
